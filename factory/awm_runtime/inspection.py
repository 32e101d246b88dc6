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

from awm_runtime import children, clock, confine, dump, verify
from awm_runtime.children import ChildFailed
from awm_runtime.contract import InspectReply, InspectRequest, Observation, Verdict, VerifierSource
from awm_runtime.verify import Databases

_ACTS: Final = 10
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
class _Look:
    verdict: Verdict
    acts: list[str]
    seconds: float
    memory: int


def inspect(request: InspectRequest) -> InspectReply:
    initial = base64.b64decode(request.initial_db)
    now = float(clock.parse_world_time(request.world_time))
    found = []
    for source in request.verifiers:
        end = request.ends.get(source.task_id)
        ends = [(initial, "")] + ([(base64.b64decode(end.final_db), end.final_answer)] if end is not None else [])
        found.append(_observed(source, initial, ends, now))
    return InspectReply(observations=found)


def _observed(source: VerifierSource, initial: bytes, ends: list[tuple[bytes, str | None]], now: float) -> Observation:
    acts: dict[str, None] = {}
    unstable: list[str] = []
    seconds, memory = 0.0, 0
    exact: list[str] = []
    for final, answer in ends:
        first = _look(source, initial, final, answer, now, 0)
        if first is None:
            continue
        acts |= dict.fromkeys(first.acts)
        seconds, memory = max(seconds, first.seconds), max(memory, first.memory)
        if final == initial and len(ends) > 1:
            continue
        for label, later, seed in (("its random numbers", 0, 1), ("the time of the call", _LATER, 0)):
            again = _look(source, initial, final, answer, now + later, seed)
            if again is not None and _says(again.verdict) != _says(first.verdict):
                unstable.append(label)
        if source.mode == "code" and first.verdict.classification == "complete":
            exact += [column for column, nudged in _nudged(initial, final) if _lost(source, initial, nudged, answer, now)]
    return Observation(
        acts=list(acts)[:_ACTS], seconds=seconds, memory=memory, unstable=list(dict.fromkeys(unstable)), exact_floats=exact
    )


def _says(verdict: Verdict) -> Any:
    return verdict.classification, verdict.evidence, verdict.error


def _lost(source: VerifierSource, initial: bytes, final: bytes, answer: str | None, now: float) -> bool:
    look = _look(source, initial, final, answer, now, 0)
    return look is not None and look.verdict.classification != "complete"


def _look(source: VerifierSource, initial: bytes, final: bytes, answer: str | None, now: float, seed: int) -> _Look | None:
    """One run of the verifier in a child; None for one that ends without a verdict, which its own gate reports."""
    with verify.databases(initial, final) as files:
        try:
            seen = json.loads(children.run(lambda: _watch(source, files, answer, now, seed), verify.TIME_LIMIT))
        except ChildFailed:
            return None
    return _Look(Verdict.model_validate(seen["verdict"]), seen["acts"], seen["seconds"], seen["memory"])


def _watch(source: VerifierSource, files: Databases, answer: str | None, now: float, seed: int) -> bytes:
    """Runs in the child."""
    os.environ.clear()
    os.chdir(files.directory)
    clock.install()
    paths = [*confine.python_paths(), files.directory]
    limits = confine.Limits(memory=verify.MEMORY_LIMIT, cpu_seconds=math.ceil(verify.TIME_LIMIT) + 1)
    confine.confine(paths, limits, may_fork=False)
    acts: dict[str, None] = {}
    libraries = tuple(str(path) for path in confine.python_paths())
    own = {str(files.initial_path), str(files.final_path)}
    sqlite3.connect = _watched_connect(acts, own)  # type: ignore[assignment]
    watching = [True]

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if watching[0]:
            _note(event, args, acts, libraries, own)

    sys.addaudithook(hook)
    start, before = time.process_time(), _peak()
    with clock.world(now, seed):
        verdict = verify.verdict(source, files, answer)
    watching[0] = False
    spent = time.process_time() - start
    seen = {"verdict": verdict.model_dump(mode="json"), "acts": list(acts), "seconds": spent, "memory": max(0, _peak() - before)}
    return json.dumps(seen).encode()


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


def _nudged(initial: bytes, final: bytes) -> list[tuple[str, bytes]]:
    """The end with the fractions of one column, in rows that the episode wrote, one binary digit up; for each such column."""

    def work() -> bytes:
        confine.confine(confine.python_paths(), confine.Limits(memory=1 << 30), may_fork=False)
        made = [(column, base64.b64encode(nudged).decode()) for column, nudged in _each_nudged(initial, final)]
        return json.dumps(made).encode()

    try:
        made = json.loads(children.run(work, _NUDGE_LIMIT))
    except ChildFailed:
        return []
    return [(column, base64.b64decode(nudged)) for column, nudged in made]


def _each_nudged(initial: bytes, final: bytes) -> Iterator[tuple[str, bytes]]:
    for table, changes in dump.difference(dump.open_bytes(initial), dump.open_bytes(final)).tables.items():
        columns: dict[str, None] = {}
        for change in changes:
            row, old = change.after or {}, change.before or {}
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
