import re
import sqlite3
from decimal import Decimal


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


def numbers(answer):
    """Figures in an answer, however they are written: "1,250.00", "$12.5", "three"."""
    text = re.sub(r"\d{4}-\d{2}-\d{2}(?:T[\d:.]+Z?)?", " ", (answer or "").lower())
    found = {Decimal(match.replace(",", "")) for match in re.findall(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?![\d])", text.replace("$", " ").replace("€", " "))}
    spelled = "zero one two three four five six seven eight nine ten eleven twelve".split()
    return found | {Decimal(value) for value, word in enumerate(spelled) if re.search(rf"\b{word}\b", text)}


def only_events_of(added, shipments):
    """Takes the log of these shipments out of what was added; False where another shipment's log grew."""
    return all(row["shipment_id"] in shipments for row in added.pop("shipment_events", []))


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    """Exactly Brightwater's booked shipments are cancelled, and the answer gives the sum of their prices."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    customer = next(row["id"] for row in before["customers"].values() if row["name"] == "Brightwater Books")
    due = {row["id"]: row["price_cents"] for row in before["shipments"].values() if row["customer_id"] == customer and row["status"] == "booked"}
    shipments = changed.pop("shipments", [])
    if not only_events_of(added, set(due)) or added or removed or changed:
        return {"result": "others"}
    cancelled = {new["id"] for old, new in shipments if new["status"] == "cancelled" and columns_changed(old, new) == {"status"}}
    found, total = numbers(final_answer), Decimal(sum(due.values()))
    cents = re.search(r"\bcents?\b", (final_answer or "").lower()) is not None
    told = total / 100 in found or (cents and total in found)
    right = len(shipments) == len(cancelled) and cancelled == set(due) and told and len(found) <= 12
    return {"result": "complete" if right else "others"}
