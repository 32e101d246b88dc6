import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Delay claims with the days of their shipments, other claims and credits."""
    questions = {
        "delay_claims": (
            "SELECT k.*, s.tracking_code, s.promised_on, s.delivered_at FROM claims k JOIN shipments s ON s.id = "
            "k.shipment_id WHERE k.kind = 'delay' ORDER BY k.id"
        ),
        "other_claims": "SELECT * FROM claims WHERE kind <> 'delay'",
        "credits": "SELECT * FROM credits",
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
