import re
import sqlite3


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


def plain(text):
    return " ".join(re.sub(r"[^\w]+", " ", (text or "").lower()).split())


def first_named(answer, candidates):
    """The candidate that the answer names first, or None; hyphens, case and punctuation don't matter."""
    text = f" {plain(answer)} "
    places = {name: text.find(f" {plain(name)} ") for name in candidates}
    named = [name for name in candidates if places[name] >= 0]
    return min(named, key=lambda name: (places[name], -len(name))) if named else None


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    """Joon-ho's place cancelled, his unpaid fee written off, the first in the queue enrolled and charged, and named."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    signups, old_charges, new_charges = changed.pop("workshop_signups", []), changed.pop("charges", []), added.pop("charges", [])
    if added or removed or changed or len(signups) != 2 or len(old_charges) != 1 or len(new_charges) != 1:
        return {"result": "others"}
    workshop = next(row for row in before["workshops"].values() if row["title"] == "Welding basics")
    names = {row["id"]: row["full_name"] for row in before["members"].values()}
    waiting = [row for row in before["workshop_signups"].values() if row["workshop_id"] == workshop["id"] and row["status"] == "waitlisted"]
    first = min(waiting, key=lambda row: (row["created_at"], row["id"]))
    moved = {new["id"]: (old, new) for old, new in signups}
    if first["id"] not in moved:
        return {"result": "others"}
    _, promoted = moved.pop(first["id"])
    (old, new), (old_fee, new_fee) = moved.popitem()[1], old_charges[0]
    right = (
        old["workshop_id"] == workshop["id"]
        and names[old["member_id"]] == "Joon-ho Park"
        and (old["status"], new["status"]) == ("enrolled", "cancelled")
        and promoted["status"] == "enrolled"
        and promoted["charge_id"] == new_charges[0]["id"]
        and new_charges[0]["member_id"] == first["member_id"]
        and new_charges[0]["amount_cents"] == workshop["fee_cents"]
        and new_charges[0]["paid_cents"] == 0
        and old_fee["id"] == old["charge_id"]
        and new_fee["paid_cents"] + new_fee["waived_cents"] == new_fee["amount_cents"]
        and new_fee["paid_cents"] == old_fee["paid_cents"]
        and first_named(final_answer, [names[row["member_id"]] for row in waiting]) == names[first["member_id"]]
    )
    return {"result": "complete" if right else "others"}
