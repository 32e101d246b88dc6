"""From schema and data statements to the seeded database: executed one by one, at the world time, foreign keys on."""

import base64
import re
import sqlite3
from dataclasses import dataclass, field
from typing import Final, Literal

from awm_runtime import clock, dump
from awm_runtime.contract import LoadReply, LoadRequest, MovingStatement, Statement, StatementFailure

_COMMENT: Final = re.compile(r"\s*(?:--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z))", re.S)
_INSERT: Final = re.compile(r"\s*(?:INSERT|REPLACE)\b", re.I)
_DENIED: Final = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH}


@dataclass(frozen=True)
class _Single:
    """One statement, and the string of the author's it came from."""

    phase: Literal["schema", "data"]
    table: str
    index: int
    sql: str


def split(script: str) -> list[str]:
    """Statements of a string, without trailing semicolons; what holds only comments is none.

    SQLite's own `complete_statement` decides, so a semicolon inside a text, a comment or a trigger's body splits nothing.
    """
    found, start = [], 0
    for match in re.finditer(";", script):
        if sqlite3.complete_statement(script[start : match.end()]):
            found.append(script[start : match.start()].strip())
            start = match.end()
    found.append(script[start:].strip())
    return [statement for statement in found if _strip_comments(statement)]


def _strip_comments(sql: str) -> str:
    while match := _COMMENT.match(sql):
        sql = sql[match.end() :]
    return sql.strip()


def load(request: LoadRequest) -> LoadReply:
    """Build the database of a bundle. Statements that fail are reported and left out; they are no exception."""
    now = clock.parse_world_time(request.world_time)
    schema = _singles("schema", request.statements_schema)
    data = _singles("data", request.statements_data)
    built = _build(schema + data, now)
    literal = [built.literals.get(position, single.sql) for position, single in enumerate(data, len(schema))]
    if built.literals:
        # A trigger, or a later statement that reads what an earlier one wrote, can make literals mean something else.
        again = _build([*schema, *(_Single("data", s.table, s.index, sql) for s, sql in zip(data, literal, strict=True))], now)
        if again.digest() != built.digest():
            literal = [single.sql for single in data]
    connection = built.connection
    connection.execute("VACUUM")
    return LoadReply(
        failures=built.failures,
        statements_total={"schema": len(schema), "data": len(data)},
        schema_sql=[single.sql for single in schema],
        seed_sql=literal,
        moving=built.moving,
        db=base64.b64encode(connection.serialize()).decode(),
        dump_sha256=built.digest(),
        integrity=dump.integrity(connection),
        dangling=dump.dangling(connection),
        tables=dump.tables(connection),
    )


def _singles(phase: Literal["schema", "data"], statements: list[Statement]) -> list[_Single]:
    return [_Single(phase, s.table, s.index, sql) for s in statements for sql in split(s.sql)]


@dataclass
class _Built:
    connection: sqlite3.Connection
    failures: list[StatementFailure] = field(default_factory=list)
    moving: list[MovingStatement] = field(default_factory=list)
    literals: dict[int, str] = field(default_factory=dict)
    """By position among all statements: an INSERT of the very rows that a moving statement wrote."""

    def digest(self) -> str:
        return dump.digest(self.connection)


def _build(statements: list[_Single], now: float) -> _Built:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript("PRAGMA page_size=4096; PRAGMA encoding='UTF-8'; PRAGMA auto_vacuum=NONE;")
    clock.sql_functions(connection)
    connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_DENY if action in _DENIED else sqlite3.SQLITE_OK)
    built = _Built(connection)
    for position, single in enumerate(statements):
        if not connection.in_transaction:
            connection.execute("PRAGMA foreign_keys=ON")
        with clock.world(now, 0, position):
            try:
                _execute(built, position, single, now)
            except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
                failure = StatementFailure(
                    phase=single.phase, table=single.table, index=single.index, sql=single.sql, error=str(error)
                )
                built.failures.append(failure)
    if connection.in_transaction:
        connection.commit()
    connection.set_authorizer(None)
    return built


def _execute(built: _Built, position: int, single: _Single, now: float) -> None:
    """Run one statement; where it asked for the clock or for chance, note that and how to say the same in literals."""
    connection, before = built.connection, dict(clock.reads)
    if single.phase == "schema" or not _INSERT.match(_strip_comments(single.sql)):
        connection.execute(single.sql).fetchall()
        _note_moving(built, single, before)
        return
    connection.execute("SAVEPOINT statement")
    try:
        connection.execute(single.sql).fetchall()
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK TO statement")
            connection.execute("RELEASE statement")
        raise
    if not _note_moving(built, single, before):
        connection.execute("RELEASE statement")
        return
    # Which rows it wrote is seen by undoing it: the tables are compared before and after.
    after = _contents(connection)
    connection.execute("ROLLBACK TO statement")
    start = _contents(connection)
    connection.execute("RELEASE statement")
    clock.enter(now, 0, position)
    connection.execute(single.sql).fetchall()
    literal = _literal(connection, start, after)
    if literal is not None:
        built.literals[position] = literal


def _note_moving(built: _Built, single: _Single, before: dict[str, int]) -> bool:
    if single.phase == "schema":
        return False
    sources: list[Literal["clock", "random"]] = [s for s in ("clock", "random") if clock.reads[s] != before[s]]
    found = [MovingStatement(table=single.table, index=single.index, source=source) for source in sources]
    built.moving.extend(moving for moving in found if moving not in built.moving)
    return bool(sources)


_Contents = dict[str, dict[tuple[dump.Value, ...], tuple[dump.Value, ...]]]


def _contents(connection: sqlite3.Connection) -> _Contents:
    found: _Contents = {}
    for layout in dump.layouts(connection):
        if not layout.name.startswith("sqlite_"):
            rows = connection.execute(layout.select())
            found[layout.name] = {tuple(row[: len(layout.key)]): tuple(row) for row in rows}
    return found


def _literal(connection: sqlite3.Connection, start: _Contents, after: _Contents) -> str | None:
    """An INSERT of the rows that are new, in the order of their keys; None where more happened than new rows in one table."""
    touched = [name for name in after if after[name] != start.get(name)]
    if len(touched) != 1:
        return None
    (name,) = touched
    added = [row for key, row in after[name].items() if key not in start.get(name, {})]
    if len(added) + len(start.get(name, {})) != len(after[name]) or any(
        after[name].get(key) != row for key, row in start.get(name, {}).items()
    ):
        return None
    layout = next(layout for layout in dump.layouts(connection) if layout.name == name)
    info = connection.execute(f"PRAGMA table_xinfo({dump.quote(name)})").fetchall()
    stored = [row[1] for row in info if row[6] == 0]
    positions = [list(dict.fromkeys([*layout.key, *layout.columns])).index(column) for column in stored]
    rows = ", ".join("(" + ", ".join(_quoted(connection, row[position]) for position in positions) + ")" for row in added)
    return f"INSERT INTO {dump.quote(name)} ({', '.join(dump.quote(column) for column in stored)}) VALUES {rows}"


def _quoted(connection: sqlite3.Connection, value: dump.Value) -> str:
    """SQLite's own literal of a value."""
    (text,) = connection.execute("SELECT quote(?)", (value,)).fetchone()
    return str(text)
