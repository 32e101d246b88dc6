"""What must hold of an app's data after every write: references, what its author declares, and amounts that stay above zero."""

import re
import sqlite3
from collections.abc import Iterator
from typing import Final

from awm_runtime import canonical, dump

_AMOUNTS: Final = re.compile(
    r"balance|stock|quantity|qty|amount|total|price|available|remaining|cents|seats|capacity|copies|points|count"
)


class Upkeep:
    def __init__(self, start: canonical.Start, invariants: dict[str, str]) -> None:
        """`invariants`: by a sentence, a SELECT of the rows that break it."""
        self._start, self._invariants = start, invariants
        self._dangling = len(start.connection.execute("PRAGMA foreign_key_check").fetchall())
        self._amounts = self._never_negative()
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
