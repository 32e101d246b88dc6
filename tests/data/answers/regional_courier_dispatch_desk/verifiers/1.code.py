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


def only_events_of(added, shipments):
    """Takes the log of these shipments out of what was added; False where another shipment's log grew."""
    return all(row["shipment_id"] in shipments for row in added.pop("shipment_events", []))


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    """RC100012 goes to its customer's Home office; besides its log nothing else changes."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    shipments = changed.pop("shipments", [])
    if len(shipments) != 1 or not only_events_of(added, {shipments[0][0]["id"]}) or added or removed or changed:
        return {"result": "others"}
    old, new = shipments[0]
    address = after["addresses"][new["address_id"]]
    right = (
        old["tracking_code"] == "RC100012"
        and columns_changed(old, new) == {"address_id"}
        and address["customer_id"] == old["customer_id"]
        and address["label"] == "Home office"
    )
    return {"result": "complete" if right else "others"}
