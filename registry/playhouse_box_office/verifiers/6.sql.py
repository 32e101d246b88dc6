"""Evidence for the judge. He asks 10.5 hours before the start; the rules want 48. Nothing changes, and the answer names 7 March 2026, 19:30."""

import sqlite3

TASK = "It is the morning of Monday 9 March 2026, and Conor Hanratty asks for the money back for his two tickets for The Understudy's Last Night tonight. Refund them if the house rules allow it; if they do not, leave everything as it is and tell me until what date and time he could have asked."
QUERIES = {
    "refund rule": "SELECT value, unit, description FROM policies WHERE key = 'refund_cutoff_hours'",
    "his bookings": """
        SELECT b.reference, b.status, c.full_name AS customer, s.title, p.starts_at, b.fee_cents, b.promotion_id, b.hold_expires_at
        FROM bookings b JOIN customers c ON c.id = b.customer_id
        JOIN performances p ON p.id = b.performance_id JOIN shows s ON s.id = p.show_id
        WHERE c.full_name = 'Conor Hanratty' ORDER BY b.id
    """,
    "his tickets": """
        SELECT b.reference, x.name AS section, e.row_letter || e.number AS seat, s.title, p.starts_at, t.ticket_type, t.price_cents,
               t.discount_percent, t.status
        FROM tickets t JOIN bookings b ON b.id = t.booking_id JOIN customers c ON c.id = b.customer_id
        JOIN performances p ON p.id = t.performance_id JOIN shows s ON s.id = p.show_id
        JOIN seats e ON e.id = t.seat_id JOIN sections x ON x.id = e.section_id
        WHERE c.full_name = 'Conor Hanratty' ORDER BY t.id
    """,
    "his refunds": """
        SELECT r.id, b.reference, c.full_name AS customer, s.title, p.starts_at, p.cancelled_at, r.amount_cents, r.method, r.channel,
               r.status, r.note, r.requested_at, r.decided_by_id, r.decided_at
        FROM refunds r JOIN bookings b ON b.id = r.booking_id JOIN customers c ON c.id = b.customer_id
        JOIN performances p ON p.id = b.performance_id JOIN shows s ON s.id = p.show_id
        WHERE c.full_name = 'Conor Hanratty' ORDER BY r.id
    """,
    "his credit": """
        SELECT c.full_name AS customer, n.amount_cents, n.reason, n.note, n.created_at
        FROM credit_entries n JOIN customers c ON c.id = n.customer_id
        WHERE c.full_name = 'Conor Hanratty' ORDER BY n.id
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
