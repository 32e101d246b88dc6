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


def plain(text):
    return " ".join(re.sub(r"[^\w]+", " ", (text or "").lower()).split())


def first_named(answer, candidates):
    """The candidate that the answer names first, or None; hyphens, case and punctuation don't matter."""
    text = f" {plain(answer)} "
    places = {name: text.find(f" {plain(name)} ") for name in candidates}
    named = [name for name in candidates if places[name] >= 0]
    return min(named, key=lambda name: (places[name], -len(name))) if named else None


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    """An open, severe report on Carmen's latest dose, that dose's lot in quarantine, and the doses left in it in the answer."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    events, lots = added.pop("adverse_events", []), changed.pop("vaccine_lots", [])
    if added or removed or changed or len(events) != 1 or len(lots) != 1:
        return {"result": "others"}
    patient = next(row["id"] for row in before["patients"].values() if row["full_name"] == "Carmen Ibarra")
    dose = max((row for row in before["vaccinations"].values() if row["patient_id"] == patient), key=lambda row: row["given_at"])
    event, (old, new) = events[0], lots[0]
    found = numbers(final_answer)
    right = (
        event["vaccination_id"] == dose["id"]
        and event["severity"] == "severe"
        and event["status"] == "open"
        and plain(event["description"]) == "fainted two minutes after the shot"
        and new["id"] == dose["lot_id"]
        and new["status"] == "quarantined"
        and columns_changed(old, new) == {"status"}
        and Decimal(new["doses_remaining"]) in found
        and len(found) <= 10
    )
    return {"result": "complete" if right else "others"}
