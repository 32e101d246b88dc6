import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Harbour Clinic's sessions and their appointments."""
    questions = {
        "harbour_sessions": (
            "SELECT cs.* FROM clinic_sessions cs JOIN sites t ON t.id = cs.site_id WHERE t.name = 'Harbour Clinic' AND "
            "cs.session_date >= '2026-01-01'"
        ),
        "appointments_in_them": (
            "SELECT a.*, p.full_name, cs.session_date FROM appointments a JOIN session_slots s ON s.id = a.slot_id "
            "JOIN clinic_sessions cs ON cs.id = s.session_id JOIN patients p ON p.id = a.patient_id WHERE cs.site_id = "
            "2 AND cs.session_date >= '2026-01-01' ORDER BY a.id"
        ),
        "appointment_count": "SELECT COUNT(*) AS n FROM appointments",
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
