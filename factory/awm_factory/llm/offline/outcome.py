"""What a task is to come to: rows that are made, changed and removed, and what the answer must tell.

The planner reads it off two states of the world, `verify.py` prints it. Tables and columns are called as in the database here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal

from awm_factory.llm.offline.values import Value


@dataclass(frozen=True)
class Moment:
    """A time that the service sets, so that it depends on how many calls came before."""

    about: datetime


@dataclass(frozen=True)
class Made:
    """The id of a row that the task makes, by the name of that row among those of the outcome."""

    name: str


@dataclass(frozen=True)
class Known:
    """The id of a row that was there, with what a reader would call it."""

    id: int
    label: str


@dataclass(frozen=True)
class Anything:
    """An optional text that nobody asked for."""


@dataclass(frozen=True)
class Choice:
    """A value that follows from the choice which the task leaves open, by its name among the choices."""

    name: str


Cell = Value | Moment | Made | Known | Anything | Choice


@dataclass(frozen=True)
class Added:
    name: str
    """`reservation`, `line 2`: what `Made` refers to."""
    table: str
    values: Mapping[str, Cell]
    """All columns but `id`."""


@dataclass(frozen=True)
class Changed:
    table: str
    id: int | Choice
    values: Mapping[str, Cell]
    """The columns that differ; all others are as they were."""
    label: str = ""


@dataclass(frozen=True)
class Removed:
    table: str
    id: int | Choice
    label: str = ""


@dataclass(frozen=True)
class Outcome:
    """Exactly these rows differ from the start, and in exactly this way."""

    added: tuple[Added, ...] = ()
    changed: tuple[Changed, ...] = ()
    removed: tuple[Removed, ...] = ()

    @property
    def nothing(self) -> bool:
        return not (self.added or self.changed or self.removed)

    def tables(self) -> list[str]:
        rows: tuple[Added | Changed | Removed, ...] = (*self.added, *self.changed, *self.removed)
        return list(dict.fromkeys(row.table for row in rows))


ToldKind = Literal["count", "amount", "day", "moment", "name"]


@dataclass(frozen=True)
class Told:
    """One thing that the answer must name."""

    kind: ToldKind
    value: int | date | datetime | str | Choice
    """`amount` is in cents."""
    others: tuple[str, ...] = ()
    """For a name: others of its kind, which the answer must not offer in its stead."""


@dataclass(frozen=True)
class Wanted:
    """All that a verifier holds an episode to."""

    outcome: Outcome
    told: tuple[Told, ...] = ()
    choices: tuple[Mapping[str, Cell], ...] = ()
    """What the `Choice` cells may stand for, together; empty where the task leaves none."""


@dataclass(frozen=True)
class Option:
    """One way in which an open task may end."""

    outcome: Outcome
    told: tuple[Told, ...] = ()


def united(options: list[Option]) -> Wanted | None:
    """One outcome for several of the same shape, its differing cells made choices; None where their shapes differ."""
    if len(options) == 1:
        return Wanted(options[0].outcome, options[0].told)
    union = _Union(len(options))
    first = options[0]
    shapes = {_shape(option) for option in options}
    if len(shapes) != 1:
        return None
    outcomes = [option.outcome for option in options]
    added = tuple(
        Added(row.name, row.table, union.cells(row.table, [outcome.added[place].values for outcome in outcomes]))
        for place, row in enumerate(first.outcome.added)
    )
    changed = tuple(
        Changed(
            row.table,
            union.key(row.table, [outcome.changed[place].id for outcome in outcomes]),
            union.cells(row.table, [outcome.changed[place].values for outcome in outcomes]),
            row.label if len({outcome.changed[place].id for outcome in outcomes}) == 1 else "",
        )
        for place, row in enumerate(first.outcome.changed)
    )
    removed = tuple(
        Removed(row.table, union.key(row.table, [outcome.removed[place].id for outcome in outcomes]))
        for place, row in enumerate(first.outcome.removed)
    )
    told = tuple(
        Told(one.kind, union.told(one.kind, [option.told[place].value for option in options]))
        for place, one in enumerate(first.told)
    )
    return Wanted(Outcome(added, changed, removed), told, union.choices())


def _shape(option: Option) -> tuple[object, ...]:
    outcome = option.outcome
    return (
        tuple((row.name, row.table, tuple(row.values)) for row in outcome.added),
        tuple((row.table, tuple(row.values)) for row in outcome.changed),
        tuple(row.table for row in outcome.removed),
        tuple(one.kind for one in option.told),
    )


@dataclass
class _Union:
    count: int
    columns: dict[str, tuple[object, ...]] = field(default_factory=dict)

    def cells(self, table: str, rows: list[Mapping[str, Cell]]) -> dict[str, Cell]:
        return {name: self._one(f"{name}", [row[name] for row in rows]) for name in rows[0]}

    def key(self, table: str, ids: list[int | Choice]) -> int | Choice:
        found = self._one(f"{table}_row", list(ids))
        assert isinstance(found, int | Choice)
        return found

    def told(self, kind: str, values: list[int | date | datetime | str | Choice]) -> int | date | datetime | str | Choice:
        found = self._one(f"told_{kind}", list(values))
        assert isinstance(found, int | date | datetime | str | Choice)
        return found

    def _one(self, name: str, values: list[Cell]) -> Cell:
        if len(set(map(repr, values))) == 1:
            return values[0]
        for known, column in self.columns.items():
            if column == tuple(values):
                return Choice(known)
        while name in self.columns:
            name += "_2"
        self.columns[name] = tuple(values)
        return Choice(name)

    def choices(self) -> tuple[Mapping[str, Cell], ...]:
        return tuple(dict(self._choice(place)) for place in range(self.count))

    def _choice(self, place: int) -> Iterator[tuple[str, Cell]]:
        for name, values in self.columns.items():
            value = values[place]
            assert isinstance(value, str | int | bool | date | datetime | Moment | Made | Known | Anything | None)
            yield name, value
