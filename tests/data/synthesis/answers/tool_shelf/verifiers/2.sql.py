import sqlite3


def verify_task(initial_db_path, final_db_path):
    connection = sqlite3.connect(f"file:{final_db_path}?mode=ro", uri=True)
    rows = connection.execute("SELECT name, status FROM tools WHERE category = 'garden' ORDER BY id").fetchall()
    connection.close()
    return {"garden_tools": [list(row) for row in rows]}
