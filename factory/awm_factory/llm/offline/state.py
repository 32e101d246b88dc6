"""The state of a domain as the author predicts it: rows, a clock, and operations run on them exactly as the emitted code will."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final, Self

from awm_factory.llm.offline.expr import Bound, Scope, cell, evaluate, filled, holds, matching, selected, split
from awm_factory.llm.offline.ir import (
    Change,
    Domain,
    Each,
    Entity,
    Fill,
    Find,
    Insert,
    Let,
    Load,
    Log,
    Operation,
    Param,
    Remove,
    Require,
    ReturnPage,
    ReturnRecord,
    ReturnRow,
    ReturnTable,
    Row,
    Step,
    Value,
    When,
)

Result = dict[str, Any]
"""What a call answers, by key: rows and records as objects, moments as ISO texts."""

LIMIT, MOST = 20, 100
"""Rows of a page, by default and at most."""
UNCHANGED: Final = "Nothing would change: no value given differs from what is stored."
"""What an update that would change nothing is refused with."""


@dataclass(frozen=True)
class Refusal:
    """A call that was not carried out; it changed nothing."""

    status: int
    detail: str
    rule: str = ""


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


class RefusedError(Exception):
    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal


class World:
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

    def difference(self, after: "World") -> list[Edit]:
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

    # Operations

    def run(self, key: str, arguments: Mapping[str, Any] | None = None) -> Result | Refusal:
        """Make one call, with arguments by key; moments may be ISO texts. The state changes only where it is carried out."""
        operation = self.domain.operations[key]
        self.calls += 1
        trial = self.copy() if operation.writes else self
        try:
            scope = trial.scope(module_of(operation), **given(operation.params, arguments or {}))
            trial._steps(operation.steps, scope)
            result = trial._answer(operation, scope)
        except RefusedError as refused:
            return refused.refusal
        self._tables = trial._tables
        return result

    def _steps(self, steps: tuple[Step, ...], scope: Scope) -> None:
        for step in steps:
            self._step(step, scope)

    def _step(self, step: Step, scope: Scope) -> None:
        variables = scope.variables
        match step:
            case Load():
                row_id = evaluate(step.id, scope)
                if row_id not in self._tables[step.entity]:
                    noun = self.domain.entity(step.entity).noun
                    raise RefusedError(Refusal(404, f"There is no {noun} with id {row_id}."))
                variables[step.var] = Bound(step.entity, row_id)
            case Find():
                found = _ordered(list(selected(step.entity, step.where, scope)), (step.order,) if step.order else ())
                variables[step.var] = Bound(step.entity, found[0]["id"]) if found else None
            case Require():
                if not evaluate(step.condition, scope):
                    raise RefusedError(Refusal(step.status, filled(step.detail, scope), step.rule))
            case Let():
                variables[step.var] = evaluate(step.expr, scope)
            case Insert():
                row = self.insert(step.entity, **{key: evaluate(text, scope) for key, text in step.values.items()})
                variables[step.var] = Bound(step.entity, row["id"])
            case Change():
                role, row_id = variables[step.var]
                self.change(role, row_id, **{key: evaluate(text, scope) for key, text in step.values.items()})
            case Fill():
                role, row_id = variables[step.var]
                row = self._tables[role][row_id]
                given_values = {key: variables[key] for key in step.keys if variables.get(key) is not None}
                changes = {key: value for key, value in given_values.items() if row[key] != value}
                if not changes:
                    raise RefusedError(Refusal(409, UNCHANGED))
                self.change(role, row_id, **changes)
            case Remove():
                self.remove(*variables[step.var])
            case Each():
                each: list[Any]
                if step.param:
                    each = list(variables[step.param] or ())
                else:
                    each = [Bound(step.entity, row["id"]) for row in selected(step.entity, step.where, scope)]
                for value in each:
                    variables[step.var] = value
                    self._steps(step.steps, scope)
            case When():
                self._steps(step.steps if evaluate(step.condition, scope) else step.otherwise, scope)
            case Log():
                if "activity" in self.domain.entities:
                    self._log(step, scope)

    def _log(self, step: Log, scope: Scope) -> None:
        role, row_id = scope.variables[step.var]
        self.insert(
            "activity",
            user_id=1,
            action=step.action,
            subject=self.domain.entity(role).name,
            subject_id=row_id,
            detail=filled(step.detail, scope) or None,
            created_at=self.now,
        )

    # Answers

    def _answer(self, operation: Operation, scope: Scope) -> Result:
        match operation.returns:
            case ReturnPage():
                return self._page(operation, scope)
            case ReturnRow(var=var, children=children):
                bound = scope.variables[var]
                result = self.shown(bound.role, bound.id)
                for role, column in children:
                    rows = self.where(role, **{column: bound.id})
                    result[role] = [self.shown(role, row["id"]) for row in rows]
                return result
            case ReturnRecord(fields=fields):
                return {field.key: plain(evaluate(field.expr, scope)) for field in fields}
            case ReturnTable() as table:
                return {"rows": self._table(table, scope)}

    def _table(self, table: ReturnTable, scope: Scope) -> list[Result]:
        found = []
        for row in selected(table.entity, table.where, scope):
            scope.variables[table.var] = Bound(table.entity, row["id"])
            if not table.when or evaluate(table.when, scope):
                found.append({field.key: evaluate(field.expr, scope) for field in table.fields})
        return [{key: plain(value) for key, value in row.items()} for row in _ordered(found, table.order)]

    def _page(self, operation: Operation, scope: Scope) -> Result:
        variables, entity = scope.variables, self.domain.entity(operation.entity)
        rows = list(selected(operation.entity, operation.where, scope))
        for param in operation.params:
            value = variables.get(param.key)
            if param.filter and value is not None:
                columns, comparator = split(param.filter)
                rows = [
                    row
                    for row in rows
                    if any(holds(cell(self, entity.role, row, name), comparator, value) for name in columns.split("|"))
                ]
        rows = _ordered(rows, _order(entity, variables.get("sort"), operation))
        limit, offset = variables.get("limit") or LIMIT, variables.get("offset") or 0
        shown = [self.shown(operation.entity, row["id"]) for row in rows[offset : offset + limit]]
        return {"items": shown, "total": len(rows), "limit": limit, "offset": offset}

    def shown(self, role: str, row_id: int) -> Result:
        """A row as answers hold it: its columns, and what its entity shows besides."""
        row = self._tables[role][row_id]
        result = {key: plain(value) for key, value in row.items()}
        scope = self.scope(role.partition(".")[0], self=Bound(role, row_id))
        for show in self.domain.entity(role).shows:
            result[show.key] = plain(evaluate(show.expr, scope))
        return result

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
                elif not _within(len(str(value)) if column.kind == "text" else value, column.low, column.high):
                    yield f"{where}: {column.key} = {value!r} is out of bounds"
            scope = self.scope(entity.role.partition(".")[0], **row)
            for check in entity.checks:
                if not evaluate(check, scope):
                    yield f"{where}: {check} does not hold"


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


def module_of(operation: Operation) -> str:
    return operation.key.partition(".")[0]


def plain(value: Any) -> Any:
    """As JSON has it: `2026-01-01`, `2026-01-01T09:30:00`."""
    return value.isoformat() if isinstance(value, date) else value


def given(params: tuple[Param, ...], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by key, each of its kind, None for those left out. Raises RefusedError (422) as FastAPI's validation would."""
    known = {param.key for param in params} | {"limit", "offset", "sort"}
    if unknown := [key for key in arguments if key not in known]:
        raise ValueError(f"there is no parameter {unknown[0]!r}; there are {', '.join(sorted(known))}")
    values: dict[str, Any] = {key: arguments[key] for key in ("limit", "offset", "sort") if key in arguments}
    for param in params:
        value = arguments.get(param.key, param.default)
        if value is None and param.required:
            raise RefusedError(Refusal(422, f"{param.name or param.key}: Field required"))
        values[param.key] = None if value is None else _one(param, value)
    return values


def _one(param: Param, value: Any) -> Any:
    if param.kind == "list":
        _bounded(param, len(value))
        return [given(param.items, item) for item in value]
    if param.kind == "date" and isinstance(value, str):
        value = date.fromisoformat(value)
    if param.kind == "datetime" and isinstance(value, str):
        value = datetime.fromisoformat(value)
    if param.choices and value not in param.choices:
        raise RefusedError(Refusal(422, f"{param.name or param.key}: Input should be one of {', '.join(param.choices)}"))
    if param.kind in ("int", "money"):
        _bounded(param, value)
    if param.kind == "text":
        _bounded(param, len(value))
    return value


def _bounded(param: Param, size: int) -> None:
    if not _within(size, param.low, param.high):
        raise RefusedError(Refusal(422, f"{param.name or param.key}: Input should be between {param.low} and {param.high}"))


def _within(number: Any, low: int | None, high: int | None) -> bool:
    return (low is None or number >= low) and (high is None or number <= high)


def _order(entity: Entity, sort: str | None, operation: Operation) -> tuple[str, ...]:
    """The keys that `sort`, which says a column's name as callers do, stands for."""
    if not sort:
        return operation.order
    sign, name = ("-", sort[1:]) if sort.startswith("-") else ("", sort)
    return (sign + next(key for key in operation.sorts if entity.column(key).name == name),)


def _ordered(rows: list[Any], order: tuple[str, ...]) -> list[Any]:
    """Stable, so rows that tie stay by id; NULL comes first ascending, as in SQLite."""
    for key in reversed(order):
        column = key.removeprefix("-")
        rows = sorted(rows, key=lambda row: (row[column] is not None, row[column]), reverse=key.startswith("-"))
    return rows
