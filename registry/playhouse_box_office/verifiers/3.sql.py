"""Evidence for the judge. Fewer than three Stalls seats are free that evening, so he is to wait; no booking is made."""

import sqlite3

TASK = "Rory Lenihan would like three seats in the Stalls for A Winter Tide on the evening of Saturday 14 March 2026. If three are free, put them on hold for him as adult tickets; if not, put him on the waiting list for three seats in the Stalls."
QUERIES = {
    "free seats in the Stalls that evening": """
        SELECT e.row_letter || e.number AS seat
        FROM seats e JOIN sections x ON x.id = e.section_id
        JOIN performances p ON p.stage_id = x.stage_id JOIN shows s ON s.id = p.show_id
        WHERE s.title = 'A Winter Tide' AND p.starts_at = '2026-03-14 19:30:00.000000' AND x.name = 'Stalls'
        AND e.kind IN ('standard', 'restricted_view') AND e.out_of_service_reason IS NULL AND e.id NOT IN (
          SELECT seat_id FROM tickets WHERE performance_id = p.id AND status IN ('held', 'sold')
        ) ORDER BY e.id
    """,
    "waiting list of that evening": """
        SELECT c.full_name AS customer, x.name AS section, w.seats_wanted, w.status, w.joined_at
        FROM waitlist_entries w JOIN customers c ON c.id = w.customer_id JOIN sections x ON x.id = w.section_id
        JOIN performances p ON p.id = w.performance_id JOIN shows s ON s.id = p.show_id
        WHERE s.title = 'A Winter Tide' AND p.starts_at = '2026-03-14 19:30:00.000000' ORDER BY w.joined_at, w.id
    """,
    "his bookings": """
        SELECT b.reference, b.status, c.full_name AS customer, s.title, p.starts_at, b.fee_cents, b.promotion_id, b.hold_expires_at
        FROM bookings b JOIN customers c ON c.id = b.customer_id
        JOIN performances p ON p.id = b.performance_id JOIN shows s ON s.id = p.show_id
        WHERE c.full_name = 'Rory Lenihan' ORDER BY b.id
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
