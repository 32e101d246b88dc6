import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Orchard Pharmacy's shipments."""
    questions = {
        "shipments_of_orchard_pharmacy": (
            "SELECT s.*, a.label, l.code AS service FROM shipments s JOIN customers c ON c.id = s.customer_id JOIN "
            "addresses a ON a.id = s.address_id JOIN service_levels l ON l.id = s.service_level_id WHERE c.name = "
            "'Orchard Pharmacy'"
        ),
        "shipment_count": "SELECT COUNT(*) AS n FROM shipments",
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
