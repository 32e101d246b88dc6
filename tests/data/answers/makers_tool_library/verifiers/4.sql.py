import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """The copy, its jobs and loans, and all damage charges."""
    questions = {
        "the_copy": "SELECT * FROM tool_copies WHERE asset_tag = 'TL-0204'",
        "its_jobs": (
            "SELECT j.* FROM maintenance_jobs j JOIN tool_copies c ON c.id = j.copy_id WHERE c.asset_tag = 'TL-0204'"
        ),
        "its_loans": (
            "SELECT l.*, m.full_name FROM loans l JOIN tool_copies c ON c.id = l.copy_id JOIN members m ON m.id = "
            "l.member_id WHERE c.asset_tag = 'TL-0204' ORDER BY l.checked_out_on DESC"
        ),
        "damage_charges": "SELECT * FROM charges WHERE kind = 'damage'",
        "charge_count": "SELECT COUNT(*) AS n FROM charges",
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
