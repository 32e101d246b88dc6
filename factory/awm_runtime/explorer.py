"""One explorer in one confined process: it calls, watches, compares, and shrinks what it finds to the calls that are needed."""

import random
import re
from collections.abc import Callable
from typing import Any, Final

from awm_runtime import canonical, clock, limits
from awm_runtime.agreement import Disagreement, Readers
from awm_runtime.arguments import Maker, Pool, resource_of
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
from awm_runtime.errands import Errands, moved
from awm_runtime.references import filled_in
from awm_runtime.watched import Watched
from awm_runtime.watching import Fault, Watcher

DEPTH: Final = 8
"""Calls of one run."""
PIECE: Final = 60
"""Calls that one piece of work makes; a piece that dies costs only these."""
_REPLAYS: Final = 60
"""Replays that shrinking one fault may take."""
ASKS_ONLY: Final = re.compile(
    r"(?:^|_)(?:search|list|get|find|fetch|check|preview|calculate|compute|validate|export|estimate|quote|lookup|query|count|compare|"
    r"simulate|verify|suggest|login|track|download|generate)(?:_|$)"
)
"""Verbs of tools that may well say yes and change nothing."""
IDLE: Final = ("no_effect", "idle")
_LOOKED_AT: Final = 3
_SWEPT: Final = 40
"""Rows on which a reading tool is tried."""
_AGREE: Final = 0.15
"""Share of runs at whose end lists and gets are compared."""


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
        self.watcher = Watcher(env, request, self.start, self.readers, self.uses)

    async def begin(self, index: int) -> Maker:
        """Forget all but what every list shows at the start; the maker has a seed of its own."""
        if self.known is None:
            for tool in self.readers.lists:
                await self._warm_up(tool)
            self.known = self.pool
            for tool in self.tools:
                await self._look_around(tool)
        self.pool, self.uses = self.known.copy(), {}
        self.errands = Errands(self.tools, self.request.scripts, self.uses)
        self.watcher.uses = self.uses
        self.repeated: set[str] = set()
        self.refusals: dict[tuple[str, str], list[ToolCall]] = {}
        return Maker(self.start, self.pool, self.start.world_time, self.request.seed * 1009 + index)  # type: ignore[arg-type]

    async def piece(self, index: int) -> ExploreReply:
        """One share of the budget, on its own seed, so that what a piece finds does not depend on those before."""
        maker = await self.begin(index)
        faults: list[tuple[Fault, list[ToolCall]]] = []
        writes: list[WriteSample] = []
        if index == 0:
            faults += [
                (Fault("invariant", "", f"it does not hold that {s}: {why}"), []) for s, why in self.watcher.upkeep.broken.items()
            ]
            faults += [(fault, []) for fault in await self._agreement(None)]
            faults += await self._sweep(maker)
        pieces = max(1, -(-self.request.calls // PIECE))
        faults += await self._edges(index, pieces)
        calls = 0
        while calls < min(PIECE, self.request.calls):
            sequence, found, samples = await self._run(maker, index)
            calls += max(1, len(sequence))
            faults += found
            writes += samples
        kept: dict[tuple[str, str, str], tuple[Fault, list[ToolCall]]] = {}
        for fault, sequence in sorted(faults, key=lambda item: len(item[1])):
            said = fault.what if fault.kind == "invariant" else ""
            kept.setdefault((fault.kind, fault.tool, said), (fault, sequence))
        violations = [await self._shrunk(fault, sequence) for fault, sequence in kept.values()]
        return ExploreReply(
            calls=calls,
            uses=self.uses,
            violations=[violation for violation in violations if violation is not None],
            writes=writes,
            refusals=[RefusalSample(calls=calls, words=words) for (_, words), calls in self.refusals.items()],
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

    async def _look_around(self, tool: Tool) -> None:
        """Which amounts are negative from the start, in lists and in a few rows."""
        required: Any = tool.input_schema.get("required", [])
        if tool.method != "GET" or len(required) > 1:
            return
        values = self.pool.named(required[0])[:_LOOKED_AT] if required else [None]
        for arguments in [{required[0]: value} if required else {} for value in values]:
            slot = self.env.new_slot()
            played = await self.env.play(slot, None, tool.name, arguments, self.request.seed, 1)
            slot.close()
            if played.outcome.kind == "ok":
                self.watcher.signs.learn(played.outcome.result().content)

    async def _edges(self, index: int, pieces: int) -> list[tuple[Fault, list[ToolCall]]]:
        """This piece's share of the numbers in scripts, each one higher and one lower than it goes well with."""
        faults: list[tuple[Fault, list[ToolCall]]] = []
        for script, path, step in self.errands.edges()[index::pieces]:
            slot, state = self.env.new_slot(), None
            sequence: list[ToolCall] = []
            results: list[ToolResult] = []
            try:
                for place, call in enumerate(script):
                    arguments = filled_in(call.arguments, results)
                    if place == len(script) - 1 and (arguments := moved(arguments, path, step)) is None:
                        break
                    sequence.append(ToolCall(tool=call.tool, arguments=arguments))
                    self.note(sequence)
                    content, result, found = await self.watcher.observe(slot, state, sequence[-1], place + 1)
                    results.append(result)
                    self._remember(sequence, result)
                    faults += [(fault, list(sequence)) for fault in found]
                    self.count(call.tool, result.kind, changed=content is not None)
                    state = content or state
            except (LookupError, SlotBroken):
                continue
            finally:
                slot.close()
        return faults

    async def _sweep(self, maker: Maker) -> list[tuple[Fault, list[ToolCall]]]:
        """Every tool that reads one row, on every row that is known."""
        faults: list[tuple[Fault, list[ToolCall]]] = []
        for tool in self.tools:
            required: Any = tool.input_schema.get("required", [])
            if tool.method != "GET" or len(required) != 1 or "{" + required[0] + "}" not in tool.path:
                continue
            for value in maker.known(required[0])[:_SWEPT]:
                call = ToolCall(tool=tool.name, arguments={required[0]: value})
                slot = self.env.new_slot()
                _, _, found = await self.watcher.observe(slot, None, call, 1)
                slot.close()
                faults += [(fault, [call]) for fault in found]
        return faults

    async def _run(
        self, maker: Maker, index: int
    ) -> tuple[list[ToolCall], list[tuple[Fault, list[ToolCall]]], list[WriteSample]]:
        slot, state = self.env.new_slot(), None
        sequence: list[ToolCall] = []
        faults: list[tuple[Fault, list[ToolCall]]] = []
        writes: list[WriteSample] = []
        script, results = self.errands.script(maker.random), list[ToolResult]()
        maker.recent, again = Pool(), None
        for step in range(1, len(script) + DEPTH + 1):
            call = again or self.errands.scripted(script, results, maker) or self.errands.at_random(maker)
            tool = self.by_name[call.tool]
            sequence.append(call)
            self.note(sequence)
            try:
                content, result, found = await self.watcher.observe(slot, state, call, step)
            except SlotBroken as error:
                faults.append((Fault("exception", tool.name, f"it leaves the database locked: {error}"), list(sequence)))
                self.count(tool.name, "internal", changed=False)
                return sequence, faults, writes
            if again is None:
                results.append(result)
            self._remember(sequence, result)
            faults += [(fault, list(sequence)) for fault in found]
            self.count(tool.name, result.kind, changed=content is not None)
            again = call if content is not None and tool.name not in self.repeated else None
            if again is not None:
                self.repeated.add(tool.name)
            if result.kind == "ok":
                self.pool.learn(result.content, resource_of(tool.path))
                if content is not None:
                    maker.recent.learn(result.content, resource_of(tool.path))
                if tool.method != "GET" and not ASKS_ONLY.search(tool.name.lower()) and content is None:
                    what = "it answers that all went well and changes nothing"
                    faults += [(Fault(kind, tool.name, what), list(sequence)) for kind in ("no_effect", "idle")]
                if content is not None and state is None:
                    writes.append(WriteSample(calls=[call], tables=self.watcher.changed_tables(content)))
            state = content or state
        slot.close()
        if state is not None and maker.random.random() < _AGREE:
            faults += [(fault, list(sequence)) for fault in await self._agreement(state, maker.random)]
        return sequence, faults, writes

    def _remember(self, sequence: list[ToolCall], result: ToolResult) -> None:
        """Of each wording of a refusal that names a number the shortest way to it."""
        if limits.names_limit(sequence[-1], result):
            known = self.refusals.setdefault((sequence[-1].tool, limits.pattern(result)), list(sequence))
            if len(sequence) < len(known):
                known[:] = sequence

    def count(self, name: str, kind: str, *, changed: bool) -> None:
        use = self.uses.get(name, ToolUse())
        self.uses[name] = ToolUse(
            calls=use.calls + 1,
            ok=use.ok + (kind == "ok"),
            refused=use.refused + (kind not in ("ok", "internal")),
            internal=use.internal + (kind == "internal"),
            changed=use.changed + changed,
        )

    async def _agreement(self, state: bytes | None, chance: random.Random | None = None) -> list[Fault]:
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
        return [Fault(one.kind, one.tool, one.what, one.calls) for one in found]

    async def _shrunk(self, fault: Fault, sequence: list[ToolCall]) -> Violation | None:
        """The fault by fewer calls; None for one that does not come again from a fresh episode."""
        left = _REPLAYS
        if sequence and fault.kind not in IDLE and await self._shows(sequence, fault) is None:
            return None
        if fault.kind in IDLE:
            sequence = sequence[-1:] if await self._answers_ok(sequence[-1:]) else sequence
        place = 0
        while sequence and place < len(sequence) - (0 if fault.shown_by else 1) and left > 0 and fault.kind not in IDLE:
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

    async def _shows(self, sequence: list[ToolCall], fault: Fault) -> Fault | None:
        slot, state = self.env.new_slot(), None
        found: list[Fault] = []
        try:
            for step, call in enumerate(sequence, 1):
                content, _, found = await self.watcher.observe(slot, state, call, step)
                state = content or state
        except SlotBroken as error:
            return Fault("exception", fault.tool, f"it leaves the database locked: {error}") if "locked" in fault.what else None
        finally:
            slot.close()
        if fault.shown_by:
            found = await self._agreement(state)
        alike = [one for one in found if (one.kind, one.tool) == (fault.kind, fault.tool)]
        return next((one for one in alike if one.what == fault.what or fault.kind != "invariant"), None)
