import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Appointments of the two days and all messages."""
    questions = {
        "appointments_of_29_and_30_december": (
            "SELECT a.*, p.full_name, s.starts_at FROM appointments a JOIN session_slots s ON s.id = a.slot_id JOIN "
            "patients p ON p.id = a.patient_id WHERE s.starts_at >= '2025-12-29' AND s.starts_at < '2025-12-31'"
        ),
        "messages": (
            "SELECT m.*, p.full_name FROM outreach_messages m JOIN patients p ON p.id = m.patient_id ORDER BY m.id"
        ),
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
