"""Evidence for the judge. Stalls A1 to A4 on 15 March at 11:00, 2 adults and 2 children less 15 %: 54.40 and 1.50 fee; 25.00 by voucher, 30.90 by card."""

import sqlite3

TASK = "Sell Deirdre Folan the seats A1 to A4 in the Stalls for the relaxed performance of The Winter Tide for Families on Sunday 15 March 2026, as two adult and two child tickets, with the promotion FAMILYTIDE. Use up her gift voucher GV-7004 first, charge the rest to her card, and tell me the amount charged to the card."
QUERIES = {
    "her bookings": """
        SELECT b.reference, b.status, c.full_name AS customer, s.title, p.starts_at, b.fee_cents, b.promotion_id, b.hold_expires_at
        FROM bookings b JOIN customers c ON c.id = b.customer_id
        JOIN performances p ON p.id = b.performance_id JOIN shows s ON s.id = p.show_id
        WHERE c.full_name = 'Deirdre Folan' ORDER BY b.id
    """,
    "her tickets": """
        SELECT b.reference, x.name AS section, e.row_letter || e.number AS seat, s.title, p.starts_at, t.ticket_type, t.price_cents,
               t.discount_percent, t.status
        FROM tickets t JOIN bookings b ON b.id = t.booking_id JOIN customers c ON c.id = b.customer_id
        JOIN performances p ON p.id = t.performance_id JOIN shows s ON s.id = p.show_id
        JOIN seats e ON e.id = t.seat_id JOIN sections x ON x.id = e.section_id
        WHERE c.full_name = 'Deirdre Folan' ORDER BY t.id
    """,
    "her payments": """
        SELECT b.reference, y.method, y.amount_cents, y.voucher_id, y.taken_by_id, y.taken_at
        FROM payments y JOIN bookings b ON b.id = y.booking_id JOIN customers c ON c.id = b.customer_id
        WHERE c.full_name = 'Deirdre Folan' ORDER BY y.id
    """,
    "voucher": "SELECT code, initial_cents, balance_cents FROM vouchers WHERE code = 'GV-7004'",
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
