import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """RC100015 and Harrow's routes with their load."""
    questions = {
        "the_shipment": (
            "SELECT s.*, r.route_id FROM shipments s LEFT JOIN route_stops r ON r.shipment_id = s.id WHERE "
            "s.tracking_code = 'RC100015'"
        ),
        "harrow_routes": (
            "SELECT r.*, v.max_load_g, (SELECT SUM(s.weight_g) FROM route_stops t JOIN shipments s ON s.id = "
            "t.shipment_id WHERE t.route_id = r.id) AS load_g FROM delivery_routes r JOIN vehicles v ON v.id = "
            "r.vehicle_id JOIN depots d ON d.id = r.depot_id WHERE d.name = 'Harrow' AND r.run_date >= '2026-01-01'"
        ),
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
