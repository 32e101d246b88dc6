import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Track saws, Tobias's loans and the closed days; the right due date is 2026-01-07."""
    questions = {
        "track_saw_copies": "SELECT c.* FROM tool_copies c JOIN tools t ON t.id = c.tool_id WHERE t.name = 'Track saw'",
        "loans_of_tobias": (
            "SELECT l.*, c.asset_tag FROM loans l JOIN tool_copies c ON c.id = l.copy_id JOIN members m ON m.id = "
            "l.member_id WHERE m.full_name = 'Tobias Lindqvist'"
        ),
        "closed_days": "SELECT closed_on FROM closures ORDER BY closed_on",
        "open_loans": "SELECT COUNT(*) AS n FROM loans WHERE returned_on IS NULL",
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
