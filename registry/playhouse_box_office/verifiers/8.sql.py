"""Evidence for the judge. The shift goes to an active volunteer with a certificate good on 14 March, free at the time and with room in the week."""

import sqlite3

TASK = "Maeve Costello is ill and can't do first aid at A Winter Tide on the evening of Saturday 14 March 2026. Give that shift to any other volunteer who may take it, and tell me who has it now."
QUERIES = {
    "shifts of that week": """
        SELECT h.starts_at, h.ends_at, s.title, h.duty, v.full_name AS volunteer
        FROM shifts h JOIN performances p ON p.id = h.performance_id JOIN shows s ON s.id = p.show_id
        LEFT JOIN volunteers v ON v.id = h.volunteer_id
        WHERE date(h.starts_at) BETWEEN '2026-03-09' AND '2026-03-15' ORDER BY h.starts_at, h.id
    """,
    "volunteers": "SELECT full_name, first_aid_valid_to, max_shifts_per_week, is_active FROM volunteers ORDER BY id",
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
