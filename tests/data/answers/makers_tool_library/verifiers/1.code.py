import re
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


def names_day(answer, day):
    """Whether the answer gives this day (`YYYY-MM-DD`), as ISO date or with the month's name in either order."""
    year, month, number = day.split("-")
    short = "jan feb mar apr may jun jul aug sep oct nov dec".split()[int(month) - 1]
    text = (answer or "").lower().replace(",", " ")
    ordinal = rf"0?{int(number)}(?:st|nd|rd|th)?"
    forms = [re.escape(day), rf"\b{ordinal}(?: of)? {short}[a-z]*\b", rf"\b{short}[a-z]*\.? +{ordinal}\b"]
    forms += [rf"\b0?{int(month)}/0?{int(number)}/(?:20)?{year[2:]}\b", rf"\b0?{int(number)}[./]0?{int(month)}[./](?:20)?{year[2:]}\b"]
    return any(re.search(form, text) for form in forms)


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    """A full-length loan of TL-0202 to Tobias, and the due date in the answer: 6 January is a closed day."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    loans, copies = added.pop("loans", []), changed.pop("tool_copies", [])
    if added or removed or changed or len(loans) != 1 or len(copies) != 1:
        return {"result": "others"}
    tool = next(row for row in before["tools"].values() if row["name"] == "Track saw")
    best = next(row for row in before["tool_copies"].values() if row["tool_id"] == tool["id"] and row["condition"] == "excellent")
    member = next(row for row in before["members"].values() if row["full_name"] == "Tobias Lindqvist")
    loan, (old, new) = loans[0], copies[0]
    right = (
        loan["copy_id"] == best["id"]
        and loan["member_id"] == member["id"]
        and loan["due_on"][:10] == "2026-01-07"
        and loan["returned_on"] is None
        and loan["renewals"] == 0
        and new["id"] == best["id"]
        and new["status"] == "on_loan"
        and columns_changed(old, new) == {"status"}
        and names_day(final_answer, "2026-01-07")
        and not names_day(final_answer, "2026-01-06")
    )
    return {"result": "complete" if right else "others"}
