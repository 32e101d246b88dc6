"""Conor Hanratty asks too late: nothing may change, and the answer names the deadline, Saturday 7 March 2026 at 19:30.

48 hours before the performance of Monday 9 March at 19:30. Date and time count in any of the usual forms.
"""

import re
import sqlite3

MONTH = r"mar(?:ch|\.)?"
DATE = (
    rf"(?:\b2026-0?3-0?7(?!\d)|\b0?7(?:th)?(?: of|\.)? {MONTH}(?![a-z])|\b{MONTH} (?:the )?0?7(?:th)?\b"
    r"|\b0?7[/.]0?3[/.](?:20)?26\b|\b0?3/0?7/(?:20)?26\b)"
)
TIME = r"(?:(?<!\d)19[:.h]30(?!\d)|(?<!\d)0?7[:.]30 ?(?:p\.? ?m\b|in the evening)|\b1930\b|\bhalf[- ]past[- ]seven\b)"
CLOCK = r"(?:\d{1,2}(?:[:.h]\d{2}| ?[ap]\.? ?m\b)|noon|midnight)"
GAP = rf"(?:(?!{CLOCK}).){{0,50}}?"
DEADLINE = rf"{DATE}{GAP}{TIME}|{TIME}{GAP}{DATE}(?!{GAP}{CLOCK})"
HYPOTHETICAL = r"\b(?:could|would|might|can|may)(?:n't| not)?(?: only| still)?(?: have| be| have been)? (?:refunded|paid)\b"
CLAIM = r"\brefunded\b|\bpaid (?:out|back)\b|\brefund (?:has been |was |is )?(?:issued|paid|made|processed|done|approved)\b"
DENIAL = (
    r"\bnot\b|n't\b|n’t\b|\bcannot\b|\bno\b|\btoo late\b|\bunable\b|\brefus|\bdeclin|\bdenied\b"
    r"|\bpassed\b|\bclosed\b|\bexpired\b|\bmissed\b"
)


def verify_task_completion(initial_db_path: str, final_db_path: str, final_answer: str | None = None) -> dict:
    done = is_done(tables(initial_db_path), tables(final_db_path), final_answer or "")
    return {"result": "complete" if done else "others"}


def is_done(before, after, answer):
    text = re.sub(r"[\s,]+", " ", answer.lower().replace("t19:30", " 19:30"))
    claims_refund = re.search(CLAIM, re.sub(HYPOTHETICAL, "", text)) and not re.search(DENIAL, text)
    return not differences(before, after) and re.search(DEADLINE, text) is not None and not claims_refund


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
