import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Members and charges that enrolling Priya Raman concerns."""
    questions = {
        "members_by_that_name_or_email": (
            "SELECT m.*, p.name AS plan FROM members m JOIN membership_plans p ON p.id = m.plan_id WHERE m.email LIKE "
            "'priya.raman%' OR m.full_name LIKE '%Raman%'"
        ),
        "charges_of_such_members": (
            "SELECT c.* FROM charges c JOIN members m ON m.id = c.member_id WHERE m.email LIKE 'priya.raman%' OR "
            "m.full_name LIKE '%Raman%'"
        ),
        "member_count": "SELECT COUNT(*) AS n FROM members",
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
