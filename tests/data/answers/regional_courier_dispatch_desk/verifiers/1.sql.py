import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """RC100012, its address and log, and the customer's other shipments."""
    questions = {
        "the_shipment": (
            "SELECT s.*, a.label FROM shipments s JOIN addresses a ON a.id = s.address_id WHERE s.tracking_code = "
            "'RC100012'"
        ),
        "its_events": (
            "SELECT e.* FROM shipment_events e JOIN shipments s ON s.id = e.shipment_id WHERE s.tracking_code = "
            "'RC100012'"
        ),
        "other_shipments_of_the_customer": (
            "SELECT s.tracking_code, s.address_id, s.status FROM shipments s WHERE s.customer_id = 3 AND "
            "s.tracking_code <> 'RC100012'"
        ),
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
