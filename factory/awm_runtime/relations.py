"""How answers of one list must fit together: its pages are pieces of it, its total is its length, a filter only leaves rows out.

Nobody has to say what is right for that; the rules compare answers with each other.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

from awm_runtime.contract import Tool, ToolCall, ToolResult

Ask = Callable[[ToolCall], Awaitable[ToolResult]]
Rows = list[dict[str, Any]]
Told = tuple[str, str, list[ToolCall]]
"""Kind, words, and the calls that show it."""

LIMITS: Final = ("limit", "page_size", "per_page", "top_n", "max_results")
_SKIPS: Final = ("offset", "skip")
_TOTALS: Final = ("total", "total_count", "count", "total_items", "total_results")
_PAGED: Final = 4
"""Rows that are fetched one by one."""
_SHOWN: Final = 4


def rows_of(content: Any) -> Rows | None:
    """The rows that an answer lists; None where it is no list of objects."""
    found = content
    if isinstance(content, dict):
        lists = [value for value in content.values() if isinstance(value, list)]
        if len(lists) != 1:
            return None
        found = lists[0]
    return found if isinstance(found, list) and all(isinstance(row, dict) for row in found) else None


async def pages(ask: Ask, tool: Tool, rows: Rows, properties: dict[str, Any]) -> AsyncIterator[Told]:
    """`rows`: what the list gives from its beginning."""
    limit = next((name for name in LIMITS if name in properties), None)
    if limit is None:
        return
    call = ToolCall(tool=tool.name, arguments={limit: 1})
    first = await _listed(ask, call)
    if first is None:
        return
    if len(first) > 1:
        yield "page", f"asked for {limit} = 1 it gives {len(first)} rows", [call]
        return
    skip = next((name for name in _SKIPS if name in properties), None)
    places = range(min(_PAGED, len(rows))) if skip else range(min(1, len(rows)))
    for place in places:
        arguments = {limit: 1} | ({skip: place} if skip else {})
        one = await _listed(ask, ToolCall(tool=tool.name, arguments=arguments))
        if one is not None and one != [rows[place]]:
            whole = ToolCall(tool=tool.name, arguments={})
            shown = ", ".join(f"{name} = {value}" for name, value in arguments.items())
            what = f"with {shown} it gives not the row that is number {place + 1} of the whole list"
            yield "page", what, [whole, ToolCall(tool=tool.name, arguments=arguments)]
            return


async def _listed(ask: Ask, call: ToolCall) -> Rows | None:
    answer = await ask(call)
    return rows_of(answer.content) if answer.kind == "ok" else None


def total(content: Any, rows: Rows, whole: ToolCall) -> list[Told]:
    """An envelope that counts its rows, where all of them are in it."""
    if not isinstance(content, dict):
        return []
    for name in _TOTALS:
        value = content.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value != len(rows):
            return [("page", f"it says {name} = {value} and lists {len(rows)} rows", [whole])]
    return []


def miscounted(one: dict[str, Any]) -> str | None:
    """A number that says how long the list beside it is, and is wrong: `item_count` beside `items`."""
    for name, value in one.items():
        stem = name.lower().removesuffix("_count").removeprefix("number_of_").removeprefix("num_")
        if stem == name.lower() or not isinstance(value, int) or isinstance(value, bool):
            continue
        listed = next((one[plural] for plural in (stem, f"{stem}s", f"{stem}es") if isinstance(one.get(plural), list)), None)
        if listed is not None and len(listed) != value:
            return f"{name} = {value} and lists {len(listed)}"
    return None


def beyond(rows: Rows, chosen: Rows) -> Any:
    """The id of a row that a filter gives and the whole list does not; None where there is none."""
    if not rows or "id" not in rows[0]:
        return None
    known = {repr(row.get("id")) for row in rows}
    return next((row.get("id") for row in chosen if repr(row.get("id")) not in known), None)


async def choices(ask: Ask, whole: ToolCall, rows: Rows, name: str, values: list[Any]) -> AsyncIterator[Told]:
    """Each value of an enumeration leaves rows out of the whole list, and no row has two values."""
    seen: dict[str, Any] = {}
    for value in values[:_SHOWN]:
        call = ToolCall(tool=whole.tool, arguments={**whole.arguments, name: value})
        chosen = await _listed(ask, call)
        if chosen is None:
            return
        if (stranger := beyond(rows, chosen)) is not None:
            yield "filter", f"with {name} = {value!r} it gives row {stranger!r}, which it does not list without", [whole, call]
            return
        for key in (repr(row["id"]) for row in chosen if "id" in row):
            if seen.setdefault(key, value) != value:
                first = ToolCall(tool=whole.tool, arguments={**whole.arguments, name: seen[key]})
                yield "filter", f"it gives row {key} both with {name} = {seen[key]!r} and with {value!r}", [first, call]
                return
