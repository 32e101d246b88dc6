"""Maeve Costello's first-aid shift goes to anyone else who may take it, and the answer names that volunteer.

Who may: active, certificate good on the day, free at the time, and with room in that week (Monday to Sunday).
"""

import datetime
import re
import sqlite3


def verify_task_completion(initial_db_path: str, final_db_path: str, final_answer: str | None = None) -> dict:
    done = is_done(tables(initial_db_path), tables(final_db_path), final_answer or "")
    return {"result": "complete" if done else "others"}


def is_done(before, after, answer):
    found = differences(before, after)
    show = one(before["shows"], title="A Winter Tide")
    performance = one(before["performances"], show_id=show["id"], starts_at="2026-03-14 19:30:00.000000")
    shift = one(before["shifts"], performance_id=performance["id"], duty="first_aid")
    if list(found) != ["shifts"] or len(found["shifts"]) != 1:
        return False
    old, new = found["shifts"][0]
    if old is None or new is None or old["id"] != shift["id"]:
        return False
    volunteer = one(before["volunteers"], id=new["volunteer_id"])
    if volunteer is None or not becomes(old, new, volunteer_id=volunteer["id"]) or not may_take(before, volunteer, shift):
        return False
    surname = volunteer["full_name"].split()[-1]
    return re.search(rf"\b{surname}\b", answer, re.IGNORECASE) is not None


def may_take(before, volunteer, shift):
    day = shift["starts_at"][:10]
    if not volunteer["is_active"] or (volunteer["first_aid_valid_to"] or "") < day:
        return False
    cancelled = {row["id"] for row in before["performances"].values() if row["cancelled_at"] is not None}
    own = [
        row
        for row in before["shifts"].values()
        if row["volunteer_id"] == volunteer["id"] and row["performance_id"] not in cancelled and row["id"] != shift["id"]
    ]
    overlaps = any(row["starts_at"] < shift["ends_at"] and shift["starts_at"] < row["ends_at"] for row in own)
    in_week = sum(week(row["starts_at"]) == week(shift["starts_at"]) for row in own)
    return not overlaps and in_week < volunteer["max_shifts_per_week"]


def week(text):
    return datetime.datetime.fromisoformat(text).isocalendar()[:2]


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


def becomes(old, new, **values):
    """True if these columns, and no others, changed, and to these values."""
    return {name: value for name, value in new.items() if value != old[name]} == values


def one(rows, **values):
    """The row with these values, where exactly one has them."""
    found = [row for row in rows.values() if all(row[name] == value for name, value in values.items())]
    return found[0] if len(found) == 1 else None
