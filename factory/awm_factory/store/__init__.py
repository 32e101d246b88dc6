"""Runs, attempts, artifacts and costs, in SQLite or PostgreSQL; what is in here survives a kill at any moment.

Each method is one transaction, committed when it returns, and may be called from any thread. There is no in-memory twin to keep
in step: `Store.open("sqlite://")` is SQLite in memory, the same code.
"""

import hashlib
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from awm_factory.errors import StoreError
from awm_factory.problems import Problem
from awm_factory.store import connect, tables
from awm_factory.store.costs import costs, total
from awm_factory.store.records import Attempt, Cost, Run, RunState, Scenario, ScenarioState

__all__ = ["Attempt", "Cost", "Run", "RunCalls", "RunState", "Scenario", "ScenarioState", "Store", "total"]

_CREATION_LOCK = 0x41574D
"""Key of the advisory lock under which PostgreSQL makes the tables; SQLite locks the file by itself."""


class Store:
    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._lock = threading.RLock()
        self._insert = postgresql.insert if engine.dialect.name == "postgresql" else sqlite.insert

    @classmethod
    def open(cls, url: str) -> Self:
        """`url` is a path, an SQLAlchemy URL of SQLite or PostgreSQL, or `sqlite://` for one in memory.

        Raises StoreError where it can't be opened, or was made by a version with another layout.
        """
        parsed = connect.parse(url)
        shown = parsed.render_as_string(hide_password=True)
        try:
            store = cls(connect.engine(parsed))
            store._create()
            found = store.version()
        except (SQLAlchemyError, StoreError, OSError) as error:
            cause = connect.reason(error.__cause__ or error)
            raise StoreError(f"the store {shown} can't be opened: {cause}; check the path or URL given by --store") from error
        except ModuleNotFoundError as error:
            raise StoreError(f"the store {shown} needs {error.name}; run: pip install 'awm-factory[postgres]'") from error
        if found != tables.VERSION:
            raise StoreError(f"the store {shown} has layout {found}, this version needs {tables.VERSION}; name another one")
        return store

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def version(self) -> int:
        with self._read() as connection:
            return int(connection.execute(sa.select(tables.Meta.version)).scalar_one())

    # --- runs and scenarios -----------------------------------------------------------------------------------------

    def start_run(self, run_id: str, model: str, settings: Mapping[str, Any]) -> Run:
        """A new run, or the one of this id to go on with; its first settings stay."""
        values = {"run_id": run_id, "state": "running", "model": model, "settings": dict(settings), "note": ""}
        with self._write() as connection:
            statement = self._insert(tables.Run).values(values | {"created_at": time.time()})
            changes = {"state": "running", "finished_at": None}
            connection.execute(statement.on_conflict_do_update(index_elements=["run_id"], set_=changes))
        return self.run(run_id)

    def finish_run(self, run_id: str, state: RunState, note: str = "") -> None:
        with self._write() as connection:
            changes = {"state": state, "note": note, "finished_at": time.time()}
            connection.execute(sa.update(tables.Run).where(tables.Run.run_id == run_id).values(changes))

    def run(self, run_id: str) -> Run:
        """Raises StoreError that lists what there is."""
        with self._read() as connection:
            row = connection.execute(_rows(tables.Run).where(tables.Run.run_id == run_id)).one_or_none()
        if row is None:
            known = ", ".join(run.run_id for run in self.runs()) or "none"
            raise StoreError(f"the store holds no run {run_id!r}; runs in it: {known}")
        return Run(**row._mapping)

    def runs(self) -> list[Run]:
        """Oldest first."""
        with self._read() as connection:
            rows = connection.execute(_rows(tables.Run).order_by(tables.Run.created_at, tables.Run.run_id))
            return [Run(**row._mapping) for row in rows]

    def put_scenario(self, run_id: str, scenario: Scenario) -> None:
        """One that is there already stays as it is: a run that goes on finds its scenarios where it left them."""
        with self._write() as connection:
            statement = self._insert(tables.Scenario).values(run_id=run_id, **asdict(scenario))
            connection.execute(statement.on_conflict_do_nothing())

    def end_scenario(self, run_id: str, env_id: str, state: ScenarioState, note: str, row: Mapping[str, Any]) -> None:
        """`row`: whatever its run wants to find again, as JSON."""
        with self._write() as connection:
            where = (tables.Scenario.run_id == run_id, tables.Scenario.env_id == env_id)
            connection.execute(sa.update(tables.Scenario).where(*where).values(state=state, note=note))
            statement = self._insert(tables.Ending).values(run_id=run_id, env_id=env_id, row=dict(row))
            key = ["run_id", "env_id"]
            connection.execute(statement.on_conflict_do_update(index_elements=key, set_={"row": statement.excluded.row}))

    def ending(self, run_id: str, env_id: str) -> dict[str, Any] | None:
        """The row of a scenario that ended; None for others."""
        with self._read() as connection:
            where = (tables.Ending.run_id == run_id, tables.Ending.env_id == env_id)
            row: dict[str, Any] | None = connection.execute(sa.select(tables.Ending.row).where(*where)).scalar_one_or_none()
        return row

    def scenarios(self, run_id: str) -> list[Scenario]:
        with self._read() as connection:
            query = _rows(tables.Scenario).where(tables.Scenario.run_id == run_id).order_by(tables.Scenario.position)
            return [Scenario(**_without_run(row)) for row in connection.execute(query)]

    # --- attempts and artifacts -------------------------------------------------------------------------------------

    def put_attempt(self, run_id: str, attempt: Attempt) -> None:
        """Written again it replaces itself, so a run that goes on may repeat the attempt that a kill interrupted."""
        with self._write() as connection:
            values = asdict(attempt) | {
                "run_id": run_id,
                "prompt": self._put(connection, attempt.prompt.encode("utf-8", "replace")),
                "answer": None if attempt.answer is None else self._put(connection, attempt.answer.encode("utf-8", "replace")),
                "artifact": None if attempt.artifact is None else self._put(connection, attempt.artifact),
                "problems": [problem.model_dump(mode="json") for problem in attempt.problems],
            }
            key = ["run_id", "env_id", "stage", "item", "number"]
            statement = self._insert(tables.Attempt).values(values)
            changes = {name: value for name, value in values.items() if name not in key}
            connection.execute(statement.on_conflict_do_update(index_elements=key, set_=changes))

    def choose_attempt(self, run_id: str, env_id: str, stage: str, item: str, number: int) -> None:
        """Mark the attempt whose artifact the stage keeps; no other of the same part stays marked."""
        attempt = tables.Attempt
        with self._write() as connection:
            where = (attempt.run_id == run_id, attempt.env_id == env_id, attempt.stage == stage, attempt.item == item)
            connection.execute(sa.update(attempt).where(*where).values(chosen=attempt.number == number))

    def attempts(self, run_id: str, env_id: str | None = None, stage: str | None = None) -> list[Attempt]:
        """By environment, stage, item and number."""
        attempt = tables.Attempt
        query = _rows(attempt).where(attempt.run_id == run_id)
        query = query if env_id is None else query.where(attempt.env_id == env_id)
        query = query if stage is None else query.where(attempt.stage == stage)
        with self._read() as connection:
            rows = connection.execute(query.order_by(attempt.env_id, attempt.stage, attempt.item, attempt.number)).all()
            return [self._attempt(connection, _without_run(row)) for row in rows]

    def put_artifact(self, content: bytes) -> str:
        """Digest: SHA-256 of the content, hex."""
        with self._write() as connection:
            return self._put(connection, content)

    def artifact(self, digest: str) -> bytes:
        with self._read() as connection:
            return self._get(connection, digest)

    # --- calls and costs --------------------------------------------------------------------------------------------

    def calls(self, run_id: str) -> "RunCalls":
        return RunCalls(self, run_id)

    def reply(self, key: str) -> str | None:
        with self._read() as connection:
            packed = connection.execute(sa.select(tables.Reply.packed).where(tables.Reply.key == key)).scalar_one_or_none()
        return None if packed is None else zlib.decompress(packed).decode()

    def add_call(self, run_id: str, key: str, reply: str | None, figures: Mapping[str, Any]) -> None:
        """The reply and what it cost, in one transaction: no reply can be used that is not paid for, or paid for twice."""
        with self._write() as connection:
            if reply is not None:
                packed = {"key": key, "packed": zlib.compress(reply.encode())}
                connection.execute(self._insert(tables.Reply).values(packed).on_conflict_do_nothing())
            connection.execute(sa.insert(tables.Call).values(run_id=run_id, key=key, created_at=time.time(), **figures))

    def costs(self, run_id: str) -> list[Cost]:
        """By environment and stage; what lies outside any environment comes first."""
        with self._read() as connection:
            return costs(connection, run_id)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _create(self) -> None:
        with self._write() as connection:
            if self._engine.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CREATION_LOCK)))
            known = sa.inspect(connection).has_table("meta")
            tables.Base.metadata.create_all(connection)
            if not known:
                connection.execute(sa.insert(tables.Meta).values(version=tables.VERSION))

    @contextmanager
    def _read(self) -> Iterator[sa.Connection]:
        with self._transaction(self._engine) as connection:
            yield connection

    @contextmanager
    def _write(self) -> Iterator[sa.Connection]:
        with self._transaction(self._engine.execution_options(awm_write=True)) as connection:
            yield connection

    @contextmanager
    def _transaction(self, engine: sa.Engine) -> Iterator[sa.Connection]:
        try:
            with self._lock, engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise StoreError(f"the store failed: {connect.reason(error)}; see that its disk or server is well") from error

    def _put(self, connection: sa.Connection, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        statement = self._insert(tables.Artifact).values(digest=digest, packed=zlib.compress(content))
        connection.execute(statement.on_conflict_do_nothing())
        return digest

    def _get(self, connection: sa.Connection, digest: str) -> bytes:
        packed = connection.execute(
            sa.select(tables.Artifact.packed).where(tables.Artifact.digest == digest)
        ).scalar_one_or_none()
        if packed is None:
            raise StoreError(f"the store holds no artifact {digest}; it was made by a run of another store")
        return zlib.decompress(packed)

    def _attempt(self, connection: sa.Connection, row: dict[str, Any]) -> Attempt:
        texts = {
            "prompt": self._get(connection, row["prompt"]).decode(),
            "answer": None if row["answer"] is None else self._get(connection, row["answer"]).decode(),
            "artifact": None if row["artifact"] is None else self._get(connection, row["artifact"]),
        }
        problems = tuple(Problem.model_validate(problem) for problem in row["problems"])
        return Attempt(**row | texts | {"problems": problems})


@dataclass(frozen=True)
class RunCalls:
    """One run's view of the calls: what `llm.metered` looks replies up in and writes its figures to."""

    store: Store
    run_id: str

    def reply(self, key: str) -> str | None:
        return self.store.reply(key)

    def add_call(self, key: str, reply: str | None, figures: Mapping[str, Any]) -> None:
        self.store.add_call(self.run_id, key, reply, figures)

    def spent(self) -> float:
        """USD of this run so far, where prices are known."""
        return sum(cost.usd or 0.0 for cost in self.store.costs(self.run_id))


def _rows(table: type[tables.Base]) -> sa.Select[Any]:
    """Columns, where selecting the class itself would make objects of the ORM."""
    return sa.select(*table.__table__.columns)


def _without_run(row: sa.Row[Any]) -> dict[str, Any]:
    return {name: value for name, value in row._mapping.items() if name != "run_id"}
