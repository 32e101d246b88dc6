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
    submissions = "SELECT id, cycle_id, status, substr(created_at, 1, 10) FROM submissions ORDER BY id"
    (cycle,) = rows(initial_db_path, "SELECT id FROM cycles WHERE name = 'Fall 2026'")[0]

    def expected(row):
        moves = row[1] == cycle and row[2] == "Submitted" and "2026-09-15" <= row[3] <= "2026-09-30"
        return (*row[:2], "In Review", row[3]) if moves else row

    before = rows(initial_db_path, submissions)
    done = rows(final_db_path, submissions) == [expected(row) for row in before] and any(expected(row) != row for row in before)
    return {"result": "complete" if done else "others"}
