"""The solutions of a bundle, played, and its verifiers, watched: in lots, since the databases at the ends are held till then."""

from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from awm_factory.bundle import Bundle, Task
from awm_factory.certify.evidence import Options, modes_of
from awm_factory.certify.trying import Path, path_of
from awm_factory.errors import SandboxError
from awm_factory.sandbox.pool import Sandbox, expect
from awm_runtime.contract import (
    CallsReply,
    CheckFailed,
    EnvironmentSource,
    InspectedCase,
    InspectReply,
    InspectRequest,
    Observation,
    Playthrough,
    ToolResult,
    Trial,
    TrialRun,
    TrialsReply,
    TrialsRequest,
    VerifierMode,
    VerifierSource,
)

LOT: Final = 50
"""Tasks of a lot: a few hundred kilobytes each, and the sandbox has 2 GiB."""
_AHEAD: Final = 1
"""Lots under way while the verifiers of another are watched."""
_OF_SOLUTIONS: Final = ("near_misses", "equivalents", "alternatives")
"""Gates that need mutants of the solutions."""
_LONGEST: Final = 900.0
"""Seconds for a batch in which much hangs; each call has a limit of its own."""

Observations = dict[tuple[int, VerifierMode], Observation]


@dataclass
class Solved:
    playthroughs: dict[int, CallsReply | CheckFailed] = field(default_factory=dict)
    """Of the tasks that have a solution; without the databases at their ends."""
    paths: dict[int, Path] = field(default_factory=dict)
    random_columns: list[tuple[str, str]] = field(default_factory=list)
    failed: CheckFailed | None = None
    """Why some could not be played at all."""
    observed: Observations = field(default_factory=dict)
    watching: list[Future[Observations]] = field(default_factory=list)
    """Of the last lot; what comes next need not wait for it."""

    def observations(self) -> Observations:
        return self.observed | {key: seen for some in self.watching for key, seen in some.result().items()}


class Solving:
    """Makes trials for whoever has more of them, too."""

    def __init__(
        self, bundle: Bundle, source: EnvironmentSource, sandbox: Sandbox, options: Options, threads: ThreadPoolExecutor
    ) -> None:
        self._bundle, self._source, self._sandbox, self._options, self._threads = bundle, source, sandbox, options, threads
        self._verifiers = {
            task.task_id: [
                VerifierSource(task_id=task.task_id, mode=mode, code=bundle.verifiers[task.task_id, mode])
                for mode in modes_of(bundle, task)
            ]
            for task in bundle.tasks
        }
        self._lots = [bundle.tasks[start : start + LOT] for start in range(0, len(bundle.tasks), LOT)]
        self._alone = False
        self._playing: deque[Future[TrialsReply | CheckFailed] | None] = deque()

    def begin(self, *, alone: bool = False) -> None:
        """Play the first lots. `alone`: each trial in a process of its own; what was begun before no longer counts."""
        self._alone = alone
        self._playing = deque(self._played(lot) for lot in self._lots[: _AHEAD + 1])

    def finish(self, *, served: bool) -> Solved:
        """`served`: whether the app starts and has tools; if not, verifiers are watched all the same."""
        found = Solved()
        of_lot: list[list[tuple[str, str]]] = []
        following = islice(self._lots, len(self._playing), None)
        for lot in self._lots:
            reply = None
            if served:
                playing = self._playing.popleft()
                reply = playing.result() if playing is not None else None
                self._playing.extend(map(self._played, islice(following, 1)))
            ends = self._read(found, self._with_solutions(lot), reply) if reply is not None else {}
            of_lot.append(reply.random_columns if isinstance(reply, TrialsReply) else [])
            found.observed = found.observations()
            found.watching = self._watched(lot, ends)
        found.random_columns = sorted({column for columns in of_lot for column in columns})
        for lot, columns in zip(self._lots, of_lot, strict=True):
            # What one lot shows to be filled by chance is no part of the state in any other.
            if served and set(columns) != set(found.random_columns) and (tasks := self._with_solutions(lot)):
                self._read(found, tasks, self._play(tasks, found.random_columns))
        return found

    def trials(
        self, trials: list[Trial], columns: Sequence[tuple[str, str]] = (), *, solutions: bool = False, parts: Sequence[int] = ()
    ) -> TrialsReply | CheckFailed:
        """Only of solutions is anybody interested in what the calls answered."""
        tasks = sorted({trial.task_id for trial in trials if trial.task_id is not None})
        request = TrialsRequest(
            source=self._source,
            trials=trials,
            verifiers=[one for task_id in tasks for one in self._verifiers.get(task_id, []) if one.mode == "code"],
            random_columns=list(columns),
            results=solutions,
            databases=solutions,
            parts=list(parts),
            reuse=True,
            alone=self._alone,
        )
        return expect(TrialsReply, self._sandbox.check(request, min(_LONGEST, 60.0 + 10.0 * len(trials))))

    def makes_mutants(self) -> bool:
        return bool(self._options.mutants) and self._options.wants(*_OF_SOLUTIONS)

    def _with_solutions(self, tasks: Iterable[Task]) -> list[Task]:
        wanted = self._options.wants("null", "solvable", *_OF_SOLUTIONS)
        return [
            task for task in tasks if wanted and task.task_id in self._bundle.solutions and "code" in modes_of(self._bundle, task)
        ]

    def _played(self, lot: Iterable[Task]) -> Future[TrialsReply | CheckFailed] | None:
        tasks = self._with_solutions(lot)
        return self._threads.submit(self._play, tasks) if tasks else None

    def _play(self, tasks: list[Task], columns: Sequence[tuple[str, str]] = ()) -> TrialsReply | CheckFailed:
        """Every solution so many times, each time in another process.

        Where mutants are made of it, once more under another seed, to see what chance fills.
        """
        seed, again = self._options.seed, self._options.solvable_runs - 1
        seeds = [seed, *([seed + 1] if self.makes_mutants() else [])]
        trials = [self._trial(task, one) for one in (*seeds, *[seed] * again) for task in tasks]
        parts = [len(tasks) * len(seeds), *[len(tasks)] * again]
        return self.trials(trials, columns, solutions=True, parts=parts)

    def _trial(self, task: Task, seed: int) -> Trial:
        solution = self._bundle.solutions[task.task_id]
        return Trial(calls=solution.calls, final_answer=solution.final_answer, task_id=task.task_id, seed=seed)

    def _read(self, found: Solved, tasks: list[Task], reply: TrialsReply | CheckFailed) -> dict[int, InspectedCase]:
        """Into `found`; the databases that the solutions end in are answered."""
        if isinstance(reply, CheckFailed):
            found.playthroughs |= {task.task_id: reply for task in tasks}
            found.failed = reply
            return {}
        ends = {}
        behind = len(reply.runs) - len(tasks) * (self._options.solvable_runs - 1)
        for place, task in enumerate(tasks):
            solution = self._bundle.solutions[task.task_id]
            runs = [reply.runs[place], *reply.runs[behind + place :: len(tasks)]]
            if error := next((run.error for run in runs if run.error), None):
                found.playthroughs[task.task_id] = CheckFailed(reason="crashed", message=error)
                continue
            if runs[0].db:
                ends[task.task_id] = InspectedCase(final_db=runs[0].db, final_answer=solution.final_answer)
            first = runs[0].model_copy(update={"db": "", "results": _telling(runs[0])})
            found.playthroughs[task.task_id] = CallsReply(
                runs=[_playthrough(first, first.results), *(_playthrough(run, []) for run in runs[1:])]
            )
            found.paths[task.task_id] = path_of(task, solution, first)
        return ends

    def _watched(self, lot: list[Task], ends: dict[int, InspectedCase]) -> list[Future[Observations]]:
        if not self._options.wants("null", "hygiene", *_OF_SOLUTIONS):
            return []
        verifiers = [one for task in lot for one in self._verifiers[task.task_id]]
        middle = (len(verifiers) + 1) // 2
        return [self._threads.submit(self._watch, half, ends) for half in (verifiers[:middle], verifiers[middle:]) if half]

    def _watch(self, verifiers: list[VerifierSource], ends: dict[int, InspectedCase]) -> Observations:
        judged = {verifier.task_id for verifier in verifiers}
        request = InspectRequest(
            verifiers=verifiers,
            initial_db=self._source.db,
            ends={task_id: end for task_id, end in ends.items() if task_id in judged},
            world_time=self._source.world_time,
        )
        reply = expect(InspectReply, self._sandbox.check(request, 30.0 + 30.0 * len(verifiers)))
        if isinstance(reply, CheckFailed):
            raise SandboxError(
                f"the verifiers of {self._bundle.env_id} could not be watched: {reply.message}; report this with the bundle"
            )
        return {(one.task_id, one.mode): seen for one, seen in zip(verifiers, reply.observations, strict=True)}


def _telling(run: TrialRun) -> list[ToolResult]:
    """What the calls answered, less what those said that only read: a page of rows is more than all else together."""
    return [
        result if wrote or result.is_error else result.model_copy(update={"content": None})
        for result, wrote in zip(run.results, run.wrote, strict=True)
    ]


def _playthrough(run: TrialRun, results: list[ToolResult]) -> Playthrough:
    return Playthrough(results=results, verdicts=run.verdicts, db="", dump_sha256=run.dump_sha256)
