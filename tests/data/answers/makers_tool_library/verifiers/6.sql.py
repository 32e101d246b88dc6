import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Lena's places and charges, and all workshops with the places taken."""
    questions = {
        "signups_of_lena": (
            "SELECT s.*, w.title, w.starts_at, w.fee_cents, w.status AS workshop_status FROM workshop_signups s JOIN "
            "workshops w ON w.id = s.workshop_id JOIN members m ON m.id = s.member_id WHERE m.full_name = 'Lena "
            "Fischer'"
        ),
        "workshops": (
            "SELECT w.*, (SELECT COUNT(*) FROM workshop_signups s WHERE s.workshop_id = w.id AND s.status = "
            "'enrolled') AS enrolled FROM workshops w"
        ),
        "charges_of_lena": "SELECT c.* FROM charges c JOIN members m ON m.id = c.member_id WHERE m.full_name = 'Lena Fischer'",
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
