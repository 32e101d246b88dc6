"""The database that environment code gets, whatever it asks for: by injection, never by changing its source.

Every `sqlite3.connect` of this process, and so every SQLAlchemy engine, opens the *current slot*: an in-memory database of
SQLite's memdb VFS, which several connections of one process share with real transactions and locks. So two sessions of one
handler see each other as they would on a file. A slot is loaded with an episode's state before a call and cleaned after it.
Engines get a pool whose connections belong to a slot, so nothing that was opened for one episode serves another.
"""

import _sqlite3
import itertools
import sqlite3
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import sqlalchemy
from sqlalchemy.engine import create as _engine_create
from sqlalchemy.engine.url import make_url
from sqlalchemy.pool import ConnectionPoolEntry, Pool, QueuePool

from awm_runtime import clock, pages

_real_connect: Final = sqlite3.connect
_real_create_engine: Final = sqlalchemy.create_engine
_numbers = itertools.count()

PASSED_ON: Final = {"detect_types", "isolation_level", "factory", "cached_statements", "uri", "autocommit"}
GROWTH: Final = 64 << 20
"""Bytes that a database may grow beyond its seed."""
_ANCHOR_PAGES: Final = 10
LOCK_TIMEOUT: Final = 0.0
"""One call runs at a time, so a lock is held by the call itself and waiting for it can't help."""


class SlotBroken(Exception):
    """A slot can't be cleaned (a statement still runs, a thread holds it); use a new one."""


@dataclass(eq=False)
class Slot:
    """One in-memory database, and what is open on it."""

    max_pages: int
    name: str = field(default_factory=lambda: f"/awm-{next(_numbers)}")
    idle: dict[Pool, list[ConnectionPoolEntry]] = field(default_factory=dict)
    """Connections that engines may use again, by engine."""
    out: set[ConnectionPoolEntry] = field(default_factory=set)
    """Connections of engines that are in use."""
    loose: list[sqlite3.Connection] = field(default_factory=list)
    """Connections that environment code opened itself."""

    keep: bool = False
    """The environment holds on to connections from call to call, so none is closed; the slot then serves one episode only."""

    def __post_init__(self) -> None:
        self.anchor = self._open_anchor()

    def _open_anchor(self) -> sqlite3.Connection:
        """The connection that copies go through. It keeps few pages, or each copy would leave it with the whole database."""
        anchor = self._open()
        anchor.execute(f"PRAGMA cache_size={_ANCHOR_PAGES}").close()
        return anchor

    def _open(self, **options: Any) -> sqlite3.Connection:
        uri = f"file:{self.name}?vfs=memdb"
        chosen = {"isolation_level": None, **options, "uri": True, "timeout": LOCK_TIMEOUT, "check_same_thread": False}
        connection: sqlite3.Connection = _real_connect(uri, **chosen)
        return connection

    def open(self, **options: Any) -> sqlite3.Connection:
        connection = self._open(**{"isolation_level": "", **options})
        connection.execute("PRAGMA foreign_keys=ON").close()
        connection.execute("PRAGMA temp_store=MEMORY").close()
        connection.execute(f"PRAGMA max_page_count={self.max_pages}").close()
        clock.sql_functions(connection)
        return connection

    def held(self) -> bool:
        """True if environment code still holds a connection: its references are more than those of one just opened."""
        control = self.open()
        unheld = sys.getrefcount(control) + 1  # the list's
        control.close()
        for index in range(len(self.loose)):
            connection = self.loose[index]
            if sys.getrefcount(connection) > unheld and _is_open(connection):
                return True
        return bool(self.out)

    def load(self, source: sqlite3.Connection) -> None:
        """Replace the content. Raises SlotBroken where something still holds a lock (the copy would wait for it for ever)."""
        self.check_unlocked()
        source.backup(self.anchor)

    def load_bytes(self, data: bytes) -> None:
        scratch = _scratch()
        scratch.deserialize(data)
        self.load(scratch)

    def content(self) -> bytes:
        """The database file, as committed."""
        data = self._serialized()
        return b"".join((_without_history(data), memoryview(data)[_HEADER:]))

    def delta(self, seed: bytes) -> bytes:
        """`content` as what it differs in from the seed."""
        data = self._serialized()
        return pages.delta(seed, data, _without_history(data))

    def _serialized(self) -> bytes:
        self.check_unlocked()
        scratch = _scratch()
        self.anchor.backup(scratch)
        return scratch.serialize()

    def check_unlocked(self) -> None:
        try:
            self.anchor.execute("BEGIN EXCLUSIVE").close()
            self.anchor.execute("ROLLBACK").close()
        except sqlite3.OperationalError as error:
            raise SlotBroken(str(error)) from error

    def version(self) -> int:
        """Changes when another connection commits something."""
        return int(self.anchor.execute("PRAGMA data_version").fetchone()[0])

    def clean(self) -> bool:
        """Close what the last call left open; its uncommitted work is gone with it. True if there was something."""
        if self.keep:
            return self._roll_back()
        leaked = bool(self.out)
        for entry in list(self.out):
            entry.invalidate()
        self.out.clear()
        for connection in self.loose:
            leaked = leaked or (_is_open(connection) and connection.in_transaction)
            connection.close()
        self.loose.clear()
        return leaked

    def _roll_back(self) -> bool:
        self.loose = [connection for connection in self.loose if _is_open(connection)]
        pooled = [entry.dbapi_connection for entry in self.out]
        pending = [c for c in [*self.loose, *pooled] if isinstance(c, sqlite3.Connection) and c.in_transaction]
        for connection in pending:
            connection.rollback()
        return bool(pending)

    def close(self) -> None:
        self.clean()
        for entries in self.idle.values():
            for entry in entries:
                entry.invalidate()
        self.idle.clear()
        self.anchor.close()


class SharedSlot(Slot):
    """A slot whose connections share one page cache, for a call that reads in one session while another has written.

    On a file, SQLite lets such a reader go on with the old rows; memdb has it wait for ever. Here it goes on, and sees the rows
    that the same call has written already. Two writers at once are refused here as there.
    """

    def _open(self, **options: Any) -> sqlite3.Connection:
        uri = f"file:{self.name[1:]}?mode=memory&cache=shared"
        chosen = {"isolation_level": None, **options, "uri": True, "timeout": LOCK_TIMEOUT, "check_same_thread": False}
        connection: sqlite3.Connection = _real_connect(uri, **chosen)
        connection.execute("PRAGMA read_uncommitted=ON").close()
        return connection

    def _open_anchor(self) -> sqlite3.Connection:
        return self._open()

    def version(self) -> int:
        """Connections of one cache share its counter, so only the content tells of a change."""
        return zlib.crc32(self.content())


def _is_open(connection: sqlite3.Connection) -> bool:
    try:
        connection.total_changes  # noqa: B018
    except sqlite3.ProgrammingError:
        return False
    return True


_HEADER: Final = 100
_COUNTERS: Final = (24, 40, 92)
"""Where the header counts changes of the file, changes of the schema, and the change that its size is valid for."""


def _without_history(data: bytes) -> bytes:
    """A database's header without a trace of how often its slot was written to; SQLite counts on from any value."""
    header = bytearray(data[:_HEADER])
    for offset in _COUNTERS:
        header[offset : offset + 4] = b"\0\0\0\1"
    return bytes(header)


@cache
def _scratch() -> sqlite3.Connection:
    """One database on the way in or out of slots. A deserialized one, which serializes 20 times faster than an ordinary one."""
    empty = _real_connect(":memory:", isolation_level=None)
    empty.execute("VACUUM")
    scratch: sqlite3.Connection = _real_connect(":memory:", isolation_level=None, check_same_thread=False)
    scratch.deserialize(empty.serialize())
    return scratch


@dataclass
class _Bound:
    slot: Slot | None = None
    engines: list[sqlalchemy.Engine] = field(default_factory=list)


bound = _Bound()


class SlotPool(QueuePool):
    """Hands out connections of the current slot only. A QueuePool by name, so that it accepts what an author tunes pools with."""

    def _do_get(self) -> ConnectionPoolEntry:
        slot = _current()
        entries = slot.idle.get(self)
        entry = entries.pop() if entries else self._create_connection()
        slot.out.add(entry)
        return entry

    def _do_return_conn(self, record: ConnectionPoolEntry, /) -> None:
        slot = bound.slot
        if slot is not None and record in slot.out:
            slot.out.discard(record)
            slot.idle.setdefault(self, []).append(record)
        else:
            record.invalidate()


_opening_for_pool = False


def _current() -> Slot:
    if bound.slot is None:
        raise sqlite3.OperationalError("no episode is being served; a connection can be used only while a tool is called")
    return bound.slot


def _connect(database: Any = ":memory:", *args: Any, **options: Any) -> sqlite3.Connection:
    """`sqlite3.connect` as environment code sees it. The name it asks for does not matter: there is one database."""
    slot = _current()
    names = ("timeout", "detect_types", "isolation_level", "check_same_thread", "factory", "cached_statements", "uri")
    options = {**dict(zip(names, args, strict=False)), **options}
    connection = slot.open(**{name: value for name, value in options.items() if name in PASSED_ON})
    if not _opening_for_pool:
        slot.loose.append(connection)
    return connection


def _connect_for_pool(creator: Callable[..., Any]) -> Callable[..., Any]:
    def connect(*args: Any, **options: Any) -> Any:
        global _opening_for_pool
        _opening_for_pool = True
        try:
            return creator(*args, **options)
        finally:
            _opening_for_pool = False

    return connect


def _create_engine(url: Any, **options: Any) -> sqlalchemy.Engine:
    """`sqlalchemy.create_engine` as environment code sees it: its URL and pool give way, all else is passed on."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite" or parsed.get_driver_name() != "pysqlite":
        return _real_create_engine(url, **options)
    options.pop("pool", None)
    options["poolclass"] = SlotPool
    engine = _real_create_engine(parsed.set(database="environment.db", query={}), **options)
    sqlalchemy.event.listen(engine, "do_connect", _do_connect)
    bound.engines.append(engine)
    return engine


def _do_connect(_dialect: Any, _record: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return _connect_for_pool(sqlite3.connect)(*args, **options)


def install() -> None:
    """Put this in the place of sqlite3.connect and create_engine; before environment code is imported."""
    for module in (sqlite3, sqlite3.dbapi2, _sqlite3):
        setattr(module, "connect", _connect)  # noqa: B010
    for holder in (sqlalchemy, sqlalchemy.engine, _engine_create):
        setattr(holder, "create_engine", _create_engine)  # noqa: B010
