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
    """One new appointment: Samuel, HEPB, dose 3, in the earliest free slot at Riverside Hall from the day he is eligible."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    appointments = added.pop("appointments", [])
    if added or removed or changed or len(appointments) != 1:
        return {"result": "others"}
    patient = next(row["id"] for row in before["patients"].values() if row["full_name"] == "Samuel Whitaker")
    vaccine = next(row for row in before["vaccines"].values() if row["code"] == "HEPB")
    site = next(row["id"] for row in before["sites"].values() if row["name"] == "Riverside Hall")
    doses = [row for row in before["vaccinations"].values() if row["patient_id"] == patient and row["vaccine_id"] == vaccine["id"]]
    last = max(date.fromisoformat(row["given_at"][:10]) for row in doses)
    first_day = (last + timedelta(days=vaccine["min_days_between"])).isoformat()
    sessions = {row["id"] for row in before["clinic_sessions"].values() if row["site_id"] == site and row["status"] == "planned"}
    taken = [row["slot_id"] for row in before["appointments"].values() if row["status"] != "cancelled"]
    free = [
        row
        for row in before["session_slots"].values()
        if row["session_id"] in sessions and row["starts_at"][:10] >= first_day and taken.count(row["id"]) < row["capacity"]
    ]
    earliest = min(free, key=lambda row: row["starts_at"])
    made = appointments[0]
    right = (
        made["patient_id"] == patient
        and made["vaccine_id"] == vaccine["id"]
        and made["slot_id"] == earliest["id"]
        and made["dose_number"] == len(doses) + 1
        and made["status"] == "booked"
    )
    return {"result": "complete" if right else "others"}
