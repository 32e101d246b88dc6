"""Sample data: values that load and are wrong all the same, and tasks that can't start from them or are done already."""

import re
from collections.abc import Iterator
from typing import Final

from awm_factory.problems import Problem
from awm_factory.synthesis.artifacts import RowPattern, SampleData
from awm_factory.synthesis.checks.finding import error, excerpt, listed
from awm_factory.synthesis.checks.wording import Quote, names_table, quotes
from awm_factory.synthesis.workbench import TableRows, Value
from awm_runtime.contract import CheckFailed, LoadReply

GATE: Final = "data"

_INSERT: Final = re.compile(r"\s*INSERT\s+(?:OR\s+\w+\s+)?INTO\s+[\"`\[]?\w+[\"`\]]?\s*(\(|\w+)", re.I)
_ISO_DATE: Final = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])\Z")
_ISO_TIME: Final = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[ T]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?\Z"
)
_NAMING: Final = re.compile(r"(^|_)(name|title|code|label|subject|slug|sku|number|reference)$", re.I)


def check(data: SampleData, tasks: list[str], load: LoadReply | CheckFailed, rows: dict[str, TableRows]) -> list[Problem]:
    if isinstance(load, CheckFailed):
        return []
    problems = _statements(data) + _moving(load) + _user_one(rows)
    for table in rows.values():
        problems += _values(table)
    return problems + list(_promises(data, rows, len(tasks))) + _tasks(tasks, rows)


def _statements(data: SampleData) -> list[Problem]:
    return [
        error(
            GATE,
            f"{table.table_name}, insert {index}",
            "It names no columns.",
            "Name the columns: INSERT INTO t (a, b) VALUES (…).",
        )
        for table in data.tables
        for index, sql in enumerate(table.insert_statements)
        if (match := _INSERT.match(sql)) and match[1].upper() == "VALUES"
    ]


def _moving(load: LoadReply) -> list[Problem]:
    """The gate freezes a clock with a warning; what is written here has no excuse for it."""
    return [
        error(GATE, f"{moving.table}, insert {moving.index}", "Its values depend on the clock.", "Write the values as literals.")
        for moving in load.moving
        if moving.source == "clock"
    ]


def _user_one(rows: dict[str, TableRows]) -> list[Problem]:
    users = rows.get("users") or next((table for name, table in rows.items() if name.endswith("users")), None)
    if users is None:
        return []
    key = next((name for name in ("id", "user_id") if name in users.columns), None)
    if key is None or 1 in users.column(key):
        return []
    return [
        error(
            GATE, users.name, "It has no row with id 1, the user whom the assistant works for.", "Make that user the first row."
        )
    ]


def _values(table: TableRows) -> list[Problem]:
    problems = []
    for place, (column, kind) in enumerate(zip(table.columns, table.types, strict=True)):
        values = [row[place] for row in table.rows]
        if empty := sum(value == "" for value in values):
            problems.append(
                error(GATE, f"{table.name}.{column}", f"{empty} rows hold '' .", "Write NULL for what is absent, or a value.")
            )
        iso = _ISO_DATE if kind == "DATE" else _ISO_TIME if kind in {"DATETIME", "TIMESTAMP"} else None
        wrong = [value for value in values if iso and value is not None and not (isinstance(value, str) and iso.match(value))]
        if wrong:
            form = "'YYYY-MM-DD'" if kind == "DATE" else "'YYYY-MM-DD HH:MM:SS'"
            problems.append(
                error(
                    GATE,
                    f"{table.name}.{column}",
                    f"{len(wrong)} values are no {kind} that the ORM reads: {listed([repr(value) for value in wrong], 3)}.",
                    f"Write them as {form}; the service answers 500 for such a row.",
                )
            )
    return problems


def _promises(data: SampleData, rows: dict[str, TableRows], count: int) -> Iterator[Problem]:
    for task in data.tasks:
        number = task.task_id
        where = f"task {number}"
        if not 0 <= number < count:
            yield error(GATE, f"promise {number}", "There is no such task.", f"Number the tasks from 0 to {count - 1}.")
            continue
        for pattern in (*task.present, *task.absent):
            if fault := _misnamed(pattern, rows):
                yield error(GATE, where, fault, "Name tables and columns of the schema.", number)
        for pattern in task.present:
            if not _misnamed(pattern, rows) and not _matching(pattern, rows):
                what = f"It needs a row of {pattern.table} with {_said(pattern)}, and there is none."
                yield error(GATE, where, what, "Insert it, or correct what the task needs.", number)
        for pattern in task.absent:
            if not _misnamed(pattern, rows) and (found := _matching(pattern, rows)):
                what = f"It is done before it begins: {pattern.table} holds {excerpt(str(found[0]))} already."
                yield error(GATE, where, what, "Leave that row out, or give it another value.", number)


def _misnamed(pattern: RowPattern, rows: dict[str, TableRows]) -> str | None:
    table = rows.get(pattern.table.lower())
    if table is None:
        return f"Its promise names the table {pattern.table!r}, which the schema lacks."
    unknown = [name for name in pattern.equals if name not in table.columns]
    return f"Its promise names {pattern.table}.{unknown[0]}, which the schema lacks." if unknown else None


def _matching(pattern: RowPattern, rows: dict[str, TableRows]) -> list[tuple[Value, ...]]:
    table = rows[pattern.table.lower()]
    wanted = [(table.columns.index(name), value) for name, value in pattern.equals.items()]
    return [row for row in table.rows if all(_same(row[place], value) for place, value in wanted)]


def _same(stored: Value, value: object) -> bool:
    if isinstance(value, bool):
        return stored == int(value)
    if isinstance(stored, int | float) and isinstance(value, int | float):
        return abs(stored - value) < 1e-9
    return stored == value


def _said(pattern: RowPattern) -> str:
    return " and ".join(f"{name} = {value!r}" for name, value in pattern.equals.items())


def _tasks(tasks: list[str], rows: dict[str, TableRows]) -> list[Problem]:
    """By the tasks' own words: what one takes for granted must be stored, what one is to make must not be."""
    named = [quotes(task) for task in tasks]
    granted = {quote.text.lower() for mine in named for quote in mine if quote.noun and names_table(quote.noun, list(rows))}
    texts = {value.lower() for table in rows.values() for row in table.rows for value in row if isinstance(value, str)}
    everything = "\n".join(texts)
    problems = []
    for number, mine in enumerate(named):
        for quote in mine:
            problems += _granted(number, quote, rows, everything)
            if quote.is_made and quote.text.lower() not in granted and (where := _named_so(quote.text, rows)):
                problems.append(
                    error(
                        GATE,
                        f"task {number}",
                        f"It is to make {quote.text!r}, and {where} is called so already.",
                        "Leave that row out of the start data.",
                        number,
                    )
                )
    return problems


def _granted(number: int, quote: Quote, rows: dict[str, TableRows], everything: str) -> list[Problem]:
    table = names_table(quote.noun, list(rows)) if quote.noun else None
    if table is None or quote.text.lower() in everything:
        return []
    what = f"It speaks of the {quote.noun} {quote.text!r}, which no row of {table} or any other table holds."
    return [error(GATE, f"task {number}", what, f"Insert it into {table}: each task starts from this data alone.", number)]


def _named_so(text: str, rows: dict[str, TableRows]) -> str | None:
    for table in rows.values():
        for place, column in enumerate(table.columns):
            stored = {value.lower() for row in table.rows if isinstance(value := row[place], str)}
            if _NAMING.search(column) and text.lower() in stored:
                return f"a row of {table.name}"
    return None
