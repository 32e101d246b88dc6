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
    """One new member as asked for, with the one charge for the plan's fee that enrolling makes; nothing else."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    members, fees = added.pop("members", []), added.pop("charges", [])
    if added or removed or changed or len(members) != 1 or len(fees) != 1:
        return {"result": "others"}
    plan = next(row for row in before["membership_plans"].values() if row["name"] == "Household")
    member, fee = members[0], fees[0]
    right = (
        member["full_name"].split() == ["Priya", "Raman"]
        and member["email"].lower() == "priya.raman@example.org"
        and re.sub(r"\D", "", member["phone"] or "") == "5550142"
        and member["plan_id"] == plan["id"]
        and member["status"] == "active"
        and member["expires_on"][:4] == str(int(member["joined_on"][:4]) + 1)
        and fee["member_id"] == member["id"]
        and fee["kind"] == "membership"
        and fee["amount_cents"] == plan["annual_fee_cents"]
        and fee["paid_cents"] == 0
        and fee["waived_cents"] == 0
    )
    return {"result": "complete" if right else "others"}
