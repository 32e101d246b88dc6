import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Expired lots, a total of the others, and everything written off."""
    questions = {
        "expired_lots": "SELECT * FROM vaccine_lots WHERE expires_on < '2026-01-01'",
        "other_lots": (
            "SELECT COUNT(*) AS n, SUM(doses_remaining) AS doses FROM vaccine_lots WHERE expires_on >= '2026-01-01'"
        ),
        "wastage": "SELECT * FROM stock_movements WHERE kind = 'wasted'",
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
