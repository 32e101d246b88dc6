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
import sys
import tempfile
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from awm_runtime import children, clock, confine
from awm_runtime.children import ChildFailed
from awm_runtime.contract import Verdict, VerifierSource

COMMON: Final = (datetime, json, math, re, sqlite3)
"""What verifiers import; here already, so that none has to read it from disk."""

TIME_LIMIT: Final = 5.0
MEMORY_LIMIT: Final = 256 << 20
MAX_EVIDENCE: Final = 1 << 20

FUNCTIONS: Final = {"code": "verify_task_completion", "sql": "verify_task"}
"""Which function makes a verifier one of which mode; file names say nothing."""

REWARDS: Final = {"complete": 1.0, "others": 0.0}


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


@contextmanager
def databases(initial: bytes, final: bytes) -> Iterator[Databases]:
    directory = Path(tempfile.mkdtemp(prefix="awm-verify-"))
    try:
        files = Databases(directory, initial, final)
        for path, content in ((files.initial_path, initial), (files.final_path, final)):
            path.write_bytes(content)
            path.chmod(0o444)
        yield files
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def verify(source: VerifierSource, initial: bytes, final: bytes, final_answer: str | None, now: float) -> Verdict:
    """The verdict of one verifier; its failures are inside the verdict. `now` is what it takes for the time."""
    with databases(initial, final) as files:
        try:
            reply = children.run(lambda: _judge(source, files, final_answer, now), TIME_LIMIT)
        except ChildFailed as failure:
            return _error(source, f"the verifier gave no verdict: {failure}")
        if not files.intact():
            return _error(source, "the verifier wrote to a database; it may only read them")
    try:
        verdict = Verdict.model_validate_json(reply)
    except ValueError:
        return _error(source, "the verifier gave no verdict: it ended its process")
    # The child ran generated code, which could have written the reply itself: what follows from the class is not taken from it.
    reward = REWARDS.get(verdict.classification) if verdict.classification is not None and source.mode == "code" else None
    return verdict.model_copy(update={"mode": source.mode, "reward": reward})


def _judge(source: VerifierSource, files: Databases, final_answer: str | None, now: float) -> bytes:
    """Runs in the child."""
    os.environ.clear()
    os.chdir(files.directory)
    clock.install()
    read = [*confine.python_paths(), files.directory]
    confine.confine(read, confine.Limits(memory=MEMORY_LIMIT, cpu_seconds=math.ceil(TIME_LIMIT) + 1), may_fork=False)
    with clock.world(now):
        return verdict(source, files, final_answer).model_dump_json().encode()


def verdict(source: VerifierSource, files: Databases, final_answer: str | None) -> Verdict:
    """What the verifier says, run in this very process; the caller has confined it."""
    module = types.ModuleType("verifier")
    sys.modules["verifier"] = module
    name = FUNCTIONS[source.mode]
    try:
        exec(compile(source.code, "verifier.py", "exec"), module.__dict__)
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
