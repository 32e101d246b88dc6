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


def only_events_of(added, shipments):
    """Takes the log of these shipments out of what was added; False where another shipment's log grew."""
    return all(row["shipment_id"] in shipments for row in added.pop("shipment_events", []))


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    """The three stops and shipments have the outcomes reported, and the route is completed with them."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    code = {row["id"]: row["tracking_code"] for row in before["shipments"].values()}
    reported = {"RC100021": "delivered", "RC100022": "failed", "RC100023": "delivered"}
    concerned = {key for key, value in code.items() if value in reported}
    routes, stops, shipments = changed.pop("delivery_routes", []), changed.pop("route_stops", []), changed.pop("shipments", [])
    if not only_events_of(added, concerned) or added or removed or changed or len(routes) != 1:
        return {"result": "others"}
    old, new = routes[0]
    if new["status"] != "completed" or columns_changed(old, new) != {"status"}:
        return {"result": "others"}
    outcomes = {code[new["shipment_id"]]: new["status"] for _, new in stops}
    states = {new["tracking_code"]: new["status"] for _, new in shipments}
    failed = next((new for _, new in stops if new["status"] == "failed"), None)
    right = (
        outcomes == reported
        and states == reported
        and all(columns_changed(old, new) <= {"status", "note"} for old, new in stops)
        and all(columns_changed(old, new) <= {"status", "delivered_at"} for old, new in shipments)
        and all((new["delivered_at"] is not None) == (new["status"] == "delivered") for _, new in shipments)
        and failed is not None
        and re.sub(r"[^a-z ]", "", (failed["note"] or "").lower()).split() == ["nobody", "home"]
    )
    return {"result": "complete" if right else "others"}
