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
    """The session is cancelled for the reason given, and each patient booked in it is booked once in that of the 16th.

    Moving the appointments first and booking new ones afterwards are both right.
    """
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    booked, sessions, touched = added.pop("appointments", []), changed.pop("clinic_sessions", []), changed.pop("appointments", [])
    if added or removed or changed or len(sessions) != 1:
        return {"result": "others"}
    site = next(row["id"] for row in before["sites"].values() if row["name"] == "Harbour Clinic")
    day = {row["session_date"]: row["id"] for row in before["clinic_sessions"].values() if row["site_id"] == site}
    old, new = sessions[0]
    reason = " ".join(re.sub(r"[^a-z ]", " ", (new["cancel_reason"] or "").lower()).split())
    if new["id"] != day["2026-01-09"] or new["status"] != "cancelled" or reason != "boiler failure":
        return {"result": "others"}
    leaving = {row["id"] for row in before["session_slots"].values() if row["session_id"] == day["2026-01-09"]}
    arriving = {row["id"] for row in before["session_slots"].values() if row["session_id"] == day["2026-01-16"]}
    meant = {row["id"]: row for row in before["appointments"].values() if row["slot_id"] in leaving and row["status"] == "booked"}
    if {new["id"] for _, new in touched} != set(meant):
        return {"result": "others"}
    moved = [new for _, new in touched if new["status"] == "booked"]
    if any(new["status"] not in ("booked", "cancelled") for _, new in touched):
        return {"result": "others"}
    wanted = sorted((row["patient_id"], row["vaccine_id"], row["dose_number"]) for row in meant.values())
    got = sorted((row["patient_id"], row["vaccine_id"], row["dose_number"]) for row in booked + moved if row["status"] == "booked")
    right = got == wanted and len(booked) + len(moved) == len(wanted) and all(row["slot_id"] in arriving for row in booked + moved)
    return {"result": "complete" if right else "others"}
