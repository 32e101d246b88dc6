import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Beatriz's appointment and doses, MMR lots and the latest movements."""
    questions = {
        "appointments_of_beatriz": (
            "SELECT a.* FROM appointments a JOIN patients p ON p.id = a.patient_id WHERE p.full_name = 'Beatriz Nunes'"
        ),
        "doses_of_beatriz": (
            "SELECT d.*, l.lot_number FROM vaccinations d JOIN vaccine_lots l ON l.id = d.lot_id JOIN patients p ON "
            "p.id = d.patient_id WHERE p.full_name = 'Beatriz Nunes'"
        ),
        "mmr_lots": "SELECT l.* FROM vaccine_lots l JOIN vaccines v ON v.id = l.vaccine_id WHERE v.code = 'MMR'",
        "latest_movements": "SELECT * FROM stock_movements ORDER BY id DESC LIMIT 3",
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
