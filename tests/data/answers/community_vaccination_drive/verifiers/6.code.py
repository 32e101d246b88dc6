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
    """Beatriz's appointment is completed with one dose in the left arm from any lot that was usable for it, booked out of stock."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    doses, moves = added.pop("vaccinations", []), added.pop("stock_movements", [])
    appointments, lots = changed.pop("appointments", []), changed.pop("vaccine_lots", [])
    if added or removed or changed or not len(doses) == len(moves) == len(appointments) == len(lots) == 1:
        return {"result": "others"}
    dose, (old, new), (lot, used) = doses[0], appointments[0], lots[0]
    site = before["clinic_sessions"][before["session_slots"][old["slot_id"]]["session_id"]]["site_id"]
    right = (
        before["patients"][old["patient_id"]]["full_name"] == "Beatriz Nunes"
        and new["status"] == "completed"
        and columns_changed(old, new) == {"status"}
        and dose["appointment_id"] == old["id"]
        and dose["patient_id"] == old["patient_id"]
        and dose["vaccine_id"] == old["vaccine_id"]
        and dose["dose_number"] == old["dose_number"]
        and dose["arm"] == "left"
        and dose["lot_id"] == lot["id"]
        and lot["vaccine_id"] == old["vaccine_id"]
        and lot["site_id"] == site
        and lot["status"] == "usable"
        and lot["expires_on"] >= "2026-01-01"
        and columns_changed(lot, used) == {"doses_remaining"}
        and used["doses_remaining"] == lot["doses_remaining"] - 1
        and (moves[0]["lot_id"], moves[0]["kind"], moves[0]["doses"]) == (lot["id"], "used", 1)
    )
    return {"result": "complete" if right else "others"}
