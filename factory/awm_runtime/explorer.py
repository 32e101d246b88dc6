"""One explorer in one confined process: it calls, watches, compares, and shrinks what it finds to the calls that are needed."""

import random
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from awm_runtime import canonical, clock, dump
from awm_runtime.agreement import Disagreement, Readers
from awm_runtime.arguments import Maker, Pool, resource_of
from awm_runtime.binding import Slot, SlotBroken
from awm_runtime.contract import ExploreReply, ExploreRequest, Tool, ToolCall, ToolResult, ToolUse, Violation, WriteSample
from awm_runtime.references import filled_in
from awm_runtime.upkeep import Upkeep
from awm_runtime.watched import Watched

DEPTH: Final = 8
"""Calls of one run."""
PIECE: Final = 60
"""Calls that one piece of work makes; a piece that dies costs only these."""
_REPLAYS: Final = 60
"""Replays that shrinking one fault may take."""
_ASKS_ONLY: Final = re.compile(
    r"(?:^|_)(?:search|list|get|find|fetch|check|preview|calculate|compute|validate|export|estimate|quote|lookup|query|count|compare|"
    r"simulate|verify|suggest|login|track|download|generate)(?:_|$)"
)
"""Verbs of tools that may well say yes and change nothing."""
_SCRIPTED: Final = 0.4
"""Share of runs that begin with a part of a script."""
_VARIED: Final = 0.6
"""Share of scripts whose last call has an argument of chance's."""
_SWEPT: Final = 40
"""Rows on which a reading tool is tried."""
_AGREE: Final = 0.15
"""Share of runs at whose end lists and gets are compared."""


@dataclass
class _Fault:
    kind: str
    tool: str
    what: str
    shown_by: list[ToolCall] = field(default_factory=list)
    """Reading calls that show it after the sequence."""


class Explorer:
    def __init__(self, env: Watched, request: ExploreRequest, note: Callable[[list[ToolCall]], None]) -> None:
        """`note` is told each sequence before its last call is made."""
        self.env, self.request, self.note = env, request, note
        self.tools = [served.tool for served in env.derived.tools]
        self.by_name = {tool.name: tool for tool in self.tools}
        self.readers = Readers(self.tools, lambda name: self.pool.named(name))
        self.start = canonical.Start(env.seed, clock.parse_world_time(request.source.world_time))
        self.pool = Pool()
        self.known: Pool | None = None
        """What every list shows at the start."""
        self.uses: dict[str, ToolUse] = {}
        self._read: tuple[bytes, canonical.Contents] = env.seed, self.start.rows
        self.upkeep = Upkeep(self.start, request.invariants)
        self.alone = env.holds_connection

    async def piece(self, index: int) -> ExploreReply:
        """One share of the budget, on its own seed, so that what a piece finds does not depend on those before."""
        if self.known is None:
            for tool in self.readers.lists:
                await self._warm_up(tool)
            self.known = self.pool
        self.pool, self.uses = self.known.copy(), {}
        maker = Maker(self.start, self.pool, self.start.world_time, self.request.seed * 1009 + index)  # type: ignore[arg-type]
        faults: list[tuple[_Fault, list[ToolCall]]] = []
        writes: list[WriteSample] = []
        if index == 0:
            faults += [
                (_Fault("invariant", "", f"it does not hold that {s}: {why}"), []) for s, why in self.upkeep.broken.items()
            ]
            faults += [(fault, []) for fault in await self._agreement(None)]
            faults += await self._sweep(maker)
        calls = 0
        while calls < min(PIECE, self.request.calls):
            sequence, found, samples = await self._run(maker, index)
            calls += max(1, len(sequence))
            faults += found
            writes += samples
        kept: dict[tuple[str, str, str], tuple[_Fault, list[ToolCall]]] = {}
        for fault, sequence in sorted(faults, key=lambda item: len(item[1])):
            said = fault.what if fault.kind == "invariant" else ""
            kept.setdefault((fault.kind, fault.tool, said), (fault, sequence))
        violations = [await self._shrunk(fault, sequence) for fault, sequence in kept.values()]
        return ExploreReply(
            calls=calls,
            uses=self.uses,
            violations=[violation for violation in violations if violation is not None],
            writes=writes,
            repeats=[],
            reset_identical=True,
        )

    async def _warm_up(self, tool: Tool) -> None:
        """Every list once, so that ids are known before the first run."""
        slot = self.env.new_slot()
        played = await self.env.play(slot, None, tool.name, {}, self.request.seed, 1)
        slot.close()
        if played.outcome.kind == "ok":
            self.pool.learn(played.outcome.result().content, resource_of(tool.path))

    async def _sweep(self, maker: Maker) -> list[tuple[_Fault, list[ToolCall]]]:
        """Every tool that reads one row, on every row that is known."""
        faults: list[tuple[_Fault, list[ToolCall]]] = []
        for tool in self.tools:
            required: Any = tool.input_schema.get("required", [])
            if tool.method != "GET" or len(required) != 1 or "{" + required[0] + "}" not in tool.path:
                continue
            for value in maker.known(required[0])[:_SWEPT]:
                call = ToolCall(tool=tool.name, arguments={required[0]: value})
                slot = self.env.new_slot()
                _, _, found = await self.observe(slot, None, call, 1)
                slot.close()
                faults += [(fault, [call]) for fault in found]
        return faults

    async def _run(
        self, maker: Maker, index: int
    ) -> tuple[list[ToolCall], list[tuple[_Fault, list[ToolCall]]], list[WriteSample]]:
        slot, state = self.env.new_slot(), None
        sequence: list[ToolCall] = []
        faults: list[tuple[_Fault, list[ToolCall]]] = []
        writes: list[WriteSample] = []
        script, results = self._script(maker.random), list[ToolResult]()
        maker.recent = Pool()
        for step in range(1, len(script) + DEPTH + 1):
            call = self._scripted(script, results, maker) or self._random(maker)
            tool = self.by_name[call.tool]
            sequence.append(call)
            self.note(sequence)
            try:
                content, result, found = await self.observe(slot, state, call, step)
            except SlotBroken as error:
                faults.append((_Fault("exception", tool.name, f"it leaves the database locked: {error}"), list(sequence)))
                self._count(tool.name, "internal", changed=False)
                return sequence, faults, writes
            results.append(result)
            faults += [(fault, list(sequence)) for fault in found]
            self._count(tool.name, result.kind, changed=content is not None)
            if result.kind == "ok":
                self.pool.learn(result.content, resource_of(tool.path))
                if content is not None:
                    maker.recent.learn(result.content, resource_of(tool.path))
                use = self.uses[tool.name]
                if tool.method != "GET" and not _ASKS_ONLY.search(tool.name.lower()) and content is None and not use.changed:
                    faults.append(
                        (_Fault("no_effect", tool.name, "it answers that all went well and changes nothing"), list(sequence))
                    )
                if content is not None and state is None:
                    writes.append(WriteSample(calls=[call], tables=self._changed_tables(content)))
            state = content or state
        slot.close()
        if state is not None and maker.random.random() < _AGREE:
            faults += [(fault, list(sequence)) for fault in await self._agreement(state, maker.random)]
        return sequence, faults, writes

    def _script(self, chance: random.Random) -> list[ToolCall]:
        """The beginning of a script, for some runs; rather one that ends with a tool which has not worked yet."""
        if not self.request.scripts or chance.random() > _SCRIPTED:
            return []
        unseen = [
            script[: place + 1]
            for script in self.request.scripts
            for place, call in enumerate(script)
            if (tool := self.by_name.get(call.tool)) and tool.method != "GET" and not self.uses.get(call.tool, ToolUse()).ok
        ]
        if unseen and chance.random() < _VARIED:
            return chance.choice(unseen)
        script = chance.choice(self.request.scripts)
        return script[: chance.randint(1, len(script))] if script else []

    def _scripted(self, script: list[ToolCall], results: list[ToolResult], maker: Maker) -> ToolCall | None:
        """The script's next call; the last one with one argument of chance's. None behind its end, or where it can't go on."""
        place = len(results)
        if place >= len(script) or script[place].tool not in self.by_name:
            return None
        try:
            arguments = filled_in(script[place].arguments, results)
        except LookupError:
            return None
        if place == len(script) - 1 and arguments and maker.random.random() < _VARIED:
            schema: Any = self.by_name[script[place].tool].input_schema
            name = maker.random.choice(sorted(arguments))
            value, other = arguments[name], maker.value(schema.get("properties", {}).get(name, {}), name)
            if isinstance(value, int) and not isinstance(value, bool):
                other = maker.random.choice([value + 1, value - 1, value * 2, other])  # the edges of what is allowed
            arguments = {**arguments, name: other}
        return ToolCall(tool=script[place].tool, arguments=arguments)

    def _random(self, maker: Maker) -> ToolCall:
        tool = self._choose(maker.random)
        return ToolCall(tool=tool.name, arguments=maker.arguments(tool.input_schema))

    def _choose(self, chance: random.Random) -> Tool:
        """Tools that have worked least come most."""
        weights = []
        for tool in self.tools:
            use = self.uses.get(tool.name, ToolUse())
            weights.append((3.0 if tool.method != "GET" else 1.0) / (1 + use.ok * 2 + use.calls / 3))
        return chance.choices(self.tools, weights)[0]

    def _count(self, name: str, kind: str, *, changed: bool) -> None:
        use = self.uses.get(name, ToolUse())
        self.uses[name] = ToolUse(
            calls=use.calls + 1,
            ok=use.ok + (kind == "ok"),
            refused=use.refused + (kind not in ("ok", "internal")),
            internal=use.internal + (kind == "internal"),
            changed=use.changed + changed,
        )

    async def observe(
        self, slot: Slot, state: bytes | None, call: ToolCall, step: int
    ) -> tuple[bytes | None, ToolResult, list[_Fault]]:
        """One call and the rules it breaks; the content where it changed something. Raises SlotBroken."""
        tool = self.by_name[call.tool]
        self.env.take_left()
        signal.setitimer(signal.ITIMER_REAL, self.request.call_limit)
        played = await self.env.play(slot, state, call.tool, call.arguments, self.request.seed, step)
        result, before = played.outcome.result(), state or self.env.seed
        content = played.content if played.content is not None and played.content != before else None
        faults = []
        if result.kind == "internal":
            faults.append(_Fault("exception", call.tool, _message(result)))
        elif result.kind in ("constraint", "not_found") and result.status is None:
            faults.append(
                _Fault(
                    "unhandled",
                    call.tool,
                    f"an exception gets out, which only the runtime makes an answer of: {_message(result)}",
                )
            )
        signal.setitimer(signal.ITIMER_REAL, 6 * self.request.call_limit)
        left = self.env.take_left()
        if left is not None and (tables := self._differ(before, left)):
            what = f"it fails ({result.kind}: {_message(result)}) and leaves changes behind in {', '.join(tables)}"
            faults.append(_Fault("failed_call_writes", call.tool, what))
        if content is not None:
            tables = self._differ(before, content)
            if not tables:
                content = None
            elif tool.method == "GET":
                faults.append(_Fault("read_writes", call.tool, f"a reading tool changes {', '.join(tables)}"))
        if content is not None:
            rows = self._contents(content)
            faults += [_Fault(kind, call.tool, what) for kind, what in self.upkeep.broken_by(slot.anchor, before, rows)]
            if (fault := await self._beyond_reach(tool, call, state, step)) is not None:
                faults.append(fault)
        return content, result, faults

    def _differ(self, before: bytes, after: bytes) -> list[str]:
        old, new = self._contents(before), self._contents(after)
        return [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]

    def _contents(self, database: bytes) -> canonical.Contents:
        """The next call starts where the last one ended, so what was read last is kept."""
        if database == self.env.seed:
            return self.start.rows
        if self._read[0] != database:
            self._read = database, canonical.contents(dump.open_bytes(database))
        return self._read[1]

    def _changed_tables(self, content: bytes) -> list[str]:
        return self._differ(self.env.seed, content)

    async def _beyond_reach(self, tool: Tool, call: ToolCall, state: bytes | None, step: int) -> _Fault | None:
        """A row that may be changed, though its own reading tool refuses to show it."""
        place = tool.path.find("}")
        get = self.readers.get_at.get(tool.path[:place].rpartition("/{")[0]) if place > 0 else None
        if get is None or tool.method == "GET" or self.uses.get(tool.name, ToolUse()).changed > 6:
            return None
        argument = tool.path[:place].rpartition("{")[2]
        (wanted,) = list(get.input_schema["required"])  # type: ignore[arg-type]
        if argument not in call.arguments:
            return None
        slot = self.env.new_slot()
        if state is not None:
            slot.load_bytes(state)
        played = await self.env.play(slot, state, get.name, {str(wanted): call.arguments[argument]}, self.request.seed, step)
        slot.close()
        if played.outcome.kind not in ("not_found", "refused"):
            return None
        said = _message(played.outcome.result())
        what = f"it changes {argument} {call.arguments[argument]!r}, which {get.name} refuses to show ({said})"
        return _Fault("reach", tool.name, what)

    async def _agreement(self, state: bytes | None, chance: random.Random | None = None) -> list[_Fault]:
        """`chance` picks the one list that is looked at; without it all are."""

        async def ask(call: ToolCall) -> ToolResult:
            slot = self.env.new_slot()
            if state is not None:
                slot.load_bytes(state)
            played = await self.env.play(slot, state, call.tool, call.arguments, self.request.seed, DEPTH + 1)
            slot.close()
            return played.outcome.result()

        lists = [tool for tool in self.readers.lists if tool.path in self.readers.get_at]
        chosen = [chance.choice(lists)] if chance and lists else lists if state is not None else self.readers.lists
        found: list[Disagreement] = await self.readers.disagreements(
            ask, chosen, 15 if state is None else 3, filters=state is None
        )
        return [_Fault(one.kind, one.tool, one.what, one.calls) for one in found]

    async def _shrunk(self, fault: _Fault, sequence: list[ToolCall]) -> Violation | None:
        """The fault by fewer calls; None for one that does not come again from a fresh episode."""
        left = _REPLAYS
        if sequence and fault.kind != "no_effect" and await self._shows(sequence, fault) is None:
            return None
        if fault.kind == "no_effect":
            sequence = sequence[-1:] if await self._answers_ok(sequence[-1:]) else sequence
        place = 0
        while sequence and place < len(sequence) - (0 if fault.shown_by else 1) and left > 0 and fault.kind != "no_effect":
            shorter = sequence[:place] + sequence[place + 1 :]
            left -= 1
            seen = await self._shows(shorter, fault)
            if seen is not None:
                sequence, fault = shorter, seen
            else:
                place += 1
        return Violation.model_validate(
            {"kind": fault.kind, "tool": fault.tool, "what": fault.what, "calls": [*sequence, *fault.shown_by]}
        )

    async def _answers_ok(self, sequence: list[ToolCall]) -> bool:
        slot = self.env.new_slot()
        played = await self.env.play(slot, None, sequence[0].tool, sequence[0].arguments, self.request.seed, 1)
        slot.close()
        return played.outcome.kind == "ok"

    async def _shows(self, sequence: list[ToolCall], fault: _Fault) -> _Fault | None:
        slot, state = self.env.new_slot(), None
        found: list[_Fault] = []
        try:
            for step, call in enumerate(sequence, 1):
                content, _, found = await self.observe(slot, state, call, step)
                state = content or state
        except SlotBroken as error:
            return _Fault("exception", fault.tool, f"it leaves the database locked: {error}") if "locked" in fault.what else None
        finally:
            slot.close()
        if fault.shown_by:
            found = await self._agreement(state)
        alike = [one for one in found if (one.kind, one.tool) == (fault.kind, fault.tool)]
        return next((one for one in alike if one.what == fault.what or fault.kind != "invariant"), None)


def _message(result: ToolResult) -> str:
    error: Any = result.content.get("error", {}) if isinstance(result.content, dict) else {}
    text = str(error.get("message", ""))[:300] if isinstance(error, dict) else ""
    return re.sub(r" at 0x[0-9a-f]+|\s*\(Background on this error at: \S+\)?", "", text)
