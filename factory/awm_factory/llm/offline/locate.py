"""How an agent finds the row that a user speaks of: look-ups by what the words say, chained where a filter wants another id."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Any, Final

from awm_factory.llm.offline.arguments import Refusal
from awm_factory.llm.offline.conditions import split
from awm_factory.llm.offline.ir import Entity, Operation, Param
from awm_factory.llm.offline.mention import Fact, Mention
from awm_factory.llm.offline.state import LIMIT, MOST, Result, plain
from awm_factory.llm.offline.steps import ReturnRow
from awm_factory.llm.offline.trace import Given, Trace

CURRENT_USER: Final = 1
_FILTERS: Final = 3
"""Given together at most."""
_CHAIN: Final = 2
"""What a filter by another row's id costs against one by a value that the task says."""
_SCAN: Final = 3
"""What it costs to pick the row out of several that are listed; as much again, where they fill more than a page."""


@dataclass(frozen=True)
class Filter:
    param: Param
    fact: Fact

    @property
    def cost(self) -> int:
        return _CHAIN if isinstance(self.fact, Mention) else 1

    @property
    def value(self) -> Any:
        return self.fact.id if isinstance(self.fact, Mention) else self.fact


def locate(trace: Trace, target: Mention) -> Given | None:
    """Makes the calls that show the row's id; None where the tools don't show it to somebody who knows those words only."""
    if target.role == "user" and target.id == CURRENT_USER:
        return Given(CURRENT_USER)
    if (known := trace.known.get((target.role, target.id))) is not None:
        return known
    found = _by_list(trace, target) or _by_parent(trace, target)
    if found is not None:
        trace.known[target.role, target.id] = found
    return found


def _by_list(trace: Trace, target: Mention) -> Given | None:
    ways: list[tuple[int, int, int, Operation, tuple[Filter, ...], str, int]] = []
    for order, operation in enumerate(trace.domain.lists(target.role)):
        for chosen in _choices(operation, target):
            arguments = {one.param.key: one.value for one in chosen}
            result = trace.world.copy().run(operation.key, arguments)
            if isinstance(result, Refusal) or result["total"] > MOST:
                continue
            if result["total"] > LIMIT:
                result = trace.world.copy().run(operation.key, {**arguments, "limit": MOST})
            assert isinstance(result, dict)
            place = picked(trace.domain.entity(target.role), result["items"], target)
            if place is not None:
                cost = sum(one.cost for one in chosen) + _SCAN * ((place != "[0]") + (result["total"] > LIMIT))
                ways.append((cost, order, len(ways), operation, chosen, place, result["total"]))
    for *_, operation, chosen, place, total in sorted(ways, key=lambda way: way[:3]):
        trial = trace.fork()
        given = _given(trial, chosen)
        if given is None:
            continue
        if total > LIMIT:
            given["limit"] = Given(MOST)
        trial.call(operation.key, given)
        number = trial.number(operation.key, given)
        trace.world, trace.calls, trace.known = trial.world, trial.calls, trial.known
        return Given(target.id, trace.path(f".items{place}.id", number), trace.depth(given) + 1)
    return None


def _choices(operation: Operation, target: Mention) -> Iterator[tuple[Filter, ...]]:
    """Combinations of filters, with those that the operation demands always among them."""
    usable = filters(operation, target)
    demanded = {param.key for param in operation.params if param.required}
    base = tuple(one for one in usable if one.param.key in demanded)
    if len({one.param.key for one in base}) < len(demanded):
        return
    spare = [one for one in usable if one.param.key not in demanded]
    for size in range(min(_FILTERS, len(spare)) + 1):
        for chosen in combinations(spare, size):
            yield (*base, *chosen)


def filters(operation: Operation, target: Mention) -> list[Filter]:
    """Parameters of a list that what is known of the row can fill."""
    found = []
    for param in operation.params:
        columns, comparator = split(param.filter or param.key)
        for column in columns.split("|"):
            fact = target.facts.get(column)
            if fact is None or isinstance(fact, Mention) != (param.kind == "ref") or comparator not in _BY_FACT:
                continue
            if param.kind == "date" and isinstance(fact, datetime):
                fact = fact.date()
            if comparator == "contains" and not isinstance(fact, str):
                continue
            found.append(Filter(param, fact))
            break
    return found


_BY_FACT: Final = ("eq", "contains", "ge", "le")


def _given(trace: Trace, chosen: tuple[Filter, ...]) -> dict[str, Given] | None:
    arguments: dict[str, Given] = {}
    for one in chosen:
        if isinstance(one.fact, Mention):
            nested = locate(trace, one.fact)
            if nested is None:
                return None
            arguments[one.param.key] = nested
        else:
            arguments[one.param.key] = Given(one.fact)
    return arguments


def _by_parent(trace: Trace, target: Mention) -> Given | None:
    """Through a row that lists this one among its children."""
    for operation in trace.domain.operations.values():
        if operation.kind != "get" or not isinstance(operation.returns, ReturnRow):
            continue
        for role, column in operation.returns.children:
            parent = target.facts.get(column)
            paths = [param for param in operation.params if param.required]
            if role != target.role or not isinstance(parent, Mention) or len(paths) != 1 or paths[0].ref != parent.role:
                continue
            trial = trace.fork()
            found = locate(trial, parent)
            if found is None:
                continue
            arguments = {paths[0].key: found}
            result = trial.call(operation.key, arguments)
            entity = trace.domain.entity(role)
            place = picked(entity, result[role], target) if isinstance(result, dict) else None
            if place is not None:
                number = trial.number(operation.key, arguments)
                trace.world, trace.calls, trace.known = trial.world, trial.calls, trial.known
                return Given(target.id, trace.path(f".{entity.plural}{place}.id", number), found.hops + 1)
    return None


def picked(entity: Entity, items: list[Result], target: Mention) -> str | None:
    """The JSONPath step that leads to the row among those listed, by what the user's words say of it."""
    if [item["id"] for item in items] == [target.id]:
        return "[0]"
    if all(item["id"] != target.id for item in items):
        return None
    cells = _visible(entity, next(item for item in items if item["id"] == target.id), target)
    keys = [key for key in cells if "\\" not in str(cells[key])]
    for size in (1, 2, 3):
        for chosen in combinations(keys, size):
            same = [item["id"] for item in items if all(item[key] == cells[key] for key in chosen)]
            if same == [target.id]:
                return _predicate({_field_name(entity, key): cells[key] for key in chosen})
    return None


def _visible(entity: Entity, item: Result, target: Mention) -> dict[str, str | int]:
    """What the listed row shows of the user's words: own columns first, then what it shows of rows that they name."""
    own = {key: plain(fact) for key, fact in target.facts.items() if not isinstance(fact, Mention)}
    spoken = frozenset[Any]().union(*(_scalars(fact) for fact in target.facts.values() if isinstance(fact, Mention)))
    shown = {show.key: item[show.key] for show in entity.shows if isinstance(item[show.key], str) and item[show.key] in spoken}
    cells = {key: value for key, value in (own | shown).items() if isinstance(value, str | int)}
    return dict(sorted(cells.items(), key=lambda pair: not isinstance(pair[1], str)))


def _scalars(mention: Mention) -> frozenset[Any]:
    own = {plain(fact) for fact in mention.facts.values() if not isinstance(fact, Mention)}
    nested = [_scalars(fact) for fact in mention.facts.values() if isinstance(fact, Mention)]
    return frozenset(own).union(*nested)


def _field_name(entity: Entity, key: str) -> str:
    for show in entity.shows:
        if show.key == key:
            return show.name or key
    return entity.column(key).name or key


def _predicate(values: dict[str, Any]) -> str:
    tests = [f"@.{name} == {_literal(value)}" for name, value in values.items()]
    return f"[?({' && '.join(tests)})]"


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "\\'") + "'"
    return str(value)
