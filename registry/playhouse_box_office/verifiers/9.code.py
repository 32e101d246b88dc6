"""Four seats for Deirdre Folan with FAMILYTIDE: the voucher's last 25.00 first, the other 30.90 by card.

2 x 20.00 and 2 x 12.00 less 15 % are 54.40, the booking fee is 1.50. Which of the four seats are the children's is open, and
the amounts may be paid in parts.
"""

import re
import sqlite3

BY_VOUCHER, BY_CARD = 2500, 3090


def verify_task_completion(initial_db_path: str, final_db_path: str, final_answer: str | None = None) -> dict:
    done = is_done(tables(initial_db_path), tables(final_db_path), final_answer or "")
    return {"result": "complete" if done else "others"}


def is_done(before, after, answer):
    found = differences(before, after)
    show = one(before["shows"], title="The Winter Tide for Families")
    performance = one(before["performances"], show_id=show["id"], kind="relaxed")
    stalls = one(before["sections"], stage_id=performance["stage_id"], name="Stalls")
    wanted = [one(before["seats"], section_id=stalls["id"], row_letter="A", number=number)["id"] for number in (1, 2, 3, 4)]
    voucher = one(before["vouchers"], code="GV-7004")
    if sorted(found) != ["bookings", "payments", "tickets", "vouchers"]:
        return False
    bookings, tickets, payments = added(found["bookings"]), added(found["tickets"]), added(found["payments"])
    if len(bookings) != 1 or bookings[0]["confirmed_at"] is None:
        return False
    if any(len(found[table]) != len(rows) for table, rows in zip(sorted(found), (bookings, payments, tickets, [voucher]))):
        return False

    booking = {
        "customer_id": one(before["customers"], full_name="Deirdre Folan")["id"],
        "performance_id": performance["id"],
        "promotion_id": one(before["promotions"], code="FAMILYTIDE")["id"],
        "status": "confirmed",
        "fee_cents": 150,
        "hold_expires_at": None,
        "created_by_id": 1,
    }
    ticket = {
        "booking_id": bookings[0]["id"],
        "performance_id": performance["id"],
        "discount_percent": 15,
        "status": "sold",
        "refund_id": None,
    }
    paid = {"card": 0, "voucher": 0}
    for row in payments:
        voucher_id = voucher["id"] if row["method"] == "voucher" else None
        if row["method"] not in paid or row["booking_id"] != bookings[0]["id"] or row["voucher_id"] != voucher_id:
            return False
        paid[row["method"]] += row["amount_cents"]
    return (
        without(bookings[0], "id", "reference", "created_at", "confirmed_at") == booking
        and all(without(row, "id", "seat_id", "ticket_type", "price_cents") == ticket for row in tickets)
        and sorted(row["seat_id"] for row in tickets) == wanted
        and sorted((row["ticket_type"], row["price_cents"]) for row in tickets) == [("adult", 2000)] * 2 + [("child", 1200)] * 2
        and paid == {"card": BY_CARD, "voucher": BY_VOUCHER}
        and all(old["id"] == voucher["id"] and becomes(old, new, balance_cents=0) for old, new in altered(found["vouchers"]))
        and altered(found["vouchers"])
        and BY_CARD in cents_in(answer)
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
