"""What a list must do that is asked for rows from a bound on, for rows that admit a value, or for rows in an order.

As everywhere in the exploration the answers are compared with each other; nobody says what is right.
"""

import re
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from typing import Any, Final

from awm_runtime.contract import Tool, ToolCall
from awm_runtime.relations import Ask, Rows, Told, rows_of

_FROM: Final = frozenset(("min", "minimum", "from", "since", "after", "least"))
_TO: Final = frozenset(("max", "maximum", "to", "until", "before", "by", "most"))
_STARTS: Final = ("from", "start", "starts", "starts_on", "since")
_ENDS: Final = ("until", "to", "end", "ends", "ends_on")
_SORTS: Final = frozenset(("sort", "sort_by", "order_by", "order", "ordering", "sorted_by"))
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_SORTED: Final = 6
"""Orders of one list that are asked for."""


async def kept(ask: Ask, whole: ToolCall, rows: Rows, tool: Tool, *, all_seen: bool) -> AsyncIterator[Told]:
    """`rows`: what the list gives without any filter, `all_seen` where that was not cut to a page."""
    properties: Any = tool.input_schema.get("properties", {})
    for name, schema in properties.items():
        async for told in _sorted(ask, whole, rows, name, choices_of(schema)):
            yield told
        if (way := _bound(name)) and name not in rows[0]:
            async for told in _grows(ask, whole, rows, name, schema, way, all_seen=all_seen):
                yield told
        elif limits := list(_admitting(name, rows[0])):
            async for told in _admits(ask, whole, rows, name, limits, all_seen=all_seen):
                yield told


def choices_of(schema: dict[str, Any]) -> list[Any]:
    """The values of an enumeration; empty where there is none."""
    options = [schema, *(schema.get("anyOf") or ())]
    return next((list(option["enum"]) for option in options if option.get("enum")), [])


def _bound(name: str) -> int:
    """1 for `min_price` and `date_from`, of which more leaves fewer rows; -1 for `max_price` and `ends_by`; 0 for no bound."""
    words = name.lower().split("_")
    ends = {words[0], words[-1]} if len(words) > 1 else set()
    lower, upper = bool(ends & _FROM), bool(ends & _TO)
    return 0 if lower == upper else 1 if lower else -1


async def _grows(
    ask: Ask, whole: ToolCall, rows: Rows, name: str, schema: dict[str, Any], way: int, *, all_seen: bool
) -> AsyncIterator[Told]:
    """The further the bound, the fewer the rows; and none that the nearer bound leaves out."""
    values = _spread(rows, name, schema)
    if len(values) < 2 or not all_seen:
        return
    wide, narrow = (values[0], values[-1]) if way > 0 else (values[-1], values[0])
    answers = []
    for value in (wide, narrow):
        call = ToolCall(tool=whole.tool, arguments={**whole.arguments, name: value})
        answer = await ask(call)
        found = rows_of(answer.content) if answer.kind == "ok" else None
        if found is None:
            return
        answers.append((call, [repr(row) for row in found]))
    (first, many), (second, few) = answers
    if strangers := set(few) - set(many):
        what = f"with {name} = {narrow!r} it gives {len(strangers)} rows that {name} = {wide!r} leaves out"
        yield "filter", what, [first, second]


def _spread(rows: Rows, name: str, schema: dict[str, Any]) -> list[Any]:
    """Values of the rows that may stand for the bound, the least first: days for a date, else numbers named like it."""
    options = [schema, *(schema.get("anyOf") or ())]
    forms = {str(option.get("format")) for option in options} | {str(option.get("type")) for option in options}
    if "date" in forms or ("string" in forms and "date-time" not in forms and not choices_of(schema)):
        texts = (value for row in rows for value in row.values() if isinstance(value, str) and _DATE.match(value))
        return sorted({text[:10] for text in texts})
    stems = set(name.lower().split("_")) - _FROM - _TO
    fields = [field for field in rows[0] if stems & set(field.lower().split("_")) and not field.lower().endswith("id")]
    if not {"integer", "number"} & forms:
        return []
    numbers = {row[field] for row in rows for field in fields if type(row.get(field)) in (int, float)}
    return sorted(int(n) if "integer" in forms and "number" not in forms else n for n in numbers)


def _admitting(name: str, row: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Fields of a row that say what it admits: `minimum_age` (1: its value is the least) for a filter by `suitable_for_age`."""
    words = name.lower().split("_")
    if name in row or len(words) == 0 or words[-1] == "id":
        return
    for field in row:
        stem = field.lower().split("_")
        if len(stem) == 2 and stem[1] == words[-1] and stem[0] in ("min", "minimum", "max", "maximum"):
            yield field, 1 if stem[0].startswith("min") else -1
    if len(words) > 1 and words[-1] in ("on", "at"):
        for ends, way in ((_STARTS, 1), (_ENDS, -1)):
            yield from ((field, way) for field in row if field.lower() in {f"{words[0]}_{end}" for end in ends})


async def _admits(
    ask: Ask, whole: ToolCall, rows: Rows, name: str, limits: list[tuple[str, int]], *, all_seen: bool
) -> AsyncIterator[Told]:
    """Just the rows whose own least and most admit the value."""
    values = sorted(
        {row[field] for row in rows for field, _ in limits if row.get(field) is not None}, key=lambda v: (str(type(v)), v)
    )
    for value in dict.fromkeys([*values[:1], *values[len(values) // 2 : len(values) // 2 + 1], *values[-1:]]):
        call = ToolCall(tool=whole.tool, arguments={**whole.arguments, name: value})
        answer = await ask(call)
        chosen = rows_of(answer.content) if answer.kind == "ok" else None
        if chosen is None:
            return
        for field, way in limits:
            beyond = [
                row[field]
                for row in chosen
                if type(row.get(field)) is type(value) and (value < row[field] if way > 0 else value > row[field])
            ]
            if beyond:
                yield "filter", f"with {name} = {value!r} it gives a row with {field} = {beyond[0]!r}", [whole, call]
                return


async def _sorted(ask: Ask, whole: ToolCall, rows: Rows, name: str, orders: list[Any]) -> AsyncIterator[Told]:
    """Each order that may be asked for by the name of a field is one."""
    if name.lower() not in _SORTS:
        return
    for order in [one for one in orders if isinstance(one, str)][:_SORTED]:
        field = re.sub(r"^[-+]|[_ :-](?:asc|desc|ascending|descending)$", "", order)
        ways = (1, -1) if field == order else (-1,) if order.startswith("-") or "desc" in order[len(field) :] else (1,)
        if field not in rows[0]:
            continue
        call = ToolCall(tool=whole.tool, arguments={**whole.arguments, name: order})
        answer = await ask(call)
        found = rows_of(answer.content) if answer.kind == "ok" else None
        if found is None:
            return
        values = [row[field] for row in found if type(row.get(field)) in (int, float, str)]
        if not any(_in_order(values[::way], key) for way in ways for key in (lambda v: v, lambda v: str(v).casefold())):
            yield "sort", f"with {name} = {order!r} its rows are in no order of {field}", [call]
            return


def _in_order(values: list[Any], key: Any) -> bool:
    try:
        return all(key(one) <= key(other) for one, other in pairwise(values))
    except TypeError:
        return True
