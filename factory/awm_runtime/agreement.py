"""What reading tools of one app must agree on: a list with its rows, a filter with the field it filters, a page with its limit.

Each rule compares answers with each other, so it needs nobody to say what is right.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from awm_runtime import listing, relations
from awm_runtime.arguments import resource_of
from awm_runtime.contract import Tool, ToolCall, ToolResult
from awm_runtime.listing import choices_of
from awm_runtime.relations import LIMITS, rows_of

Ask = Callable[[ToolCall], Awaitable[ToolResult]]
Schema = dict[str, Any]

_PAGES: Final = (*LIMITS, "offset", "page", "skip", "cursor", "start")
_BOUNDS: Final = (("min_", "", 1), ("max_", "", -1), ("", "_min", 1), ("", "_max", -1))
_ITEMS: Final = 15
_VALUES: Final = 3


@dataclass(frozen=True)
class Disagreement:
    kind: str
    tool: str
    what: str
    calls: list[ToolCall]
    """Reading calls that show it."""


class Readers:
    """The reading tools of an app, and which of them speak of the same rows."""

    def __init__(self, tools: list[Tool], known: Callable[[str], list[Any]]) -> None:
        """`known`: values that results have shown under a name."""
        self._known = known
        self.lists = [tool for tool in tools if tool.method == "GET" and "{" not in tool.path and not _required(tool)]
        gets = [tool for tool in tools if tool.method == "GET" and tool.path.endswith("}") and len(_required(tool)) == 1]
        self.get_at = {tool.path.rpartition("/{")[0]: tool for tool in gets if tool.path.count("{") == 1}

    async def disagreements(
        self, ask: Ask, lists: list[Tool], items: int = _ITEMS, *, filters: bool = True
    ) -> list[Disagreement]:
        found: list[Disagreement] = []
        for tool in lists:
            whole = ToolCall(tool=tool.name, arguments=_most(tool))
            answer = await ask(whole)
            rows = rows_of(answer.content) if answer.kind == "ok" else None
            if rows is None:
                continue
            if tool.path in self.get_at:
                found += [d async for d in self._list_get(ask, whole, rows[:items], tool, self.get_at[tool.path])]
            if filters and rows:
                found += [
                    Disagreement(kind, tool.name, what, calls) async for kind, what, calls in _relations(ask, whole, rows, tool)
                ]
                found += [d async for d in _filters(ask, whole, rows, tool)]
                found += [d async for d in _parents(ask, whole, rows, tool, self._known)]
                told = relations.total(answer.content, rows, whole) if _is_whole(whole, tool, rows) else []
                found += [Disagreement(kind, tool.name, what, calls) for kind, what, calls in told]
        return found

    async def _list_get(self, ask: Ask, whole: ToolCall, rows: list[Schema], tool: Tool, get: Tool) -> Any:
        (argument,) = _required(get)
        for row in rows:
            key = next((row[name] for name in ("id", argument, f"{resource_of(tool.path)}_id") if name in row), None)
            if key is None:
                return
            call = ToolCall(tool=get.name, arguments={argument: key})
            answer = await ask(call)
            if answer.kind == "invalid_arguments":
                return
            if answer.kind != "ok":
                yield Disagreement(
                    "list_get", get.name, f"{tool.name} lists {key!r}, and {get.name} answers {answer.kind} for it", [whole, call]
                )
                return
            one = _object(answer.content, row)
            if (what := relations.miscounted(one)) is not None:
                yield Disagreement("page", get.name, f"for {key!r} it says {what}", [call])
                return
            wrong = [name for name in row if name in one and _plain(row[name]) and _plain(one[name]) and row[name] != one[name]]
            if wrong:
                what = f"for {key!r} {tool.name} says {wrong[0]} = {row[wrong[0]]!r}, {get.name} says {one[wrong[0]]!r}"
                yield Disagreement("list_get", get.name, what, [whole, call])
                return


async def _relations(ask: Ask, whole: ToolCall, rows: list[Schema], tool: Tool) -> Any:
    properties = _properties(tool)
    async for told in relations.pages(ask, tool, rows, properties):
        yield told
    all_seen = _is_whole(whole, tool, rows)
    async for told in listing.kept(ask, whole, rows, tool, all_seen=all_seen):
        yield told
    if all_seen:
        for name, values in ((name, choices_of(schema)) for name, schema in properties.items()):
            if values and name in rows[0]:
                async for told in relations.choices(ask, whole, rows, name, values):
                    yield told


async def _filters(ask: Ask, whole: ToolCall, rows: list[Schema], tool: Tool) -> Any:
    for name, schema in _properties(tool).items():
        field, bound = _filtered_field(name, rows[0])
        if field is None or name in _PAGES or _is_array(schema):
            continue
        values = list(dict.fromkeys(row[field] for row in rows if _plain(row.get(field)) and row.get(field) not in (None, False)))
        for value in values[:_VALUES]:
            call = ToolCall(tool=tool.name, arguments={**whole.arguments, name: value})
            answer = await ask(call)
            chosen = rows_of(answer.content) if answer.kind == "ok" else None
            if chosen is None:
                break
            if (what := _breaks(field, bound, value, rows, chosen, whole_seen=_is_whole(whole, tool, rows))) is not None:
                yield Disagreement("filter", tool.name, f"with {name} = {value!r} it {what}", [whole, call])
                break


async def _parents(ask: Ask, whole: ToolCall, rows: list[Schema], tool: Tool, known: Callable[[str], list[Any]]) -> Any:
    """`stage_id` gives just the rows of one stage, where rows tell their stage by name."""
    for name in _properties(tool):
        stem = name.removesuffix("_id")
        field = next((f for f in (stem, f"{stem}_name", f"{stem}_title") if isinstance(rows[0].get(f), str)), None)
        if stem == name or name in rows[0] or field is None or not _is_whole(whole, tool, rows):
            continue
        for value in known(name)[:_VALUES]:
            call = ToolCall(tool=tool.name, arguments={**whole.arguments, name: value})
            answer = await ask(call)
            chosen = (rows_of(answer.content) if answer.kind == "ok" else None) or []
            names = {row.get(field) for row in chosen}
            wanted = sum(row.get(field) in names for row in rows)
            if len(names) > 1 or (names and len(chosen) != wanted):
                what = (
                    f"with {name} = {value!r} it gives {len(chosen)} rows of {len(names)} {stem}s; {wanted} rows have these names"
                )
                yield Disagreement("filter", tool.name, what, [whole, call])
                break


def _filtered_field(name: str, row: Schema) -> tuple[str | None, int]:
    """The field that a parameter filters, and whether its value is the least (1), the most (-1) or the only one (0)."""
    if name in row:
        return name, 0
    for before, after, bound in _BOUNDS:
        if name.startswith(before) and name.endswith(after) and (before or after):
            stem = name.removeprefix(before).removesuffix(after)
            if isinstance(row.get(stem), (int, float)) and not isinstance(row.get(stem), bool):
                return stem, bound
    return None, 0


def _breaks(field: str, bound: int, value: Any, rows: list[Schema], chosen: list[Schema], *, whole_seen: bool) -> str | None:
    if bound:
        beyond = [row[field] for row in chosen if isinstance(row.get(field), (int, float)) and (row[field] - value) * bound < 0]
        if beyond:
            return f"gives a row with {field} = {beyond[0]!r}"
        numbers = [row[field] for row in rows if isinstance(row.get(field), (int, float))]
        wanted = sum((number - value) * bound >= 0 for number in numbers)
        return f"gives {len(chosen)} rows of {wanted}" if whole_seen and len(chosen) < wanted else None
    text = isinstance(value, str)
    other = [row.get(field) for row in chosen if not (_contains(row.get(field), value) if text else row.get(field) == value)]
    if other:
        return f"gives a row with {field} = {other[0]!r}"
    wanted = sum(row.get(field) == value for row in rows)
    if whole_seen and len(chosen) < wanted:
        return f"gives {len(chosen)} rows, though {wanted} of the rows without it have that value"
    return None


def _contains(field: Any, value: str) -> bool:
    return isinstance(field, str) and value.lower() in field.lower()


def _is_whole(whole: ToolCall, tool: Tool, rows: list[Schema]) -> bool:
    """True if the list was surely not cut to a page."""
    limits = [whole.arguments.get(name) or _properties(tool)[name].get("default") for name in LIMITS if name in _properties(tool)]
    return all(isinstance(limit, int) and len(rows) < limit for limit in limits)


def _object(content: Any, row: Schema) -> Schema:
    """The object that a get answers, which may stand in an envelope."""
    if not isinstance(content, dict):
        return {}
    if "id" not in content and "id" in row:
        inner = [value for value in content.values() if isinstance(value, dict) and value.get("id") == row["id"]]
        return inner[0] if len(inner) == 1 else content
    return content


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


def _properties(tool: Tool) -> dict[str, Schema]:
    found: Any = tool.input_schema.get("properties", {})
    return found  # type: ignore[no-any-return]


def _required(tool: Tool) -> list[str]:
    found: Any = tool.input_schema.get("required", [])
    return list(found)


def _is_array(schema: Schema) -> bool:
    return "array" in {schema.get("type"), *(option.get("type") for option in schema.get("anyOf") or ())}


def _most(tool: Tool) -> dict[str, Any]:
    """Arguments that ask for as long a list as may be had."""
    found = {}
    for name in LIMITS:
        schema = _properties(tool).get(name)
        most = _maximum(schema) if schema else None
        if most is not None:
            found[name] = most
    return found


def _maximum(schema: Schema) -> int | None:
    choices: Iterator[Any] = (option.get("maximum") for option in [schema, *(schema.get("anyOf") or ())])
    return next((int(most) for most in choices if most is not None), None)
