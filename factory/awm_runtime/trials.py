"""Trials: many ways through one environment, each on a fresh episode; the state each ends in, and what verifiers say of it."""

import asyncio
import base64
import json
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pydantic_core

from awm_runtime import batches, canonical, clock, confine, dump, environment, judging, module_state, pages
from awm_runtime.binding import SlotBroken
from awm_runtime.children import ChildFailed
from awm_runtime.contract import ToolResult, Trial, TrialRun, TrialsReply, TrialsRequest
from awm_runtime.environment import Environment
from awm_runtime.references import filled_in

_ROWS: Final = 60
"""Changed rows of a table that a reply holds."""
_READ_LIMIT: Final = 20.0
_FAULTS: Final = ("internal", "timeout", "crashed")


@dataclass(frozen=True)
class _Played:
    arguments: list[Any]
    results: list[ToolResult]
    wrote: list[bool]
    initial: bytes
    final: bytes


def play_all(request: TrialsRequest, memory: int) -> TrialsReply:
    """Runs outside of all confinement; what plays, reads and judges are confined children."""
    seed = base64.b64decode(request.source.db)
    played = _play_stage(request, seed, memory)
    ends = [None if isinstance(one, str) else one for one in played]
    seen, random_columns = _read_stage(request, ends, memory)
    judged = _judge_stage(request, ends)
    runs = []
    for index, one in enumerate(played):
        if isinstance(one, str):
            runs.append(TrialRun(error=one))
            continue
        faults = sum(result.kind in _FAULTS for result in one.results)
        runs.append(
            TrialRun.model_validate(
                seen[index]
                | {
                    "arguments": one.arguments if request.results else [],
                    "results": one.results if request.results else [],
                    "db": base64.b64encode(one.final).decode() if request.databases else "",
                    "kinds": [result.kind for result in one.results],
                    "wrote": one.wrote,
                    "verdicts": [verdict.model_copy(update={"internal_errors": faults}) for verdict in judged[index]],
                }
            )
        )
    return TrialsReply(runs=runs, random_columns=random_columns)


def confined(memory: int) -> None:
    os.environ.clear()
    environment.prepare_process()
    confine.confine(confine.python_paths(), confine.Limits(memory=memory), may_fork=False)


def keeps_state_by_source(code: str) -> bool:
    """True for code whose process can serve one episode only, as far as its source shows."""
    return bool(module_state.written_names(code)) or any(_opens_session(line) for line in code.splitlines())


def _opens_session(line: str) -> bool:
    """A session or connection that the module itself opens and keeps."""
    return not line[:1].isspace() and line.split("#")[0].strip().endswith(("= SessionLocal()", "= Session()", ".connect()"))


def _play_stage(request: TrialsRequest, seed: bytes, memory: int) -> list[_Played | str]:
    source, trials = request.source, request.trials

    def prepare() -> batches.Piece:
        confined(memory)
        env = Environment(source.app_code, seed, source.world_time)
        return lambda index: _frame(env, seed, asyncio.run(play(env, trials[index])))

    most = max((len(trial.calls) for trial in trials), default=0)
    alone = keeps_state_by_source(source.app_code)
    done = batches.each(len(trials), prepare, request.call_limit + 0.5 * most, alone=alone)
    return [str(one) if isinstance(one, ChildFailed) else _unframed(seed, one) for one in done]


def _frame(env: Environment, seed: bytes, played: _Played) -> bytes:
    results = [result.model_dump(mode="json") for result in played.results]
    head = {"arguments": played.arguments, "results": results, "wrote": played.wrote}
    parts = [pydantic_core.to_json(head), pages.delta(seed, env.seed), pages.delta(seed, played.final)]
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def _unframed(seed: bytes, frame: bytes) -> _Played:
    parts, position = [], 0
    while position < len(frame):
        size = int.from_bytes(frame[position : position + 8], "big")
        parts.append(frame[position + 8 : position + 8 + size])
        position += 8 + size
    head = json.loads(parts[0])
    results = [ToolResult.model_validate(result) for result in head["results"]]
    return _Played(head["arguments"], results, head["wrote"], pages.apply(seed, parts[1]), pages.apply(seed, parts[2]))


async def play(env: Environment, trial: Trial) -> _Played:
    slot, state = env.new_slot(), None
    given: list[Any] = []
    results: list[ToolResult] = []
    wrote: list[bool] = []
    for step, call in enumerate(trial.calls, 1):
        content, arguments = None, None
        try:
            arguments = filled_in(call.arguments, results)
            played = await env.play(slot, state, call.tool, arguments, trial.seed, step)
            content, result = played.content, played.outcome.result()
        except LookupError as error:
            result = _failed("invalid_arguments", str(error))
        except SlotBroken as error:
            result = _failed("internal", f"the call left the database locked: {error}")
            slot = env.new_slot()
            if state is not None:
                slot.load_bytes(state)
        given.append(arguments)
        results.append(result)
        wrote.append(content is not None and content != (state or env.seed))
        state = content or state
    slot.close()
    return _Played(given, results, wrote, env.seed, state or env.seed)


def _failed(kind: str, message: str) -> ToolResult:
    content = {"error": {"kind": kind, "message": message}}
    return ToolResult.model_validate({"is_error": True, "kind": kind, "status": None, "content": content})


def _read_stage(
    request: TrialsRequest, ends: Sequence[_Played | None], memory: int
) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """What each end holds, and which columns chance fills. Environment code wrote the databases, so a confined child reads."""
    first = next((end for end in ends if end is not None), None)
    if first is None:
        return [{} for _ in ends], list(request.random_columns)
    twins = _twins(request.trials)

    def prepare() -> batches.Piece:
        confine.confine(confine.python_paths(), confine.Limits(memory=memory), may_fork=False)
        start = canonical.Start(first.initial, clock.parse_world_time(request.source.world_time))
        found = frozenset(request.random_columns)
        for one, other in twins:
            left, right = ends[one], ends[other]
            if left is not None and right is not None:
                found |= start.random_columns(_contents(left.final), _contents(right.final))

        def piece(index: int) -> bytes:
            if index == len(ends):
                return json.dumps(sorted(found)).encode()
            end = ends[index]
            return b"{}" if end is None else _read(start, end.final, found, wanted=request.results)

        return piece

    done = batches.each(len(ends) + 1, prepare, _READ_LIMIT)
    seen = [{"error": f"its end could not be read: {one}"} if isinstance(one, ChildFailed) else json.loads(one) for one in done]
    columns = seen.pop()
    return seen, [(table, column) for table, column in columns] if isinstance(columns, list) else list(request.random_columns)


def _twins(trials: list[Trial]) -> list[tuple[int, int]]:
    """Trials with the same calls and another seed."""
    places: dict[str, int] = {}
    found = []
    for place, trial in enumerate(trials):
        key = json.dumps([call.model_dump(mode="json") for call in trial.calls])
        other = places.setdefault(key, place)
        if trials[other].seed != trial.seed:
            found.append((other, place))
    return found


def _contents(final: bytes) -> canonical.Contents:
    return canonical.contents(dump.open_bytes(final))


def _read(start: canonical.Start, final: bytes, random_columns: frozenset[tuple[str, str]], *, wanted: bool) -> bytes:
    connection = dump.open_bytes(final)
    seen: dict[str, Any] = {"state": start.digest(canonical.contents(connection), random_columns)}
    if wanted:
        difference = dump.difference(start.connection, connection).tables
        seen["changes"] = {
            table: [row.model_dump(mode="json") for row in rows[:_ROWS]]
            for table, rows in difference.items()
            if not table.startswith("sqlite_")
        }
        seen["dump_sha256"] = dump.digest(connection)
    return json.dumps(seen).encode()


def _judge_stage(request: TrialsRequest, ends: Sequence[_Played | None]) -> list[list[Any]]:
    judged: list[list[Any]] = [[] for _ in ends]
    start = clock.parse_world_time(request.source.world_time)
    by_task: dict[int, list[int]] = defaultdict(list)
    for index, trial in enumerate(request.trials):
        if trial.task_id is not None and ends[index] is not None:
            by_task[trial.task_id].append(index)
    for source in request.verifiers:
        indices = by_task.get(source.task_id, [])
        if not indices:
            continue
        cases = []
        for index in indices:
            end, trial = ends[index], request.trials[index]
            assert end is not None
            cases.append(judging.End(end.final, trial.final_answer, start + len(trial.calls)))
        first = ends[indices[0]]
        assert first is not None
        for index, verdict in zip(indices, judging.verdicts(source, first.initial, cases), strict=True):
            judged[index].append(verdict)
    return judged
