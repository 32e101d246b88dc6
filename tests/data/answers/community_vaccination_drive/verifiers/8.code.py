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
    """Every expired lot is empty by wastage for that reason, no other lot is touched, and the answer gives the total."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    moves, lots = added.pop("stock_movements", []), changed.pop("vaccine_lots", [])
    if added or removed or changed:
        return {"result": "others"}
    due = {row["id"]: row["doses_remaining"] for row in before["vaccine_lots"].values() if row["expires_on"] < "2026-01-01" and row["doses_remaining"]}
    emptied = {new["id"] for old, new in lots if new["doses_remaining"] == 0 and columns_changed(old, new) == {"doses_remaining"}}
    wasted = {}
    for row in moves:
        if row["kind"] != "wasted" or "expire" not in (row["reason"] or "").lower():
            return {"result": "others"}
        wasted[row["lot_id"]] = wasted.get(row["lot_id"], 0) + row["doses"]
    found = numbers(final_answer)
    right = len(lots) == len(emptied) and emptied == set(due) and wasted == due and Decimal(sum(due.values())) in found and len(found) <= 12
    return {"result": "complete" if right else "others"}
