import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Theo's allergies and appointments, and what rules YF out."""
    questions = {
        "allergies_of_theo": (
            "SELECT a.* FROM patient_allergies a JOIN patients p ON p.id = a.patient_id WHERE p.full_name = 'Theo "
            "Marchetti'"
        ),
        "yellow_fever_rules": (
            "SELECT c.substance FROM vaccine_contraindications c JOIN vaccines v ON v.id = c.vaccine_id WHERE v.code = "
            "'YF'"
        ),
        "appointments_of_theo": (
            "SELECT a.* FROM appointments a JOIN patients p ON p.id = a.patient_id WHERE p.full_name = 'Theo "
            "Marchetti'"
        ),
        "appointment_count": "SELECT COUNT(*) AS n FROM appointments",
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
