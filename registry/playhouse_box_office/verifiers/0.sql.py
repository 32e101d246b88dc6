"""Evidence for the judge. One customer more, with the details of the task; the name and address are new."""

import sqlite3

TASK = "Register a new customer: Dermot Mulvihill from Athenry, dermot.mulvihill@corribmail.example, phone +353 20 915 0188. He uses a wheelchair and has to be able to book wheelchair spaces."
QUERIES = {
    "customers with the name or address": """
        SELECT * FROM customers
        WHERE full_name LIKE '%Mulvihill%' OR email LIKE '%mulvihill%' ORDER BY id
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
