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
    """Exactly the open delay claims for shipments that came in time are rejected with the note, and exactly their codes named."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    claims = changed.pop("claims", [])
    if added or removed or changed:
        return {"result": "others"}
    due = {}
    for row in before["claims"].values():
        shipment = before["shipments"][row["shipment_id"]]
        if row["kind"] == "delay" and row["status"] == "open" and shipment["delivered_at"][:10] <= shipment["promised_on"]:
            due[row["id"]] = shipment["tracking_code"]
    rejected = {
        new["id"]
        for old, new in claims
        if new["status"] == "rejected"
        and re.sub(r"[^a-z ]", "", (new["decision_note"] or "").lower()).split() == ["delivered", "on", "time"]
        and columns_changed(old, new) == {"status", "decision_note", "decided_by"}
    }
    codes = set(re.findall(r"\bRC\d{6}\b", (final_answer or "").upper()))
    right = len(claims) == len(rejected) and rejected == set(due) and codes == set(due.values())
    return {"result": "complete" if right else "others"}
