"""What the seeded database holds, read here as data and without trust, to find other rows and values that a mutant may name."""

import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

from awm_factory.bundle import Bundle

Value = int | float | str | bytes | None

_ENUM: Final = re.compile(r"[\"`\[]?(\w+)[\"`\]]?\s+IN\s*\(((?:\s*'(?:[^']|'')*'\s*,?)+)\)", re.IGNORECASE)
_ROWS: Final = 2000
_TELLING: Final = 4
"""Shorter texts (a row of seats, a code of a state) stand in an instruction by accident."""


@dataclass(frozen=True)
class Stored:
    columns: dict[str, dict[str, list[Value]]] = field(default_factory=dict)
    """Values by table and column, in the order of the rows."""
    keys: dict[str, str] = field(default_factory=dict)
    """The single column that is each table's primary key."""
    enums: dict[str, list[str]] = field(default_factory=dict)
    """Values that a CHECK allows, by column."""

    def siblings(self, argument: str, value: Value) -> list[Value]:
        """Other values that stand where this one stands: keys of the table an `…_id` speaks of, else a column that holds it."""
        for table, column in self._places(argument):
            values = self.columns[table][column]
            if value in values:
                place = values.index(value)
                others = [*values[place + 1 :], *reversed(values[:place])]
                return [other for other in dict.fromkeys(others) if other is not None and other != value]
        return []

    def is_named(self, argument: str, value: Value, instruction: str) -> bool:
        """Whether the instruction speaks of the row that an argument leads to, by its key or by a text in it."""
        text = instruction.lower()
        if isinstance(value, str):
            return value.lower() in text
        if re.search(rf"(?<![\w.]){re.escape(str(value))}(?![\w.])", text):
            return True
        table = self.table_of(argument)
        return table is not None and any(word in text for word in self._words(table, value))

    def retold(self, argument: str, old: Value, new: Value, answer: str) -> str:
        """An answer that names one row, naming the other instead: text for text, column by column."""
        table = self.table_of(argument)
        if table is None or table not in self.keys:
            return answer
        keys = self.columns[table][self.keys[table]]
        if old not in keys or new not in keys:
            return answer
        for values in self.columns[table].values():
            one, other = values[keys.index(old)], values[keys.index(new)]
            if isinstance(one, str) and isinstance(other, str) and len(one) >= _TELLING:
                answer = answer.replace(one, other)
        return answer

    def _words(self, table: str, key: Value) -> list[str]:
        if table not in self.keys or key not in (keys := self.columns[table][self.keys[table]]):
            return []
        place = keys.index(key)
        # A text that other rows hold as well ("open", "Riverside Hall") singles none of them out.
        values = [column[place] for column in self.columns[table].values() if column.count(column[place]) == 1]
        texts = [value for value in values if isinstance(value, str) and not re.match(r"\d{4}-\d\d", value)]
        return [text.lower() for text in texts if len(text) >= _TELLING]

    def table_of(self, argument: str) -> str | None:
        stem = re.sub(r"_?ids?$", "", argument.lower())
        words = stem.split("_")
        by_name = {name.lower(): name for name in self.columns}
        for start in range(len(words)):
            word = "_".join(words[start:])
            for plural in (word, word + "s", word + "es", re.sub("y$", "ies", word)):
                if word and plural in by_name:
                    return by_name[plural]
        return None

    def _places(self, argument: str) -> list[tuple[str, str]]:
        lower = argument.lower()
        found = []
        if re.search(r"ids?$", lower) and (table := self.table_of(argument)) and table in self.keys:
            found.append((table, self.keys[table]))
        singular = re.sub(r"s$", "", lower)
        found += [(t, c) for t, columns in self.columns.items() for c in columns if c.lower() in (lower, singular)]
        stem = re.sub(r"_(?:name|title|code|number|email|username)s?$", "", lower)
        if stem != lower and (table := self.table_of(stem)):
            suffix = lower[len(stem) + 1 :]
            found += [(table, column) for column in self.columns[table] if column.lower() == suffix]
        return found


def read(bundle: Bundle) -> Stored:
    if bundle.seed_db is None:
        return Stored()
    stored = Stored()
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(bundle.seed_db)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.text_factory = lambda data: data.decode(errors="replace")
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").fetchall()
        for (name,) in names:
            info = connection.execute(f"PRAGMA table_info({_quote(name)})").fetchall()
            rows = connection.execute(
                f"SELECT {', '.join(_quote(row[1]) for row in info)} FROM {_quote(name)} LIMIT {_ROWS}"
            ).fetchall()
            stored.columns[name] = {column[1]: [row[place] for row in rows] for place, column in enumerate(info)}
            if len(keys := [row[1] for row in info if row[5]]) == 1:
                stored.keys[name] = keys[0]
    for statement in bundle.schema_sql:
        for column, values in _ENUM.findall(statement):
            stored.enums.setdefault(column.lower(), []).extend(re.findall(r"'((?:[^']|'')*)'", values))
    return stored


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
