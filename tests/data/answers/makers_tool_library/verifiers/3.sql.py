import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Pressure washer bookings: two copies, two other bookings on 14 January."""
    questions = {
        "reservations_of_marek": (
            "SELECT r.*, t.name AS tool FROM reservations r JOIN tools t ON t.id = r.tool_id JOIN members m ON m.id = "
            "r.member_id WHERE m.full_name = 'Marek Dvorak'"
        ),
        "other_pressure_washer_reservations": (
            "SELECT r.* FROM reservations r JOIN tools t ON t.id = r.tool_id JOIN members m ON m.id = r.member_id "
            "WHERE t.name = 'Pressure washer' AND m.full_name <> 'Marek Dvorak'"
        ),
        "pressure_washer_copies": (
            "SELECT c.asset_tag, c.status FROM tool_copies c JOIN tools t ON t.id = c.tool_id WHERE t.name = 'Pressure "
            "washer'"
        ),
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
