import sqlite3
from datetime import date, timedelta


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
    """Ewa is absent on exactly the two days, and each of her planned routes then has another driver who may run it."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    absences, routes = added.pop("driver_absences", []), changed.pop("delivery_routes", [])
    if added or removed or changed or not absences:
        return {"result": "others"}
    driver = next(row for row in before["drivers"].values() if row["full_name"] == "Ewa Kowalczyk")
    days = []
    for row in absences:
        if row["driver_id"] != driver["id"] or "ill" not in row["reason"].lower():
            return {"result": "others"}
        first, last = date.fromisoformat(row["starts_on"]), date.fromisoformat(row["ends_on"])
        days += [(first + timedelta(days=number)).isoformat() for number in range((last - first).days + 1)]
    hers = {
        row["id"]
        for row in before["delivery_routes"].values()
        if row["driver_id"] == driver["id"] and row["status"] == "planned" and row["run_date"] in ("2026-01-02", "2026-01-03")
    }
    if sorted(days) != ["2026-01-02", "2026-01-03"] or {new["id"] for _, new in routes} != hers:
        return {"result": "others"}
    for old, new in routes:
        substitute, day = before["drivers"][new["driver_id"]], new["run_date"]
        busy = any(
            row["driver_id"] == substitute["id"] and row["run_date"] == day and row["id"] != new["id"] and row["status"] != "cancelled"
            for row in after["delivery_routes"].values()
        )
        absent = any(row["driver_id"] == substitute["id"] and row["starts_on"] <= day <= row["ends_on"] for row in after["driver_absences"].values())
        unfit = before["vehicles"][new["vehicle_id"]]["kind"] == "truck" and substitute["licence"] != "truck"
        if columns_changed(old, new) != {"driver_id"} or substitute["depot_id"] != new["depot_id"] or busy or absent or unfit:
            return {"result": "others"}
    return {"result": "complete"}
