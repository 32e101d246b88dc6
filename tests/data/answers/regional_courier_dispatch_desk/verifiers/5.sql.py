import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """The customer's account and shipments."""
    questions = {
        "the_customer": "SELECT * FROM customers WHERE name = 'Tidewater Ceramics'",
        "its_shipments": (
            "SELECT s.* FROM shipments s JOIN customers c ON c.id = s.customer_id WHERE c.name = 'Tidewater Ceramics'"
        ),
        "shipment_count": "SELECT COUNT(*) AS n FROM shipments",
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
