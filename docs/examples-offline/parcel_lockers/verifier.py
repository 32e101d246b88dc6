"""Get the announced parcel with a weight of at most 3 kg that was created first loaded, please."""

import re
import sqlite3
from datetime import datetime


def verify_task_completion(initial_db_path: str, final_db_path: str, final_answer: str | None = None) -> dict:
    done = is_done(tables(initial_db_path), tables(final_db_path), final_answer or "")
    return {"result": "complete" if done else "others"}


def is_done(before, after, answer):
    found = differences(before, after)
    changed = {
        ("parcels", 18): {"status": "loaded"},  # F-1018
    }
    return is_exactly(found, changed=changed)


# The change: exactly these rows, and in them exactly these values.


def is_exactly(found, added=(), changed=(), removed=()):
    """Whether the rows that differ are those expected, and hold what they should."""
    changed = dict(changed)
    new = {(table, key): row for table, pairs in found.items() for key, (old, row) in pairs.items() if old is None}
    old = {(table, key) for table, pairs in found.items() for key, (_, row) in pairs.items() if row is None}
    both = {(table, key): pair for table, pairs in found.items() for key, pair in pairs.items() if None not in pair}
    if len(new) != len(added) or old != set(removed) or both.keys() != changed.keys():
        return False
    return any(all(becomes(*both[place], values, made) for place, values in changed.items()) for made in pairings(added, new))


def pairings(added, new, made=()):
    """Every way to pair the rows that are to be made with rows that were made, as {name: id}."""
    made = dict(made)
    if not added:
        yield made
        return
    (name, table, values), *rest = added
    for place, row in new.items():
        if place[0] == table and agrees(without_id(row), values, made):
            left = {other: row for other, row in new.items() if other != place}
            yield from pairings(rest, left, {**made, name: row["id"]})


def becomes(old, new, values, made):
    """Whether a row has got these values and kept all others."""
    return agrees(new, {**old, **values}, made)


def agrees(row, values, made):
    return row.keys() == values.keys() and all(same(row[name], value, made) for name, value in values.items())


def same(stored, wanted, made):
    if callable(wanted):
        return wanted(stored)
    return time_of(stored) == time_of(wanted)


def time_of(value):
    """Times are stored with or without fractions of a second; anything else is itself."""
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?", value):
        return datetime.fromisoformat(value)
    return value


def without_id(row):
    return {name: value for name, value in row.items() if name != "id"}


# The state as a whole: nothing may differ from the start but what the task asks for.


def tables(path):
    """All rows by table and id."""
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        named = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        names = sorted(row["name"] for row in named)
        return {name: {row["id"]: dict(row) for row in connection.execute(f'SELECT * FROM "{name}"')} for name in names}
    finally:
        connection.close()


def differences(before, after):
    """Rows that differ, as {table: {id: (old or None, new or None)}}."""
    found = {}
    for table in sorted(before.keys() | after.keys()):
        old, new = before.get(table, {}), after.get(table, {})
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                found.setdefault(table, {})[key] = (old.get(key), new.get(key))
    return found
