"""Verifiers: generated code that judges an episode from two databases, each run in its own confined process.

It sees the two files, read-only, and Python's libraries; it has 5 s, 256 MB, no network and nothing to write to. Whatever goes
wrong with it is an error and no verdict: reward null, which trainers mask, never 0, which would teach.
"""

import datetime
import inspect
import json
import math
import os
import re
import shutil
import sqlite3
import struct
import sys
import tempfile
import types
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Self

from awm_runtime import children, clock, confine
from awm_runtime.children import Child, ChildFailed
from awm_runtime.wire import Verdict, VerifierSource

COMMON: Final = (datetime, json, math, re, sqlite3)
"""What verifiers import; here already, so that none has to read it from disk."""

TIME_LIMIT: Final = 5.0
MEMORY_LIMIT: Final = 256 << 20
MAX_EVIDENCE: Final = 1 << 20

FUNCTIONS: Final = {"code": "verify_task_completion", "sql": "verify_task"}
"""Which function makes a verifier one of which mode; file names say nothing."""

REWARDS: Final = {"complete": 1.0, "others": 0.0}

_SIZE: Final = struct.Struct("!I")


@dataclass(frozen=True)
class Databases:
    """The two files a verifier is given, alone in a directory of their own."""

    directory: Path
    initial: bytes
    final: bytes

    @property
    def initial_path(self) -> Path:
        return self.directory / "initial.db"

    @property
    def final_path(self) -> Path:
        return self.directory / "final.db"

    def intact(self) -> bool:
        """Landlock keeps a verifier from writing; where the kernel has none, this is what notices."""
        return self.initial_path.read_bytes() == self.initial and self.final_path.read_bytes() == self.final

    def write(self) -> None:
        for path, content in ((self.initial_path, self.initial), (self.final_path, self.final)):
            path.write_bytes(content)
            path.chmod(0o444)


@contextmanager
def databases(initial: bytes, final: bytes) -> Iterator[Databases]:
    with _directory() as directory:
        files = Databases(directory, initial, final)
        files.write()
        yield files


@contextmanager
def _directory() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="awm-verify-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def verify(source: VerifierSource, initial: bytes, final: bytes, final_answer: str | None, now: float) -> Verdict:
    """The verdict of one verifier; its failures are inside the verdict. `now` is what it takes for the time."""
    with _directory() as directory, Cell(directory) as cell:
        return cell.judge(source, initial, final, final_answer, now)


@contextmanager
def cell(link: int) -> Iterator["Cell"]:
    """A cell made ahead of its verifier, so that most of what a verdict costs is paid before anybody waits for it.

    `link` is the caller's descriptor for whoever asks; the child must not have it.
    """
    with _directory() as directory, Cell(directory, link) as made:
        yield made


class Cell:
    """A child that is confined to a directory, empty so far, and waits for the one verifier that it will run there."""

    def __init__(self, directory: Path, *not_its: int) -> None:
        self.directory = directory
        orders, self._orders = os.pipe()
        self._child: Child | None = Child.begin(lambda: _live(directory, orders, (self._orders, *not_its)))
        os.close(orders)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._orders)
        if self._child is not None:
            self._child.end()

    def judge(self, source: VerifierSource, initial: bytes, final: bytes, final_answer: str | None, now: float) -> Verdict:
        """Once."""
        assert self._child is not None, "a cell is for one verifier"
        files = Databases(self.directory, initial, final)
        files.write()
        order = json.dumps({"source": source.model_dump(), "final_answer": final_answer, "now": now}).encode()
        child, self._child = self._child, None
        try:
            with suppress(BrokenPipeError):  # then its result tells why it is gone
                children.write_all(self._orders, _SIZE.pack(len(order)) + order)
            reply = child.result(TIME_LIMIT)
        except ChildFailed as failure:
            return _error(source, f"the verifier gave no verdict: {failure}")
        if not files.intact():
            return _error(source, "the verifier wrote to a database; it may only read them")
        try:
            verdict = Verdict.model_validate_json(reply)
        except ValueError:
            return _error(source, "the verifier gave no verdict: it ended its process")
        # The child ran generated code, which could have written the reply itself: what follows from the class is not its to say.
        reward = REWARDS.get(verdict.classification) if verdict.classification is not None and source.mode == "code" else None
        return verdict.model_copy(update={"mode": source.mode, "reward": reward})


def _live(directory: Path, orders: int, not_its: tuple[int, ...]) -> bytes:
    """Runs in the child."""
    for descriptor in not_its:
        os.close(descriptor)
    os.environ.clear()
    os.chdir(directory)
    clock.install()
    read = [*confine.python_paths(), directory]
    confine.confine(read, confine.Limits(memory=MEMORY_LIMIT, cpu_seconds=math.ceil(TIME_LIMIT) + 1), may_fork=False)
    with open(orders, "rb") as incoming:
        if not (head := incoming.read(_SIZE.size)):
            os._exit(0)  # nobody asked
        order = json.loads(incoming.read(*_SIZE.unpack(head)))
    source = VerifierSource.model_validate(order["source"])
    with clock.world(order["now"]):
        return verdict(source, Databases(directory, b"", b""), order["final_answer"]).model_dump_json().encode()


def verdict(source: VerifierSource, files: Databases, final_answer: str | None) -> Verdict:
    """What the verifier says, run in this very process; the caller has confined it."""
    module = types.ModuleType("verifier")
    sys.modules["verifier"] = module
    name = FUNCTIONS[source.mode]
    try:
        exec(_compiled(source.code), module.__dict__)
        function = getattr(module, name, None)
        if not callable(function):
            return _error(source, f"it defines no function {name}, which a verifier of mode {source.mode} must have")
        arguments: list[Any] = [str(files.initial_path), str(files.final_path)]
        if source.mode == "code" and _takes(function, 3):
            arguments.append(final_answer)
        returned = function(*arguments)
    except MemoryError:
        raise
    except BaseException as error:  # noqa: BLE001 - the boundary to generated code
        return _error(source, f"the verifier failed: {type(error).__name__}: {str(error)[:500]}")
    return _read(source, returned)


@lru_cache(maxsize=1)
def _compiled(code: str) -> types.CodeType:
    """Kept for the next look at other databases in the same process."""
    return compile(code, "verifier.py", "exec")


def _takes(function: Any, count: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * count)
    except (TypeError, ValueError):
        return False
    return True


def _read(source: VerifierSource, returned: Any) -> Verdict:
    """No guessing: a code verifier says `complete` or `others` in a dict, a sql verifier returns a dict that is JSON."""
    if source.mode == "code":
        result = returned.get("result") if isinstance(returned, dict) else None
        if not isinstance(result, str) or result not in REWARDS:
            return _error(
                source, f'invalid verdict: it returned {_shown(returned)}, not {{"result": "complete"}} or {{"result": "others"}}'
            )
        return Verdict.model_validate({"mode": "code", "classification": result, "reward": REWARDS[result]})
    if not isinstance(returned, dict):
        return _error(source, f"invalid evidence: it returned {_shown(returned)}, not a dict")
    try:
        evidence = json.dumps(returned, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        return _error(source, f"invalid evidence: it is not JSON: {error}")
    if len(evidence) > MAX_EVIDENCE:
        return _error(source, f"invalid evidence: {len(evidence)} characters are more than {MAX_EVIDENCE}")
    return Verdict(mode="sql", evidence=json.loads(evidence))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:120]}…"


def _error(source: VerifierSource, message: str) -> Verdict:
    return Verdict(mode=source.mode, error=message)
