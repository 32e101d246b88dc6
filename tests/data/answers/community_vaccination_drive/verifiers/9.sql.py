import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Carmen's doses with their lots, adverse events and quarantined lots."""
    questions = {
        "doses_of_carmen": (
            "SELECT d.*, l.lot_number, l.status, l.doses_remaining FROM vaccinations d JOIN vaccine_lots l ON l.id = "
            "d.lot_id JOIN patients p ON p.id = d.patient_id WHERE p.full_name = 'Carmen Ibarra' ORDER BY d.given_at "
            "DESC"
        ),
        "adverse_events": "SELECT * FROM adverse_events",
        "lots_in_quarantine": "SELECT * FROM vaccine_lots WHERE status = 'quarantined'",
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
