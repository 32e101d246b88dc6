import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Today's Saltmarsh route with stops and events."""
    questions = {
        "todays_saltmarsh_route": "SELECT * FROM delivery_routes WHERE depot_id = 1 AND run_date = '2026-01-01'",
        "its_stops": (
            "SELECT t.*, s.tracking_code, s.status AS shipment_status, s.delivered_at FROM route_stops t JOIN "
            "shipments s ON s.id = t.shipment_id JOIN delivery_routes r ON r.id = t.route_id WHERE r.depot_id = 1 AND "
            "r.run_date = '2026-01-01' ORDER BY t.position"
        ),
        "events_of_its_shipments": (
            "SELECT e.* FROM shipment_events e JOIN shipments s ON s.id = e.shipment_id WHERE s.tracking_code IN "
            "('RC100021', 'RC100022', 'RC100023')"
        ),
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
