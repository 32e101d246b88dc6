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
    """Nothing changes, because the account is on hold, and the answer says so."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    if added or removed or changed:
        return {"result": "others"}
    text = re.sub(r"[\W_]+", " ", (final_answer or "").lower())
    right = re.search(r"\bon hold\b|\bheld\b|\bblocked\b|\bsuspended\b", text) is not None and re.search(r"\bnot on hold\b", text) is None
    return {"result": "complete" if right else "others"}
