"""Correct two of Niall Kelleher's three tickets: C1 and C2 become concessions, 6.00 each go to his credit, C3 stays."""

import sqlite3


def verify_task_completion(initial_db_path: str, final_db_path: str, final_answer: str | None = None) -> dict:
    done = is_done(tables(initial_db_path), tables(final_db_path), final_answer or "")
    return {"result": "complete" if done else "others"}


def is_done(before, after, answer):
    found = differences(before, after)
    customer = one(before["customers"], full_name="Niall Kelleher")
    show = one(before["shows"], title="A Winter Tide")
    performance = one(before["performances"], show_id=show["id"], starts_at="2026-03-13 19:30:00.000000")
    booking = one(before["bookings"], customer_id=customer["id"], performance_id=performance["id"])
    stalls = one(before["sections"], stage_id=performance["stage_id"], name="Stalls")
    wrong = []
    for number in (1, 2):
        seat = one(before["seats"], section_id=stalls["id"], row_letter="C", number=number)
        wrong.append(one(before["tickets"], booking_id=booking["id"], seat_id=seat["id"], status="sold")["id"])
    refund = {
        "booking_id": booking["id"],
        "amount_cents": 600,
        "method": "credit",
        "reason": "type_correction",
        "channel": "counter",
        "status": "paid",
        "note": None,
        "requested_by_id": 1,
        "decided_by_id": 1,
    }
    credit = {
        "customer_id": customer["id"],
        "booking_id": booking["id"],
        "amount_cents": 600,
        "reason": "refund",
        "note": None,
        "created_by_id": 1,
    }
    if sorted(found) != ["credit_entries", "refunds", "tickets"] or any(len(pairs) != 2 for pairs in found.values()):
        return False
    return (
        sorted(old["id"] for old, _ in altered(found["tickets"])) == sorted(wrong)
        and all(becomes(old, new, ticket_type="concession", price_cents=2600) for old, new in altered(found["tickets"]))
        and [without(new, "id", "requested_at", "decided_at") for new in added(found["refunds"])] == [refund, refund]
        and [without(new, "id", "created_at") for new in added(found["credit_entries"])] == [credit, credit]
    )


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


def altered(pairs):
    return [(old, new) for old, new in pairs if old is not None and new is not None]


def becomes(old, new, **values):
    """True if these columns, and no others, changed, and to these values."""
    return {name: value for name, value in new.items() if value != old[name]} == values


def without(row, *names):
    return {name: value for name, value in row.items() if name not in names}


def one(rows, **values):
    """The row with these values, where exactly one has them."""
    found = [row for row in rows.values() if all(row[name] == value for name, value in values.items())]
    return found[0] if len(found) == 1 else None
