"""The state of a domain as the author predicts it: rows, a clock, and operations run on them exactly as the emitted code will."""

from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from awm_factory.llm.offline.arguments import Refusal, RefusedError, given
from awm_factory.llm.offline.conditions import cell, holds, split
from awm_factory.llm.offline.expr import Bound, Scope, evaluate, filled, selected
from awm_factory.llm.offline.ir import Entity, Operation
from awm_factory.llm.offline.rows import Rows
from awm_factory.llm.offline.steps import (
    Change,
    Each,
    Fill,
    Find,
    Insert,
    Let,
    Load,
    Log,
    Remove,
    Require,
    ReturnPage,
    ReturnRecord,
    ReturnRow,
    ReturnTable,
    Step,
    When,
)

Result = dict[str, Any]
"""What a call answers, by key: rows and records as objects, moments as ISO texts."""

LIMIT, MOST = 20, 100
"""Rows of a page, by default and at most."""
UNCHANGED: Final = "Nothing would change: no value given differs from what is stored."
"""What an update that would change nothing is refused with."""


class World(Rows):
    """Rows, and the operations that change them."""

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


def module_of(operation: Operation) -> str:
    return operation.key.partition(".")[0]


def plain(value: Any) -> Any:
    """As JSON has it: `2026-01-01`, `2026-01-01T09:30:00`."""
    return value.isoformat() if isinstance(value, date) else value


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
