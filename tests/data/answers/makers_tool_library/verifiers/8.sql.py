import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Signups of the welding workshop in the order of the queue, and workshop charges."""
    questions = {
        "welding_signups": (
            "SELECT s.*, m.full_name FROM workshop_signups s JOIN workshops w ON w.id = s.workshop_id JOIN members m "
            "ON m.id = s.member_id WHERE w.title = 'Welding basics' ORDER BY s.created_at"
        ),
        "workshop_charges": (
            "SELECT c.*, m.full_name FROM charges c JOIN members m ON m.id = c.member_id WHERE c.kind = 'workshop'"
        ),
        "other_signups_of_joon_ho": (
            "SELECT s.* FROM workshop_signups s JOIN members m ON m.id = s.member_id WHERE m.full_name = 'Joon-ho "
            "Park'"
        ),
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
