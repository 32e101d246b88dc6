import sqlite3


def rows(path, query):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return [list(row) for row in connection.execute(query).fetchall()]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    queries = {
        "cycles": "SELECT * FROM cycles",
    }
    return {name: {"before": rows(initial_db_path, query), "after": rows(final_db_path, query)} for name, query in queries.items()}
