"""Gate *data*: every row of the sample data is stored, refers to rows that exist, and depends on neither clock nor chance.

Example: an INSERT whose `state` breaks a CHECK leaves out the very row that a task speaks of.
"""

import re

from awm_factory.bundle import Bundle
from awm_factory.certify.answers import relative_day
from awm_factory.certify.evidence import Evidence, Options, severity
from awm_factory.certify.schema import failed_statements
from awm_factory.problems import Problem
from awm_runtime.contract import CheckFailed, LoadReply

NAME = "data"
VERSION = 2

_LITERAL = re.compile(r"'((?:[^']|'')*)'")
_SOURCES = {"clock": "the clock", "random": "chance"}
_MIN_LITERAL = 3
"""Shorter strings (state codes, initials) occur in a sentence by accident."""


def check(bundle: Bundle, evidence: Evidence, options: Options) -> list[Problem]:
    load = evidence.load
    if isinstance(load, CheckFailed):
        return []
    problems = failed_statements(NAME, "data", load, options)
    strictness = severity(bundle.manifest.origin)
    problems += [
        Problem(
            gate=NAME,
            severity=strictness,
            where=row.table if row.rowid is None else f"{row.table}, rowid {row.rowid}",
            what=f"The row refers to a row of {row.parent} that does not exist.",
            fix="Insert the parent, or name one that exists.",
        )
        for row in load.dangling
    ]
    problems += [
        Problem(
            gate=NAME,
            severity="warning" if moving.source == "clock" else strictness,
            where=f"{moving.table}, insert {moving.index}",
            what=f"Its values depend on {_SOURCES[moving.source]}; they are frozen at the world time.",
            fix="Write the values as literals, relative to the world time.",
        )
        for moving in load.moving
    ]
    return problems + _missing_rows(bundle, load) + _undated(bundle)


def _missing_rows(bundle: Bundle, load: LoadReply) -> list[Problem]:
    """Tasks that name something which only a failed statement would have stored."""
    failed = [failure for failure in load.failures if failure.phase == "data"]
    if not failed:
        return []
    failing = {failure.sql.strip().rstrip(";").strip() for failure in failed}
    stored = "\n".join(sql for sql in load.seed_sql if sql.strip() not in failing).lower()
    problems = []
    for task in bundle.tasks:
        lost: dict[str, list[str]] = {}
        for failure in failed:
            for text in _literals(failure.sql):
                if _names(task.instruction, text) and text.lower() not in stored:
                    lost.setdefault(f"insert {failure.index} of {failure.table}", []).append(repr(text))
        if lost:
            named = "; ".join(f"{', '.join(texts)} ({where})" for where, texts in lost.items())
            problems.append(
                Problem(
                    gate=NAME,
                    severity="warning",
                    where=f"task {task.task_id}",
                    what=f"It speaks of what only failed inserts would have stored: {named}.",
                    fix="Mend those inserts, or change the task.",
                    task_id=task.task_id,
                )
            )
    return problems


def _undated(bundle: Bundle) -> list[Problem]:
    """Tasks whose day only a clock tells, which no agent sees."""
    today = bundle.manifest.world_time[:10]
    spoken = ((task, words) for task in bundle.tasks if (words := relative_day(task.instruction)) is not None)
    return [
        Problem(
            gate=NAME,
            severity="warning",
            where=f"task {task.task_id}",
            what=f'It says "{words}" and names no date, and no agent sees the clock.',
            fix=f"Say in the task that today is {today}.",
            task_id=task.task_id,
        )
        for task, words in spoken
    ]


def _literals(sql: str) -> list[str]:
    texts = (match.replace("''", "'").strip() for match in _LITERAL.findall(sql))
    return list(dict.fromkeys(text for text in texts if len(text) >= _MIN_LITERAL and not text.isdigit()))


def _names(instruction: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", instruction, re.IGNORECASE) is not None
