"""Evidence for the judge. Web requests pending at the start: paid if asked for 48 hours before or if the performance was cancelled, else rejected; above the limit of user 1 left alone."""

import sqlite3

TASK = "Today is Monday 9 March 2026. Decide the refund requests from the web form that are still pending: approve those that the house rules allow, reject those that were asked for too late with the note \"Asked for too late\", and leave any that is above my limit to the house manager."
QUERIES = {
    "refund rules": """
        SELECT (SELECT value FROM policies WHERE key = 'refund_cutoff_hours') AS refund_cutoff_hours,
               (SELECT refund_limit_cents FROM users WHERE id = 1) AS refund_limit_cents
    """,
    "refunds": """
        SELECT r.id, b.reference, c.full_name AS customer, s.title, p.starts_at, p.cancelled_at, r.amount_cents, r.method, r.channel,
               r.status, r.note, r.requested_at, r.decided_by_id, r.decided_at
        FROM refunds r JOIN bookings b ON b.id = r.booking_id JOIN customers c ON c.id = b.customer_id
        JOIN performances p ON p.id = b.performance_id JOIN shows s ON s.id = p.show_id
        WHERE 1 ORDER BY r.id
    """,
    "credit from refunds": """
        SELECT c.full_name AS customer, n.amount_cents, n.reason, n.note, n.created_at
        FROM credit_entries n JOIN customers c ON c.id = n.customer_id
        WHERE n.reason = 'refund' ORDER BY n.id
    """,
}


def verify_task(initial_db_path: str, final_db_path: str) -> dict:
    states = {"before": initial_db_path, "after": final_db_path}
    evidence = {name: {when: rows(path, query) for when, path in states.items()} for name, query in QUERIES.items()}
    return {"task": TASK, "evidence": evidence, "changed_tables": changed_tables(initial_db_path, final_db_path)}


# What the judge may rely on: all that differs between the two states.


def rows(path, query):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(query)]
    finally:
        connection.close()


def changed_tables(initial_db_path, final_db_path):
    """Rows added, removed and changed (as [before, after]) by table, with the counts of both states."""
    summary = {}
    tables = rows(final_db_path, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
    for table in (row["name"] for row in tables):
        key = [column["name"] for column in rows(final_db_path, f'PRAGMA table_info("{table}")') if column["pk"]]
        before, after = (
            {tuple(row[name] for name in key): row for row in rows(path, f'SELECT * FROM "{table}"')}
            for path in (initial_db_path, final_db_path)
        )
        if before != after:
            summary[table] = {
                "rows_before": len(before),
                "rows_after": len(after),
                "added": [row for at, row in after.items() if at not in before],
                "removed": [row for at, row in before.items() if at not in after],
                "changed": [[before[at], row] for at, row in after.items() if at in before and before[at] != row],
            }
    return summary
