"""What the sandbox is asked about a bundle, side by side where it can be; gates only read the answers."""

import base64
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Final

from awm_factory.bundle import Bundle, Manifest, Mending
from awm_factory.certify import mutants, stored
from awm_factory.certify.attempts import Trying, by_task, collected, others, reads
from awm_factory.certify.evidence import Evidence, Options
from awm_factory.certify.solving import Solved, Solving
from awm_factory.certify.statements import numbered
from awm_factory.certify.trying import Attempt, Path, Tried
from awm_factory.sandbox.parsing import parse
from awm_factory.sandbox.pool import Sandbox, expect
from awm_runtime.contract import (
    AppReply,
    AppRequest,
    CallsReply,
    CheckFailed,
    EnvironmentSource,
    ExploreReply,
    ExploreRequest,
    LoadReply,
    LoadRequest,
)

APP_LIMIT: Final = 30.0
"""Seconds an app may take to start and answer; AWM's limit."""
APP_CHECK: Final = 3 * APP_LIMIT
"""Seconds for the whole check of an app, which plays two episodes and reads every row besides starting it."""
_THREADS: Final = 6
"""Checks of one bundle under way at once, as far as the sandbox has lanes."""


def gather(bundle: Bundle, sandbox: Sandbox, options: Options) -> tuple[Bundle, Evidence]:
    """Execute the checks, and fill the bundle with what they make: seed.db, evaluated seed, tool list."""
    world_time = bundle.manifest.world_time
    request = LoadRequest(
        world_time=world_time, statements_schema=numbered(bundle.schema_sql), statements_data=numbered(bundle.seed_sql)
    )
    load = expect(LoadReply, sandbox.check(request))
    if isinstance(load, CheckFailed):
        return bundle, Evidence(load)
    bundle = loaded(bundle, load)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="certify") as threads:
        gathering = _Gathering(bundle, sandbox, options, load, threads)
        return gathering.bundle, gathering.evidence()


class _Gathering:
    """The checks that need a database and, most of them, an app that starts."""

    def __init__(self, bundle: Bundle, sandbox: Sandbox, options: Options, load: LoadReply, threads: ThreadPoolExecutor) -> None:
        self._sandbox, self._options, self._load, self._threads = sandbox, options, load, threads
        self._source = EnvironmentSource(
            env_id=bundle.env_id, app_code=bundle.app_code, db=load.db, world_time=bundle.manifest.world_time
        )
        self._bundle = bundle
        self._solving = Solving(bundle, self._source, sandbox, options, threads)
        # The solutions are played beside the check of the app; where the app does not start, that counts for nothing.
        self._solving.begin()
        self._app = expect(AppReply, sandbox.check(AppRequest(source=self._source, reuse=True), APP_CHECK))
        if isinstance(self._app, AppReply):
            self._bundle = bundle.with_(manifest=_with_tools(bundle.manifest, self._app))
            if self._app.keeps_state:
                self._solving.begin(alone=True)
        self._served = isinstance(self._app, AppReply) and bool(self._app.tools)

    @property
    def bundle(self) -> Bundle:
        """With the tools that the check of the app has listed."""
        return self._bundle

    def evidence(self) -> Evidence:
        explores = self._options.calls and self._options.wants("behaviour", "reset", "near_misses")
        explored = self._threads.submit(self._explore) if self._served and explores else None
        solved = self._solving.finish(served=self._served)
        tried: dict[int, list[Tried]] = {}
        failed = None
        if solved.paths and self._options.mutants:
            tried, failed = self._try(solved, explored)
        observed = solved.observations()
        return Evidence(
            self._load,
            self._app,
            {key: observation.untouched for key, observation in observed.items()},
            solved.playthroughs,
            explored=explored.result() if explored is not None else None,
            observed=observed,
            parse=partial(parse, sandbox=self._sandbox),
            paths=solved.paths,
            tried=tried,
            untried=failed or solved.failed,
        )

    def _explore(self) -> ExploreReply | CheckFailed:
        invariants = self._bundle.manifest.invariants
        request = ExploreRequest(
            source=self._source,
            calls=self._options.calls,
            invariants=invariants,
            scripts=[solution.calls for solution in self._bundle.solutions.values()],
            seed=self._options.seed,
            reuse=True,
        )
        return expect(ExploreReply, self._sandbox.check(request, 60.0 + self._options.calls))

    def _try(
        self, solved: Solved, explored: "Future[ExploreReply | CheckFailed] | None"
    ) -> tuple[dict[int, list[Tried]], CheckFailed | None]:
        """Near misses last: they alone are made of what the exploration has found."""
        assert isinstance(self._app, AppReply)
        tools, rows = {tool.name: tool for tool in self._app.tools}, stored.read(self._bundle)
        around = mutants.Surroundings(tools, rows, [])
        paths, columns = solved.paths, solved.random_columns
        complete = {task_id: path for task_id, path in paths.items() if _accepted(solved.playthroughs[task_id])}
        first = [attempt for path in paths.values() for attempt in reads(path)]
        if self._solving.makes_mutants():
            first += [attempt for path in complete.values() for attempt in others(path, around)]
        trying = self._submitted(first, columns)
        seen = explored.result() if explored is not None else None
        around = mutants.Surroundings(tools, rows, seen.writes if isinstance(seen, ExploreReply) else [])
        most = self._options.mutants if self._solving.makes_mutants() else 0
        near = [attempt for path in complete.values() for attempt in mutants.near_misses(path, around, most)] if most else []
        tried, failed = collected(trying + self._submitted(near, columns))
        odd = {
            one.attempt.task_id
            for one in tried
            if one.attempt.role == "control" and one.run.state != paths[one.attempt.task_id].run.state
        }
        if odd:
            # What these solutions write hangs on their reads, so nothing may be left out.
            whole = [Path(p.task, p.solution, p.run, tuple(p.solution.calls)) for i, p in complete.items() if i in odd]
            attempts = [a for path in whole for a in (*others(path, around), *mutants.near_misses(path, around, most))]
            again, failed_again = collected(self._submitted(attempts, columns))
            tried = [one for one in tried if one.attempt.task_id not in odd or one.attempt.role == "reads"] + again
            failed = failed or failed_again
        by_task: dict[int, list[Tried]] = {}
        for one in tried:
            by_task.setdefault(one.attempt.task_id, []).append(one)
        return by_task, failed

    def _submitted(self, attempts: list[Attempt], columns: Sequence[tuple[str, str]]) -> list[Trying]:
        return [
            (batch, self._threads.submit(self._solving.trials, [attempt.trial(self._options.seed) for attempt in batch], columns))
            for batch in by_task(attempts)
        ]


def _accepted(reply: CallsReply | CheckFailed) -> bool:
    return isinstance(reply, CallsReply) and any(verdict.classification == "complete" for verdict in reply.runs[0].verdicts)


def loaded(bundle: Bundle, load: LoadReply) -> Bundle:
    """The bundle with the database that its statements made, and its SQL with clock and chance evaluated."""
    return bundle.with_(
        schema_sql=load.schema_sql,
        seed_sql=load.seed_sql,
        seed_db=base64.b64decode(load.db),
        manifest=bundle.manifest.model_copy(update={"dump_sha256": load.dump_sha256}),
    )


def _with_tools(manifest: Manifest, app: AppReply) -> Manifest:
    renamed = {tool.name: tool.operation_id for tool in app.tools if tool.name != tool.operation_id}
    mendings = [Mending.model_validate(mending.model_dump()) for mending in app.mendings]
    return manifest.model_copy(
        update={
            "tools": sorted(tool.name for tool in app.tools),
            "renamed": renamed,
            "mendings": sorted(mendings, key=lambda mending: (mending.tool, mending.kind, mending.why)),
            "module_state": [finding.what for finding in app.findings if finding.kind == "module_state"],
        }
    )
