"""Count the tickets sold for Lanterns over Claddagh: a question, so the state stays as it is and the answer has both figures.

Sold tickets only (those on hold, exchanged or refunded have other states), at price less discount, which is rounded half up.
"""

import re
import sqlite3


def verify_task_completion(initial_db_path: str, final_db_path: str, final_answer: str | None = None) -> dict:
    done = is_done(tables(initial_db_path), tables(final_db_path), final_answer or "")
    return {"result": "complete" if done else "others"}


def is_done(before, after, answer):
    show = one(before["shows"], title="Lanterns over Claddagh")
    performances = {row["id"] for row in before["performances"].values() if row["show_id"] == show["id"]}
    sold = [row for row in before["tickets"].values() if row["performance_id"] in performances and row["status"] == "sold"]
    cents = sum(row["price_cents"] - (row["price_cents"] * row["discount_percent"] + 50) // 100 for row in sold)
    words = {"twenty-two", "twenty two"} if len(sold) == 22 else set()
    counted = str(len(sold)) in re.findall(r"(?<![\d.,])\d+(?![.,]?\d)", answer) or any(word in answer.lower() for word in words)
    return not differences(before, after) and counted and cents in cents_in(answer) and not is_guessing(answer)


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
