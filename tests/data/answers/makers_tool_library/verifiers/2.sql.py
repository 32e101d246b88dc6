import sqlite3


def query(path, sql, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, values)]
    finally:
        connection.close()


def verify_task(initial_db_path, final_db_path):
    """The sum asked for, in cents, and totals that would show a change."""
    questions = {
        "outstanding_late_fees_of_students": (
            "SELECT SUM(c.amount_cents - c.paid_cents - c.waived_cents) AS cents FROM charges c JOIN members m ON m.id "
            "= c.member_id JOIN membership_plans p ON p.id = m.plan_id WHERE p.name = 'Student' AND c.kind = "
            "'late_fee'"
        ),
        "all_charges": (
            "SELECT COUNT(*) AS n, SUM(amount_cents) AS amount, SUM(paid_cents) AS paid, SUM(waived_cents) AS waived "
            "FROM charges"
        ),
    }
    return {
        "initial": {name: query(initial_db_path, sql) for name, sql in questions.items()},
        "final": {name: query(final_db_path, sql) for name, sql in questions.items()},
    }
