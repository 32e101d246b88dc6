"""Expressions of the domain model: a small subset of Python, parsed once, and interpreted over the rows of a `World`.

    names      variables, parameters, `now`, `today`, `self`; `state.booked` and `policy.cancel_hours` of the operation's module
    paths      `booking.status`, and along references: `booking.slot.place.name` (the column `slot_id` is followed as `slot`)
    operators  + - * // %, comparisons, `in`, `is None`, and/or/not, `a if b else c`, f-strings
    functions  count(role, …), exists(role, …), total(role, 'column', …), highest and lowest (None where there is no row);
               days(n), hours(n), minutes(n), day(moment), days_between(later, earlier), add_months(date, n),
               is_first_of_month(date), money(cents), len(list), min, max, abs, lower(text), serial(role, 'PREFIX')

Conditions on rows (`…`) are keywords: `slot_id=slot.id`, `starts_at__gt=now`, along references `slot__place_id=place.id`.
`emit/expressions.py` prints the same into code.
"""

import ast
import operator
from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cache
from typing import Any, Final, NamedTuple

from awm_factory import syntax
from awm_factory.llm.offline.conditions import Rows, matching, split
from awm_factory.llm.offline.values import Row, Where

FIRST_SERIAL: Final = 1000
"""The row with id n has the running number FIRST_SERIAL + n."""


class Bound(NamedTuple):
    """A variable's row, by where it stands: later changes of the row are seen through it."""

    role: str
    id: int


@dataclass
class Scope:
    rows: Rows
    module: str
    """Whose states and policies are meant."""
    variables: dict[str, Any] = field(default_factory=dict)

    def role(self, name: str) -> str:
        """Entities of the operation's own module may be called shortly: `slot` for `booking.slot`."""
        return name if name in self.rows.domain.entities else f"{self.module}.{name}"


Compiled = Callable[[Scope], Any]


def evaluate(text: str, scope: Scope) -> Any:
    return compiled(text)(scope)


def parse(text: str) -> ast.expr:
    """Raises ValueError with the text, where it is no expression."""
    try:
        return syntax.expression(text.strip())
    except SyntaxError as fault:
        raise ValueError(f"{text!r} is no expression: {fault.msg}") from None


@cache
def compiled(text: str) -> Compiled:
    return _compile(parse(text))


@cache
def pieces(text: str) -> tuple[tuple[str, str], ...]:
    """A detail as ("text", …) and ("expr", …) parts."""
    parts: list[tuple[str, str]] = []
    rest = text
    while rest:
        before, opening, rest = rest.partition("{")
        if before:
            parts.append(("text", before))
        if opening:
            inside, closing, rest = rest.partition("}")
            if not closing:
                raise ValueError(f"{text!r} opens a brace and does not close it")
            parts.append(("expr", inside))
    return tuple(parts)


def filled(text: str, scope: Scope) -> str:
    return "".join(part if kind == "text" else str(evaluate(part, scope)) for kind, part in pieces(text))


# --- conditions on rows ---------------------------------------------------------------------------------------------


def selected(role: str, where: Where, scope: Scope) -> Iterator[Row]:
    tests = [(*split(key), evaluate(text, scope)) for key, text in where.items()]
    return matching(scope.rows, scope.role(role), tests)


# --- functions ------------------------------------------------------------------------------------------------------


def add_months(day: date, months: int) -> date:
    """The same day so many months later, or the last of a month that is too short."""
    year, month = divmod(day.month - 1 + months, 12)
    year, month = day.year + year, month + 1
    return day.replace(year=year, month=month, day=min(day.day, monthrange(year, month)[1]))


def money(cents: int, currency: str) -> str:
    return f"{currency} {cents // 100}.{cents % 100:02d}"


_PURE: Final[Mapping[str, Callable[..., Any]]] = {
    "days": lambda n: timedelta(days=n),
    "hours": lambda n: timedelta(hours=n),
    "minutes": lambda n: timedelta(minutes=n),
    "day": lambda moment: moment.date(),
    "days_between": lambda later, earlier: (later - earlier).days,
    "add_months": add_months,
    "is_first_of_month": lambda day: day.day == 1,
    "len": len,
    "min": min,
    "max": max,
    "abs": abs,
    "lower": lambda text: text.lower(),
}

AGGREGATES: Final = ("count", "exists", "total", "highest", "lowest")


# --- compiling ------------------------------------------------------------------------------------------------------

_BINARY: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}


def _compile(node: ast.expr) -> Compiled:
    match node:
        case ast.Constant(value=value):
            return lambda scope: value
        case ast.Name(id=name):
            return _name(name)
        case ast.Attribute(value=ast.Name(id="state"), attr=key):
            return lambda scope: scope.rows.domain.states[scope.module][key]
        case ast.Attribute(value=ast.Name(id="policy"), attr=key):
            return lambda scope: scope.rows.domain.policies[scope.module][key]
        case ast.Attribute(value=inner, attr=key):
            owner = _compile(inner)
            return lambda scope: _attribute(owner(scope), key, scope)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            apply, first, second = _BINARY[type(op)], _compile(left), _compile(right)
            return lambda scope: apply(first(scope), second(scope))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner_value = _compile(operand)
            return lambda scope: not inner_value(scope)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner_value = _compile(operand)
            return lambda scope: -inner_value(scope)
        case ast.BoolOp(op=op, values=values):
            parts = [_compile(value) for value in values]
            every = all if isinstance(op, ast.And) else any
            return lambda scope: every(part(scope) for part in parts)
        case ast.Compare(left=left, ops=ops, comparators=comparators) if all(type(op) in _COMPARE for op in ops):
            operands = [_compile(part) for part in (left, *comparators)]
            tests = [_COMPARE[type(op)] for op in ops]
            return lambda scope: _chained(tests, [part(scope) for part in operands])
        case ast.IfExp(test=test, body=body, orelse=orelse):
            condition, then, otherwise = _compile(test), _compile(body), _compile(orelse)
            return lambda scope: then(scope) if condition(scope) else otherwise(scope)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            members = [_compile(element) for element in elements]
            return lambda scope: tuple(member(scope) for member in members)
        case ast.JoinedStr(values=values):
            texts = [_compile(value.value if isinstance(value, ast.FormattedValue) else value) for value in values]
            return lambda scope: "".join(str(text(scope)) for text in texts)
        case ast.Call(func=ast.Name(id=name)):
            return _call(name, node)
    raise ValueError(f"{ast.unparse(node)!r} is outside the subset of Python that expressions may use")


def _name(name: str) -> Compiled:
    if name == "now":
        return lambda scope: scope.rows.now
    if name == "today":
        return lambda scope: scope.rows.now.date()
    return lambda scope: scope.variables[name]


def _attribute(owner: Any, key: str, scope: Scope) -> Any:
    if isinstance(owner, dict):
        return owner[key]
    row = scope.rows.row(owner.role, owner.id)
    if key in row:
        return row[key]
    entity = scope.rows.domain.entity(owner.role)
    if entity.has(f"{key}_id"):
        target = row[f"{key}_id"]
        return None if target is None else Bound(entity.column(f"{key}_id").ref, target)
    show = next((show for show in entity.shows if show.key == key), None)
    if show is None:
        raise ValueError(f"{owner.role} has no column, reference or field {key!r}")
    return compiled(show.expr)(Scope(scope.rows, owner.role.partition(".")[0], {"self": owner}))


def _chained(tests: list[Callable[[Any, Any], bool]], values: list[Any]) -> bool:
    return all(test(left, right) for test, left, right in zip(tests, values, values[1:], strict=False))


def _call(name: str, node: ast.Call) -> Compiled:
    arguments = [_compile(argument) for argument in node.args]
    where = {keyword.arg: _compile(keyword.value) for keyword in node.keywords if keyword.arg}
    if name in AGGREGATES:
        return _aggregate(name, arguments, where)
    if name == "serial":
        role, prefix = arguments
        return lambda scope: f"{prefix(scope)}-{FIRST_SERIAL + scope.rows.next_id(scope.role(role(scope)))}"
    if name == "money":
        return lambda scope: money(arguments[0](scope), scope.rows.domain.currency)
    if name in _PURE and not where:
        function = _PURE[name]
        return lambda scope: function(*(argument(scope) for argument in arguments))
    raise ValueError(f"{ast.unparse(node)!r} calls a function that expressions don't have")


def _aggregate(name: str, arguments: list[Compiled], where: Mapping[str, Compiled]) -> Compiled:
    def rows(scope: Scope) -> Iterator[Row]:
        tests = [(*split(key), value(scope)) for key, value in where.items()]
        return matching(scope.rows, scope.role(arguments[0](scope)), tests)

    if name == "count":
        return lambda scope: sum(1 for _ in rows(scope))
    if name == "exists":
        return lambda scope: next(rows(scope), None) is not None
    column = arguments[1]

    def cells(scope: Scope) -> list[Any]:
        key = column(scope)
        return [row[key] for row in rows(scope) if row[key] is not None]

    if name == "total":
        return lambda scope: sum(cells(scope))
    pick = max if name == "highest" else min
    return lambda scope: pick(cells(scope), default=None)
