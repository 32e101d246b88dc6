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
    """The route of the 2nd has no room for 45 kg, so RC100015 is on Harrow's planned route of the 3rd, anywhere in its order."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    shipment = next(row for row in before["shipments"].values() if row["tracking_code"] == "RC100015")
    depot = next(row["id"] for row in before["depots"].values() if row["name"] == "Harrow")
    route = next(
        row["id"]
        for row in before["delivery_routes"].values()
        if row["depot_id"] == depot and row["run_date"] == "2026-01-03" and row["status"] == "planned"
    )
    stops, moved, shipments = added.pop("route_stops", []), changed.pop("route_stops", []), changed.pop("shipments", [])
    if not only_events_of(added, {shipment["id"]}) or added or removed or changed or len(stops) != 1 or len(shipments) != 1:
        return {"result": "others"}
    if any(old["route_id"] != route or columns_changed(old, new) != {"position"} for old, new in moved):
        return {"result": "others"}
    stop, (old, new) = stops[0], shipments[0]
    right = (
        stop["shipment_id"] == shipment["id"]
        and stop["route_id"] == route
        and stop["status"] == "pending"
        and new["id"] == shipment["id"]
        and new["status"] == "assigned"
        and columns_changed(old, new) == {"status"}
    )
    return {"result": "complete" if right else "others"}
