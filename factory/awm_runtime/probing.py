"""What chance hardly comes by, asked of one writing tool after the other when an exploration has shown how each is called well.

Amounts beside those that stand in the rows a call is about, spans the wrong way round, the limits that refusals name; and more
tries for a tool that has not worked yet, or has worked and changed nothing.
"""

import sqlite3
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any, Final

from pydantic import BaseModel

from awm_runtime import dump
from awm_runtime.arguments import Maker, table_of
from awm_runtime.binding import SlotBroken
from awm_runtime.contract import (
    ExploreReply,
    ExploreRequest,
    RefusalSample,
    Tool,
    ToolCall,
    ToolResult,
    ToolUse,
    Violation,
    WriteSample,
)
from awm_runtime.errands import moved, numbers
from awm_runtime.explorer import ASKS_ONLY, IDLE, Explorer
from awm_runtime.limits import Limits, Refused, names_limit
from awm_runtime.listing import choices_of
from awm_runtime.upkeep import AFTER, BEFORE
from awm_runtime.watching import Fault

_COLUMNS: Final = 3
"""Amounts of the rows that a call names, beside which one of its own is tried."""
_MET: Final = 4
"""Wordings that are met once more."""
_PATTERNS: Final = 3
"""Wordings of refusals, of one tool, whose limits are tried."""
_TRIED: Final = 8
"""More tries for a tool that has not shown what it does."""
_SPANS: Final = 3
_CHOICES: Final = 2
SECONDS: Final = 60.0
"""What all that one tool is asked may take, besides a call that hangs."""
_SEEDS: Final = 10_000
"""Where the seeds begin, behind those of the exploration."""
_SWOLLEN: Final = 1000
"""By what an amount of a row is multiplied to meet the limit on it."""


class Order(BaseModel):
    """What an exploration has found out."""

    request: ExploreRequest
    tools: list[str]
    """One a piece; those that only read are asked nothing."""
    samples: list[WriteSample]
    refusals: list[RefusalSample]
    uses: dict[str, ToolUse]


class Prober:
    def __init__(self, explorer: Explorer, order: Order) -> None:
        self._explorer, self._order = explorer, order
        self._env, self._start = explorer.env, explorer.start
        layouts = dump.layouts(explorer.start.connection)
        paths = {tool.name: tool.path for tool in explorer.tools}
        self._limits = Limits(layouts, explorer.env.seed, self._try, paths)
        self._samples = {sample.calls[-1].tool: sample.calls[-1] for sample in reversed(order.samples)}
        self._found: list[tuple[Fault, list[ToolCall]]] = []
        self._refused: Refused | None = None
        """What limits are being tried with."""

    async def piece(self, index: int) -> ExploreReply:
        """All that one tool is asked."""
        explorer, tool = self._explorer, self._explorer.by_name[self._order.tools[index]]
        if tool.method == "GET":
            return _reply([], {})
        maker = await explorer.begin(_SEEDS + index)
        self._found = []
        met = [sample.calls for sample in self._order.refusals if sample.calls[-1].tool == tool.name]
        refusals = [await self._met(calls) for calls in sorted(met, key=len)[:_MET]]
        sample = self._samples.get(tool.name)
        if sample is not None:
            refusals += [await self._asked(call) for call in self._beside_rows(sample)]
            await self._twice(tool, sample)
            chosen = [*_otherwise_chosen(tool, sample), sample]
            refusals += [await self._asked(call, state, None) for state in self._swollen(tool, sample) for call in chosen]
        for call in self._turned_round(tool, maker):
            await self._asked(call, spans=True)
        if not self._order.uses.get(tool.name, ToolUse()).changed and not ASKS_ONLY.search(tool.name.lower()):
            for call in self._insisting(tool, maker):
                await self._asked(call)
        telling = {one.pattern: one for one in reversed(refusals) if one is not None}
        for self._refused in list(telling.values())[-_PATTERNS:]:
            what = await self._limits.unkept(self._refused)
            if what is not None:
                self._found.append((Fault("limit", tool.name, what), [*(self._refused.before or ()), self._refused.call]))
        return _reply(_violations(self._found), explorer.uses)

    async def _met(self, calls: list[ToolCall]) -> Refused | None:
        """The refusal that a sequence ends with; of its last call alone, where that is refused from the start."""
        last = calls[-1]
        if (alone := await self._asked(last)) is not None or len(calls) == 1:
            return alone
        slot, state = self._env.new_slot(), None
        try:
            for step, call in enumerate(calls[:-1], 1):
                played = await self._env.play(slot, state, call.tool, call.arguments, self._order.request.seed, step)
                state = played.content or state
        except SlotBroken:
            return None
        finally:
            slot.close()
        return await self._asked(last, state, tuple(calls[:-1]))

    async def _twice(self, tool: Tool, sample: ToolCall) -> None:
        """An act upon a row, and the same once more."""
        state, _ = await self._watched(None, sample, ())
        if state is not None:
            after, result = await self._watched(state, sample, (sample,))
            told = self._explorer.watcher.done_again(tool, sample, result, state, after)
            if told is not None:
                self._found.append((Fault("again", tool.name, told), [sample, sample]))

    async def _asked(
        self, call: ToolCall, state: bytes | None = None, before: tuple[ToolCall, ...] | None = (), *, spans: bool = False
    ) -> Refused | None:
        """One call, and the refusal where it is one."""
        content, result = await self._watched(state, call, before)
        if before is not None:
            self._explorer.count(call.tool, result.kind, changed=content is not None)
            if content is None and result.kind == "ok" and not ASKS_ONLY.search(call.tool.lower()):
                what = "it answers that all went well and changes nothing"
                self._found += [(Fault(kind, call.tool, what), [call]) for kind in IDLE]
        if spans and content is not None:
            (low, high), *_ = _spans(call.arguments)
            what = f"it takes {low} {call.arguments[low]!r} with {high} {call.arguments[high]!r}"
            self._found.append((Fault("order", call.tool, what), [call]))
        return Refused(state, call, result, before) if names_limit(call, result) else None

    async def _try(self, state: bytes | None, call: ToolCall) -> ToolResult:
        """For limits."""
        assert self._refused is not None
        _, result = await self._watched(state, call, self._refused.before if state is self._refused.state else None)
        return result

    async def _watched(
        self, state: bytes | None, call: ToolCall, before: tuple[ToolCall, ...] | None
    ) -> tuple[bytes | None, ToolResult]:
        """One call on a state; what rules it breaks counts only where calls led there."""
        explorer, slot = self._explorer, self._env.new_slot()
        sequence = [*(before or ()), call]
        explorer.note(sequence)
        try:
            if state is not None:
                slot.load_bytes(state)
            content, result, faults = await explorer.watcher.observe(slot, state, call, len(sequence))
        except SlotBroken:
            return None, ToolResult(is_error=True, kind="internal", status=None, content=None)
        finally:
            slot.close()
        if before is not None:
            self._found += [(fault, sequence) for fault in faults]
        return content, result

    def _beside_rows(self, sample: ToolCall) -> Iterator[ToolCall]:
        """The call with each of its amounts one above an amount of the rows that it names."""
        values: list[tuple[str, int]] = []
        for name, key in sample.arguments.items():
            table = table_of(name, self._start.tables) if name.lower().endswith("id") else None
            row = self._start.rows[table].get((key,)) if table is not None else None
            if table is None or row is None:
                continue
            columns = self._start.tables[table].columns
            values += [(c, v) for c, v in zip(columns, row, strict=False) if type(v) is int and not c.lower().endswith("id")]
        for path in numbers(sample.arguments):
            last = str(path[0]).rpartition("_")[2]
            alike = sorted(values, key=lambda pair: (last not in pair[0].split("_"), pair[0]))[:_COLUMNS]
            for value in dict.fromkeys(value for _, value in alike):
                given = _at(sample.arguments, path)
                arguments = moved(sample.arguments, path, value + 1 - given) if type(given) is int else None
                if arguments is not None and value + 1 != given:
                    yield ToolCall(tool=sample.tool, arguments=arguments)

    def _swollen(self, tool: Tool, sample: ToolCall) -> Iterator[bytes]:
        """The start with an amount of the path's row so large that no limit on it lets it through."""
        argument = tool.path.partition("{")[2].partition("}")[0]
        table = table_of(argument, self._start.tables)
        key = sample.arguments.get(argument)
        row = self._start.rows[table].get((key,)) if table is not None else None
        if table is None or row is None:
            return
        layout = next(one for one in dump.layouts(self._start.connection) if one.name == table)
        amounts = [
            column
            for column, value in zip(self._start.tables[table].columns, row, strict=False)
            if type(value) in (int, float) and value > 1 and column not in layout.key and not column.lower().endswith("id")
        ]
        for column in amounts[:_COLUMNS]:
            changed = dump.open_bytes(self._env.seed)
            name = dump.quote(column)
            query = f"UPDATE {dump.quote(table)} SET {name} = {name} * {_SWOLLEN} WHERE {dump.quote(layout.key[0])} = ?"
            try:
                changed.execute(query, (key,))
            except sqlite3.Error:
                continue
            yield changed.serialize()

    def _turned_round(self, tool: Tool, maker: Maker) -> Iterator[ToolCall]:
        """The call with a span that ends before it begins."""
        properties: Any = tool.input_schema.get("properties", {})
        pairs = list(_spans(properties))
        sample = self._samples.get(tool.name)
        for low, high in pairs[:1]:
            tries = [dict(sample.arguments)] if sample is not None else []
            tries += [maker.arguments(tool.input_schema) for _ in range(_SPANS)]
            for arguments in tries:
                arguments = {**{name: maker.value(properties[name], name) for name in (low, high)}, **arguments}
                day = _day(arguments[low])
                if day is not None and isinstance(arguments[high], str):
                    before = (day - timedelta(days=1)).isoformat() + str(arguments[low])[10:]
                    yield ToolCall(tool=tool.name, arguments={**arguments, high: before})

    def _insisting(self, tool: Tool, maker: Maker) -> Iterator[ToolCall]:
        """The tool on each row that is known, or with other arguments of chance's."""
        argument = tool.path.partition("{")[2].partition("}")[0]
        known = maker.known(argument) if argument else []
        for place in range(max(len(known), _TRIED) if known else _TRIED):
            if place >= 3 * _TRIED:
                return
            arguments = maker.arguments(tool.input_schema)
            if known:
                arguments[argument] = known[place % len(known)]
            yield ToolCall(tool=tool.name, arguments=arguments)


def _otherwise_chosen(tool: Tool, sample: ToolCall) -> Iterator[ToolCall]:
    """The call with each other member of its first enumeration: a limit on what is approved lets every rejection through."""
    properties: Any = tool.input_schema.get("properties", {})
    for name, given in sample.arguments.items():
        if given in (choices := choices_of(properties.get(name, {}))):
            others = [choice for choice in choices if choice != given][:_CHOICES]
            yield from (ToolCall(tool=sample.tool, arguments={**sample.arguments, name: other}) for other in others)
            return


def _reply(violations: list[Violation], uses: dict[str, ToolUse]) -> ExploreReply:
    return ExploreReply(calls=0, uses=uses, violations=violations, writes=[], repeats=[], reset_identical=True)


def _violations(found: list[tuple[Fault, list[ToolCall]]]) -> list[Violation]:
    kept: dict[tuple[str, str, str], Violation] = {}
    for fault, calls in found:
        said = fault.what if fault.kind == "invariant" else ""
        told = {"kind": fault.kind, "tool": fault.tool, "what": fault.what, "calls": [*calls, *fault.shown_by]}
        kept.setdefault((fault.kind, fault.tool, said), Violation.model_validate(told))
    return list(kept.values())


def _spans(arguments: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Names of arguments that are the two ends of one thing: `starts_on` and `ends_on`."""
    words = {name: set(name.lower().split("_")) for name in arguments}
    for low, one in words.items():
        for high, other in words.items():
            if one & BEFORE and other & AFTER and one - BEFORE == other - AFTER:
                yield low, high


def _day(value: Any) -> date | None:
    try:
        return date.fromisoformat(str(value)[:10])
    except ValueError:
        return None


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value
