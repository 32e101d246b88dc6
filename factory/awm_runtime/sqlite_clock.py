"""SQLite's idea of `now`, taken from us: the current-time hook of its VFS.

Overriding `datetime()` and its kin with functions of our own would break indexes and generated columns that use them; the hook
serves every form SQLite has (CURRENT_TIMESTAMP, `date('now')`, defaults, triggers) and breaks none. Python's sqlite3 does not
offer it, so this module reaches for the C struct through ctypes. The library is the one that `_sqlite3` itself is linked to.
"""

import _sqlite3
import ctypes
import sqlite3
from collections.abc import Callable
from typing import Final

UNIX_EPOCH_JULIAN_MS: Final = 210_866_760_000_000
"""Milliseconds from SQLite's day zero (noon, 24 November 4714 BC) to 1970-01-01T00:00Z (sqlite.org/c3ref/vfs.html)."""

_CURRENT_TIME = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_double))
_CURRENT_TIME_INT64 = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))


class _Vfs(ctypes.Structure):
    _fields_ = [
        ("iVersion", ctypes.c_int),
        ("szOsFile", ctypes.c_int),
        ("mxPathname", ctypes.c_int),
        ("pNext", ctypes.c_void_p),
        ("zName", ctypes.c_char_p),
        ("pAppData", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in ("xOpen", "xDelete", "xAccess", "xFullPathname")),
        *((name, ctypes.c_void_p) for name in ("xDlOpen", "xDlError", "xDlSym", "xDlClose", "xRandomness", "xSleep")),
        ("xCurrentTime", ctypes.c_void_p),
        ("xGetLastError", ctypes.c_void_p),
        ("xCurrentTimeInt64", ctypes.c_void_p),
    ]


_callbacks: list[object] = []
"""ctypes callbacks die with their last reference, and SQLite would then jump into freed memory."""


def install(now: Callable[[], float]) -> None:
    """Make SQLite in this process ask `now` (seconds since the epoch) for the time. Raises RuntimeError where it can't."""
    try:
        find = ctypes.CDLL(_sqlite3.__file__).sqlite3_vfs_find
    except (OSError, AttributeError) as error:
        raise RuntimeError(
            f"this Python hides its SQLite library ({error}); use one whose _sqlite3 module links it openly"
        ) from error
    find.restype, find.argtypes = ctypes.POINTER(_Vfs), [ctypes.c_char_p]

    def as_days(_vfs: int, out: "ctypes._Pointer[ctypes.c_double]") -> int:
        out[0] = (now() * 1000 + UNIX_EPOCH_JULIAN_MS) / 86_400_000
        return 0

    def as_milliseconds(_vfs: int, out: "ctypes._Pointer[ctypes.c_int64]") -> int:
        out[0] = int(now() * 1000) + UNIX_EPOCH_JULIAN_MS
        return 0

    callbacks = _CURRENT_TIME(as_days), _CURRENT_TIME_INT64(as_milliseconds)
    _callbacks.extend(callbacks)
    vfs = find(None)
    while vfs:
        vfs.contents.xCurrentTime = ctypes.cast(callbacks[0], ctypes.c_void_p).value
        if vfs.contents.iVersion >= 2:
            vfs.contents.xCurrentTimeInt64 = ctypes.cast(callbacks[1], ctypes.c_void_p).value
        vfs = ctypes.cast(vfs.contents.pNext, ctypes.POINTER(_Vfs)) if vfs.contents.pNext else None
    before = int(now())
    told = sqlite3.connect(":memory:").execute("SELECT CAST(strftime('%s', 'now') AS INTEGER)").fetchone()[0]
    if not before <= told <= int(now()):
        raise RuntimeError("SQLite does not ask the VFS for the time; use a build without SQLITE_OMIT_DATETIME_FUNCS")
