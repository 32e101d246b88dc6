import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Drills with their finished jobs, and every retired copy."""
    questions = {
        "drills": (
            "SELECT c.id, c.asset_tag, c.status, (SELECT COUNT(*) FROM maintenance_jobs j WHERE j.copy_id = c.id AND "
            "j.status = 'done') AS finished_jobs FROM tool_copies c JOIN tools t ON t.id = c.tool_id JOIN categories k "
            "ON k.id = t.category_id WHERE k.name = 'Power drills'"
        ),
        "retired_copies": "SELECT asset_tag FROM tool_copies WHERE status = 'retired'",
        "open_jobs": "SELECT * FROM maintenance_jobs WHERE status = 'open'",
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
