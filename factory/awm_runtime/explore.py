"""Exploration: tools called at random but seeded, and what no app may do, whatever it is for.

Calls start from the seed again and again, each run going a few calls deep on ids and values that results have shown. A fault is
told by the shortest sequence of calls that was found to show it.
"""

import asyncio
import base64
import json
import re
from collections.abc import Callable, Sequence
from typing import Final

from awm_runtime import batches, dump, probing, trials
from awm_runtime.children import ChildFailed
from awm_runtime.contract import ExploreReply, ExploreRequest, RefusalSample, ToolCall, ToolUse, Violation, WriteSample
from awm_runtime.explorer import DEPTH, PIECE, Explorer
from awm_runtime.homes import Home, Job, keeps_state
from awm_runtime.patience import patient
from awm_runtime.watched import Watched

_VIOLATIONS: Final = 40
_DEATHS: Final = 2
"""Processes that may be lost before an exploration is given up."""
_TRIES: Final = 3
"""Successful calls without effect that make a writing tool suspect."""


def explore(request: ExploreRequest, memory: int, home: Home | None = None) -> ExploreReply:
    """Runs outside of all confinement; every call is made in a confined child."""
    seed, source = base64.b64decode(request.source.db), request.source
    data = _sent(request).model_dump_json().encode()

    def fresh(job: Job, order: bytes) -> batches.Fork:
        """Children that import the environment for themselves."""

        def prepare(note: batches.Note) -> batches.Piece:
            trials.confined(memory)
            return job(Watched(source.app_code, seed, source.world_time), order, note)

        return batches.forked(prepare)

    pieces = max(1, -(-request.calls // PIECE))
    limit = request.call_limit * 3 + 0.25 * PIECE
    fork = home.forks("explore", data) if home is not None else fresh(explorer, data)
    done = batches.each(pieces, fork, limit, deaths=_DEATHS)
    parts = [part if isinstance(part, ChildFailed) else ExploreReply.model_validate_json(part) for part in done.pieces]
    explored = _joined(parts, {}, _noted(done.last))
    joined = _probed(
        explored, request, (lambda order: home.forks("probe", order)) if home else lambda order: fresh(prober, order)
    )
    sequence = _sequence(joined)
    if not sequence:
        return joined
    again = _sent(request).model_copy(update={"scripts": [sequence]}).model_dump_json().encode()
    one = home.forks("repeat", again) if home is not None else fresh(repeater, again)
    kept = home.keeps_state if home is not None else keeps_state(source.app_code)
    repeats, identical = _repeated([one, fresh(repeater, again)], request, kept=kept)
    return joined.model_copy(update={"repeats": repeats, "reset_identical": identical})


def explorer(env: Watched, order: bytes, note: batches.Note) -> batches.Piece:
    """Explores piece by piece. Runs in a confined child."""
    request, loop = ExploreRequest.model_validate_json(order), asyncio.new_event_loop()

    def told(sequence: list[ToolCall]) -> None:
        note(json.dumps([call.model_dump(mode="json") for call in sequence]).encode())

    one = Explorer(env, request, told)
    return lambda index: loop.run_until_complete(one.piece(index)).model_dump_json().encode()


def prober(env: Watched, order: bytes, note: batches.Note) -> batches.Piece:
    """Asks one writing tool a piece what chance hardly comes by. Runs in a confined child."""
    known, loop = probing.Order.model_validate_json(order), asyncio.new_event_loop()

    def told(sequence: list[ToolCall]) -> None:
        note(json.dumps([call.model_dump(mode="json") for call in sequence]).encode())

    one = probing.Prober(Explorer(env, known.request, told), known)
    return lambda index: loop.run_until_complete(one.piece(index)).model_dump_json().encode()


def repeater(env: Watched, order: bytes, _note: batches.Note) -> batches.Piece:
    """Plays the one script of a request twice. Runs in a confined child."""
    request, loop = ExploreRequest.model_validate_json(order), asyncio.new_event_loop()
    return lambda _: loop.run_until_complete(_digests(env, request.scripts[0], request.seed))


def _probed(seen: ExploreReply, request: ExploreRequest, forks: Callable[[bytes], batches.Fork]) -> ExploreReply:
    """What was explored, and what its tools answer when each is asked by what was seen of it."""
    tools = sorted(seen.uses)
    order = probing.Order(
        request=_sent(request),
        tools=tools,
        samples=list({sample.calls[-1].tool: sample for sample in reversed(seen.writes)}.values()),
        refusals=seen.refusals,
        uses=seen.uses,
    )
    limit = request.call_limit * 3 + probing.SECONDS
    done = batches.each(len(tools), forks(order.model_dump_json().encode()), limit, deaths=_DEATHS)
    parts = [part if isinstance(part, ChildFailed) else ExploreReply.model_validate_json(part) for part in done.pieces]
    return _joined([seen, *parts], {}, _noted(done.last)).model_copy(update={"refusals": []})


def _sent(request: ExploreRequest) -> ExploreRequest:
    """As a child gets it: without what it has at hand, and with limits of its own calls that a busy machine can keep."""
    source = request.source.model_copy(update={"db": "", "app_code": ""})
    return request.model_copy(update={"source": source, "call_limit": patient(request.call_limit)})


def _noted(text: bytes) -> list[ToolCall]:
    try:
        return [ToolCall.model_validate(call) for call in json.loads(text or b"[]")]
    except ValueError:
        return []


def _joined(parts: Sequence[ExploreReply | ChildFailed], uses: dict[str, ToolUse], last: list[ToolCall]) -> ExploreReply:
    """`last`: the calls under way when a process ended, if one did."""
    violations: dict[tuple[str, str, str], Violation] = {}
    writes: list[WriteSample] = []
    refusals: dict[tuple[str, str], RefusalSample] = {}
    for part in parts:
        if isinstance(part, ChildFailed):
            tool = last[-1].tool if last else ""
            what = f"a call did not come back ({part.reason}), or ended its process"
            violations.setdefault(("hangs", tool, part.reason), Violation(kind="hangs", tool=tool, what=what, calls=last))
            continue
        for violation in part.violations:
            key = violation.kind, violation.tool, re.sub(r"\d+|'[^']*'", "", violation.what)
            if key not in violations or len(violation.calls) < len(violations[key].calls):
                violations[key] = violation
        writes += part.writes
        for refusal in part.refusals:
            said = refusal.calls[-1].tool, refusal.words
            if said not in refusals or len(refusal.calls) < len(refusals[said].calls):
                refusals[said] = refusal
        for name, use in part.uses.items():
            before = uses.get(name, ToolUse())
            uses[name] = ToolUse(**{key: getattr(before, key) + getattr(use, key) for key in ToolUse.model_fields})
    found = [v for v in violations.values() if _stands(v, uses)]
    return ExploreReply(
        calls=sum(use.calls for use in uses.values()),
        uses=uses,
        violations=sorted(found, key=lambda v: (v.kind, v.tool, len(v.calls)))[:_VIOLATIONS],
        writes=sorted(writes, key=lambda sample: len(sample.calls)),
        refusals=list(refusals.values()),
        repeats=[],
        reset_identical=True,
    )


def _stands(violation: Violation, uses: dict[str, ToolUse]) -> bool:
    """Whether what all calls together have shown leaves a suspicion standing."""
    if violation.kind == "no_effect":
        return not uses[violation.tool].changed and uses[violation.tool].ok >= _TRIES
    return violation.kind != "idle" or uses[violation.tool].changed > 0


def _sequence(seen: ExploreReply) -> list[ToolCall]:
    """One call of each tool that was seen to change something."""
    return [sample.calls[-1] for sample in {sample.calls[-1].tool: sample for sample in seen.writes}.values()][: 2 * DEPTH]


def _repeated(forks: list[batches.Fork], request: ExploreRequest, *, kept: bool) -> tuple[list[str], bool]:
    """Digests of one sequence in two processes, of which the second has imported the environment anew and plays it twice.

    All equal where only the database counts.
    """
    done = [batches.each(1, fork, request.call_limit * 3).pieces[0] for fork in forks]
    if any(isinstance(one, ChildFailed) for one in done):
        return [], True
    first, second = (json.loads(one) for one in done if not isinstance(one, ChildFailed))
    return [first["digests"][0], second["digests"][0], *([] if kept else second["digests"][1:])], bool(second["identical"])


def _pages(database: bytes) -> bytes:
    """A database file without the two counters of its header that every write moves (SQLite's file format, 1.3.7 and 1.3.14)."""
    return database[:24] + database[28:92] + database[96:]


async def _digests(env: Watched, sequence: list[ToolCall], seed: int) -> bytes:
    digests = []
    for _ in range(2):
        slot, state = env.new_slot(), None
        for step, call in enumerate(sequence, 1):
            played = await env.play(slot, state, call.tool, call.arguments, seed, step)
            state = played.content or state
        digests.append(dump.digest(dump.open_bytes(state or env.seed)))
        slot.load(env.seed_connection)
        fresh = env.new_slot()
        identical = _pages(slot.content()) == _pages(fresh.content())
        fresh.close()
        slot.close()
    return json.dumps({"digests": digests, "identical": identical}).encode()
