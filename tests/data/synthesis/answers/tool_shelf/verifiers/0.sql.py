import sqlite3


def verify_task(initial_db_path, final_db_path):
    evidence = {}
    for name, path in (("before", initial_db_path), ("after", final_db_path)):
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        query = "SELECT loans.id, users.name, due_on, returned_at FROM loans JOIN users ON users.id = member_id JOIN tools ON tools.id = tool_id WHERE tools.name = 'Belt Sander'"
        evidence[name] = [list(row) for row in connection.execute(query)]
        connection.close()
    return evidence
