import sqlite3


def rows(path, query, values=()):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(query, values).fetchall()
    finally:
        connection.close()


LOANS = "SELECT id, tool_id, member_id, due_on, returned_at FROM loans ORDER BY id"
TOOLS = "SELECT id, name, category, status FROM tools ORDER BY id"


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    tool = rows(initial_db_path, "SELECT id FROM tools WHERE name = 'Belt Sander'")[0][0]
    member = rows(initial_db_path, "SELECT id FROM users WHERE name = 'Ines Duarte'")[0][0]
    before, after = rows(initial_db_path, LOANS), rows(final_db_path, LOANS)
    new = [row[1:] for row in after if row not in before]
    kept = all(row in after for row in before)
    expected = [(i, n, c, "on_loan" if i == tool else s) for i, n, c, s in rows(initial_db_path, TOOLS)]
    done = new == [(tool, member, "2026-01-15", None)] and kept and rows(final_db_path, TOOLS) == expected
    return {"result": "complete" if done else "others"}
