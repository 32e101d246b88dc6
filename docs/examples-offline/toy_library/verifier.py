"""Tell me the missing piece case of the work entry worked on or after 25 November 2025 with the fewest minutes."""

import re
import sqlite3


def verify_task_completion(initial_db_path: str, final_db_path: str, final_answer: str | None = None) -> dict:
    done = is_done(tables(initial_db_path), tables(final_db_path), final_answer or "")
    return {"result": "complete" if done else "others"}


def is_done(before, after, answer):
    return (
        not differences(before, after)
        and names(answer, "T-1016", (
    "T-1007",
    "T-1008",
    "T-1009",
    "T-1010",
    "T-1011",
    "T-1012",
    "T-1013",
    "T-1014",
    "T-1015",
    "T-1017",
    "T-1018",
    "T-1019",
    "T-1020",
    "T-1021",
    "T-1022",
    "T-1023",
    "T-1024",
    "T-1025",
    "T-1026",
    "T-1027",
))
    )


# The state as a whole: nothing may differ from the start but what the task asks for.


def tables(path):
    """All rows by table and id."""
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        named = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        names = sorted(row["name"] for row in named)
        return {name: {row["id"]: dict(row) for row in connection.execute(f'SELECT * FROM "{name}"')} for name in names}
    finally:
        connection.close()


def differences(before, after):
    """Rows that differ, as {table: {id: (old or None, new or None)}}."""
    found = {}
    for table in sorted(before.keys() | after.keys()):
        old, new = before.get(table, {}), after.get(table, {})
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                found.setdefault(table, {})[key] = (old.get(key), new.get(key))
    return found


# The answer: figures and names count, not their dress.


def names(answer, wanted, others=()):
    """Whether the answer names this one, and does not offer others in its stead."""
    text = plain(answer)
    return f" {plain(wanted)} " in f" {text} " and sum(f" {plain(other)} " in f" {text} " for other in others) < 2


def plain(text):
    return " ".join(re.findall(r"\w+", text.casefold()))
