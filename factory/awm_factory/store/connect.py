"""Engines for the two databases, set up alike."""

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import StaticPool
from tenacity import Retrying, retry_if_exception_message, stop_after_delay, wait_random

from awm_factory.errors import StoreError

_PATIENCE: Final = 60.0
"""Seconds to wait for another process that writes."""


def parse(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url if "://" in url else f"sqlite:///{url}")
    except SQLAlchemyError as error:
        raise StoreError("--store is neither a path nor a database URL; write e.g. runs.db or postgresql://host/name") from error
    if parsed.get_backend_name() not in {"sqlite", "postgresql"}:
        raise StoreError(f"--store names {parsed.get_backend_name()}; SQLite and PostgreSQL are supported")
    return parsed.set(drivername="postgresql+psycopg") if parsed.drivername in {"postgresql", "postgres"} else parsed


def engine(url: sa.URL) -> sa.Engine:
    if url.get_backend_name() == "postgresql":
        return sa.create_engine(url, pool_pre_ping=True)
    memory = {"poolclass": StaticPool} if url.database in {None, "", ":memory:"} else {}
    made = sa.create_engine(url, connect_args={"check_same_thread": False, "timeout": _PATIENCE}, **memory)

    @sa.event.listens_for(made, "connect")
    def set_up(connection: Any, _: object) -> None:
        connection.isolation_level = None
        # In WAL mode a commit outlives a killed process without waiting for the disk; only a power cut may take the last ones.
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
            # Of all statements, the one that turns on WAL mode fails at once where another process is about to write.
            for attempt in Retrying(
                retry=retry_if_exception_message(match="database is locked"),
                wait=wait_random(0.01, 0.1),
                stop=stop_after_delay(_PATIENCE),
                reraise=True,
            ):
                with attempt:
                    connection.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(made, "begin")
    def begin(connection: sa.Connection) -> None:
        # A transaction that reads first and then writes fails at once where another process has written in between.
        writes = connection.get_execution_options().get("awm_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return made


def reason(error: BaseException) -> str:
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0]
