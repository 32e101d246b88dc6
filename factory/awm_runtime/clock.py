"""World time and seeded chance in a process that runs environment code, one call at a time.

Inside an episode `datetime.now()`, `time.time()` and SQLite stand still at an instant that `enter` sets, and `random`, `uuid4`,
`secrets`, `os.urandom` and SQL's `random()` draw from the episode's seed; outside they are the real ones. No subclass of
datetime is put in anybody's place (that breaks `Mapped[datetime]` and `type(x) is datetime`): the methods of the C type are
exchanged, and the functions of `time`. The supervisor never installs any of this, so its timers are its own.

What asks the kernel from compiled code is mended where it is (`pydantic_clock`). Out of reach is a thread that outlives its call.
"""

import ctypes
import datetime as _datetime
import gc
import os
import random
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from awm_runtime import sqlite_clock

_now: float | None = None
_seed: tuple[int, int] = (0, 0)
_stream: random.Random | None = None

reads = {"clock": 0, "random": 0}
"""How often SQL asked for the time or for chance; tells which statement depends on them."""

_real_time: Final = time.time
_real_urandom: Final = os.urandom
_real: Final[dict[str, Any]] = {name: getattr(time, name) for name in ("gmtime", "localtime", "strftime", "ctime", "asctime")}
_CONSTANT: Final = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
"""Clocks that stand still within a call: elapsed time stored in a row would differ from run to run."""


def parse_world_time(text: str) -> int:
    """Seconds since the epoch of an ISO instant such as `2026-01-01T00:00:00Z`. Raises ValueError."""
    instant = _datetime.datetime.fromisoformat(text)
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=_datetime.UTC)
    return int(instant.timestamp())


def enter(now: float, seed: int, step: int) -> None:
    """Stop the world's clock at `now` and start the streams of chance that belong to this step of this seed."""
    global _now, _seed, _stream
    _now, _seed, _stream = now, (seed, step), None
    random.seed((seed << 32) ^ step)
    uuid._last_timestamp = None  # type: ignore[attr-defined]


def leave() -> None:
    global _now
    _now = None


@contextmanager
def world(now: float, seed: int = 0, step: int = 0) -> Iterator[None]:
    enter(now, seed, step)
    try:
        yield
    finally:
        leave()


def chance() -> random.Random:
    """The stream behind everything that is not the `random` module's own generator."""
    global _stream
    if _stream is None:
        _stream = random.Random(f"awm {_seed[0]} {_seed[1]}")
    return _stream


def sql_functions(connection: sqlite3.Connection) -> None:
    """Give a connection SQL `random()` and `randomblob()` that draw from the episode's seed."""
    connection.create_function("random", 0, _sql_random)
    connection.create_function("randomblob", 1, _sql_randomblob)


def _sql_random() -> int:
    reads["random"] += 1
    return int.from_bytes(_urandom(8), "big", signed=True)


def _sql_randomblob(size: int) -> bytes:
    reads["random"] += 1
    return _urandom(max(1, min(int(size or 0), 1 << 20)))


def _sql_now() -> float:
    reads["clock"] += 1
    return _real_time() if _now is None else _now


def _urandom(size: int, /) -> bytes:
    return _real_urandom(size) if _now is None else chance().randbytes(size)


_installed = False


def install() -> None:
    """Exchange the clocks and sources of chance of this process, before environment code is imported.

    Again in a child that has cleared its environment variables; the rest is done once.
    """
    global _installed
    os.environ["TZ"] = "UTC"
    time.tzset()
    if _installed:
        return
    _installed = True
    sqlite_clock.install(_sql_now)
    for name in _CONSTANT:
        setattr(time, name, _constant(getattr(time, name), 1))
        setattr(time, f"{name}_ns", _constant(getattr(time, f"{name}_ns"), 1_000_000_000))
    for name, position in (("gmtime", 0), ("localtime", 0), ("ctime", 0), ("strftime", 1), ("asctime", 0)):
        setattr(time, name, _defaulting(name, position))
    time.clock_gettime = lambda clock, _real=time.clock_gettime: _real(clock) if _now is None else _now  # type: ignore[misc]
    _patch_datetime()
    os.urandom = _urandom
    random._urandom = _urandom  # type: ignore[attr-defined]
    _patch_random_class()
    uuid._generate_time_safe = None  # type: ignore[attr-defined]
    uuid._UuidCreate = None  # type: ignore[attr-defined]
    uuid.getnode = lambda: 0x0242AC110002


def _constant(real: Callable[[], float], scale: int) -> Callable[[], float]:
    if scale == 1:
        return lambda: real() if _now is None else float(_now)
    return lambda: real() if _now is None else int(_now * scale)


def _defaulting(name: str, position: int) -> Callable[..., Any]:
    """`time.gmtime()` and kin: given no instant they mean now."""
    real = _real[name]

    def function(*args: Any) -> Any:
        if _now is None or (len(args) > position and args[position] is not None):
            return real(*args)
        instant = _now if name in {"gmtime", "localtime", "ctime"} else _real["localtime"](_now)
        return real(*args[:position], instant)

    function.__name__ = name
    return function


def _patch_datetime() -> None:
    cls = _datetime.datetime
    real_now, real_utcnow = cls.now, cls.utcnow

    def now(cls: type[_datetime.datetime], tz: _datetime.tzinfo | None = None) -> _datetime.datetime:
        if _now is None:
            return real_now(tz) if cls is _datetime.datetime else cls.fromtimestamp(_real_time(), tz)
        return cls.fromtimestamp(_now, tz)

    def utcnow(cls: type[_datetime.datetime]) -> _datetime.datetime:
        if _now is None and cls is _datetime.datetime:
            return real_utcnow()
        return cls.fromtimestamp(_real_time() if _now is None else _now, _datetime.UTC).replace(tzinfo=None)

    # The mapping proxy of a type refers to one object: the type's dict, which only C code may write to by other means.
    (namespace,) = gc.get_referents(cls.__dict__)
    namespace["now"], namespace["utcnow"] = classmethod(now), classmethod(utcnow)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(cls))


def _patch_random_class() -> None:
    """A generator made without a seed takes one from the kernel; in an episode, from the episode."""
    real_seed = random.Random.seed

    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        if a is None and _now is not None:
            a = int.from_bytes(_urandom(32), "big")
        real_seed(self, a, version)

    random.Random.seed = seed  # type: ignore[method-assign]
    random.seed = random._inst.seed
