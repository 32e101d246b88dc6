"""Rory Lenihan's three Stalls seats: only two are free, so he goes on the waiting list, and no seat is held."""

import sqlite3


def verify_task_completion(initial_db_path: str, final_db_path: str, final_answer: str | None = None) -> dict:
    done = is_done(tables(initial_db_path), tables(final_db_path), final_answer or "")
    return {"result": "complete" if done else "others"}


def is_done(before, after, answer):
    found = differences(before, after)
    entries = added(found.get("waitlist_entries", []))
    if list(found) != ["waitlist_entries"] or len(found["waitlist_entries"]) != 1 or len(entries) != 1:
        return False
    show = one(before["shows"], title="A Winter Tide")
    performance = one(before["performances"], show_id=show["id"], starts_at="2026-03-14 19:30:00.000000")
    return entries[0]["joined_at"] is not None and without(entries[0], "id", "joined_at") == {
        "performance_id": performance["id"],
        "section_id": one(before["sections"], stage_id=performance["stage_id"], name="Stalls")["id"],
        "customer_id": one(before["customers"], full_name="Rory Lenihan")["id"],
        "seats_wanted": 3,
        "status": "waiting",
        "booking_id": None,
    }


# The state as a whole: nothing may differ from the start but what the task asks for.


def tables(path):
    """All rows by table and primary key."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        named = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        contents = {}
        for table in sorted(row["name"] for row in named):
            key = [column["name"] for column in connection.execute(f'PRAGMA table_info("{table}")') if column["pk"]]
            rows = connection.execute(f'SELECT * FROM "{table}"')
            contents[table] = {tuple(row[name] for name in key): dict(row) for row in rows}
        return contents
    finally:
        connection.close()


def differences(before, after):
    """Rows that differ, as {table: [(old or None, new or None)]}. New lines of the activity log go with every write."""
    found = {}
    for table in sorted(before.keys() | after.keys()):
        old, new = before.get(table, {}), after.get(table, {})
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key) and not (table == "activity_log" and key not in old):
                found.setdefault(table, []).append((old.get(key), new.get(key)))
    return found


def added(pairs):
    return [new for old, new in pairs if old is None]


def without(row, *names):
    return {name: value for name, value in row.items() if name not in names}


def one(rows, **values):
    """The row with these values, where exactly one has them."""
    found = [row for row in rows.values() if all(row[name] == value for name, value in values.items())]
    return found[0] if len(found) == 1 else None
