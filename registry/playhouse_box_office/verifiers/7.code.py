"""Two adjacent Circle seats for Orla Tiernan, paid by card: any pair that was free, none of restricted view.

Her Friend membership takes 10 % off two tickets and spares the booking fee: 2 x 30.60. The card may be charged in parts.
"""

import sqlite3

TOTAL = 6120


def verify_task_completion(initial_db_path: str, final_db_path: str, final_answer: str | None = None) -> dict:
    done = is_done(tables(initial_db_path), tables(final_db_path), final_answer or "")
    return {"result": "complete" if done else "others"}


def is_done(before, after, answer):
    found = differences(before, after)
    if sorted(found) != ["bookings", "payments", "tickets"] or any(old for pairs in found.values() for old, _ in pairs):
        return False
    show = one(before["shows"], title="Lanterns over Claddagh")
    performance = one(before["performances"], show_id=show["id"], starts_at="2026-03-20 19:30:00.000000")
    bookings, tickets, payments = added(found["bookings"]), added(found["tickets"]), added(found["payments"])
    if len(bookings) != 1 or bookings[0]["confirmed_at"] is None:
        return False
    booking = {
        "customer_id": one(before["customers"], full_name="Orla Tiernan")["id"],
        "performance_id": performance["id"],
        "promotion_id": None,
        "status": "confirmed",
        "fee_cents": 0,
        "hold_expires_at": None,
        "created_by_id": 1,
    }
    ticket = {
        "booking_id": bookings[0]["id"],
        "performance_id": performance["id"],
        "ticket_type": "adult",
        "price_cents": 3400,
        "discount_percent": 10,
        "status": "sold",
        "refund_id": None,
    }
    payment = {"booking_id": bookings[0]["id"], "method": "card", "voucher_id": None, "taken_by_id": 1}
    return (
        without(bookings[0], "id", "reference", "created_at", "confirmed_at") == booking
        and [without(row, "id", "seat_id") for row in tickets] == [ticket, ticket]
        and sorted(row["seat_id"] for row in tickets) in free_pairs(before, performance)
        and all(without(row, "id", "amount_cents", "taken_at") == payment for row in payments)
        and sum(row["amount_cents"] for row in payments) == TOTAL
    )


def free_pairs(before, performance):
    """Ids of neighbours in a row of the Circle, both standard seats and free at the start."""
    circle = one(before["sections"], stage_id=performance["stage_id"], name="Circle")
    taken = {
        row["seat_id"]
        for row in before["tickets"].values()
        if row["performance_id"] == performance["id"] and row["status"] in ("held", "sold")
    }
    free = {
        (row["row_letter"], row["number"]): row["id"]
        for row in before["seats"].values()
        if row["section_id"] == circle["id"]
        and row["kind"] == "standard"
        and row["out_of_service_reason"] is None
        and row["id"] not in taken
    }
    return [sorted([seat, free[row, number + 1]]) for (row, number), seat in free.items() if (row, number + 1) in free]


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
