import re
import sqlite3


def rows(path, query):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


WORDS = {"none": 0, "one": 1, "two": 2, "three": 3, "four": 4}


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    right = len(rows(initial_db_path, "SELECT id FROM tools WHERE category = 'garden' AND status = 'available'"))
    words = re.findall(r"[a-z]+|\d+", (final_answer or "").lower())
    numbers = {int(word) if word.isdigit() else WORDS[word] for word in words if word.isdigit() or word in WORDS}
    untouched = all(rows(initial_db_path, q) == rows(final_db_path, q) for q in ("SELECT * FROM tools", "SELECT * FROM loans"))
    return {"result": "complete" if numbers == {right} and untouched else "others"}
