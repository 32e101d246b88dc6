import sqlite3
from datetime import date


def load(path):
    """Every row of every table, by table name and id."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").fetchall()
        return {name: {row["id"]: dict(row) for row in connection.execute(f'SELECT * FROM "{name}"')} for (name,) in names}
    finally:
        connection.close()


def compare(before, after):
    """What differs: added and removed rows, and changed rows as (old, new), by table."""
    added, removed, changed = {}, {}, {}
    for table in sorted(set(before) | set(after)):
        old, new = before.get(table, {}), after.get(table, {})
        for key in sorted(set(old) | set(new)):
            if key not in old:
                added.setdefault(table, []).append(new[key])
            elif key not in new:
                removed.setdefault(table, []).append(old[key])
            elif old[key] != new[key]:
                changed.setdefault(table, []).append((old[key], new[key]))
    return added, removed, changed


def columns_changed(old, new):
    return {name for name in new if new[name] != old.get(name)}


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    """One new place for Lena in any workshop that meets the conditions, with the unpaid charge that signing up makes."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    signups, charges = added.pop("workshop_signups", []), added.pop("charges", [])
    if added or removed or changed or len(signups) != 1:
        return {"result": "others"}
    member = next(row for row in before["members"].values() if row["full_name"] == "Lena Fischer")
    signup = signups[0]
    workshop = before["workshops"].get(signup["workshop_id"])
    if workshop is None or signup["member_id"] != member["id"] or signup["status"] != "enrolled":
        return {"result": "others"}
    held = [row for row in before["workshop_signups"].values() if row["workshop_id"] == workshop["id"]]
    taken = sum(row["status"] in ("enrolled", "attended", "absent") for row in held)
    mine = any(row["member_id"] == member["id"] and row["status"] in ("enrolled", "waitlisted") for row in held)
    day = workshop["starts_at"][:10]
    fits = (
        workshop["status"] == "scheduled"
        and day.startswith("2026-01-")
        and date.fromisoformat(day).weekday() != 5
        and workshop["fee_cents"] <= 1500
        and taken < workshop["capacity"]
        and not mine
    )
    if workshop["fee_cents"] == 0:
        billed = not charges
    else:
        billed = (
            len(charges) == 1
            and charges[0]["id"] == signup["charge_id"]
            and charges[0]["member_id"] == member["id"]
            and charges[0]["amount_cents"] == workshop["fee_cents"]
            and charges[0]["paid_cents"] == 0
            and charges[0]["waived_cents"] == 0
        )
    return {"result": "complete" if fits and billed else "others"}
