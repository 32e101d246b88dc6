"""What the sandbox is asked about a bundle, side by side where it can be; gates only read the answers."""

import ast
import base64
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from awm_factory.bundle import Bundle, Manifest, Mending, Task
from awm_factory.certify import mutants, stored
from awm_factory.certify.attempts import Trying, by_task, collected, others, reads
from awm_factory.certify.evidence import Evidence, Options, modes_of
from awm_factory.certify.statements import numbered
from awm_factory.certify.trying import Attempt, Path, Tried, path_of
from awm_factory.errors import SandboxError
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
    InspectedCase,
    InspectReply,
    InspectRequest,
    LoadReply,
    LoadRequest,
    Observation,
    Playthrough,
    Trial,
    TrialRun,
    TrialsReply,
    TrialsRequest,
    VerifierMode,
    VerifierSource,
)

APP_LIMIT: Final = 30.0
"""Seconds an app may take to start and answer; AWM's limit."""
APP_CHECK: Final = 3 * APP_LIMIT
"""Seconds for the whole check of an app, which plays two episodes and reads every row besides starting it."""
_THREADS: Final = 6
"""Checks of one bundle under way at once, as far as the sandbox has lanes."""
_OF_SOLUTIONS: Final = ("near_misses", "equivalents", "alternatives")
"""Gates that need mutants of the solutions."""
_LONGEST: Final = 900.0
"""Seconds for a batch in which much hangs; each call has a limit of its own."""


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
        self._verifiers = [
            VerifierSource(task_id=task.task_id, mode=mode, code=bundle.verifiers[task.task_id, mode])
            for task in bundle.tasks
            for mode in modes_of(bundle, task)
        ]
        self._judges = [verifier for verifier in self._verifiers if verifier.mode == "code"]
        self._alone = False
        solutions = self._solutions() if options.wants("null", "solvable", *_OF_SOLUTIONS) else []
        # The solutions are played beside the check of the app; where the app does not start, that counts for nothing.
        playing = threads.submit(self._first, solutions) if solutions else None
        self._app = expect(AppReply, sandbox.check(AppRequest(source=self._source, reuse=True), APP_CHECK))
        if isinstance(self._app, AppReply):
            self._alone = self._app.keeps_state
            self._bundle = bundle.with_(manifest=_with_tools(bundle.manifest, self._app))
        self._served = isinstance(self._app, AppReply) and bool(self._app.tools)
        if playing is not None and self._alone:
            playing = threads.submit(self._first, solutions)  # those under way may have shared a process
        self._tasks, self._playing = (solutions, playing) if self._served else ([], None)

    @property
    def bundle(self) -> Bundle:
        """With the tools that the check of the app has listed."""
        return self._bundle

    def evidence(self) -> Evidence:
        explores = self._options.calls and self._options.wants("behaviour", "reset", "near_misses")
        explored = self._threads.submit(self._explore) if self._served and explores else None
        solved, paths, columns, failed = self._solve() if self._playing is not None else ({}, {}, [], None)
        watches = self._options.wants("null", "hygiene", *_OF_SOLUTIONS)
        observing = [self._threads.submit(self._observe, some, solved) for some in self._halves()] if watches else []
        complete = {task_id: path for task_id, path in paths.items() if _accepted(solved[task_id])}
        tried: dict[int, list[Tried]] = {}
        untried = failed
        if paths and self._options.mutants:
            tried, untried = self._try(paths, complete, explored, columns)
        observed = {key: observation for some in observing for key, observation in some.result().items()}
        return Evidence(
            self._load,
            self._app,
            {key: observation.untouched for key, observation in observed.items()},
            solved,
            explored=explored.result() if explored is not None else None,
            observed=observed,
            trees=self._trees(),
            paths=paths,
            tried=tried,
            untried=untried,
        )

    def _halves(self) -> list[list[VerifierSource]]:
        middle = (len(self._verifiers) + 1) // 2
        return [half for half in (self._verifiers[:middle], self._verifiers[middle:]) if half]

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

    def _observe(
        self, verifiers: list[VerifierSource], solved: dict[int, CallsReply | CheckFailed]
    ) -> dict[tuple[int, VerifierMode], Observation]:
        judged = {verifier.task_id for verifier in verifiers}
        ends = {
            task_id: InspectedCase(final_db=reply.runs[0].db, final_answer=self._bundle.solutions[task_id].final_answer)
            for task_id, reply in solved.items()
            if task_id in judged and isinstance(reply, CallsReply) and reply.runs[0].db
        }
        request = InspectRequest(verifiers=verifiers, initial_db=self._load.db, ends=ends, world_time=self._source.world_time)
        reply = expect(InspectReply, self._sandbox.check(request, 30.0 + 30.0 * len(verifiers)))
        if isinstance(reply, CheckFailed):
            raise SandboxError(
                f"the verifiers of {self._bundle.env_id} could not be watched: {reply.message}; report this with the bundle"
            )
        return {(v.task_id, v.mode): seen for v, seen in zip(verifiers, reply.observations, strict=True)}

    def _trees(self) -> dict[tuple[int, VerifierMode], ast.Module | SyntaxError]:
        found: dict[tuple[int, VerifierMode], ast.Module | SyntaxError] = {}
        for verifier in self._verifiers:
            try:
                found[verifier.task_id, verifier.mode] = parse(verifier.code, self._sandbox)
            except SyntaxError as fault:
                found[verifier.task_id, verifier.mode] = fault
        return found

    def _solutions(self) -> list[Task]:
        judged = {verifier.task_id for verifier in self._judges}
        return [task for task in self._bundle.tasks if task.task_id in self._bundle.solutions and task.task_id in judged]

    def _first(self, tasks: list[Task]) -> TrialsReply | CheckFailed:
        """Every solution so many times, each time in another process.

        Where mutants are made of it, once more under another seed, to see what chance fills.
        """
        seed, again = self._options.seed, self._options.solvable_runs - 1
        seeds = [seed, *([seed + 1] if self._makes_mutants() else [])]
        trials = [self._solution(task, one) for one in (*seeds, *[seed] * again) for task in tasks]
        parts = [len(tasks) * len(seeds), *[len(tasks)] * again]
        return self._trials(trials, solutions=True, parts=parts)

    def _makes_mutants(self) -> bool:
        return bool(self._options.mutants) and self._options.wants(*_OF_SOLUTIONS)

    def _solve(
        self,
    ) -> tuple[dict[int, CallsReply | CheckFailed], dict[int, Path], list[tuple[str, str]], CheckFailed | None]:
        assert self._playing is not None
        tasks, reply = self._tasks, self._playing.result()
        if isinstance(reply, CheckFailed):
            return {task.task_id: reply for task in tasks}, {}, [], reply
        solved: dict[int, CallsReply | CheckFailed] = {}
        paths = {}
        behind = len(reply.runs) - len(tasks) * (self._options.solvable_runs - 1)
        for place, task in enumerate(tasks):
            runs = [reply.runs[place], *reply.runs[behind + place :: len(tasks)]]
            if error := next((run.error for run in runs if run.error), None):
                solved[task.task_id] = CheckFailed(reason="crashed", message=error)
                continue
            solved[task.task_id] = CallsReply(runs=[_playthrough(run) for run in runs])
            paths[task.task_id] = path_of(task, self._bundle.solutions[task.task_id], runs[0])
        return solved, paths, reply.random_columns, None

    def _solution(self, task: Task, seed: int) -> Trial:
        solution = self._bundle.solutions[task.task_id]
        return Trial(calls=solution.calls, final_answer=solution.final_answer, task_id=task.task_id, seed=seed)

    def _trials(
        self, trials: list[Trial], columns: Sequence[tuple[str, str]] = (), *, solutions: bool = False, parts: Sequence[int] = ()
    ) -> TrialsReply | CheckFailed:
        """Only of solutions is anybody interested in what the calls answered."""
        tasks = {trial.task_id for trial in trials}
        request = TrialsRequest(
            source=self._source,
            trials=trials,
            verifiers=[verifier for verifier in self._judges if verifier.task_id in tasks],
            random_columns=list(columns),
            results=solutions,
            databases=solutions,
            parts=list(parts),
            reuse=True,
            alone=self._alone,
        )
        return expect(TrialsReply, self._sandbox.check(request, min(_LONGEST, 60.0 + 10.0 * len(trials))))

    def _try(
        self,
        paths: dict[int, Path],
        complete: dict[int, Path],
        explored: "Future[ExploreReply | CheckFailed] | None",
        columns: list[tuple[str, str]],
    ) -> tuple[dict[int, list[Tried]], CheckFailed | None]:
        """Near misses last: they alone are made of what the exploration has found."""
        assert isinstance(self._app, AppReply)
        tools, rows = {tool.name: tool for tool in self._app.tools}, stored.read(self._bundle)
        around = mutants.Surroundings(tools, rows, [])
        first = [attempt for path in paths.values() for attempt in reads(path)]
        if self._makes_mutants():
            first += [attempt for path in complete.values() for attempt in others(path, around)]
        trying = self._submitted(first, columns)
        seen = explored.result() if explored is not None else None
        around = mutants.Surroundings(tools, rows, seen.writes if isinstance(seen, ExploreReply) else [])
        most = self._options.mutants if self._makes_mutants() else 0
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
            (batch, self._threads.submit(self._trials, [attempt.trial(self._options.seed) for attempt in batch], columns))
            for batch in by_task(attempts)
        ]


def _accepted(reply: CallsReply | CheckFailed) -> bool:
    return isinstance(reply, CallsReply) and any(verdict.classification == "complete" for verdict in reply.runs[0].verdicts)


def _playthrough(run: TrialRun) -> Playthrough:
    return Playthrough(results=run.results, verdicts=run.verdicts, db=run.db, dump_sha256=run.dump_sha256)


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
