"""Many pieces of work in one forked child, so that its imports are paid for once; a piece that kills the child costs only itself.

What is done so far lies in memory that the child inherits, so it outlives it; the next child goes on behind the piece at fault.
A piece that takes too long is ended by an alarm, whose default action no Python code can put off.
"""

import os
import signal
import struct
from collections.abc import Callable
from typing import Final

from awm_runtime import children
from awm_runtime.children import ChildFailed

_HEAD: Final = struct.Struct("!I")
_SETUP: Final = 60.0
"""Seconds for what comes before the first piece: importing an environment."""

Piece = Callable[[int], bytes]


def each(
    count: int, prepare: Callable[[], Piece], limit: float, *, alone: bool = False, deaths: int | None = None
) -> list[bytes | ChildFailed]:
    """`prepare()`, run in the child, gives the function that does piece i; its bytes, or what became of it, in order.

    `limit`: seconds a piece. `alone`: a fresh child for each. `deaths`: after so many the rest is given up, and is as the last.
    A child that dies before its first piece raises ChildFailed.
    """
    done: list[bytes | ChildFailed] = []
    while len(done) < count:
        start = len(done)
        end = start + 1 if alone else count
        frames, fault = _some(prepare, start, end, limit)
        done.extend(frames[1:])
        if fault is not None:
            if not frames:
                raise fault
            if len(done) < end:
                done.append(_named(fault, limit))
        if deaths is not None and sum(isinstance(one, ChildFailed) for one in done) >= deaths:
            done.extend([done[-1]] * (count - len(done)))
    return done


def _some(prepare: Callable[[], Piece], start: int, end: int, limit: float) -> tuple[list[bytes], ChildFailed | None]:
    """What one child got done, the empty frame of its preparation first, and how it failed if it did."""
    memory = os.memfd_create("awm-batch")
    fault = None
    try:
        children.run(lambda: _work(prepare, start, end, limit, memory), _SETUP + limit * (end - start))
    except ChildFailed as failure:
        fault = failure
    with os.fdopen(memory, "rb") as written:
        written.seek(0)
        return _frames(written.read()), fault


def _named(fault: ChildFailed, limit: float) -> ChildFailed:
    if "SIGALRM" in str(fault):
        return ChildFailed("timeout", f"it was not done after {limit:g} s and was stopped")
    return fault


def _work(prepare: Callable[[], Piece], start: int, end: int, limit: float, memory: int) -> bytes:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    piece = prepare()
    _write(memory, b"")
    for index in range(start, end):
        signal.setitimer(signal.ITIMER_REAL, limit)
        result = piece(index)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _write(memory, result)
    return b""


def _write(memory: int, data: bytes) -> None:
    view = memoryview(_HEAD.pack(len(data)) + data)
    while view:
        view = view[os.write(memory, view) :]


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
