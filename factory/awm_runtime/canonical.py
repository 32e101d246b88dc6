"""The state of a database, so that two outcomes that hold the same facts compare equal. docs/certificates.md has the rules.

A row that is as it was at the start is that row. Every other row is named by what it holds: its surrogate key is left out, a
reference stands for the row it leads to, a moment counts from the world's start in whole minutes, what chance made is chance.
"""

import hashlib
import json
import re
import sqlite3
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from awm_runtime import dump

Key = tuple[Any, ...]
Row = tuple[Any, ...]
Contents = dict[str, dict[Key, Row]]

_MINUTE: Final = 60
_ROUNDS: Final = 4
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")
_RANDOM: Final = re.compile(r"(?:[A-Za-z]{1,12}[-_])?(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{16,64})", re.I)
"""A UUID or a long hexadecimal text, perhaps with a short prefix."""


@dataclass
class _Table:
    name: str
    columns: list[str]
    """Key columns first, as Layout.select gives them."""
    key_size: int
    hidden: bool
    """The key is a rowid that is no column."""
    surrogate: int | None
    """Position of the column that only names the row."""
    random_key: int | None
    """Position of a text key, which is a surrogate where its value looks like chance's."""
    references: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Column position to the parent table and its column."""
    kinds: dict[int, int] = field(default_factory=dict)
    """Position of an id to that of the text which says what kind of row it leads to."""


def contents(connection: sqlite3.Connection) -> Contents:
    found: Contents = {}
    for layout in dump.layouts(connection):
        if not layout.name.startswith("sqlite_"):
            size = len(layout.key)
            found[layout.name] = {tuple(row[:size]): tuple(row) for row in connection.execute(layout.select())}
    return found


class Start:
    """The state an episode begins with, against which its end is read."""

    def __init__(self, initial: bytes, world_time: float) -> None:
        self.connection = dump.open_bytes(initial)
        self.world_time = world_time
        self.rows = contents(self.connection)
        self.tables = _tables(self.connection)

    def digest(self, final: Contents, volatile: frozenset[tuple[str, str]] = frozenset()) -> str:
        """Equal for two ends exactly where the rules call them equal. `volatile`: columns of new rows that chance fills."""
        total = hashlib.sha256()
        for line in sorted(_End(self, final, volatile).lines()):
            total.update(line.encode())
        return total.hexdigest()

    def changes(self, final: Contents, most: int) -> dict[str, list[dict[str, Any]]]:
        """Rows that differ, by table, as RowChange has them; at most so many of a table."""
        found = {}
        for name, table in self.tables.items():
            before, after = self.rows[name], final.get(name, {})
            keys = [key for key, row in before.items() if after.get(key) != row]
            keys += [key for key in after if key not in before]
            if keys:
                sides = [[self._shown(table, side.get(key)) for side in (before, after)] for key in keys[:most]]
                found[name] = [
                    {"key": [dump.json_value(part) for part in key], "before": old, "after": new}
                    for key, (old, new) in zip(keys, sides, strict=False)
                ]
        return found

    @staticmethod
    def _shown(table: _Table, row: Row | None) -> dict[str, Any] | None:
        if row is None:
            return None
        hidden = table.key_size - 1 if table.hidden else -1
        columns = zip(table.columns, row, strict=False)
        return {name: dump.json_value(value) for place, (name, value) in enumerate(columns) if place != hidden}

    def random_columns(self, one: Contents, other: Contents) -> frozenset[tuple[str, str]]:
        """Columns of new rows in which two runs differ that differ in their seed alone."""
        found = set()
        for name, table in self.tables.items():
            pairs = [(one.get(name, {}), other.get(name, {}))]
            for left, right in pairs:
                fresh = [
                    sorted((row for key, row in side.items() if self.rows.get(name, {}).get(key) != row), key=repr)
                    for side in (left, right)
                ]
                if len(fresh[0]) == len(fresh[1]):
                    found |= {
                        (name, table.columns[place])
                        for a, b in zip(*fresh, strict=True)
                        for place, (x, y) in enumerate(zip(a, b, strict=True))
                        if x != y and not (isinstance(x, (int, float)) and place == table.surrogate)
                    }
        return frozenset(found)


def _tables(connection: sqlite3.Connection) -> dict[str, _Table]:
    found: dict[str, _Table] = {}
    for layout in dump.layouts(connection):
        if layout.name.startswith("sqlite_"):
            continue
        columns = list(dict.fromkeys([*layout.key, *layout.columns]))
        hidden = layout.key[-1] not in layout.columns
        types = {row[1]: str(row[2]).upper() for row in connection.execute(f"PRAGMA table_xinfo({dump.quote(layout.name)})")}
        own = [column for column in layout.key if column in layout.columns]
        single = own[0] if len(own) == 1 else None
        is_integer = single is not None and "INT" in types.get(single, "")
        found[layout.name] = _Table(
            layout.name,
            columns,
            len(layout.key),
            hidden,
            surrogate=columns.index(single) if single is not None and is_integer else None,
            random_key=columns.index(single) if single is not None and not is_integer else None,
        )
    for table in found.values():
        _refer(connection, table, found)
    return found


def _refer(connection: sqlite3.Connection, table: _Table, tables: dict[str, _Table]) -> None:
    by_name = {name.lower(): name for name in tables}
    for row in connection.execute(f"PRAGMA foreign_key_list({dump.quote(table.name)})").fetchall():
        parent = by_name.get(str(row[2]).lower())
        if parent is None or row[3] not in table.columns:
            continue
        named = tables[parent]
        key = named.surrogate if named.surrogate is not None else named.random_key
        column = row[4] or (named.columns[key] if key is not None else None)
        if column in named.columns:
            table.references[table.columns.index(row[3])] = (parent, column)
    for place, column in enumerate(table.columns):
        if place in table.references or place == table.surrogate or not column.lower().endswith("_id"):
            continue
        stem = column.lower().removesuffix("_id")
        parent = named_table(stem, by_name)
        if parent is not None and tables[parent].surrogate is not None:
            table.references[place] = (parent, tables[parent].columns[tables[parent].surrogate or 0])
        else:
            kinds = [name for name in table.columns if name.lower() in (stem, f"{stem}_type", f"{stem}_kind")]
            if kinds:
                table.kinds[place] = table.columns.index(kinds[0])


def named_table(stem: str, by_name: dict[str, str]) -> str | None:
    """The table that `customer`, `category` or `assigned_user` speaks of."""
    words = stem.lower().split("_")
    for start in range(len(words)):
        word = "_".join(words[start:])
        for plural in (word, word + "s", word + "es", word.removesuffix("y") + "ies"):
            if plural in by_name:
                return by_name[plural]
    return None


class _End:
    def __init__(self, start: Start, final: Contents, volatile: frozenset[tuple[str, str]]) -> None:
        self._start, self._final, self._volatile = start, final, volatile
        self._by_name = {name.lower(): name for name in start.tables}
        self._names: dict[tuple[str, Key], str] = {}
        """Rows that are of the start, by what they are called."""
        self._fresh: list[tuple[str, Key, Row]] = []
        self._gone: set[str] = set()
        self._sort_out()
        self._places: dict[tuple[str, str], dict[Any, Key]] = {}

    def _sort_out(self) -> None:
        for name in self._start.tables:
            before, after = self._start.rows[name], self._final.get(name, {})
            gone = {key: row for key, row in before.items() if after.get(key) != row}
            fresh = [(key, row) for key, row in after.items() if before.get(key) != row]
            for key in before.keys() - gone.keys():
                self._names[name, key] = f"={name}{key!r}"
            again: dict[Row, list[Key]] = defaultdict(list)
            for key, row in gone.items():
                again[self._facts(name, row)].append(key)
            for key, row in fresh:
                if former := again.get(self._facts(name, row)):
                    old = former.pop(0)
                    self._names[name, key] = f"={name}{old!r}"
                    del gone[old]
                else:
                    self._fresh.append((name, key, row))
            self._gone |= {f"-{name}{key!r}" for key in gone}

    def _facts(self, name: str, row: Row) -> Row:
        """A row without what only names it."""
        table = self._start.tables[name]
        left_out = {table.surrogate} | ({table.key_size - 1} if table.hidden else set())
        return tuple(value for place, value in enumerate(row) if place not in left_out)

    def lines(self) -> list[str]:
        labels = {(name, key): "" for name, key, _ in self._fresh}
        edges: dict[tuple[str, Key], list[tuple[str, Key]]] = defaultdict(list)
        bodies = {(name, key): self._body(name, row) for name, key, row in self._fresh}
        for row_id, body in bodies.items():
            for value in body:
                if isinstance(value, _Link):
                    edges[value.target].append(row_id)
        for _ in range(_ROUNDS if any(edges.values()) else 1):
            new = {}
            for row_id, body in bodies.items():
                parts = [labels[value.target] if isinstance(value, _Link) else value for value in body]
                children = sorted(labels[child] for child in edges[row_id])
                new[row_id] = hashlib.sha256(json.dumps([row_id[0], parts, children]).encode()).hexdigest()
            labels = new
        return [*labels.values(), *self._gone]

    def _body(self, name: str, row: Row) -> list[Any]:
        table = self._start.tables[name]
        body: list[Any] = []
        for place, value in enumerate(row):
            if place == table.surrogate or (table.hidden and place == table.key_size - 1):
                continue
            column = table.columns[place]
            if place == table.random_key and isinstance(value, str) and _RANDOM.fullmatch(value):
                continue
            if value is not None and (link := self._link(table, place, value, row)) is not None:
                body.append(link)
            elif (name, column) in self._volatile or (isinstance(value, str) and _RANDOM.fullmatch(value)):
                body.append([column, "chance"])
            else:
                body.append([column, self._value(value)])
        return body

    def _link(self, table: _Table, place: int, value: Any, row: Row) -> "_Link | str | None":
        target = table.references.get(place)
        if target is None and place in table.kinds:
            parent = named_table(str(row[table.kinds[place]]).lower(), self._by_name)
            if parent is not None and (place_of_key := self._start.tables[parent].surrogate) is not None:
                target = parent, self._start.tables[parent].columns[place_of_key]
        if target is None:
            return None
        key = self._keys(*target).get(value)
        if key is None:
            return None
        row_id = target[0], key
        return self._names[row_id] if row_id in self._names else _Link(row_id)

    def _keys(self, name: str, column: str) -> dict[Any, Key]:
        if (name, column) not in self._places:
            place = self._start.tables[name].columns.index(column)
            self._places[name, column] = {row[place]: key for key, row in self._final.get(name, {}).items()}
        return self._places[name, column]

    def _value(self, value: Any) -> Any:
        if isinstance(value, bytes):
            return {"blob": value.hex()}
        moment = self._moment(value)
        if moment is not None:
            return {"minutes": moment}
        return {"real": value.hex()} if isinstance(value, float) else value

    def _moment(self, value: Any) -> int | None:
        """Whole minutes since the world's start; None for what is no moment at or after it."""
        if isinstance(value, str) and _MOMENT.fullmatch(value):
            try:
                parsed = datetime.fromisoformat(value)
            except ValueError:
                return None
            seconds = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
        elif isinstance(value, (int, float)) and 0 <= value - self._start.world_time < _MINUTE:
            seconds = float(value)
        else:
            return None
        passed = seconds - self._start.world_time
        return int(passed // _MINUTE) if passed >= 0 else None


@dataclass(frozen=True)
class _Link:
    """A reference to a row that has no name of its own yet."""

    target: tuple[str, Key]
