"""Many pieces of work in one forked child, so that its imports are paid for once; a piece that kills the child costs only itself.

What is done so far lies in memory that the child inherits, so it outlives it; the next child goes on behind the piece at fault.
A piece that takes too long is ended by an alarm, whose default action no Python code can put off.
"""

import os
import signal
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from awm_runtime import children
from awm_runtime.children import ChildFailed
from awm_runtime.patience import patient

_HEAD: Final = struct.Struct("!I")
_NOTES: Final = 1 << 16
"""Bytes at the beginning of the memory for what the child is about to do."""
SETUP: Final = 60.0
"""Seconds for what comes before the first piece: importing an environment."""

Piece = Callable[[int], bytes]
Note = Callable[[bytes], None]
"""Told what is about to be done, where it outlives a process that does not come back from it."""
Prepare = Callable[[Note], Piece]
"""Run in the child; gives the function that does piece i."""


@dataclass(frozen=True)
class Work:
    """Pieces `start` to `end`, done one by one in the process that was forked for them, and written to `memory`."""

    start: int
    end: int
    limit: float
    """Seconds a piece."""
    memory: int
    """Descriptor of a memory file, which the child inherits or is sent."""

    @property
    def time_limit(self) -> float:
        return patient(SETUP) + self.limit * (self.end - self.start)

    def do(self, prepare: Prepare) -> None:
        """Runs in the child."""
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        os.lseek(self.memory, _NOTES, os.SEEK_SET)
        piece = prepare(self._note)
        self.write(b"")
        for index in range(self.start, self.end):
            signal.setitimer(signal.ITIMER_REAL, self.limit)
            result = piece(index)
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.write(result)

    def write(self, data: bytes) -> None:
        view = memoryview(_HEAD.pack(len(data)) + data)
        while view:
            view = view[os.write(self.memory, view) :]

    def _note(self, text: bytes) -> None:
        os.pwrite(self.memory, _HEAD.pack(len(text)) + text if len(text) < _NOTES - _HEAD.size else _HEAD.pack(0), 0)


Fork = Callable[[Work], None]
"""Has the work done in a child. Raises ChildFailed."""


def forked(prepare: Prepare) -> Fork:
    """Children of this very process."""

    def fork(work: Work) -> None:
        def child() -> bytes:
            work.do(prepare)
            return b""

        children.run(child, work.time_limit)

    return fork


@dataclass(frozen=True)
class Done:
    pieces: list[bytes | ChildFailed]
    """Of each piece its bytes, or what became of it, in order."""
    last: bytes
    """What was about to be done when a child ended; empty where none did."""


def each(
    count: int, fork: Fork, limit: float, *, alone: bool = False, parts: Sequence[int] = (), deaths: int | None = None
) -> Done:
    """`limit`: seconds a piece, stretched on a busy machine. `alone`: a child for each. `parts`: pieces of one child,
    child by child; all in one where empty.

    `deaths`: after so many the rest is given up, and is as the last. A child that dies before its first piece raises ChildFailed.
    """
    limit = patient(limit)
    ends = [*accumulate(parts), count]
    done: list[bytes | ChildFailed] = []
    last = b""
    while len(done) < count:
        start = len(done)
        end = start + 1 if alone else next(end for end in ends if end > start)
        frames, note, fault = _some(fork, start, end, limit)
        done.extend(frames[1:])
        if fault is not None:
            if not frames:
                raise fault
            last = note
            if len(done) < end:
                done.append(_named(fault, limit))
        if deaths is not None and sum(isinstance(one, ChildFailed) for one in done) >= deaths:
            done.extend([done[-1]] * (count - len(done)))
    return Done(done, last)


def _some(fork: Fork, start: int, end: int, limit: float) -> tuple[list[bytes], bytes, ChildFailed | None]:
    """What one child got done, the empty frame of its preparation first, its last note, and how it failed if it did."""
    memory = os.memfd_create("awm-batch")
    fault = None
    try:
        os.truncate(memory, _NOTES)
        fork(Work(start, end, limit, memory))
    except ChildFailed as failure:
        fault = failure
    with os.fdopen(memory, "rb") as written:
        written.seek(0)
        data = written.read()
    (size,) = _HEAD.unpack_from(data)
    return _frames(data[_NOTES:]), data[_HEAD.size : _HEAD.size + size], fault


def _named(fault: ChildFailed, limit: float) -> ChildFailed:
    if "SIGALRM" in str(fault):
        return ChildFailed("timeout", f"it was not done after {limit:g} s and was stopped")
    return fault


def _frames(data: bytes) -> list[bytes]:
    """The whole frames; one that its writer died in counts for nothing."""
    found, position = [], 0
    while position + _HEAD.size <= len(data):
        (size,) = _HEAD.unpack_from(data, position)
        position += _HEAD.size
        if position + size > len(data):
            break
        found.append(data[position : position + size])
        position += size
    return found
