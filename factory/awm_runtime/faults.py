"""What went wrong in a call, in words an agent can act on.

Environment code in AWM's style handles no errors, so its exceptions are the agent's only feedback. An IntegrityError names the
constraint and the columns, a missing row is told as such, and only what is left counts as the environment's own fault.
"""

import ast
import inspect
import re
import sqlite3
import textwrap
import traceback
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final

from fastapi.exceptions import RequestValidationError, ResponseValidationError
from sqlalchemy import exc, orm
from starlette.exceptions import HTTPException

from awm_runtime import dump
from awm_runtime.binding import GROWTH
from awm_runtime.loading import FILE_NAME

_UNIQUE: Final = re.compile(r"(UNIQUE|NOT NULL) constraint failed: (.+)")
_CHECK: Final = re.compile(r"CHECK constraint failed: (.+)")
_INSERT: Final = re.compile(r"\s*INSERT\s+(?:OR\s+\w+\s+)?INTO\s+[\"`\[]?(\w+)[\"`\]]?\s*\(([^)]*)\)", re.I)
_ONE_ROW: Final = {"first", "one_or_none", "scalar_one_or_none", "scalar", "get", "fetchone", "scalars"}
_MAX_TEXT: Final = 2000
_ACCIDENTAL: Final = re.compile(r" at 0x[0-9a-f]+|\s*\(Background on this error at: \S+\)?")
"""Left out: it differs from process to process, where the same calls must be answered the same, or leads out of the episode."""


@dataclass(frozen=True)
class Fault:
    kind: str
    message: str
    status: int | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def payload(self) -> dict[str, Any]:
        head: dict[str, Any] = {"kind": self.kind, "message": _ACCIDENTAL.sub("", self.message)[:_MAX_TEXT]}
        if self.status is not None:
            head["status"] = self.status
        return {"error": head | self.details}


def from_http(status: int, detail: Any) -> Fault:
    """An answer of 400 or more that the environment gave on purpose."""
    kind = "internal" if status >= 500 else "not_found" if status == 404 else "invalid_arguments" if status == 422 else "refused"
    if isinstance(detail, dict) and isinstance(detail.get("message"), str):
        return Fault(kind, detail["message"], status, {"detail": detail})
    if isinstance(detail, str):
        return Fault(kind, detail, status)
    return Fault(kind, f"the request was answered with status {status}", status, {"detail": detail})


def from_exception(error: BaseException, anchor: sqlite3.Connection | None) -> Fault:
    """`anchor` is a connection to the episode's database as it was before the call, to tell which parent row is missing."""
    original = error.orig if isinstance(error, exc.DBAPIError) and error.orig is not None else error
    if isinstance(error, HTTPException):
        return from_http(error.status_code, error.detail)
    if isinstance(error, RequestValidationError):
        return Fault("invalid_arguments", validation_text(error.errors()), 422)
    if isinstance(error, ResponseValidationError):
        return _from_response(error)
    if isinstance(error, (exc.IntegrityError, sqlite3.IntegrityError)):
        return _from_integrity(error, anchor)
    if isinstance(original, sqlite3.Error) and getattr(original, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return Fault(
            "refused", f"the database has grown by {GROWTH >> 20} MiB, which is all it may; remove rows, or reset the episode"
        )
    uses_none = isinstance(error, (exc.NoResultFound, orm.exc.UnmappedInstanceError)) or _is_none_access(error)
    if uses_none and (missing := _missing_row(error)):
        return Fault("not_found", missing)
    return Fault("internal", _named(original))


def _named(error: BaseException) -> str:
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE_NAME]
    first = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {first[0] if first else ''}".rstrip(": ")
    return f"{text} (in {lines[-1].name}, line {lines[-1].lineno})" if lines else text


def validation_text(errors: Any) -> str:
    parts = [f"{'.'.join(str(part) for part in entry.get('loc', ()))}: {entry.get('msg', '')}" for entry in errors]
    return "; ".join(parts[:5])


def _from_response(error: ResponseValidationError) -> Fault:
    """The endpoint returned what its response model forbids; nothing at all means that it found no row."""
    errors = error.errors()
    if error.body is None:
        return Fault("not_found", "there is no such row: the endpoint found nothing to return")
    return Fault("internal", f"the answer does not fit its response model: {validation_text(errors)}")


def _from_integrity(error: BaseException, anchor: sqlite3.Connection | None) -> Fault:
    original = getattr(error, "orig", None) or error
    text = str(original)
    if match := _UNIQUE.match(text):
        columns = [column.strip() for column in match[2].split(",")]
        table = columns[0].rpartition(".")[0]
        details = {"constraint": match[1].lower(), "table": table, "columns": [column.rpartition(".")[2] for column in columns]}
        says = "must be given" if match[1] == "NOT NULL" else "must be unique, and this value exists already"
        return Fault("constraint", f"{', '.join(columns)} {says}", None, details)
    if match := _CHECK.match(text):
        return Fault(
            "constraint", f"this rule of the database is not met: {match[1]}", None, {"constraint": "check", "rule": match[1]}
        )
    if "FOREIGN KEY" in text:
        missing = _missing_parent(getattr(error, "statement", None), getattr(error, "params", None), anchor)
        message = missing or "a row that this one refers to does not exist, or rows still refer to the one removed"
        return Fault("constraint", message, None, {"constraint": "foreign key"})
    return Fault("constraint", text)


def _missing_parent(statement: str | None, params: Any, anchor: sqlite3.Connection | None) -> str | None:
    match = _INSERT.match(statement or "")
    if match is None or anchor is None or not isinstance(params, (tuple, list)):
        return None
    columns = [column.strip().strip('"`[]') for column in match[2].split(",")]
    values = dict(zip(columns, params, strict=False))
    for row in anchor.execute(f"PRAGMA foreign_key_list({dump.quote(match[1])})").fetchall():
        parent, child_column, parent_column = row[2], row[3], row[4]
        value = values.get(child_column)
        if value is None:
            continue
        where = dump.quote(parent_column) if parent_column else "rowid"
        try:
            found = anchor.execute(f"SELECT 1 FROM {dump.quote(parent)} WHERE {where} = ?", (value,)).fetchone()
        except sqlite3.Error:
            continue
        if found is None:
            return f"{parent} has no row with {parent_column or 'its key'} = {value!r}, which {match[1]}.{child_column} refers to"
    return None


def _is_none_access(error: BaseException) -> bool:
    return isinstance(error, (AttributeError, TypeError)) and "NoneType" in str(error)


def _missing_row(error: BaseException) -> str | None:
    """The query in the endpoint's source that found no row, where the error comes from using its None."""
    step = error.__traceback__
    frame, line = None, 0
    while step is not None:
        if step.tb_frame.f_code.co_filename == FILE_NAME:
            frame, line = step.tb_frame, step.tb_lineno
        step = step.tb_next
    if frame is None:
        return None
    if isinstance(error, exc.NoResultFound):
        return f"there is no such row: {_line_text(frame, line)}"
    return _query_behind_none(frame, line)


def _line_text(frame: FrameType, line: int) -> str:
    import linecache

    return linecache.getline(FILE_NAME, line, frame.f_globals).strip()


def _query_behind_none(frame: FrameType, line: int) -> str | None:
    try:
        lines, start = inspect.getsourcelines(frame.f_code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError, TypeError):
        return None
    used = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.lineno <= line - start + 1 <= (node.end_lineno or node.lineno)
    }
    missing = {name for name in used if name in frame.f_locals and frame.f_locals[name] is None}
    found: tuple[int, str] | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name, query = node.targets[0].id, node.value
            before = node.lineno < line - start + 1
            if name in missing and before and _asks_for_one_row(query) and (found is None or node.lineno > found[0]):
                found = node.lineno, f"there is no such row: {name} = {ast.unparse(query)[:300]}"
    return found[1] if found else None


def _asks_for_one_row(node: ast.expr) -> bool:
    if isinstance(node, ast.Await):
        node = node.value
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ONE_ROW
