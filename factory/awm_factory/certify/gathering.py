"""What the sandbox is asked about a bundle, side by side where it can be; gates only read the answers."""

import ast
import base64
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby
from typing import Final

from awm_factory.bundle import Bundle, Manifest, Mending, Task
from awm_factory.certify import mutants, stored, variants
from awm_factory.certify.evidence import Evidence, Options, modes_of
from awm_factory.certify.statements import numbered
from awm_factory.certify.trying import Attempt, Path, Tried, path_of, picked
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
_LANES: Final = 4
"""Checks of one bundle under way at once, as far as the sandbox has lanes."""
_BATCH: Final = 50
"""Trials after which a check holds enough; those of one task stay together."""
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
    source = EnvironmentSource(env_id=bundle.env_id, app_code=bundle.app_code, db=load.db, world_time=world_time)
    app = expect(AppReply, sandbox.check(AppRequest(source=source), APP_LIMIT))
    if isinstance(app, AppReply):
        bundle = bundle.with_(manifest=_with_tools(bundle.manifest, app))
    with ThreadPoolExecutor(_LANES, thread_name_prefix="certify") as threads:
        return bundle, _Gathering(bundle, sandbox, options, source, load, app, threads).evidence()


class _Gathering:
    """The checks that need a database and, most of them, an app that starts."""

    def __init__(
        self,
        bundle: Bundle,
        sandbox: Sandbox,
        options: Options,
        source: EnvironmentSource,
        load: LoadReply,
        app: AppReply | CheckFailed,
        threads: ThreadPoolExecutor,
    ) -> None:
        self._bundle, self._sandbox, self._options, self._source = bundle, sandbox, options, source
        self._load, self._app, self._threads = load, app, threads
        self._verifiers = [
            VerifierSource(task_id=task.task_id, mode=mode, code=bundle.verifiers[task.task_id, mode])
            for task in bundle.tasks
            for mode in modes_of(bundle, task)
        ]
        self._judges = [verifier for verifier in self._verifiers if verifier.mode == "code"]
        self._served = isinstance(app, AppReply) and bool(app.tools)

    def evidence(self) -> Evidence:
        explored = self._threads.submit(self._explore) if self._served and self._options.calls else None
        solutions = self._solutions() if self._served else []
        solved, paths, columns, failed = self._solve(solutions) if solutions else ({}, {}, [], None)
        observing = self._threads.submit(self._observe, solved)
        seen = explored.result() if explored is not None else None
        complete = {task_id: path for task_id, path in paths.items() if _accepted(solved[task_id])}
        tried: dict[int, list[Tried]] = {}
        untried = failed
        if paths and self._options.mutants:
            tried, untried = self._try(paths, complete, seen, columns)
        observed = observing.result()
        return Evidence(
            self._load,
            self._app,
            {key: observation.untouched for key, observation in observed.items()},
            solved,
            explored=seen,
            observed=observed,
            trees=self._trees(),
            paths=paths,
            tried=tried,
            untried=untried,
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

    def _observe(self, solved: dict[int, CallsReply | CheckFailed]) -> dict[tuple[int, VerifierMode], Observation]:
        ends = {
            task_id: InspectedCase(final_db=reply.runs[0].db, final_answer=self._bundle.solutions[task_id].final_answer)
            for task_id, reply in solved.items()
            if isinstance(reply, CallsReply) and reply.runs[0].db
        }
        request = InspectRequest(
            verifiers=self._verifiers, initial_db=self._load.db, ends=ends, world_time=self._source.world_time
        )
        reply = expect(InspectReply, self._sandbox.check(request, 30.0 + 30.0 * len(self._verifiers)))
        if isinstance(reply, CheckFailed):
            raise SandboxError(
                f"the verifiers of {self._bundle.env_id} could not be watched: {reply.message}; report this with the bundle"
            )
        return {(v.task_id, v.mode): seen for v, seen in zip(self._verifiers, reply.observations, strict=True)}

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

    def _solve(
        self, tasks: list[Task]
    ) -> tuple[dict[int, CallsReply | CheckFailed], dict[int, Path], list[tuple[str, str]], CheckFailed | None]:
        """Every solution so many times, each time in another process; the first time under another seed besides."""
        seed = self._options.seed
        twins = [self._solution(task, seed) for task in tasks] + [self._solution(task, seed + 1) for task in tasks]
        first = self._threads.submit(self._trials, twins, solutions=True, databases=True)
        rest = [
            self._threads.submit(self._trials, [self._solution(task, seed) for task in tasks], solutions=True)
            for _ in range(self._options.solvable_runs - 1)
        ]
        replies = [first.result(), *(future.result() for future in rest)]
        if failed := next((reply for reply in replies if isinstance(reply, CheckFailed)), None):
            return {task.task_id: failed for task in tasks}, {}, [], failed
        played = [reply for reply in replies if isinstance(reply, TrialsReply)]
        solved: dict[int, CallsReply | CheckFailed] = {}
        paths = {}
        for place, task in enumerate(tasks):
            runs = [reply.runs[place] for reply in played]
            if error := next((run.error for run in runs if run.error), None):
                solved[task.task_id] = CheckFailed(reason="crashed", message=error)
                continue
            solved[task.task_id] = CallsReply(runs=[_playthrough(run) for run in runs])
            paths[task.task_id] = path_of(task, self._bundle.solutions[task.task_id], runs[0])
        return solved, paths, played[0].random_columns, None

    def _solution(self, task: Task, seed: int) -> Trial:
        solution = self._bundle.solutions[task.task_id]
        return Trial(calls=solution.calls, final_answer=solution.final_answer, task_id=task.task_id, seed=seed)

    def _trials(
        self, trials: list[Trial], columns: Sequence[tuple[str, str]] = (), *, solutions: bool = False, databases: bool = False
    ) -> TrialsReply | CheckFailed:
        """Only of solutions is anybody interested in what the calls answered."""
        tasks = {trial.task_id for trial in trials}
        request = TrialsRequest(
            source=self._source,
            trials=trials,
            verifiers=[verifier for verifier in self._judges if verifier.task_id in tasks],
            random_columns=list(columns),
            results=solutions,
            databases=databases,
            reuse=True,
        )
        return expect(TrialsReply, self._sandbox.check(request, min(_LONGEST, 60.0 + 10.0 * len(trials))))

    def _try(
        self,
        paths: dict[int, Path],
        complete: dict[int, Path],
        seen: ExploreReply | CheckFailed | None,
        columns: list[tuple[str, str]],
    ) -> tuple[dict[int, list[Tried]], CheckFailed | None]:
        assert isinstance(self._app, AppReply)
        writes = seen.writes if isinstance(seen, ExploreReply) else []
        around = mutants.Surroundings({tool.name: tool for tool in self._app.tools}, stored.read(self._bundle), writes)
        attempts = [attempt for path in paths.values() for attempt in _reads(path)]
        attempts += [attempt for path in complete.values() for attempt in _attempts(path, around, self._options.mutants)]
        tried, failed = self._tried(attempts, columns)
        odd = {
            one.attempt.task_id
            for one in tried
            if one.attempt.role == "control" and one.run.state != paths[one.attempt.task_id].run.state
        }
        if odd:
            # What these solutions write hangs on their reads, so nothing may be left out.
            whole = [Path(p.task, p.solution, p.run, tuple(p.solution.calls)) for i, p in complete.items() if i in odd]
            again, failed_again = self._tried(
                [attempt for path in whole for attempt in _attempts(path, around, self._options.mutants)], columns
            )
            tried = [one for one in tried if one.attempt.task_id not in odd or one.attempt.role == "reads"] + again
            failed = failed or failed_again
        by_task: dict[int, list[Tried]] = {}
        for one in tried:
            by_task.setdefault(one.attempt.task_id, []).append(one)
        return by_task, failed

    def _tried(self, attempts: list[Attempt], columns: Sequence[tuple[str, str]]) -> tuple[list[Tried], CheckFailed | None]:
        batches = _by_task(attempts)
        futures: list[Future[TrialsReply | CheckFailed]] = [
            self._threads.submit(self._trials, [attempt.trial(self._options.seed) for attempt in batch], columns)
            for batch in batches
        ]
        tried, failed = [], None
        for batch, future in zip(batches, futures, strict=True):
            reply = future.result()
            if isinstance(reply, CheckFailed):
                failed = reply
            else:
                tried += [Tried(attempt, run) for attempt, run in zip(batch, reply.runs, strict=True)]
        return tried, failed


def _by_task(attempts: list[Attempt]) -> list[list[Attempt]]:
    """Trials of one task together, for they begin with the same calls and are judged by the same verifier."""
    found: list[list[Attempt]] = []
    for _, group in groupby(sorted(attempts, key=lambda attempt: attempt.task_id), key=lambda attempt: attempt.task_id):
        if not found or len(found[-1]) >= _BATCH:
            found.append([])
        found[-1] += group
    return found


def _accepted(reply: CallsReply | CheckFailed) -> bool:
    return isinstance(reply, CallsReply) and any(verdict.classification == "complete" for verdict in reply.runs[0].verdicts)


def _playthrough(run: TrialRun) -> Playthrough:
    return Playthrough(results=run.results, verdicts=run.verdicts, db=run.db, dump_sha256=run.dump_sha256)


def _reads(path: Path) -> Iterable[Attempt]:
    """The solution's reads without its writes, and nothing said."""
    order = [index for index, wrote in enumerate(path.run.wrote) if not wrote]
    calls = [call for index, call in enumerate(path.solution.calls) if index in order]
    if calls:
        filled = picked(path.solution.calls, order)
        yield Attempt(path.task.task_id, "reads", "reads only", "its reads, no writes, no answer", filled, "")


def _attempts(path: Path, around: mutants.Surroundings, most: int) -> Iterable[Attempt]:
    answer = path.solution.final_answer
    yield Attempt(path.task.task_id, "control", "writes only", "its writes without its reads", path.core, answer)
    yield from mutants.near_misses(path, around, most)
    yield from variants.equivalents(path, around)
    yield from variants.alternatives(path, around)


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
        }
    )
