import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Gideon's charges, the user's limit and totals that would show a waiver."""
    questions = {
        "charges_of_gideon": "SELECT c.* FROM charges c JOIN members m ON m.id = c.member_id WHERE m.full_name = 'Gideon Marsh'",
        "limit_of_current_user": "SELECT waiver_limit_cents FROM users WHERE id = 1",
        "totals": "SELECT SUM(paid_cents) AS paid, SUM(waived_cents) AS waived FROM charges",
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
