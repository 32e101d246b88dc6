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
    """One new patient with the details given, and no other change."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    patients = added.pop("patients", [])
    if added or removed or changed or len(patients) != 1:
        return {"result": "others"}
    patient = patients[0]
    right = (
        patient["full_name"].lower().split() == ["amara", "diallo"]
        and patient["birth_date"] == "1984-03-14"
        and re.sub(r"\D", "", patient["phone"] or "") == "5550171"
        and patient["language"].lower() == "french"
        and patient["guardian_id"] is None
    )
    return {"result": "complete" if right else "others"}
