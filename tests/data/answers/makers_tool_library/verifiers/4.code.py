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


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    """TL-0204 damaged and in repair with one open job, and one unpaid damage charge on its last loan."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    jobs, charges, copies = added.pop("maintenance_jobs", []), added.pop("charges", []), changed.pop("tool_copies", [])
    if added or removed or changed or len(jobs) != 1 or len(charges) != 1 or len(copies) != 1:
        return {"result": "others"}
    copy = next(row for row in before["tool_copies"].values() if row["asset_tag"] == "TL-0204")
    last = max((row for row in before["loans"].values() if row["copy_id"] == copy["id"]), key=lambda row: row["checked_out_on"])
    job, charge, (old, new) = jobs[0], charges[0], copies[0]
    issue = " ".join(re.sub(r"[^a-z ]", " ", job["issue"].lower()).split())
    right = (
        new["id"] == copy["id"]
        and new["condition"] == "damaged"
        and new["status"] == "in_repair"
        and columns_changed(old, new) == {"condition", "status"}
        and job["copy_id"] == copy["id"]
        and issue == "cracked blade guard"
        and job["severity"] == "high"
        and job["status"] == "open"
        and charge["member_id"] == last["member_id"]
        and charge["loan_id"] == last["id"]
        and charge["kind"] == "damage"
        and charge["amount_cents"] == 4500
        and charge["paid_cents"] == 0
        and charge["waived_cents"] == 0
    )
    return {"result": "complete" if right else "others"}
