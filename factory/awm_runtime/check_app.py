"""The check of an app: does it start, which tools work, and can its own code read what was seeded?"""

import ast
import asyncio
import base64
import json
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, Final

import sqlalchemy
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect

from awm_runtime import columns, dump, module_state, state_trial
from awm_runtime.batches import Note, Piece
from awm_runtime.contract import AppReply, EnvironmentSource, Finding
from awm_runtime.environment import Environment
from awm_runtime.loading import LoadFailed
from awm_runtime.state_trial import Seen
from awm_runtime.tools import ServedTool

_CALLS_A_TOOL: Final = 50
_FINDINGS_A_KIND: Final = 50

_FIXES: Final = {
    "import_error": "Correct the code so that importing it succeeds.",
    "no_app": "Create the app at module level: app = FastAPI(…).",
}


def check(source: EnvironmentSource, load: Callable[[], Environment], seen: Seen) -> AppReply:
    """Runs in a confined, prepared process of its own. `seen` is what two episodes side by side showed."""
    shadows = list(_field_shadows(source.app_code))
    try:
        environment = load()
    except LoadFailed as failure:
        named = "".join(f" {shadow.where}: {shadow.what}" for shadow in shadows)
        finding = Finding.model_validate(
            {"kind": failure.kind, "where": failure.where, "what": failure.what + named, "fix": _FIXES[failure.kind]}
        )
        return AppReply(tools=[], findings=[finding, *shadows])
    derived = environment.derived
    findings = [*derived.findings, *shadows, *_state(source.app_code, environment, seen)]
    given = dump.open_bytes(base64.b64decode(source.db))
    findings += columns.unknown(source.app_code, _mapped_tables(environment), given, environment.seed_connection)
    findings += _unreadable(environment)
    findings += asyncio.run(_failing_reads(environment))
    return AppReply(tools=[served.tool for served in derived.tools], findings=_capped(findings), mendings=derived.mendings)


def interleaver(env: Environment, _order: bytes, _note: Note) -> Piece:
    """Plays two episodes side by side. Runs in a child of a home."""
    return lambda _: json.dumps(vars(asyncio.run(state_trial.interleaved(env)))).encode()


def checker(env: Environment, order: bytes, _note: Note) -> Piece:
    """The check, in a child of a home."""
    given = json.loads(order)
    source, seen = EnvironmentSource.model_validate(given["source"]), Seen(**given["seen"])
    return lambda _: check(source, lambda: env, seen).model_dump_json().encode()


def _capped(findings: list[Finding]) -> list[Finding]:
    kept: list[Finding] = []
    for finding in findings:
        if sum(other.kind == finding.kind for other in kept) < _FINDINGS_A_KIND:
            kept.append(finding)
    return kept


def _field_shadows(code: str) -> Iterator[Finding]:
    """Fields named like the type in their annotation: in a class body the name then means the default, not the type."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return
    for cls in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for node in cls.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                name = node.target.id
                if any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node.annotation)):
                    what = f"field {name} of class {cls.name} is named like its type, so its annotation means the default value."
                    fix = f"Import the type under another name, as in `from datetime import {name} as {name}_type`."
                    yield Finding(kind="field_shadows_type", where=f"class {cls.name}, field {name}", what=what, fix=fix)


def _state(code: str, environment: Environment, seen: Seen) -> Iterator[Finding]:
    fix = "Keep all state in the database; it is the only state that episodes, resets and verifiers know of."
    written = module_state.written_names(code)
    for name, function in written.items():
        what = f"{function} writes module state ({name}), so each episode needs a process of its own."
        yield Finding(kind="module_state", where=f"function {function}", what=what, fix=fix, mended=True)
    for name in () if written else seen.differing:
        what = f"{name} answers differently when calls of another episode come in between, so each needs a process of its own."
        yield Finding(kind="module_state", where=f"tool {name}", what=what, fix=fix, mended=True)
    if seen.threads:
        what = "a call leaves a thread behind, which runs on real time and may write to the database of another episode."
        yield Finding(kind="lasting_thread", where="app.py", what=what, fix="Do all work of a call before it answers.")
    if environment.holds_connection:
        what = "a database connection or session is opened on import and kept, so each episode needs a process of its own."
        yield Finding(kind="module_state", where="app.py", what=what, fix="Open a session in each endpoint.", mended=True)


def _unreadable(environment: Environment) -> Iterator[Finding]:
    """Seeded values that the ORM's column types can't read, cell by cell."""
    connection, dialect = environment.seed_connection, sqlite_dialect()
    existing = {layout.name: layout for layout in dump.layouts(connection)}
    for table in _mapped_tables(environment):
        layout = existing.get(table.name)
        for column in table.columns:
            processor = column.type.dialect_impl(dialect).result_processor(dialect, None)
            if layout is None or processor is None or column.name not in layout.columns:
                continue
            key = ", ".join(dump.quote(name) for name in layout.key)
            name = dump.quote(column.name)
            query = f"SELECT {name}, {key} FROM {dump.quote(table.name)} WHERE {name} IS NOT NULL"
            for value, *keys in connection.execute(query):
                if reason := _misread(column.type, value) or _refusal(processor, value):
                    row = ", ".join(f"{name} {part!r}" for name, part in zip(layout.key, keys, strict=True))
                    where = f"table {table.name}, {row}, column {column.name}"
                    what = f"the value {value!r} can't be read as {column.type}: {reason}."
                    fix = "Correct the value in the seed data; ISO text such as 2026-01-31 09:30:00 can be read, and 0 or 1."
                    yield Finding(kind="unreadable_row", where=where, what=what, fix=fix)


def _misread(kind: sqlalchemy.types.TypeEngine[Any], value: Any) -> str | None:
    """A truth value that is neither is no error to SQLAlchemy, but true, the text `false` as well."""
    is_odd = isinstance(kind, sqlalchemy.Boolean) and value not in (0, 1)
    return f"it is neither 0 nor 1, and is taken for {bool(value)}" if is_odd else None


def _refusal(processor: Any, value: Any) -> str | None:
    try:
        processor(value)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        return str(error)
    return None


def _mapped_tables(environment: Environment) -> list[sqlalchemy.Table]:
    found: dict[str, sqlalchemy.Table] = {}
    for value in vars(environment.loaded.module).values():
        metadata = value if isinstance(value, sqlalchemy.MetaData) else getattr(value, "metadata", None)
        if isinstance(metadata, sqlalchemy.MetaData):
            found |= metadata.tables
    return [found[name] for name in sorted(found)]


async def _failing_reads(environment: Environment) -> list[Finding]:
    """Call every reading tool that needs no argument, and those that need one id with each seeded id."""
    found = []
    for served in environment.derived.tools:
        if served.tool.method != "GET":
            continue
        for arguments, row in _arguments(environment, served):
            slot = environment.new_slot()
            played = await environment.play(slot, None, served.tool.name, arguments, 0, 1)
            environment.drop_slot(slot)
            if played.outcome.kind != "internal":
                continue
            message = _message(played.outcome.body)
            shown = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
            what = (
                f"{served.tool.name}({shown}) fails on the untouched database: {message}{_null_column(environment, message, row)}"
            )
            fix = "Make the response model fit the rows (a column that may be NULL needs an Optional field), or the seed data."
            found.append(Finding(kind="failing_read", where=f"tool {served.tool.name}", what=what, fix=fix))
    return found


_Row = tuple[str, Any]


def _arguments(environment: Environment, served: ServedTool) -> list[tuple[dict[str, Any], _Row | None]]:
    required: Any = served.tool.input_schema.get("required", [])
    if not required:
        return [({}, None)]
    table = _table_of(environment, served)
    if len(required) != 1 or table is None or "{" + required[0] + "}" not in served.tool.path:
        return []
    query = f"SELECT id FROM {dump.quote(table)} ORDER BY id LIMIT {_CALLS_A_TOOL}"
    return [({required[0]: key}, (table, key)) for (key,) in environment.seed_connection.execute(query)]


def _table_of(environment: Environment, served: ServedTool) -> str | None:
    """The table whose id the path asks for: `/birds/{bird_id}` means birds. Paths that go on speak of other rows too."""
    parts = [part for part in served.tool.path.split("/") if part]
    if len(parts) < 2 or not parts[-1].startswith("{"):
        return None
    wanted = parts[-2].replace("-", "_").lower()
    for layout in dump.layouts(environment.seed_connection):
        if "id" in layout.columns and layout.name.lower() in {wanted, wanted.rstrip("s"), wanted + "s"}:
            return layout.name
    return None


def _message(body: bytes) -> str:
    return str(json.loads(body)["error"]["message"])


def _null_column(environment: Environment, message: str, row: _Row | None) -> str:
    """Names the NULL behind a refused answer, where the field and a column have one name."""
    if row is None:
        return ""
    table, key = row
    try:
        cursor = environment.seed_connection.execute(f"SELECT * FROM {dump.quote(table)} WHERE id = ?", (key,))
    except sqlite3.Error:
        return ""
    values = dict(zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True))
    nulls = [name for name, value in values.items() if value is None and f"response.{name}:" in message]
    return f" (table {table}, id {key!r}: {', '.join(nulls)} is NULL)" if nulls else ""
