import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Absences, Saltmarsh's routes and drivers."""
    questions = {
        "absences": "SELECT a.*, d.full_name FROM driver_absences a JOIN drivers d ON d.id = a.driver_id",
        "saltmarsh_routes": (
            "SELECT r.*, d.full_name, v.plate, v.kind FROM delivery_routes r JOIN drivers d ON d.id = r.driver_id JOIN "
            "vehicles v ON v.id = r.vehicle_id WHERE r.depot_id = 1 AND r.run_date >= '2026-01-01'"
        ),
        "saltmarsh_drivers": "SELECT * FROM drivers WHERE depot_id = 1",
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
