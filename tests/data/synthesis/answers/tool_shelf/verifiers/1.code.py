import sqlite3


def rows(path, query):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    loans = "SELECT id, tool_id, member_id, due_on, returned_at IS NOT NULL FROM loans ORDER BY id"
    tools = "SELECT id, name, status FROM tools ORDER BY id"
    tool = rows(initial_db_path, "SELECT id FROM tools WHERE name = 'Tile Cutter'")[0][0]
    expected_loans = [(i, t, m, d, 1 if t == tool else r) for i, t, m, d, r in rows(initial_db_path, loans)]
    expected_tools = [(i, n, "available" if i == tool else s) for i, n, s in rows(initial_db_path, tools)]
    done = rows(final_db_path, loans) == expected_loans and rows(final_db_path, tools) == expected_tools
    return {"result": "complete" if done else "others"}
