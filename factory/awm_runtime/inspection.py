"""Verifiers under observation: what they open, start and write, what they cost, and whether they say the same thing twice.

The confinement refuses what a verifier must not do; but one that swallows the refusal still gives a verdict, so it is watched.
"""

import base64
import json
import math
import os
import resource
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from awm_runtime import already, batches, canonical, clock, confine, dump, judging, verify
from awm_runtime.children import ChildFailed
from awm_runtime.contract import InspectReply, InspectRequest, Observation, Verdict, VerifierSource
from awm_runtime.verify import Databases

_ACTS: Final = 10
_DEATHS: Final = 2
"""Looks that may end without a verdict before the rest is given up."""
_NUDGE_LIMIT: Final = 10.0
_LATER: Final = 600
"""Seconds by which a second look comes later: as many calls as an agent may make in between."""
_WRITES: Final = {
    getattr(sqlite3, f"SQLITE_{name}"): name.replace("_", " ")
    for name in (
        "INSERT", "UPDATE", "DELETE", "CREATE_TABLE", "CREATE_INDEX", "CREATE_TRIGGER", "CREATE_VIEW", "DROP_TABLE", "DROP_INDEX",
        "DROP_TRIGGER", "DROP_VIEW", "ALTER_TABLE", "REINDEX", "ATTACH", "DETACH",
    )
}  # fmt: skip
_EVENTS: Final = {
    "subprocess.Popen": "starts a process",
    "os.system": "starts a process",
    "os.exec": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.fork": "starts a process",
    "pty.spawn": "starts a process",
    "socket.__new__": "opens a socket",
    "socket.connect": "opens a socket",
    "os.chmod": "changes a file's mode",
    "os.remove": "removes a file",
    "os.rename": "renames a file",
    "os.mkdir": "makes a folder",
    "shutil.copyfile": "copies a file",
    "ctypes.dlopen": "loads a library",
}


@dataclass(frozen=True)
class _Case:
    """What a verifier is shown, and when."""

    final: bytes
    answer: str | None
    now: float
    seed: int = 0
    watched: bool = True


@dataclass(frozen=True)
class _Look:
    verdict: Verdict
    acts: list[str]
    seconds: float
    memory: int


def inspect(request: InspectRequest) -> InspectReply:
    initial = base64.b64decode(request.initial_db)
    now = float(clock.parse_world_time(request.world_time))
    ends = {task_id: (base64.b64decode(end.final_db), end.final_answer) for task_id, end in request.ends.items()}
    judged = {source.task_id for source in request.verifiers if source.mode == "code"}
    nudged = _nudged(initial, {task_id: final for task_id, (final, _) in ends.items() if task_id in judged})
    found = [
        _observed(source, initial, ends.get(source.task_id), nudged.get(source.task_id, []), now) for source in request.verifiers
    ]
    return InspectReply(observations=found)


def _observed(
    source: VerifierSource, initial: bytes, end: tuple[bytes, str | None] | None, nudged: list[tuple[str, bytes]], now: float
) -> Observation:
    """Every look in one process, the first one unwatched: it gives the verdict on a database that nobody touched."""
    cases = [_Case(initial, "", now, watched=False), _Case(initial, "", now)]
    final, answer = end if end is not None else (initial, "")
    first = len(cases) - 1
    if end is not None:
        first = len(cases)
        cases.append(_Case(final, answer, now))
    again = {"its random numbers": len(cases), "the time of the call": len(cases) + 1}
    cases += [_Case(final, answer, now, seed=1), _Case(final, answer, now + _LATER)]
    if source.mode == "code":
        cases += [_Case(other, answer, now) for _, other in nudged]
    untouched, looks = _looks(source, initial, cases)
    seen = [look for look in looks[1 : first + 1] if look is not None]
    unstable, exact = [], []
    if (told := looks[first]) is not None:
        others = {label: looks[place] for label, place in again.items()}
        unstable = [label for label, look in others.items() if look is not None and _says(look.verdict) != _says(told.verdict)]
        if told.verdict.classification == "complete":
            moved = zip(nudged, looks[len(cases) - len(nudged) :], strict=False)
            exact = [column for (column, _), look in moved if look and look.verdict.classification != "complete"]
    seconds = max((look.seconds for look in seen), default=0.0)
    done = untouched.classification == "complete"
    return Observation(
        untouched=untouched,
        acts=list(dict.fromkeys(act for look in seen for act in look.acts))[:_ACTS],
        seconds=seconds,
        memory=max((look.memory for look in looks if look is not None), default=0),
        unstable=unstable,
        exact_floats=exact if source.mode == "code" else [],
        already=already.satisfying(source, initial, now, seconds) if done else [],
    )


def _says(verdict: Verdict) -> Any:
    return verdict.classification, verdict.evidence, verdict.error


def _looks(source: VerifierSource, initial: bytes, cases: list[_Case]) -> tuple[Verdict, list[_Look | None]]:
    """The first verdict as an episode would get it, and each look; None for one without a verdict, which its own gate reports."""
    with judging.files(initial, [case.final for case in cases]) as pairs:

        def prepare(_note: batches.Note) -> batches.Piece:
            os.environ.clear()
            os.chdir(pairs[0].directory)
            clock.install()
            seconds = (math.ceil(verify.TIME_LIMIT) + 1) * len(cases)
            limits = confine.Limits(memory=verify.MEMORY_LIMIT, cpu_seconds=seconds)
            confine.confine([*confine.python_paths(), pairs[0].directory], limits, may_fork=False)
            watch = _Watch({str(path) for pair in pairs for path in (pair.initial_path, pair.final_path)})
            return lambda index: watch.look(source, pairs[index], cases[index])

        done = batches.each(len(cases), batches.forked(prepare), verify.TIME_LIMIT, deaths=_DEATHS).pieces
        looks = [None if isinstance(one, ChildFailed) else _Look(**_parsed(json.loads(one))) for one in done]
        fault = done[0] if isinstance(done[0], ChildFailed) else None
        return judging.sound(source, fault, looks[0].verdict if looks[0] is not None else None, pairs[0]), looks


def _parsed(seen: dict[str, Any]) -> dict[str, Any]:
    return seen | {"verdict": Verdict.model_validate(seen["verdict"])}


class _Watch:
    """Sees what runs in this process. Made in the child, once it is confined."""

    def __init__(self, own: set[str]) -> None:
        self._own, self._acts = own, dict[str, None]()
        self._watching = self._hooked = False
        self._start = _peak()

    def look(self, source: VerifierSource, files: Databases, case: _Case) -> bytes:
        if case.watched and not self._hooked:
            self._hook()
        self._acts.clear()
        self._watching = case.watched
        start = time.process_time()
        with clock.world(case.now, case.seed):
            verdict = verify.verdict(source, files, case.answer)
        self._watching = False
        seen = {
            "verdict": verdict.model_dump(mode="json"),
            "acts": list(self._acts),
            "seconds": time.process_time() - start,
            "memory": max(0, _peak() - self._start),
        }
        return json.dumps(seen).encode()

    def _hook(self) -> None:
        self._hooked = True
        libraries = tuple(str(path) for path in confine.python_paths())
        sqlite3.connect = _watched_connect(self._acts, self._own)  # type: ignore[assignment]

        def hook(event: str, args: tuple[Any, ...]) -> None:
            if self._watching:
                _note(event, args, self._acts, libraries, self._own)

        sys.addaudithook(hook)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _note(event: str, args: tuple[Any, ...], acts: dict[str, None], libraries: tuple[str, ...], own: set[str]) -> None:
    if event in _EVENTS:
        acts[f"{_EVENTS[event]} ({event})"] = None
    elif event == "open" and args and isinstance(args[0], (str, bytes)):
        path = os.fsdecode(args[0])
        mode = args[1] if len(args) > 1 else "r"
        flags = args[2] if len(args) > 2 and isinstance(args[2], int) else 0
        writes = flags & (os.O_WRONLY | os.O_RDWR) or (isinstance(mode, str) and set(mode) & set("wax+"))
        if writes or not (str(Path(path).absolute()) in own or path.startswith(libraries)):
            acts[f"opens {path}{' for writing' if writes else ''}"] = None


def _watched_connect(acts: dict[str, None], own: set[str]) -> Callable[..., sqlite3.Connection]:
    real = sqlite3.connect

    def connect(database: Any, *args: Any, **options: Any) -> sqlite3.Connection:
        name = os.fsdecode(database) if isinstance(database, (str, bytes, os.PathLike)) else str(database)
        path = name.removeprefix("file:").split("?")[0]
        private = path in ("", ":memory:") or "mode=memory" in name
        if not private and str(Path(path).absolute()) not in own:
            acts[f"opens another database ({path})"] = None
        connection: sqlite3.Connection = real(database, *args, **options)
        if not private:
            connection.set_authorizer(lambda *action: _authorize(acts, *action))
        return connection

    return connect


def _authorize(acts: dict[str, None], action: int, one: str | None, _two: str | None, place: str | None, _by: str | None) -> int:
    if action in _WRITES and place != "temp" and one not in ("sqlite_temp_master", "sqlite_temp_schema"):
        acts[f"executes {_WRITES[action]}" + (f" on {one}" if one else "")] = None
    return sqlite3.SQLITE_OK


def _nudged(initial: bytes, finals: dict[int, bytes]) -> dict[int, list[tuple[str, bytes]]]:
    """Each task's end with the fractions of one column, in rows that the episode wrote, a binary digit up; for each such one."""
    tasks = list(finals)

    def prepare(_note: batches.Note) -> batches.Piece:
        confine.confine(confine.python_paths(), confine.Limits(memory=1 << 30), may_fork=False)
        start = canonical.Start(initial, 0.0)

        def piece(index: int) -> bytes:
            made = _each_nudged(start, finals[tasks[index]])
            return json.dumps([(column, base64.b64encode(nudged).decode()) for column, nudged in made]).encode()

        return piece

    done = batches.each(len(tasks), batches.forked(prepare), _NUDGE_LIMIT).pieces
    return {
        task_id: [(column, base64.b64decode(nudged)) for column, nudged in json.loads(one)]
        for task_id, one in zip(tasks, done, strict=True)
        if not isinstance(one, ChildFailed)
    }


def _each_nudged(start: canonical.Start, final: bytes) -> Iterator[tuple[str, bytes]]:
    changed = start.changes(canonical.contents(dump.open_bytes(final)), sys.maxsize)
    for table, changes in changed.items():
        columns: dict[str, None] = {}
        for change in changes:
            row, old = change["after"] or {}, change["before"] or {}
            columns |= {name: None for name, value in row.items() if _is_fraction(value) and old.get(name) != value}
        for column in columns:
            copy, name = dump.open_bytes(final), dump.quote(column)
            copy.create_function("up", 1, lambda value: math.nextafter(value, math.inf) if _is_fraction(value) else value)
            try:
                copy.execute(f"UPDATE {dump.quote(table)} SET {name} = up({name}) WHERE typeof({name}) = 'real'")
            except sqlite3.Error:
                continue
            yield f"{table}.{column}", copy.serialize()


def _is_fraction(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value) and not value.is_integer()
