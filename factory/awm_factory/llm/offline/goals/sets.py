"""Sets of rows that a user describes by criteria, and that the tools can list by the same criteria."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from awm_factory.llm.offline.arguments import Refusal
from awm_factory.llm.offline.conditions import split
from awm_factory.llm.offline.goals.ground import Ground
from awm_factory.llm.offline.ir import Column, Entity, Operation, Param
from awm_factory.llm.offline.locate import locate
from awm_factory.llm.offline.mention import Fact, Mention, describe
from awm_factory.llm.offline.state import LIMIT, MOST, Result
from awm_factory.llm.offline.trace import Given, Trace
from awm_factory.llm.offline.values import Row
from awm_factory.llm.offline.wording import column_noun, event, figure, noun_of, spoken, superlative, with_more

_TRIES: Final = 14


@dataclass(frozen=True)
class Condition:
    param: Param
    column: str
    comparator: str
    fact: Fact

    @property
    def value(self) -> Any:
        return self.fact.id if isinstance(self.fact, Mention) else self.fact


@dataclass(frozen=True)
class RowSet:
    entity: Entity
    listing: Operation
    conditions: tuple[Condition, ...]
    ids: tuple[int, ...]
    """In the order in which the tool lists them."""

    @property
    def signature(self) -> tuple[object, ...]:
        return self.listing.key, tuple(sorted((one.param.key, str(one.value)) for one in self.conditions))

    @property
    def mentions(self) -> tuple[Mention, ...]:
        return tuple(one.fact for one in self.conditions if isinstance(one.fact, Mention))

    def owner(self) -> Mention | None:
        return next((one for one in self.mentions if one.role == "party"), None)

    def text(self, ground: Ground, *, plural: bool = True, definite: bool = True, without_owner: bool = False) -> str:
        """`Dana Reyes's open tickets`, `the open tickets at Harbour Street`."""
        exact = {one.column: one.fact for one in self.conditions if one.comparator == "eq"}
        if without_owner and (owner := self.owner()) is not None:
            exact = {key: fact for key, fact in exact.items() if fact != owner}
        base = describe(
            ground.world,
            self.entity,
            _adjectives(self.entity, exact),
            noun_of(ground.domain, self.entity.role, plural=True) if plural else "",
            definite,
        )
        return self._bounded(ground, base)

    def _bounded(self, ground: Ground, text: str) -> str:
        for one in self.conditions:
            if one.comparator == "eq" or isinstance(one.fact, Mention):
                continue
            column = self.entity.column(one.column.split("|")[0])
            said = spoken(one.fact, column.kind, ground.currency)
            text = with_more(text, _bound(column, one.comparator, said, isinstance(one.fact, date)))
        return text

    def listed(self, trace: Trace, order: str = "") -> int | None:
        """Makes the call that lists them, with the look-ups it takes; the call's number, or None where an id is not shown."""
        arguments: dict[str, Given] = {}
        for one in self.conditions:
            if isinstance(one.fact, Mention):
                found = locate(trace, one.fact)
                if found is None:
                    return None
                arguments[one.param.key] = found
            else:
                arguments[one.param.key] = Given(one.fact)
        if order:
            arguments["sort"] = Given(order)
        if len(self.ids) > LIMIT:
            arguments["limit"] = Given(MOST)
        result = trace.call(self.listing.key, arguments)
        if isinstance(result, Refusal):
            return None
        return trace.number(self.listing.key, arguments)


def _adjectives(entity: Entity, facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """Choices first, so that the state stands before the noun."""
    return dict(sorted(facts.items(), key=lambda pair: pair[0] != "status"))


def _bound(column: Column, comparator: str, said: str, is_time: bool) -> str:
    name = column.name or column.key
    if comparator == "contains":
        return f'with "{said}" in the {column_noun(column)}'
    if is_time:
        side = "on or after" if comparator in ("ge", "gt") else "on or before"
        told = event(name)
        if told is not None:
            active = {"starts": "starting", "ends": "ending", "begins": "beginning", "expires": "expiring"}
            verb = active.get(told[1], f"that {told[1]}" if not told[0] else told[1])
            return f"{verb} {side} {said}"
        return f"{'for a' if name == 'month' else 'with the'} {column_noun(column)} {side} {said}"
    side = "at least" if comparator in ("ge", "gt") else "at most"
    return f"with {figure(column, said, side)}"


def row_set(
    ground: Ground,
    role: str,
    least: int,
    most: int,
    fits: Callable[[RowSet], bool] | None = None,
    around: int | None = None,
    fewest_conditions: int = 1,
) -> RowSet | None:
    """A set of so many rows of an entity, described by one to three criteria. `around`: a row that is to be in it."""
    listings = [op for op in ground.domain.lists(role) if any(param.filter for param in op.params)]
    ids = ground.chooser.rows(role)
    if not listings or len(ids) < least:
        return None
    for _ in range(_TRIES):
        operation = ground.rng.choice(listings)
        row = ground.world.row(role, around if around is not None else ground.rng.choice(ids))
        conditions = _conditions(ground, operation, row, fewest_conditions)
        if conditions is None:
            continue
        result = ground.try_out(operation, {one.param.key: one.value for one in conditions} | {"limit": MOST})
        if isinstance(result, Refusal) or not least <= result["total"] <= min(most, MOST):
            continue
        if result["total"] == ground.world.count(role) and conditions:
            continue
        found = RowSet(ground.domain.entity(role), operation, conditions, tuple(item["id"] for item in result["items"]))
        if fits is None or fits(found):
            return found
    return None


def _conditions(ground: Ground, operation: Operation, row: Row, fewest: int) -> tuple[Condition, ...] | None:
    """What the tool's filters can say of the row, one to three of them, never two of one column but for a span of days."""
    entity = ground.domain.entity(operation.entity)
    usable: list[Condition] = []
    demanded: list[Condition] = []
    for param in operation.params:
        condition = _condition(ground, entity, param, row)
        if condition is not None:
            (demanded if param.required else usable).append(condition)
        elif param.required:
            return None
    ground.rng.shuffle(usable)
    usable.sort(key=lambda one: one.comparator not in ("eq",) and ground.rng.random() < 0.6)
    chosen = list(demanded)
    wanted = ground.rng.choice((1, 2, 2, 3)) if usable else 0
    for one in usable:
        if len(chosen) - len(demanded) >= max(wanted, fewest):
            break
        if all(one.column != other.column for other in chosen):
            chosen.append(one)
    return tuple(chosen) if len(chosen) >= fewest else None


def _condition(ground: Ground, entity: Entity, param: Param, row: Row) -> Condition | None:
    if not param.filter:
        return None
    column, comparator = split(param.filter)
    if "|" in column or not entity.has(column) or comparator not in ("eq", "ge", "le"):
        return None
    value = row[column]
    if value is None or column.endswith("mon0"):
        return None
    kind = entity.column(column).kind
    if param.kind == "ref":
        assert isinstance(value, int)
        named = ground.mention(param.ref, value)
        return Condition(param, column, comparator, named) if named is not None and (param.ref, value) != ("user", 1) else None
    if kind == "text" and comparator == "eq":
        return None
    if isinstance(value, datetime) and param.kind == "date":
        value = value.date()
    if kind == "bool" and comparator == "eq":
        return None
    return Condition(param, column, comparator, value)


@dataclass(frozen=True)
class Extreme:
    """The row of a set that has the most or least of something, no other row as much."""

    column: Column
    highest: bool
    id: int
    second: int
    """The row that comes next, which a careless agent may take."""

    def words(self) -> str:
        """What follows the noun: `that starts first`, `with the highest price`."""
        name = self.column.name or self.column.key
        if self.column.kind in ("date", "datetime"):
            order = "last" if self.highest else "first"
            if (told := event(name)) is not None:
                return f"that {f'{told[0]} ' if told[0] else ''}{told[1]} {order}"
            return f"with the {'latest' if self.highest else 'earliest'} {column_noun(self.column)}"
        return f"with {superlative(self.column, highest=self.highest)}"


def extreme(ground: Ground, found: RowSet) -> Extreme | None:
    columns = [
        column
        for column in found.entity.columns
        if column.kind in ("int", "money", "date", "datetime")
        and all(one.column != column.key for one in found.conditions)
        and not re.search(r"(?:^|_)(?:id|number|code|position|mon0)$|^last_", column.name or column.key)
    ]
    ground.rng.shuffle(columns)
    for column in columns:
        rows = [ground.world.row(found.entity.role, row_id) for row_id in found.ids]
        if any(row[column.key] is None for row in rows):
            continue
        highest = ground.rng.random() < 0.5
        rows.sort(key=lambda row: row[column.key], reverse=highest)
        if len(rows) > 1 and rows[0][column.key] != rows[1][column.key]:
            return Extreme(column, highest, int(rows[0]["id"]), int(rows[1]["id"]))
    return None


def extreme_place(trace: Trace, found: RowSet, one: Extreme) -> tuple[int, str] | None:
    """Lists the set and says where the extreme row stands: the call's number and the JSONPath step."""
    column = one.column
    name = column.name or column.key
    sort = f"{'-' if one.highest else ''}{name}"
    if column.key in found.listing.sorts and name == column.key:
        number = found.listed(trace, sort)
        if number is None:
            return None
        result = trace.calls[number].result
        if isinstance(result, dict) and result["items"][0]["id"] == one.id:
            return number, "[0]"
        return None
    number = found.listed(trace)
    return (number, place_of(trace.calls[number].result, one.id)) if number is not None else None


def place_of(result: Result | Refusal, row_id: int) -> str:
    assert isinstance(result, dict)
    place = next(place for place, item in enumerate(result["items"]) if item["id"] == row_id)
    return f"[{place}]"
