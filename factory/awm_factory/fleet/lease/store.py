"""What the lease service knows, in a SQLite file, so that leases survive its restart."""

import sqlite3
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Final, Self, cast

from awm_factory.client.wire import EndReason

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS episodes (
  episode_id TEXT PRIMARY KEY,
  lease_id TEXT NOT NULL,
  twin INTEGER NOT NULL,
  env_id TEXT NOT NULL,
  task_id INTEGER,
  instruction TEXT,
  address TEXT NOT NULL,
  host TEXT NOT NULL,
  ttl REAL NOT NULL,
  expires_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ended (
  lease_id TEXT NOT NULL,
  episode_id TEXT PRIMARY KEY,
  reason TEXT NOT NULL,
  at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS ended_at ON ended (at);
CREATE INDEX IF NOT EXISTS ended_lease ON ended (lease_id);
"""


@dataclass(frozen=True)
class Held:
    """An episode that is leased, or a twin of one."""

    episode_id: str
    lease_id: str
    twin: bool
    env_id: str
    task_id: int | None
    instruction: str | None
    address: str
    """Of the container, on the trainers' network."""
    host: str
    """The container's name, which agents' network knows as well."""
    ttl: float
    expires_at: float
    """Unix seconds; a twin's means nothing, it ends with its lease."""

    def until(self, expires_at: float, ttl: float) -> Self:
        return replace(self, expires_at=expires_at, ttl=ttl)


@dataclass(frozen=True)
class Ended:
    lease_id: str
    episode_id: str
    reason: EndReason
    at: float


_COLUMNS: Final = ", ".join(field.name for field in fields(Held))
_MARKS: Final = ", ".join("?" * len(fields(Held)))


class Store:
    def __init__(self, path: Path | None) -> None:
        """`path` None keeps it in memory."""
        self._db = sqlite3.connect(path or ":memory:", isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        # The file outlives the process, not a power cut: after one, no container's episodes are left to lease either.
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.executescript(_SCHEMA)

    def close(self) -> None:
        self._db.close()

    def held(self) -> Iterator[Held]:
        for row in self._db.execute(f"SELECT {_COLUMNS} FROM episodes ORDER BY twin"):
            yield Held(row[0], row[1], bool(row[2]), *row[3:])

    def reason(self, name: str) -> EndReason | None:
        """Why a lease or an episode ended; None where nothing of that name did."""
        row = self._db.execute("SELECT reason FROM ended WHERE lease_id = ?1 OR episode_id = ?1", (name,)).fetchone()
        return None if row is None else cast("EndReason", row[0])

    def put(self, held: Held) -> None:
        self._db.execute(f"INSERT OR REPLACE INTO episodes ({_COLUMNS}) VALUES ({_MARKS})", astuple(held))

    def prolong(self, episode_id: str, expires_at: float, ttl: float) -> None:
        self._db.execute("UPDATE episodes SET expires_at = ?, ttl = ? WHERE episode_id = ?", (expires_at, ttl, episode_id))

    def end(self, ended: list[Ended]) -> None:
        """All of them or none."""
        self._db.execute("BEGIN")
        for one in ended:
            self._db.execute("DELETE FROM episodes WHERE episode_id = ?", (one.episode_id,))
            self._db.execute("INSERT OR REPLACE INTO ended VALUES (?, ?, ?, ?)", astuple(one))
        self._db.execute("COMMIT")

    def forget(self, before: float) -> None:
        """Drop what ended before that instant."""
        self._db.execute("DELETE FROM ended WHERE at < ?", (before,))


def task_of(found: dict[str, object]) -> int | None:
    value = found.get("task_id")
    return value if isinstance(value, int) else None


def text_of(value: object) -> str | None:
    return value if isinstance(value, str) else None
