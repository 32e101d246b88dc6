"""Decide the pending web refunds by the house rules: paid in time or for a cancelled performance, rejected when late.

What each refund should become is worked out from the state at the start; the one above the user's limit stays pending, and
so do requests from the counter. A remark on an approval is free; the one on a rejection is given by the task.
"""

import datetime
import sqlite3


def verify_task_completion(initial_db_path: str, final_db_path: str, final_answer: str | None = None) -> dict:
    done = is_done(tables(initial_db_path), tables(final_db_path), final_answer or "")
    return {"result": "complete" if done else "others"}


def is_done(before, after, answer):
    found = differences(before, after)
    limit = one(before["users"], id=1)["refund_limit_cents"]
    hours = one(before["policies"], key="refund_cutoff_hours")["value"]
    bookings, performances = before["bookings"], before["performances"]
    fates = {}
    for refund in before["refunds"].values():
        if refund["status"] == "pending" and refund["channel"] == "web":
            performance = performances[(bookings[(refund["booking_id"],)]["performance_id"],)]
            notice = moment(performance["starts_at"]) - moment(refund["requested_at"])
            if performance["cancelled_at"] is None and notice < datetime.timedelta(hours=hours):
                fates[refund["id"]] = "rejected"
            elif refund["amount_cents"] <= limit:
                fates[refund["id"]] = "paid"
    paid = [refund for refund in before["refunds"].values() if fates.get(refund["id"]) == "paid"]

    credit = [
        {
            "customer_id": bookings[(refund["booking_id"],)]["customer_id"],
            "booking_id": refund["booking_id"],
            "amount_cents": refund["amount_cents"],
            "reason": "refund",
            "note": None,
            "created_by_id": 1,
        }
        for refund in paid
        if refund["method"] == "credit"
    ]
    tickets = [ticket for ticket in before["tickets"].values() if ticket["refund_id"] in fates]
    given_up = {
        refund["booking_id"]
        for refund in paid
        if not any(
            ticket["booking_id"] == refund["booking_id"] and ticket["status"] == "sold" and ticket["refund_id"] != refund["id"]
            for ticket in before["tickets"].values()
        )
    }
    return (
        sorted(found) == ["bookings", "credit_entries", "refunds", "tickets"]
        and all(old is not None and new is not None for table in ("bookings", "refunds", "tickets") for old, new in found[table])
        and {old["id"]: decision(old, new) for old, new in found["refunds"]} == fates
        and {old["id"]: fates.get(old["refund_id"]) for old, new in found["tickets"] if is_settled(old, new, fates)}
        == {ticket["id"]: fates[ticket["refund_id"]] for ticket in tickets}
        and len(found["tickets"]) == len(tickets)
        and {old["id"] for old, new in found["bookings"] if becomes(old, new, status="refunded")} == given_up
        and len(found["bookings"]) == len(given_up)
        and [without(new, "id", "created_at") for new in added(found["credit_entries"])] == credit
        and len(found["credit_entries"]) == len(credit)
    )


def moment(text):
    return datetime.datetime.fromisoformat(text)


def decision(old, new):
    """paid, rejected, or None where anything about the decision is not as it should be."""
    same = {name: value for name, value in new.items() if name not in ("status", "note", "decided_by_id", "decided_at")}
    if any(old[name] != value for name, value in same.items()) or new["decided_by_id"] != 1 or new["decided_at"] is None:
        return None
    if new["status"] == "rejected" and (new["note"] or "").strip(' ."').lower() != "asked for too late":
        return None
    return new["status"]


def is_settled(old, new, fates):
    if fates.get(old["refund_id"]) == "paid":
        return becomes(old, new, status="refunded")
    return becomes(old, new, refund_id=None)


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


def becomes(old, new, **values):
    """True if these columns, and no others, changed, and to these values."""
    return {name: value for name, value in new.items() if value != old[name]} == values


def without(row, *names):
    return {name: value for name, value in row.items() if name not in names}


def one(rows, **values):
    """The row with these values, where exactly one has them."""
    found = [row for row in rows.values() if all(row[name] == value for name, value in values.items())]
    return found[0] if len(found) == 1 else None
