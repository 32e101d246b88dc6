"""What a database holds, in forms that do not depend on the SQLite that wrote it: dump, digest, rows, difference."""

import base64
import hashlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from awm_runtime.wire import Column, ForeignKeyViolation, RowChange, StateDiff, Table

Value = None | int | float | str | bytes


@dataclass(frozen=True)
class Layout:
    """A table's columns, and those that tell its rows apart."""

    name: str
    columns: list[str]
    key: list[str]
    """Primary key, or `rowid` where there is none."""

    def select(self) -> str:
        names = ", ".join(quote(column) for column in dict.fromkeys([*self.key, *self.columns]))
        return f"SELECT {names} FROM {quote(self.name)} ORDER BY {', '.join(quote(column) for column in self.key)}"


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def open_bytes(data: bytes) -> sqlite3.Connection:
    """A private in-memory connection to a database file's content."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.deserialize(data)
    connection.text_factory = _text
    return connection


def _text(raw: bytes) -> str:
    """Text as it is; bytes that are no UTF-8 (SQLite stores any) survive as surrogates instead of raising."""
    return raw.decode("utf-8", "surrogateescape")


def layouts(connection: sqlite3.Connection) -> list[Layout]:
    """Real tables by name. Shadow tables of virtual ones are left out: their content depends on the SQLite build."""
    tables = connection.execute("SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')")
    found = []
    for name, without_rowid in sorted(tables):
        if name.startswith("sqlite_") and name != "sqlite_sequence":
            continue
        info = connection.execute(f"PRAGMA table_xinfo({quote(name)})").fetchall()
        columns = [row[1] for row in info if row[6] in (0, 2, 3)]
        key = [row[1] for row in sorted(info, key=lambda row: row[5]) if row[5]]
        taken = {column.lower() for column in columns}
        rowid = next((alias for alias in ("rowid", "oid", "_rowid_") if alias not in taken), None)
        # A primary key of an ordinary table may hold nulls, any number of them, so the rowid stands last and decides.
        if not without_rowid and rowid and not (len(key) == 1 and _is_rowid_alias(info, key[0])):
            key = [*key, rowid]
        found.append(Layout(name, columns, key or columns))
    return found


def _is_rowid_alias(info: list[tuple[Any, ...]], key: str) -> bool:
    return any(row[1] == key and row[2].upper() == "INTEGER" for row in info)


def canonical_dump(connection: sqlite3.Connection) -> Iterator[bytes]:
    """Schema objects by kind and name, then every table's rows by key, one JSON line each, values with their storage class."""
    schema = connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    )
    for row in sorted(schema):
        yield _line(["schema", *row])
    for layout in layouts(connection):
        names = ", ".join(quote(column) for column in layout.columns)
        order = ", ".join(quote(column) for column in layout.key)
        for row in connection.execute(f"SELECT {names} FROM {quote(layout.name)} ORDER BY {order}"):
            yield _line([layout.name, *(_typed(value) for value in row)])


def digest(connection: sqlite3.Connection) -> str:
    """SHA-256 of the canonical dump, hex."""
    total = hashlib.sha256()
    for line in canonical_dump(connection):
        total.update(line)
    return total.hexdigest()


def _typed(value: Value) -> Any:
    if isinstance(value, float):
        return {"real": value.hex()}
    if isinstance(value, bytes):
        return {"blob": value.hex()}
    return value


def _line(value: list[Any]) -> bytes:
    return json.dumps(value, ensure_ascii=True).encode() + b"\n"


def tables(connection: sqlite3.Connection) -> list[Table]:
    found = []
    for layout in layouts(connection):
        if layout.name.startswith("sqlite_"):
            continue
        info = connection.execute(f"PRAGMA table_xinfo({quote(layout.name)})").fetchall()
        columns = [
            Column(name=row[1], type=row[2], not_null=bool(row[3]), primary_key=bool(row[5]), default=row[4])
            for row in info
            if row[6] in (0, 2, 3)
        ]
        (rows,) = connection.execute(f"SELECT count(*) FROM {quote(layout.name)}").fetchone()
        found.append(Table(name=layout.name, columns=columns, rows=rows))
    return found


def integrity(connection: sqlite3.Connection) -> list[str]:
    return [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]


def dangling(connection: sqlite3.Connection) -> list[ForeignKeyViolation]:
    """Rows whose parent is missing. A reference to a table that does not exist is reported once, without a row."""
    found = []
    for layout in layouts(connection):
        try:
            rows = connection.execute(f"PRAGMA foreign_key_check({quote(layout.name)})").fetchall()
        except sqlite3.OperationalError as error:
            found.append(ForeignKeyViolation(table=layout.name, rowid=None, parent=str(error)))
            continue
        found.extend(ForeignKeyViolation(table=row[0], rowid=row[1], parent=row[2]) for row in rows)
    return found


def difference(before: sqlite3.Connection, after: sqlite3.Connection) -> StateDiff:
    """Rows added, removed and changed, by table; a table that only one side has counts as empty on the other."""
    left, right = ({layout.name: layout for layout in layouts(side)} for side in (before, after))
    changes = {}
    for name in sorted(left.keys() | right.keys()):
        old = _rows(before, left[name]) if name in left else {}
        new = _rows(after, right[name]) if name in right else {}
        keys = [*old, *(key for key in new if key not in old)]
        rows = [RowChange(key=list(key), before=old.get(key), after=new.get(key)) for key in keys if old.get(key) != new.get(key)]
        if rows:
            changes[name] = rows
    return StateDiff(tables=changes)


def _rows(connection: sqlite3.Connection, layout: Layout) -> dict[tuple[Any, ...], dict[str, Any]]:
    names = list(dict.fromkeys([*layout.key, *layout.columns]))
    found = {}
    for row in connection.execute(layout.select()):
        values = dict(zip(names, (json_value(value) for value in row), strict=True))
        key = tuple(values[name] for name in layout.key)
        found[key] = {name: values[name] for name in layout.columns}
    return found


def json_value(value: Value) -> Any:
    """A column's value as JSON can carry it: blobs in base64, text that is no UTF-8 with replacement characters."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return value
