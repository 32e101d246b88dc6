import sqlite3


def rows(path, query, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(query, values).fetchall()
    finally:
        connection.close()


def added(initial, final, query, *values):
    before = rows(initial, query, *values)
    return [row for row in rows(final, query, *values) if row not in before]


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    programs = "SELECT id, owner_user_id, name, description, default_time_zone FROM programs"
    new = [row[1:] for row in added(initial_db_path, final_db_path, programs)]
    wanted = (1, "STEM Scholars Grant", "Supports undergraduate research projects in STEM fields", "America/New_York")
    kept = all(row in rows(final_db_path, programs) for row in rows(initial_db_path, programs))
    done = new == [wanted] and kept
    return {"result": "complete" if done else "others"}
