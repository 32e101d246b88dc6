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
    """Nothing changes, and the answer gives the doses of usable FLU lots within their last day of use."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    if added or removed or changed:
        return {"result": "others"}
    vaccine = next(row["id"] for row in before["vaccines"].values() if row["code"] == "FLU")
    doses = sum(
        row["doses_remaining"]
        for row in before["vaccine_lots"].values()
        if row["vaccine_id"] == vaccine and row["status"] == "usable" and row["expires_on"] >= "2026-01-01"
    )
    found = numbers(final_answer)
    return {"result": "complete" if Decimal(doses) in found and len(found) <= 10 else "others"}
