"""What must hold of an app's data after every write: references, what its author declares, and amounts that stay above zero."""

import re
import sqlite3
from collections.abc import Iterator
from typing import Any, Final

from awm_runtime import canonical, dump

_AMOUNTS: Final = re.compile(
    r"balance|stock|quantity|qty|amount|total|price|available|remaining|cents|seats|capacity|copies|points|count"
)


BEFORE: Final = {"start", "starts", "started", "begin", "begins", "from", "opens", "since"}
AFTER: Final = {"end", "ends", "ended", "until", "to", "closes", "expires", "due"}
_PARTS: Final = frozenset(
    ("paid", "used", "sold", "refunded", "remaining", "taken", "booked", "reserved", "redeemed", "available", "min", "minimum")
)
_WHOLES: Final = {"total", "capacity", "limit", "max", "maximum", "received", "ordered", "price", "initial", "size", "value"}
_DEEP: Final = 5
_ENOUGH: Final = 3
"""Rows that must keep an order at the start before it is taken for a rule."""


class Signs:
    """Amounts in answers, and which of them were negative at the start."""

    def __init__(self, start: canonical.Start) -> None:
        self._seen: set[str] = set()
        self._negative = {
            start.tables[name].columns[place]
            for name, rows in start.rows.items()
            for row in rows.values()
            for place, value in enumerate(row)
            if isinstance(value, (int, float)) and value < 0
        }

    def learn(self, content: Any) -> None:
        for name, value in _amounts(content):
            self._seen.add(name)
            if value < 0:
                self._negative.add(name)

    def turned(self, content: Any) -> str | None:
        """An amount that is negative now, with its name; one that nobody has shown at the start tells nothing."""
        found = ((n, v) for n, v in _amounts(content) if v < 0 and n in self._seen and n not in self._negative)
        return next((f"{name} = {value}" for name, value in found), None)


def _amounts(content: Any, depth: int = 0) -> Iterator[tuple[str, float]]:
    if depth > _DEEP:
        return
    if isinstance(content, list):
        for item in content:
            yield from _amounts(item, depth + 1)
    elif isinstance(content, dict):
        for name, value in content.items():
            if isinstance(value, (dict, list)):
                yield from _amounts(value, depth + 1)
            elif isinstance(value, (int, float)) and not isinstance(value, bool) and _AMOUNTS.search(name.lower()):
                yield name, value


class Upkeep:
    def __init__(self, start: canonical.Start, invariants: dict[str, str]) -> None:
        """`invariants`: by a sentence, a SELECT of the rows that break it."""
        self._start, self._invariants = start, invariants
        self._dangling = len(start.connection.execute("PRAGMA foreign_key_check").fetchall())
        self._amounts = self._never_negative()
        self._orders = {name: found for name in start.tables if (found := list(self._kept_orders(name)))}
        self.broken = dict(self._broken_at_start())
        """Invariants that the seed does not keep, or that can't be asked, with what is wrong."""

    def broken_by(self, after: sqlite3.Connection, before: bytes, rows: canonical.Contents) -> Iterator[tuple[str, str]]:
        """Kind and words of each rule that held in `before` and holds no longer. `rows`: what `after` contains."""
        dangling = after.execute("PRAGMA foreign_key_check").fetchall()
        if len(dangling) > self._dangling:
            what = f"it leaves a row of {dangling[-1][0]} that refers to a row of {dangling[-1][2]} which does not exist"
            yield "dangling", what
        for sentence, query in self._invariants.items():
            if sentence in self.broken or after.execute(query).fetchone() is None:
                continue
            if dump.open_bytes(before).execute(query).fetchone() is None:
                yield "invariant", f"afterwards it no longer holds that {sentence}"
        if (column := self._negative(rows)) is not None:
            yield "negative", f"it makes {column} negative, which no row is at the start"

        if (told := self._disorder(rows)) is not None:
            yield "order", told

    def _disorder(self, rows: canonical.Contents) -> str | None:
        for name, pairs in self._orders.items():
            columns, before = self._start.tables[name].columns, self._start.rows[name]
            for key, row in rows.get(name, {}).items():
                for low, high in pairs:
                    if before.get(key) != row and _disordered(row[low], row[high]):
                        return f"it leaves a row of {name} with {columns[low]} {row[low]!r} above {columns[high]} {row[high]!r}"
        return None

    def _kept_orders(self, name: str) -> Iterator[tuple[int, int]]:
        """Columns that speak of the two ends of one thing, and are in order in every row of the start."""
        table, rows = self._start.tables[name], list(self._start.rows[name].values())
        words = [set(column.lower().split("_")) for column in table.columns]
        for low, one in enumerate(words):
            for high, other in enumerate(words):
                for lower, upper in ((BEFORE, AFTER), (_PARTS, _WHOLES)):
                    named = one & lower and other & upper and one - lower == other - upper
                    both = [row for row in rows if row[low] is not None and row[high] is not None] if named else []
                    if len(both) >= _ENOUGH and not any(_disordered(row[low], row[high]) for row in both):
                        yield low, high

    def _negative(self, rows: canonical.Contents) -> str | None:
        for name, places in self._amounts.items():
            for row in rows.get(name, {}).values():
                for place in places:
                    if isinstance(row[place], (int, float)) and row[place] < 0:
                        return f"{name}.{self._start.tables[name].columns[place]}"
        return None

    def _broken_at_start(self) -> Iterator[tuple[str, str]]:
        for sentence, query in self._invariants.items():
            try:
                row = self._start.connection.execute(query).fetchone()
            except sqlite3.Error as error:
                yield sentence, f"it can't be asked: {error}"
                continue
            if row is not None:
                yield sentence, f"a row breaks it at the start: {list(row)[:4]}"

    def _never_negative(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for name, rows in self._start.rows.items():
            table = self._start.tables[name]
            for place, column in enumerate(table.columns):
                values = [row[place] for row in rows.values() if isinstance(row[place], (int, float))]
                if values and min(values) >= 0 and _AMOUNTS.search(column.lower()) and place != table.surrogate:
                    found.setdefault(name, []).append(place)
        return found


def _disordered(low: object, high: object) -> bool:
    if isinstance(low, str) and isinstance(high, str):
        return len(low) == len(high) and low > high
    return isinstance(low, (int, float)) and isinstance(high, (int, float)) and low > high
