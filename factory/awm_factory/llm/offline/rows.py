"""The rows of a domain, and what must hold of them whatever was done."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final, Self

from awm_factory.llm.offline.arguments import within
from awm_factory.llm.offline.conditions import matching, split
from awm_factory.llm.offline.expr import Bound, Scope, evaluate
from awm_factory.llm.offline.ir import Domain, Entity
from awm_factory.llm.offline.values import Row, Value

_TYPES: Final = {
    "int": int,
    "money": int,
    "ref": int,
    "text": str,
    "choice": str,
    "bool": bool,
    "date": date,
    "datetime": datetime,
}


@dataclass(frozen=True)
class Edit:
    """One row before and after; `before` is None for a new row, `after` for a deleted one."""

    role: str
    id: int
    before: Row | None
    after: Row | None

    @property
    def columns(self) -> tuple[str, ...]:
        """Keys of the cells that differ, for a row that was there before and after."""
        if self.before is None or self.after is None:
            return ()
        return tuple(key for key, value in self.after.items() if self.before[key] != value)


class Rows:
    """Rows are never changed in place, so that a copy costs a few small dicts."""

    def __init__(self, domain: Domain) -> None:
        self.domain: Final = domain
        self.calls = 0
        """Made so far, refused ones included: the clock stands at the world time while seeding, n seconds later in call n."""
        self._tables: dict[str, dict[int, Row]] = {role: {} for role in domain.entities}

    def copy(self) -> Self:
        other = type(self)(self.domain)
        other.calls = self.calls
        other._tables = {role: dict(table) for role, table in self._tables.items()}
        return other

    @property
    def now(self) -> datetime:
        return self.domain.world_time + timedelta(seconds=self.calls)

    # Rows

    def row(self, role: str, row_id: int, /) -> Row:
        return self._tables[role][row_id]

    def find(self, role: str, row_id: int, /) -> Row | None:
        return self._tables[role].get(row_id)

    def all(self, role: str) -> Iterator[Row]:
        table = self._tables[role]
        return iter([table[row_id] for row_id in sorted(table)])

    def where(self, role: str, /, **conditions: Any) -> list[Row]:
        """Rows by id that fulfil all conditions: `world.where("booking.booking", slot_id=3, created_at__lt=moment)`."""
        return list(matching(self, role, [(*split(key), value) for key, value in conditions.items()]))

    def count(self, role: str) -> int:
        return len(self._tables[role])

    def next_id(self, role: str) -> int:
        return max(self._tables[role], default=0) + 1

    def insert(self, role: str, /, **values: Value) -> Row:
        """A new row under the next id; columns left out get their default. Raises ValueError for a column that is not there."""
        entity = self.domain.entity(role)
        if unknown := [key for key in values if not entity.has(key)]:
            raise ValueError(f"{role} has no column {unknown[0]!r}")
        row: Row = {"id": self.next_id(role)} | {column.key: values.get(column.key, column.default) for column in entity.columns}
        self._tables[role][row["id"]] = row
        return row

    def change(self, role: str, row_id: int, /, **values: Value) -> Row:
        row = {**self._tables[role][row_id], **values}
        self._tables[role][row_id] = row
        return row

    def remove(self, role: str, row_id: int) -> None:
        """With the rows that it owns. Raises ValueError where others refer to it: an operation has to look before."""
        del self._tables[role][row_id]
        for entity in self.domain.entities.values():
            for column in entity.columns:
                if column.ref != role:
                    continue
                for row in self.where(entity.role, **{column.key: row_id}):
                    if not column.owned:
                        raise ValueError(f"{entity.role} {row['id']} refers to {role} {row_id}, which is to be removed")
                    self.remove(entity.role, row["id"])

    def difference(self, after: "Rows") -> list[Edit]:
        """By entity and id: what another state of the same domain holds otherwise."""
        return [
            Edit(role, row_id, mine.get(row_id), theirs.get(row_id))
            for role, mine in self._tables.items()
            for theirs in (after._tables[role],)
            for row_id in sorted(mine.keys() | theirs.keys())
            if mine.get(row_id) != theirs.get(row_id)
        ]

    def scope(self, module: str, /, **variables: Any) -> Scope:
        return Scope(self, module, variables)

    # What always holds

    def faults(self) -> list[str]:
        """What the database's own constraints, or the domain's invariants, would object to; empty in a sound state."""
        found = []
        for entity in self.domain.entities.values():
            found += list(self._faults_of(entity))
        for invariant in self.domain.invariants:
            module = invariant.entity.partition(".")[0]
            for row in self.all(invariant.entity):
                bound = Bound(invariant.entity, row["id"])
                if not evaluate(invariant.condition, self.scope(module, self=bound)):
                    found.append(f"{invariant.entity} {row['id']}: {invariant.about}")
        return found

    def _faults_of(self, entity: Entity) -> Iterator[str]:
        keys = [(column.key,) for column in entity.columns if column.unique] + list(entity.uniques)
        for key in keys:
            seen: set[tuple[Value, ...]] = set()
            for row in self.all(entity.role):
                values = tuple(row[column] for column in key)
                if None not in values and values in seen:
                    yield f"{entity.role} {row['id']}: {key} = {values} stands there twice"
                seen.add(values)
        for row in self.all(entity.role):
            where = f"{entity.role} {row['id']}"
            for column in entity.columns:
                value = row[column.key]
                if value is None:
                    if not column.null:
                        yield f"{where}: {column.key} is NULL"
                elif column.kind == "ref" and value not in self._tables[column.ref]:
                    yield f"{where}: {column.key} = {value} points to no {column.ref}"
                elif column.kind == "choice" and value not in column.choices:
                    yield f"{where}: {column.key} = {value!r} is none of {column.choices}"
                elif type(value) is not _TYPES[column.kind]:
                    yield f"{where}: {column.key} = {value!r} is no {column.kind}"
                elif not within(len(str(value)) if column.kind == "text" else value, column.low, column.high):
                    yield f"{where}: {column.key} = {value!r} is out of bounds"
            scope = self.scope(entity.role.partition(".")[0], **row)
            for check in entity.checks:
                if not evaluate(check, scope):
                    yield f"{where}: {check} does not hold"
