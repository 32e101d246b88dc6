"""Both verifiers of a task, printed from what it is to come to: plain Python that reads two databases and an answer."""

import re
import textwrap
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from functools import cache
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from awm_factory import resources
from awm_factory.llm.offline.literals import WIDTH, Code, Noted, literal, text
from awm_factory.llm.offline.outcome import Anything, Cell, Changed, Choice, Known, Made, Moment, Removed, Told, Wanted

_NEEDS: Final = {
    "counts": ("counts", "without_dates"),
    "amounts": ("amounts", "without_dates"),
    "on_day": ("on_day",),
    "at_time": ("at_time",),
    "names": ("names", "plain"),
}
_ORDER: Final = ("counts", "amounts", "on_day", "at_time", "names", "is_guessing", "without_dates", "plain")
_MADE: Final = 'Made = namedtuple("Made", "name")  # the id of a row that the task makes'
_WORDS: Final = (
    "WORDS = (\n"
    '    "zero no none nothing", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",\n'
    '    "twelve",\n'
    ")  # fmt: skip"
)
_MONTHS: Final = 'MONTHS = "january february march april may june july august september october november december".split()'
_MINUS: Final = (
    'MINUS = re.compile(r"((^|[\\s(])[-\\u2212]([€$£]|[A-Z]{3} )?|[€$£][-\\u2212]|\\b(minus|negative) ([€$£]|[A-Z]{3} )?)$")'
)
_DATES: Final = (
    'MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\\.?"\n'
    'NTH = r"(?:st|nd|rd|th)?"\n'
    'DATES = "|".join(\n'
    "    (\n"
    '        r"\\d{4}-\\d\\d-\\d\\d",\n'
    '        rf"\\d{{1,2}}{NTH}(?: of)? {MONTH}(?:,? \\d{{4}})?",\n'
    '        rf"{MONTH} \\d{{1,2}}{NTH}(?:,? \\d{{4}})?",\n'
    '        r"\\d{1,2}[:.]\\d\\d ?[ap]m",\n'
    '        r"\\d{1,2}:\\d\\d",\n'
    "    )\n"
    ")"
)


def code_verifier(instruction: str, wanted: Wanted, logs: Iterable[str] = ()) -> str:
    """`verify_task_completion`. `logs`: tables that get a line with every write, whose new rows count for nothing."""
    writes = not wanted.outcome.nothing
    body = _body(wanted, writes)
    constants = [f"CHOICES = {literal([_row(choice) for choice in wanted.choices])}"] if wanted.choices else []
    everything = body + "".join(constants)
    if "Made(" in everything:
        constants.insert(0, _MADE)
    functions = [name for name in _NEEDS if f"{name}(" in body]
    needed = {need for name in functions for need in _NEEDS[name]} | ({"is_guessing"} if "is_guessing(" in body else set())
    helpers = [source for name, source in _helpers().items() if name in needed]
    for need, constant in (("counts", _WORDS), ("amounts", _MINUS), ("on_day", _MONTHS), ("without_dates", _DATES)):
        if need in needed:
            constants.insert(0, constant)
    tables = tuple(logs)
    return _rendered(
        "verifier.code.j2",
        summary=_docstring(instruction),
        imports=_imports("".join([everything, *helpers]), writes),
        constants=constants,
        choices=bool(wanted.choices),
        writes=writes,
        body=body,
        used=everything,
        helpers=helpers,
        log_remark=" New lines of the activity log go with every write." if tables else "",
        unless_logged=f" and not (table in {literal(tables)} and key not in old)" if tables else "",
    )


def _imports(body: str, writes: bool) -> list[str]:
    times = [name for name in ("date", "datetime", "timedelta") if re.search(rf"\b{name}[.(]", body)]
    if writes:
        times = sorted({*times, "datetime", *(["timedelta"] if "about(" in body else [])})
    lines = [*(["import re"] if writes or "re." in body else []), "import sqlite3"]
    lines += ["from collections import namedtuple"] if "Made(" in body else []
    return lines + ([f"from datetime import {', '.join(times)}"] if times else [])


def _body(wanted: Wanted, writes: bool) -> str:
    outcome, lines = wanted.outcome, []
    if outcome.added:
        rows = [(row.name, row.table, _row(row.values)) for row in outcome.added]
        lines.append(f"added = {literal(rows, 4, 8)}")
    if outcome.changed:
        changed: dict[tuple[str, Code], Mapping[str, object]] = {
            (row.table, _id(row.id, row.label)): _row(row.values) for row in outcome.changed
        }
        lines.append(f"changed = {_keyed(changed, [row.label for row in outcome.changed])}")
    if outcome.removed:
        removed = [Noted((row.table, _id(row.id, "")), row.label) for row in outcome.removed]
        lines.append(f"removed = {literal(removed, 4, 10)}")
    given = ", ".join(name for name in ("added", "changed", "removed") if getattr(outcome, name))
    given = ", ".join(f"{name}={name}" for name in given.split(", ") if name)
    tests = [f"is_exactly(found, {given})" if writes else "not differences(before, after)", *map(_told, wanted.told)]
    if {"count", "amount"} & {told.kind for told in wanted.told}:
        tests.append("not is_guessing(answer)")
    joined = " and ".join(tests)
    if len(joined) + 11 > WIDTH:
        joined = "(\n        " + "\n        and ".join(tests) + "\n    )"
    return (
        textwrap.indent("\n".join(lines), "    ", lambda line: line.startswith(("added =", "changed =", "removed =")))
        + ("\n" if lines else "")
        + f"    return {joined}"
    )


def _keyed(rows: Mapping[tuple[str, Code], Mapping[str, object]], labels: list[str]) -> str:
    """Changed rows by table and id, each with a remark on whose row it is."""
    return literal({key: Noted(row, label) for (key, row), label in zip(rows.items(), labels, strict=True)}, 4, 10)


def _id(key: int | Choice, label: str) -> Code:
    return Code(f'choice["{key.name}"]' if isinstance(key, Choice) else str(key))


def _row(values: Mapping[str, Cell]) -> dict[str, object]:
    return {name: _cell(value) for name, value in values.items()}


def _cell(value: Cell) -> object:
    match value:
        case Moment(about):
            return Code(f'about("{about:%Y-%m-%d %H:%M}")')
        case Made(name):
            return Code(f"Made({text(name)})")
        case Known(key, label):
            return Noted(key, label)
        case Anything():
            return Code("optional_text")
        case Choice(name):
            return Code(f'choice["{name}"]')
        case datetime():
            return f"{value:%Y-%m-%d %H:%M:%S}"
        case date():
            return value.isoformat()
        case bool():
            return int(value)
        case _:
            return value


def _told(told: Told) -> str:
    value = told.value
    shown = f'choice["{value.name}"]' if isinstance(value, Choice) else literal(_cell(value))
    match told.kind:
        case "count":
            return f"counts(answer, {shown})"
        case "amount":
            return f"amounts(answer, {shown})"
        case "day":
            return f"on_day(answer, {shown})"
        case "moment":
            if isinstance(value, datetime):
                day = f'"{value:%Y-%m-%d}"'
                return f"on_day(answer, {day}) and at_time(answer, {shown})"
            return f"on_day(answer, {shown}[:10]) and at_time(answer, {shown})"
        case "name":
            others = f", {literal(told.others)}" if told.others else ""
            return f"names(answer, {shown}{others})"


def sql_verifier(instruction: str, wanted: Wanted, expected: str) -> str:
    """`verify_task`: the rows that matter, before and after, for a judge. `expected` says in words what is right."""
    queries = {}
    for table in wanted.outcome.tables():
        queries[f"{table} concerned"] = _query(table, wanted)
    return _rendered(
        "verifier.sql.j2", task=literal(instruction), expected=literal(expected), queries=literal(queries) if queries else "{}"
    )


def _query(table: str, wanted: Wanted) -> str:
    outcome = wanted.outcome
    rows: tuple[Changed | Removed, ...] = (*outcome.changed, *outcome.removed)
    ids = [row.id for row in rows if row.table == table]
    parts = [f"id IN ({', '.join(map(str, ids))})"] if ids and all(isinstance(one, int) for one in ids) else []
    for row in outcome.added:
        if row.table == table:
            parts += [f'"{name}" = {value.id}' for name, value in row.values.items() if isinstance(value, Known)][:2]
    where = f" WHERE {' OR '.join(dict.fromkeys(parts))}" if parts else ""
    return f'SELECT * FROM "{table}"{where} ORDER BY id'


def _docstring(instruction: str) -> str:
    plain = instruction.replace("\\", "\\\\").replace('"""', "'''")
    wrapped = "\n".join(textwrap.wrap(plain, WIDTH - 4, break_long_words=False))
    return wrapped + (" " if wrapped.endswith('"') else "")


@cache
def _helpers() -> dict[str, str]:
    source = (resources.templates() / "offline" / "answers.py.j2").read_text(encoding="utf-8")
    found = {}
    for part in source.split("\n##\n"):
        match = re.match(r"def (\w+)", part.strip())
        assert match is not None
        found[match[1]] = part.strip()
    return {name: found[name] for name in _ORDER}


@cache
def _environment() -> Environment:
    loader = FileSystemLoader(resources.templates() / "offline")
    # Python, not HTML: escapes would corrupt it.
    return Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)


def _rendered(name: str, **values: object) -> str:
    return _environment().get_template(name).render(**values)
