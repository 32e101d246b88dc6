import sqlite3


def load(path):
    """Every row of every table, by table name and id."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").fetchall()
        return {name: {row["id"]: dict(row) for row in connection.execute(f'SELECT * FROM "{name}"')} for (name,) in names}
    finally:
        connection.close()


def compare(before, after):
    """What differs: added and removed rows, and changed rows as (old, new), by table."""
    added, removed, changed = {}, {}, {}
    for table in sorted(set(before) | set(after)):
        old, new = before.get(table, {}), after.get(table, {})
        for key in sorted(set(old) | set(new)):
            if key not in old:
                added.setdefault(table, []).append(new[key])
            elif key not in new:
                removed.setdefault(table, []).append(old[key])
            elif old[key] != new[key]:
                changed.setdefault(table, []).append((old[key], new[key]))
    return added, removed, changed


def columns_changed(old, new):
    return {name for name in new if new[name] != old.get(name)}


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    """Both of Adaeze's loans ended, the leaf blower's late fee charged, and every late fee of hers paid by card."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    member = next(row["id"] for row in before["members"].values() if row["full_name"] == "Adaeze Nwosu")
    open_loans = {row["id"]: row["copy_id"] for row in before["loans"].values() if row["member_id"] == member and row["returned_on"] is None}
    fees, payments = added.pop("charges", []), added.pop("payments", [])
    loans, copies, paid = changed.pop("loans", []), changed.pop("tool_copies", []), changed.pop("charges", [])
    if added or removed or changed:
        return {"result": "others"}
    returned = {new["id"] for old, new in loans if columns_changed(old, new) == {"returned_on"} and new["returned_on"] is not None}
    shelved = {new["id"] for _, new in copies if new["status"] == "available" and new["condition"] == "good"}
    if len(loans) != 2 or returned != set(open_loans) or len(copies) != 2 or shelved != set(open_loans.values()):
        return {"result": "others"}
    late = [row["id"] for row in before["loans"].values() if row["id"] in open_loans and row["due_on"] < "2026-01-01"]
    if len(fees) != 1 or fees[0]["loan_id"] not in late or fees[0]["kind"] != "late_fee" or fees[0]["amount_cents"] != 450:
        return {"result": "others"}
    settled = [fees[0]] + [new for old, new in paid if columns_changed(old, new) == {"paid_cents"}]
    owed = {row["id"] for row in after["charges"].values() if row["member_id"] == member and row["kind"] == "late_fee"}
    received = {}
    for row in payments:
        received[row["charge_id"]] = received.get(row["charge_id"], 0) + row["amount_cents"]
    right = (
        len(settled) == 1 + len(paid)
        and {row["id"] for row in settled} == owed
        and all(row["paid_cents"] == row["amount_cents"] and row["waived_cents"] == 0 for row in settled)
        and received == {fees[0]["id"]: 450, **{new["id"]: new["paid_cents"] - old["paid_cents"] for old, new in paid}}
        and all(row["method"] == "card" for row in payments)
    )
    return {"result": "complete" if right else "others"}
