"""Where checks are carried out: the sandbox, and what it said lately about the same database and app.

Ten tasks of one environment are checked side by side and all need its seeded database; it is made once. Only few are
kept, because a thousand environments in flight would otherwise hold a thousand databases.
"""

import ast
import base64
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

from awm_factory.certify import Options
from awm_factory.certify.run import APP_CHECK, APP_LIMIT
from awm_factory.certify.statements import numbered
from awm_factory.sandbox.parsing import parse
from awm_factory.sandbox.pool import Reply, Request, Sandbox, expect
from awm_factory.synthesis.draft import Draft
from awm_factory.synthesis.settings import Settings
from awm_runtime.contract import (
    AppReply,
    AppRequest,
    CallsReply,
    CallsRequest,
    CheckFailed,
    EnvironmentSource,
    LoadReply,
    LoadRequest,
    Playthrough,
    Trial,
    TrialsReply,
    TrialsRequest,
    VerifierSource,
    VerifyReply,
    VerifyRequest,
)

T = TypeVar("T")
KEPT = 32

Value = int | float | str | bytes | None


@dataclass(frozen=True)
class TableRows:
    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    """As declared, upper case."""
    rows: tuple[tuple[Value, ...], ...]
    parents: dict[str, str]
    """Column to the table that its foreign key points to."""

    def column(self, name: str) -> list[Value]:
        place = self.columns.index(name)
        return [row[place] for row in self.rows]


class _Lately:
    """A small memory of answers, safe for threads. Two that miss at once both ask: the answers are equal."""

    def __init__(self) -> None:
        self._known: OrderedDict[object, object] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: object, make: Callable[[], T]) -> T:
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]  # type: ignore[return-value]
        made = make()
        with self._lock:
            self._known[key] = made
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        return made


class _Remembering(Sandbox):
    """Answers at once what was asked lately about the same database or app: certify begins with both."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.base = sandbox.base
        self._sandbox = sandbox
        self._replies = _Lately()

    def check(self, request: Request, time_limit: float = 60.0) -> Reply:
        if not isinstance(request, LoadRequest | AppRequest):
            return self._sandbox.check(request, time_limit)
        return self._replies.get(request.model_dump_json(), lambda: self._sandbox.check(request, time_limit))

    def close(self) -> None:
        self._sandbox.close()


class Workbench:
    def __init__(self, sandbox: Sandbox, settings: Settings) -> None:
        self.sandbox: Sandbox = _Remembering(sandbox)
        self.settings = settings
        self._loads, self._rows = _Lately(), _Lately()
        self.options = Options(
            max_failed_statements=max(settings.schema_error_ratio, settings.data_error_ratio),
            solvable_runs=settings.solvable_runs,
            calls=settings.calls,
            mutants=settings.mutants,
            seed=settings.seed,
        )

    def load(self, draft: Draft) -> LoadReply | CheckFailed:
        # By the artifacts' own identity, which is theirs for as long as they are kept with the answer.
        key = (id(draft.schema), id(draft.data), draft.world_time)
        return self._loads.get(key, lambda: (draft.schema, draft.data, self._load(draft)))[2]

    def _load(self, draft: Draft) -> LoadReply | CheckFailed:
        schema = draft.schema.statements if draft.schema else []
        data = draft.data.statements if draft.data else []
        request = LoadRequest(world_time=draft.world_time, statements_schema=numbered(schema), statements_data=numbered(data))
        return expect(LoadReply, self.sandbox.check(request))

    def source(self, draft: Draft) -> EnvironmentSource | None:
        load = self.load(draft)
        if isinstance(load, CheckFailed) or draft.code is None:
            return None
        return EnvironmentSource(env_id=draft.env_id, app_code=draft.code, db=load.db, world_time=draft.world_time)

    def app(self, draft: Draft) -> AppReply | CheckFailed | None:
        source = self.source(draft)
        if source is None:
            return None
        return expect(AppReply, self.sandbox.check(AppRequest(source=source, reuse=True), APP_CHECK))

    def verify_untouched(self, draft: Draft, verifiers: list[VerifierSource]) -> VerifyReply | CheckFailed | None:
        """Each verifier's word on a database nobody touched, with an empty answer."""
        load = self.load(draft)
        if isinstance(load, CheckFailed):
            return None
        request = VerifyRequest(
            verifiers=verifiers, initial_db=load.db, final_db=load.db, final_answer="", world_time=draft.world_time
        )
        return expect(VerifyReply, self.sandbox.check(request, 10.0 + 10.0 * len(verifiers)))

    def play(self, draft: Draft, request: CallsRequest) -> CallsReply | CheckFailed:
        """The solutions of an environment share one import of its code, where it was seen to start; certify plays each afresh."""
        app = self.app(draft)
        if not isinstance(app, AppReply):
            return expect(CallsReply, self.sandbox.check(request, APP_LIMIT * request.repeat))
        task_id = request.verifiers[0].task_id if request.verifiers else 0
        trial = Trial(calls=request.calls, final_answer=request.final_answer, task_id=task_id, seed=request.seed)
        trials = TrialsRequest(
            source=request.source,
            trials=[trial] * request.repeat,
            verifiers=request.verifiers,
            reuse=True,
            alone=app.keeps_state,
        )
        reply = expect(TrialsReply, self.sandbox.check(trials, APP_LIMIT * request.repeat))
        if isinstance(reply, CheckFailed):
            return reply
        if error := next((run.error for run in reply.runs if run.error), None):
            return CheckFailed(reason="crashed", message=error)
        return CallsReply(
            runs=[
                Playthrough(results=run.results, verdicts=run.verdicts, db=run.db, dump_sha256=run.dump_sha256)
                for run in reply.runs
            ]
        )

    def parse(self, code: str) -> ast.Module:
        """By the sandbox's grammar. Raises SyntaxError."""
        return parse(code, self.sandbox)

    def rows(self, draft: Draft) -> dict[str, TableRows]:
        """Tables of the start state by lower-case name; empty where it does not load. Read here, as data and without trust."""
        load = self.load(draft)
        return {} if isinstance(load, CheckFailed) else self._rows.get(load.db, lambda: read_rows(base64.b64decode(load.db)))


def read_rows(database: bytes) -> dict[str, TableRows]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(database)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.text_factory = lambda data: data.decode(errors="replace")
        names = [
            row[0]
            for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        ]
        return {name.lower(): _read_table(connection, name) for name in names}


def _read_table(connection: sqlite3.Connection, name: str) -> TableRows:
    quoted = '"' + name.replace('"', '""') + '"'
    columns = connection.execute(f"PRAGMA table_info({quoted})").fetchall()
    return TableRows(
        name=name,
        columns=tuple(column[1] for column in columns),
        types=tuple(column[2].upper() for column in columns),
        parents={row[3]: row[2] for row in connection.execute(f"PRAGMA foreign_key_list({quoted})")},
        rows=tuple(connection.execute(f"SELECT {', '.join(_quote(column[1]) for column in columns)} FROM {quoted}")),
    )


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
