"""Schema: what SQLite accepts without a word and later stages stumble over."""

import re
from collections import Counter
from typing import Final

from awm_factory.bundle import table_of
from awm_factory.problems import Problem
from awm_factory.synthesis.artifacts import Schema
from awm_factory.synthesis.checks.finding import error
from awm_runtime.contract import CheckFailed, LoadReply

GATE: Final = "schema"

_REFERENCES: Final = re.compile(r"\bREFERENCES\s+[\"`\[]?(\w+)", re.I)
_CLOCK: Final = re.compile(
    r"\bCURRENT_(TIMESTAMP|DATE|TIME)\b|\b(datetime|date|julianday|strftime|unixepoch)\s*\(\s*'now'|\brandom(blob)?\s*\(", re.I
)
_SECRETS: Final = re.compile(r"\b(password(_hash)?|passwd|session_token|access_token|refresh_token)\b", re.I)


def check(schema: Schema, load: LoadReply | CheckFailed) -> list[Problem]:
    problems = []
    names = Counter(table.name.lower() for table in schema.tables)
    problems += [
        error(GATE, f"table {name}", f"It stands there {count} times.", "Define it once.")
        for name, count in names.items()
        if count > 1
    ]
    for table in schema.tables:
        made = table_of(table.ddl).lower()
        if made and made != table.name.lower():
            problems.append(
                error(
                    GATE, f"table {table.name}", f"Its DDL makes {made!r}.", "Give the entry the name that its CREATE TABLE has."
                )
            )
        problems += [
            error(
                GATE,
                f"table {table.name}",
                f"A foreign key points to {parent!r}, which no table is called.",
                "Name a table of this schema, or add it.",
            )
            for parent in dict.fromkeys(_REFERENCES.findall(table.ddl))
            if parent.lower() not in names
        ]
        if _SECRETS.search(table.ddl):
            problems.append(
                error(
                    GATE,
                    f"table {table.name}",
                    "It keeps passwords or tokens.",
                    "Leave them out: the user is signed in.",
                    severity="warning",
                )
            )
        if moving := _CLOCK.search(table.ddl):
            # The world's clock reaches SQLite, so a default of now is repeatable; rows should say their own time all the same.
            chance = "random" in moving[0].lower()
            problems.append(
                error(
                    GATE,
                    f"table {table.name}",
                    f"{moving[0]} makes its rows depend on {'chance' if chance else 'the clock'}.",
                    "Let the service write the value; defaults are constants.",
                    severity="error" if chance else "warning",
                )
            )
    if not isinstance(load, CheckFailed) and load.tables and not any("user" in table.name.lower() for table in load.tables):
        problems.append(
            error(GATE, "schema", "No table holds users.", "Add a table `users`; the one with id 1 is the assistant's.")
        )
    return problems
