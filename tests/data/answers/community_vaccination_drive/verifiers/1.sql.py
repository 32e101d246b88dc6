import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Samuel's doses and appointments, and the slots at Riverside Hall."""
    questions = {
        "appointments_of_samuel": (
            "SELECT a.*, v.code, s.starts_at, cs.site_id FROM appointments a JOIN vaccines v ON v.id = a.vaccine_id "
            "JOIN session_slots s ON s.id = a.slot_id JOIN clinic_sessions cs ON cs.id = s.session_id JOIN patients p "
            "ON p.id = a.patient_id WHERE p.full_name = 'Samuel Whitaker'"
        ),
        "doses_of_samuel": (
            "SELECT d.* FROM vaccinations d JOIN patients p ON p.id = d.patient_id WHERE p.full_name = 'Samuel "
            "Whitaker'"
        ),
        "slots_at_riverside": (
            "SELECT s.*, cs.status, (SELECT COUNT(*) FROM appointments a WHERE a.slot_id = s.id AND a.status <> "
            "'cancelled') AS taken FROM session_slots s JOIN clinic_sessions cs ON cs.id = s.session_id JOIN sites t "
            "ON t.id = cs.site_id WHERE t.name = 'Riverside Hall' ORDER BY s.starts_at"
        ),
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
