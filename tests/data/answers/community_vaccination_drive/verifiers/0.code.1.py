import sqlite3


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    """Every patient named Amara Diallo has the right details."""
    connection = sqlite3.connect(f"file:{final_db_path}?mode=ro", uri=True)
    try:
        found = connection.execute("SELECT birth_date, phone, language FROM patients WHERE full_name = 'Amara Diallo'").fetchall()
    finally:
        connection.close()
    if all(row == ("1984-03-14", "555-0171", "French") for row in found):
        return {"result": "complete"}
    return {"result": "others"}
