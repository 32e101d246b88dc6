"""That every table and column an app's code names exists: in its mapped classes, and in SQL that it holds as plain text."""

import ast
import re
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final

import sqlalchemy

from awm_runtime import dump
from awm_runtime.wire import Finding

_STATEMENT: Final = re.compile(r"\s*(?:SELECT|INSERT|REPLACE|UPDATE|DELETE|WITH)\s", re.IGNORECASE)
_PARAMETER: Final = re.compile(r"\?\d*|(?<![\w:]):[A-Za-z_]\w*")
_UNKNOWN: Final = re.compile(r"no such (?:column|table): (\S+)|table (\S+ has no column named \S+)")
_FIX: Final = "Use the names of the schema, or add the column to it."


def unknown(
    code: str, mapped: Iterable[sqlalchemy.Table], given: sqlite3.Connection, served: sqlite3.Connection
) -> Iterator[Finding]:
    """`given`: the database before the import; `served`: after it, with what the import may have made."""
    columns = {layout.name.lower(): {column.lower() for column in layout.columns} for layout in dump.layouts(given)}
    for table in mapped:
        if table.name.lower() not in columns:
            yield _finding(f"table {table.name}", f"the code maps table {table.name}, which the schema does not have.")
            continue
        missing = [column.name for column in table.columns if column.name.lower() not in columns[table.name.lower()]]
        for name in missing:
            yield _finding(f"table {table.name}, column {name}", f"the code maps column {name}, which the schema does not have.")
    for line, sql in _statements(code):
        if lacking := _lacking(served, sql):
            yield _finding(f"app.py line {line}", f"its SQL names what the schema does not have: {lacking}.")


def _finding(where: str, what: str) -> Finding:
    return Finding(kind="unknown_column", where=where, what=what, fix=_FIX)


def _statements(code: str) -> Iterator[tuple[int, str]]:
    """Texts that are whole statements; those put together while the code runs can't be told from here."""
    tree = ast.parse(code)
    pieces = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in pieces else None
        if isinstance(node, ast.Constant) and isinstance(text, str) and _STATEMENT.match(text):
            yield node.lineno, text


def _lacking(connection: sqlite3.Connection, sql: str) -> str:
    """What SQLite finds no table or column for; other errors may come of the parameters that are left out here."""
    try:
        connection.execute("EXPLAIN " + _PARAMETER.sub("NULL", sql)).close()
    except (sqlite3.Error, sqlite3.Warning) as error:
        found = _UNKNOWN.search(str(error))
        return (found[1] or found[2]) if found else ""
    return ""
