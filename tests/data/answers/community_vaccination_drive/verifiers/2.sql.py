import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Flu lots, and the sum asked for."""
    questions = {
        "flu_lots": (
            "SELECT l.lot_number, s.name AS site, l.doses_remaining, l.expires_on, l.status FROM vaccine_lots l JOIN "
            "vaccines v ON v.id = l.vaccine_id JOIN sites s ON s.id = l.site_id WHERE v.code = 'FLU'"
        ),
        "usable_flu_doses": (
            "SELECT SUM(l.doses_remaining) AS doses FROM vaccine_lots l JOIN vaccines v ON v.id = l.vaccine_id WHERE "
            "v.code = 'FLU' AND l.status = 'usable' AND l.expires_on >= '2026-01-01'"
        ),
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
