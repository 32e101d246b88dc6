"""Evidence for the judge. Any two neighbouring standard seats of the Circle that were free; both adult with her 10 % discount, 61.20 by card."""

import sqlite3

TASK = "Book two Circle seats side by side, neither with restricted view, for Orla Tiernan for Lanterns over Claddagh on the evening of Friday 20 March 2026. Both are adult tickets; take the whole amount by card."
QUERIES = {
    "Circle that evening": """
        SELECT e.row_letter || e.number AS seat, e.kind, c.full_name AS customer, t.ticket_type, t.price_cents, t.discount_percent,
               t.status
        FROM performances p JOIN shows s ON s.id = p.show_id
        JOIN sections x ON x.stage_id = p.stage_id JOIN seats e ON e.section_id = x.id
        LEFT JOIN tickets t ON t.performance_id = p.id AND t.seat_id = e.id AND t.status IN ('held', 'sold')
        LEFT JOIN bookings b ON b.id = t.booking_id LEFT JOIN customers c ON c.id = b.customer_id
        WHERE s.title = 'Lanterns over Claddagh' AND p.starts_at = '2026-03-20 19:30:00.000000' AND x.name = 'Circle' ORDER BY e.id
    """,
    "her bookings": """
        SELECT b.reference, b.status, c.full_name AS customer, s.title, p.starts_at, b.fee_cents, b.promotion_id, b.hold_expires_at
        FROM bookings b JOIN customers c ON c.id = b.customer_id
        JOIN performances p ON p.id = b.performance_id JOIN shows s ON s.id = p.show_id
        WHERE c.full_name = 'Orla Tiernan' ORDER BY b.id
    """,
    "her payments": """
        SELECT b.reference, y.method, y.amount_cents, y.voucher_id, y.taken_by_id, y.taken_at
        FROM payments y JOIN bookings b ON b.id = y.booking_id JOIN customers c ON c.id = b.customer_id
        WHERE c.full_name = 'Orla Tiernan' ORDER BY y.id
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
