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
    """On the 14th both copies are spoken for, so Marek's pressure washer reservation is cancelled and nothing else happens."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    reservations = changed.pop("reservations", [])
    if added or removed or changed or len(reservations) != 1:
        return {"result": "others"}
    old, new = reservations[0]
    member = next(row for row in before["members"].values() if row["full_name"] == "Marek Dvorak")
    tool = next(row for row in before["tools"].values() if row["name"] == "Pressure washer")
    right = (
        old["member_id"] == member["id"]
        and old["tool_id"] == tool["id"]
        and old["status"] == "booked"
        and new["status"] == "cancelled"
        and columns_changed(old, new) == {"status"}
    )
    return {"result": "complete" if right else "others"}
