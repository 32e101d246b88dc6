"""Trials: many ways through one environment, each on a fresh episode; the state each ends in, and what verifiers say of it."""

import asyncio
import base64
import hashlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pydantic_core

from awm_runtime import batches, canonical, clock, confine, dump, environment, judging, pages
from awm_runtime.binding import SlotBroken
from awm_runtime.children import ChildFailed
from awm_runtime.contract import ToolResult, Trial, TrialRun, TrialsReply, TrialsRequest
from awm_runtime.environment import Environment
from awm_runtime.homes import Home, keeps_state
from awm_runtime.references import filled_in
from awm_runtime.watched import Watched

_ROWS: Final = 60
"""Changed rows of a table that a reply holds."""
_READ_LIMIT: Final = 20.0
_FAULTS: Final = ("internal", "timeout", "crashed")


@dataclass(frozen=True)
class _Played:
    arguments: list[Any]
    kinds: list[str]
    results: list[Any]
    wrote: list[bool]
    initial: bytes
    final: bytes


def play_all(request: TrialsRequest, memory: int, home: Home | None = None) -> TrialsReply:
    """Runs outside of all confinement; what plays, reads and judges are confined children."""
    seed = base64.b64decode(request.source.db)
    played = _play_stage(request, seed, memory, home)
    ends = [None if isinstance(one, str) else one for one in played]
    seen, random_columns = _read_stage(request, ends, memory)
    judged = _judge_stage(request, ends)
    runs, first = [], request.parts[0] if request.parts else len(played)
    for index, one in enumerate(played):
        if isinstance(one, str):
            runs.append(TrialRun(error=one))
            continue
        faults = sum(kind in _FAULTS for kind in one.kinds)
        runs.append(
            TrialRun.model_validate(
                seen[index]
                | {
                    "arguments": one.arguments if request.results else [],
                    "results": one.results,
                    "db": base64.b64encode(one.final).decode() if request.databases and index < first else "",
                    "kinds": one.kinds,
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


def _play_stage(request: TrialsRequest, seed: bytes, memory: int, home: Home | None) -> list[_Played | str]:
    source, trials = request.source, request.trials
    order = request.model_copy(update={"source": source.model_copy(update={"db": "", "app_code": ""}), "verifiers": []})
    data = order.model_dump_json().encode()
    alone = request.alone or (home.keeps_state if home is not None else keeps_state(source.app_code))

    def prepare(_note: batches.Note) -> batches.Piece:
        confined(memory)
        return player(Watched(source.app_code, seed, source.world_time), data, _note)

    most = max((len(trial.calls) for trial in trials), default=0)
    fork = home.forks("play", data) if home is not None else batches.forked(prepare)
    done = batches.each(len(trials), fork, request.call_limit + 0.5 * most, alone=alone, parts=request.parts).pieces
    return [str(one) if isinstance(one, ChildFailed) else _unframed(seed, one) for one in done]


def player(env: Watched, order: bytes, _note: batches.Note) -> batches.Piece:
    """Plays trial i of a request; the calls that several trials begin with are made once. Runs in a confined child."""
    request = TrialsRequest.model_validate_json(order)
    loop = asyncio.new_event_loop()
    prefixes = _Prefixes(request.trials)

    def piece(index: int) -> bytes:
        played = loop.run_until_complete(_play(env, request.trials[index], prefixes.of(index)))
        return _frame(env, played, results=request.results)

    return piece


@dataclass
class _Point:
    """Where an episode stands after some calls."""

    state: bytes | None = None
    given: list[Any] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    wrote: list[bool] = field(default_factory=list)

    def copy(self) -> "_Point":
        return _Point(self.state, list(self.given), list(self.results), list(self.wrote))


class _Prefixes:
    """Points that more than one trial comes by, kept from the first to the last of them."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self._keys = [self._of(trial) for trial in trials]
        self._left = Counter(key for keys in self._keys for key in keys)
        self._points: dict[bytes, _Point] = {}

    @staticmethod
    def _of(trial: Trial) -> list[bytes]:
        keys = [str(trial.seed).encode()]
        for call in trial.calls:
            keys.append(hashlib.sha256(keys[-1] + call.model_dump_json().encode()).digest())
        return keys[1:]

    def of(self, index: int) -> "_Way":
        return _Way(self, self._keys[index])

    def last(self, keys: list[bytes]) -> _Point:
        """The furthest point on a way that an earlier trial has reached."""
        found = next((self._points[key] for key in reversed(keys) if key in self._points), None)
        for key in keys:
            self._left[key] -= 1
            if not self._left[key]:
                self._points.pop(key, None)
        return found.copy() if found is not None else _Point()

    def reached(self, key: bytes, point: _Point) -> None:
        if self._left[key] > 0:
            self._points[key] = point.copy()


@dataclass
class _Way:
    """The points of one trial among all."""

    prefixes: _Prefixes
    keys: list[bytes]

    def begin(self) -> _Point:
        return self.prefixes.last(self.keys)

    def reached(self, point: _Point) -> None:
        self.prefixes.reached(self.keys[len(point.results) - 1], point)


async def _play(env: Environment, trial: Trial, way: _Way) -> _Point:
    point = way.begin()
    slot = env.new_slot()
    if point.state is not None:
        slot.load_bytes(point.state)
    for step, call in enumerate(trial.calls[len(point.results) :], len(point.results) + 1):
        content, arguments = None, None
        try:
            arguments = filled_in(call.arguments, point.results)
            played = await env.play(slot, point.state, call.tool, arguments, trial.seed, step)
            content, result = played.content, played.outcome.result()
        except LookupError as error:
            result = _failed("invalid_arguments", str(error))
        except SlotBroken as error:
            result = _failed("internal", f"the call left the database locked: {error}")
            slot = env.new_slot()
            if point.state is not None:
                slot.load_bytes(point.state)
        point.given.append(arguments)
        point.results.append(result)
        point.wrote.append(content is not None and content != (point.state or env.seed))
        point.state = content or point.state
        way.reached(point)
    env.drop_slot(slot)
    return point


def _frame(env: Watched, point: _Point, *, results: bool) -> bytes:
    head = {
        "arguments": point.given,
        "kinds": [result.kind for result in point.results],
        "results": [result.model_dump(mode="json") for result in point.results] if results else [],
        "wrote": point.wrote,
    }
    parts = [pydantic_core.to_json(head), pages.delta(env.given, env.seed), pages.delta(env.given, point.state or env.seed)]
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def _unframed(seed: bytes, frame: bytes) -> _Played:
    parts, position = [], 0
    while position < len(frame):
        size = int.from_bytes(frame[position : position + 8], "big")
        parts.append(frame[position + 8 : position + 8 + size])
        position += 8 + size
    head = json.loads(parts[0])
    return _Played(**head, initial=pages.apply(seed, parts[1]), final=pages.apply(seed, parts[2]))


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

    def prepare(_note: batches.Note) -> batches.Piece:
        confine.confine(confine.python_paths(), confine.Limits(memory=memory), may_fork=False)
        start = canonical.Start(first.initial, clock.parse_world_time(request.source.world_time))
        found = frozenset(request.random_columns)
        for one, other in twins:
            left, right = ends[one], ends[other]
            if left is not None and right is not None:
                found |= start.random_columns(_contents(left.final), _contents(right.final))
        known: dict[bytes, bytes] = {}

        def piece(index: int) -> bytes:
            if index == len(ends):
                return json.dumps(sorted(found)).encode()
            end = ends[index]
            if end is None:
                return b"{}"
            if end.final not in known:
                known[end.final] = _read(start, end.final, found, whole=request.results)
            return known[end.final]

        return piece

    done = batches.each(len(ends) + 1, batches.forked(prepare), _READ_LIMIT).pieces
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


def _read(start: canonical.Start, final: bytes, random_columns: frozenset[tuple[str, str]], *, whole: bool) -> bytes:
    """`whole`: with the digest of the dump."""
    connection = dump.open_bytes(final)
    rows = canonical.contents(connection)
    seen: dict[str, Any] = {"state": start.digest(rows, random_columns), "changes": start.changes(rows, _ROWS)}
    if whole:
        seen["dump_sha256"] = dump.digest(connection)
    return pydantic_core.to_json(seen)


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
