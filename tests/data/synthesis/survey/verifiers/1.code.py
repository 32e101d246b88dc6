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
    cycles = (
        "SELECT cycles.id, cycles.name, open_at, deadline_at, late_until_at FROM cycles JOIN programs ON programs.id = program_id "
        "WHERE programs.name = 'STEM Scholars Grant'"
    )
    new = [row[1:] for row in added(initial_db_path, final_db_path, cycles)]
    wanted = ("Fall 2026", "2026-08-01T09:00:00-04:00", "2026-10-01T17:00:00-04:00", "2026-10-08T17:00:00-04:00")
    done = new == [wanted]
    return {"result": "complete" if done else "others"}
