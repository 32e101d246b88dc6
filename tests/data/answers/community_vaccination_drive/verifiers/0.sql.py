import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Patients named like Amara Diallo."""
    questions = {
        "patients_of_that_name": "SELECT * FROM patients WHERE full_name LIKE '%Diallo%' OR full_name LIKE 'Amara%'",
        "patient_count": "SELECT COUNT(*) AS n FROM patients",
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
