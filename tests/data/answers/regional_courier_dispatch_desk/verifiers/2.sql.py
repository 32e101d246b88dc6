import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Shipments for Northmoor and the sum asked for, in grams."""
    questions = {
        "northmoor_shipments": (
            "SELECT s.tracking_code, s.weight_g, s.status FROM shipments s JOIN addresses a ON a.id = s.address_id "
            "JOIN zones z ON z.id = a.zone_id WHERE z.name = 'Northmoor'"
        ),
        "booked_grams": (
            "SELECT SUM(s.weight_g) AS grams FROM shipments s JOIN addresses a ON a.id = s.address_id JOIN zones z ON "
            "z.id = a.zone_id WHERE z.name = 'Northmoor' AND s.status = 'booked'"
        ),
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
