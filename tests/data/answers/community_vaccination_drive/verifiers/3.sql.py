import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Ingrid's appointments, the waiting list and the slots she asked about."""
    questions = {
        "appointments_of_ingrid": (
            "SELECT a.*, s.starts_at FROM appointments a JOIN session_slots s ON s.id = a.slot_id JOIN patients p ON "
            "p.id = a.patient_id WHERE p.full_name = 'Ingrid Solheim'"
        ),
        "waiting_list": "SELECT w.*, p.full_name FROM waitlist_entries w JOIN patients p ON p.id = w.patient_id",
        "eastgate_slots_of_9_january": (
            "SELECT s.starts_at, s.capacity, (SELECT COUNT(*) FROM appointments a WHERE a.slot_id = s.id AND a.status "
            "<> 'cancelled') AS taken FROM session_slots s JOIN clinic_sessions cs ON cs.id = s.session_id WHERE "
            "cs.site_id = 3 AND cs.session_date = '2026-01-09'"
        ),
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
