import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """Adaeze's loans, charges and payments."""
    questions = {
        "loans_of_adaeze": (
            "SELECT l.*, c.asset_tag, c.condition, c.status FROM loans l JOIN tool_copies c ON c.id = l.copy_id JOIN "
            "members m ON m.id = l.member_id WHERE m.full_name = 'Adaeze Nwosu'"
        ),
        "charges_of_adaeze": "SELECT c.* FROM charges c JOIN members m ON m.id = c.member_id WHERE m.full_name = 'Adaeze Nwosu'",
        "payments_of_adaeze": (
            "SELECT p.* FROM payments p JOIN charges c ON c.id = p.charge_id JOIN members m ON m.id = c.member_id "
            "WHERE m.full_name = 'Adaeze Nwosu'"
        ),
        "open_loans": "SELECT COUNT(*) AS n FROM loans WHERE returned_on IS NULL",
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
