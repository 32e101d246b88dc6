"""A function run in a forked child, with an end to its time and memory; what it returns comes back over a pipe.

The child may die in any way: of a signal, of `os._exit`, of its memory limit, or of our patience. Each is a ChildFailed with a
reason, and none touches the parent. A child dies with its parent, so killing one ends all that it forked.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NoReturn, Self

from awm_runtime.confine import die_with_parent

Reason = Literal["timeout", "memory", "crashed"]

OUT_OF_MEMORY: Final = 71
RAISED: Final = 70
"""Exit statuses of a child that tell of its end."""
_MAX_REPLY: Final = 256 << 20
_clock = time.monotonic
"""Bound before `clock.install` exchanges it."""


class ChildFailed(Exception):
    """The child ended without an answer."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason


@dataclass(frozen=True)
class Child:
    """A forked child at work. Whoever begins it asks for its result or ends it."""

    process: int
    reader: int

    @classmethod
    def begin(cls, function: Callable[[], bytes]) -> Self:
        reader, writer = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        process = os.fork()
        if process == 0:
            os.close(reader)
            _be_child(function, writer, parent)
        os.close(writer)
        return cls(process, reader)

    def result(self, time_limit: float) -> bytes:
        """What the function returned. `time_limit`: seconds from now. Raises ChildFailed."""
        deadline = _clock() + time_limit
        try:
            reply = _read_all(self.reader, deadline)
            status = _wait(self.process, deadline)
        finally:
            self.end()
        if reply is None or status is None:
            raise ChildFailed("timeout", f"it was not done after {time_limit:g} s and was stopped")
        if (fault := failure(status, reply.decode("utf-8", "replace"))) is not None:
            raise fault
        return reply

    def end(self) -> None:
        """Once, whatever it is doing."""
        os.close(self.reader)
        _kill(self.process)


def run(function: Callable[[], bytes], time_limit: float) -> bytes:
    """What `function` returns in a forked child. Raises ChildFailed."""
    return Child.begin(function).result(time_limit)


def failure(status: int, said: str) -> ChildFailed | None:
    """What the wait status of a child means; `said` is what it wrote of an exception."""
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        return None
    if code == OUT_OF_MEMORY:
        return ChildFailed("memory", "it needed more memory than it may have")
    if code == RAISED:
        return ChildFailed("crashed", said)
    if code == -signal.SIGXCPU:
        return ChildFailed("timeout", "it used more processor time than it may have and was stopped")
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
    return ChildFailed("crashed", f"its process ended by itself, with {how}")


def _be_child(function: Callable[[], bytes], writer: int, parent: int) -> NoReturn:
    code = RAISED
    try:
        die_with_parent()
        if os.getppid() != parent:
            os._exit(code)
        write_all(writer, function())
        code = 0
    except MemoryError:
        code = OUT_OF_MEMORY
    except BaseException as error:  # noqa: BLE001 - the boundary of a forked process: nothing may run on into the parent's code
        write_all(writer, f"{type(error).__name__}: {error}"[:4000].encode("utf-8", "replace"))
    finally:
        os._exit(code)


def write_all(descriptor: int, data: bytes) -> None:
    """All of it, to a pipe; raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _read_all(descriptor: int, deadline: float) -> bytes | None:
    """All that the child writes; None where the deadline passes or it writes without end."""
    parts: list[bytes] = []
    size = 0
    while True:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - _clock()))
        if not ready:
            return None
        part = os.read(descriptor, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
        if size > _MAX_REPLY:
            return None


def _wait(child: int, deadline: float) -> int | None:
    """Exit status; None where the child lives on past the deadline although it closed its pipe."""
    descriptor = os.pidfd_open(child)
    try:
        if not select.select([descriptor], [], [], max(0.0, deadline - _clock()))[0]:
            return None
    finally:
        os.close(descriptor)
    return os.waitpid(child, 0)[1]


def _kill(child: int) -> None:
    try:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    except (ProcessLookupError, ChildProcessError):
        return
