"""Exchange Ciara Duffy's booking: both tickets to Stalls B3 and B4 on Friday, the difference and the fees paid by card.

Circle to Stalls is 2 x 8.00 more, and the exchange fee is 2 x 3.00, so 22.00 are due.
"""

import re
import sqlite3

DUE = 2200


def verify_task_completion(initial_db_path: str, final_db_path: str, final_answer: str | None = None) -> dict:
    done = is_done(tables(initial_db_path), tables(final_db_path), final_answer or "")
    return {"result": "complete" if done else "others"}


def is_done(before, after, answer):
    found = differences(before, after)
    customer = one(before["customers"], full_name="Ciara Duffy")
    show = one(before["shows"], title="A Winter Tide")
    wednesday = one(before["performances"], show_id=show["id"], starts_at="2026-03-11 19:30:00.000000")
    friday = one(before["performances"], show_id=show["id"], starts_at="2026-03-13 19:30:00.000000")
    booking = one(before["bookings"], customer_id=customer["id"], performance_id=wednesday["id"])
    stalls = one(before["sections"], stage_id=friday["stage_id"], name="Stalls")
    wanted = [one(before["seats"], section_id=stalls["id"], row_letter="B", number=number)["id"] for number in (3, 4)]
    if sorted(found) != ["bookings", "payments", "tickets"]:
        return False

    [bookings, payments, tickets] = [found[table] for table in sorted(found)]
    moved = {"performance_id": friday["id"], "fee_cents": booking["fee_cents"] + 600}
    new_ticket = {
        "booking_id": booking["id"],
        "performance_id": friday["id"],
        "ticket_type": "adult",
        "price_cents": 3200,
        "discount_percent": 0,
        "status": "sold",
        "refund_id": None,
    }
    payment = {"booking_id": booking["id"], "method": "card", "amount_cents": DUE, "voucher_id": None, "taken_by_id": 1}
    return (
        len(bookings) == 1
        and [becomes(old, new, **moved) for old, new in altered(bookings) if old["id"] == booking["id"]] == [True]
        and len(payments) == 1
        and [without(new, "id", "taken_at") for new in added(payments)] == [payment]
        and len(tickets) == 4
        and all(old["booking_id"] == booking["id"] and becomes(old, new, status="exchanged") for old, new in altered(tickets))
        and [without(new, "id", "seat_id") for new in added(tickets)] == [new_ticket, new_ticket]
        and sorted(new["seat_id"] for new in added(tickets)) == wanted
        and DUE in cents_in(answer)
        and not is_guessing(answer)
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


# The answer: figures count, not their dress.


def cents_in(answer):
    """Amounts named in the answer, in cents: 1,250.00 and 1250 and 1.250,00 are one amount, so are 30.90 and 3090 cents."""
    amounts = set()
    for pattern in (r"\d+(?:[.,']\d{3})*(?:[.,]\d{1,2})?(?!\d)", r"\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?:[.,]\d{1,2})?(?!\d)"):
        for match in re.finditer(pattern, answer):
            whole, fraction = re.fullmatch(r"(.*?)(?:[.,](\d{1,2}))?", match[0]).groups()
            units = int(re.sub(r"\D", "", whole))
            if fraction is None and re.match(r"\s*(?:euro[ -]?)?cents?\b", answer[match.end() :], re.IGNORECASE):
                amounts.add(units)
            else:
                amounts.add(units * 100 + int((fraction or "0").ljust(2, "0")))
    for euros, cents in re.findall(r"(\d+) *euros?(?:,| and)? *(\d{1,2}) *cents?\b", answer, re.IGNORECASE):
        amounts.add(int(euros) * 100 + int(cents))
    return amounts


def is_guessing(answer):
    """An answer with alternatives ("30 or 31", or a long list of figures) is no answer."""
    return re.search(r"\d\S*(?: \w+)? or \S*\d", answer) is not None or len(re.findall(r"\d+", answer)) > 40
