import sqlite3


def rows(path, query):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return [list(row) for row in connection.execute(query).fetchall()]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    queries = {
        "forms": "SELECT * FROM application_forms",
        "sections": "SELECT * FROM form_sections",
        "questions": "SELECT * FROM form_questions",
        "options": "SELECT * FROM form_question_options",
    }
    return {name: {"before": rows(initial_db_path, query), "after": rows(final_db_path, query)} for name, query in queries.items()}
