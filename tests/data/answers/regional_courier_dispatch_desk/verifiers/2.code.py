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


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    """Nothing changes, and the answer gives the weight of booked shipments for the zone, in kilograms or grams."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    if added or removed or changed:
        return {"result": "others"}
    zone = next(row["id"] for row in before["zones"].values() if row["name"] == "Northmoor")
    grams = sum(
        row["weight_g"]
        for row in before["shipments"].values()
        if row["status"] == "booked" and before["addresses"][row["address_id"]]["zone_id"] == zone
    )
    found = numbers(final_answer)
    in_grams = re.search(r"\d\s*(?:g|grams?)\b", (final_answer or "").lower()) is not None
    right = Decimal(grams) / 1000 in found or (in_grams and Decimal(grams) in found)
    return {"result": "complete" if right and len(found) <= 10 else "others"}
