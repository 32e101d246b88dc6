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
    """Exactly the drills that are in the building with three or more finished jobs are retired, and exactly their tags named."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    copies = changed.pop("tool_copies", [])
    if added or removed or changed:
        return {"result": "others"}
    category = next(row["id"] for row in before["categories"].values() if row["name"] == "Power drills")
    drills = {row["id"] for row in before["tools"].values() if row["category_id"] == category}
    done = [row["copy_id"] for row in before["maintenance_jobs"].values() if row["status"] == "done"]
    due = {
        row["id"]: row["asset_tag"]
        for row in before["tool_copies"].values()
        if row["tool_id"] in drills and row["status"] not in ("on_loan", "retired") and done.count(row["id"]) >= 3
    }
    retired = {new["id"] for old, new in copies if new["status"] == "retired" and columns_changed(old, new) == {"status"}}
    tags = {f"TL-{number}" for number in re.findall(r"\bTL\W?(\d{4})\b", (final_answer or "").upper())}
    right = len(copies) == len(retired) and retired == set(due) and tags == set(due.values())
    return {"result": "complete" if right else "others"}
