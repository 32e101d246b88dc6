import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Brightwater's shipments; the sum asked for is that of the initial state."""
    questions = {
        "shipments_of_brightwater": (
            "SELECT s.* FROM shipments s JOIN customers c ON c.id = s.customer_id WHERE c.name = 'Brightwater Books'"
        ),
        "cancelled": "SELECT tracking_code FROM shipments WHERE status = 'cancelled'",
        "booked_price_of_brightwater": (
            "SELECT SUM(s.price_cents) AS cents FROM shipments s JOIN customers c ON c.id = s.customer_id WHERE c.name "
            "= 'Brightwater Books' AND s.status = 'booked'"
        ),
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
