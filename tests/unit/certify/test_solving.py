"""Solutions in lots: what is asked of the sandbox, and what of its answers is kept."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from awm_factory.bundle import Bundle, Solution, Task
from awm_factory.certify import solving
from awm_factory.certify.evidence import Options
from awm_factory.certify.run import QUICK
from awm_factory.certify.solving import Solved, Solving
from awm_factory.sandbox.pool import Reply, Request, Sandbox
from awm_runtime.contract import (
    CallsReply,
    EnvironmentSource,
    InspectReply,
    InspectRequest,
    Observation,
    ToolCall,
    ToolResult,
    TrialRun,
    TrialsReply,
    TrialsRequest,
    Verdict,
)
from bee_yard import working

CALL = ToolCall(tool="list_hives", arguments={})
OPTIONS = Options(solvable_runs=2, gates=QUICK)
VERDICT = Verdict(mode="code", classification="complete")


class Recorded(Sandbox):
    """The third task writes a column that chance fills."""

    base = "recorded"

    def __init__(self) -> None:
        self.played: list[tuple[list[int | None], list[tuple[str, str]]]] = []
        self.watched: list[tuple[list[int], list[int]]] = []

    def check(self, request: Request, time_limit: float = 60.0) -> Reply:
        if isinstance(request, InspectRequest):
            tasks = [verifier.task_id for verifier in request.verifiers]
            self.watched.append((tasks, sorted(request.ends)))
            seen = Observation(untouched=VERDICT, acts=[], seconds=0, memory=0, unstable=[], exact_floats=[])
            return InspectReply(observations=[seen for _ in tasks])
        assert isinstance(request, TrialsRequest)
        tasks = [trial.task_id for trial in request.trials]
        self.played.append((tasks, request.random_columns))
        by_chance = [("hives", "token")] if 2 in tasks else request.random_columns
        page = ToolResult(is_error=False, kind="ok", status=200, content=[{"id": 1}] * 100)
        runs = [
            TrialRun(verdicts=[VERDICT], db="ZGI=", results=[page], wrote=[False], arguments=[{}], state=f"but {by_chance}")
            for _ in request.trials
        ]
        return TrialsReply(runs=runs, random_columns=by_chance)

    def close(self) -> None:
        pass


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as opened:
        yield opened


@pytest.fixture
def lots_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "LOT", 2)


def of_five() -> Bundle:
    bundle = working()
    code = bundle.verifiers[0, "code"]
    return bundle.with_(
        tasks=[Task(task_id=number, instruction=f"Look {number} times.") for number in range(5)],
        verifiers={(number, "code"): code for number in range(5)},
        solutions={number: Solution(calls=[CALL], final_answer="Done.") for number in range(4)},
    )


def solved(sandbox: Recorded, threads: ThreadPoolExecutor, *, served: bool = True) -> Solved:
    bundle = of_five()
    source = EnvironmentSource(env_id=bundle.env_id, app_code="", db="c2VlZA==", world_time=bundle.manifest.world_time)
    one = Solving(bundle, source, sandbox, OPTIONS, threads)
    one.begin()
    return one.finish(served=served)


@pytest.mark.usefixtures("lots_of_two")
def test_every_task_is_played_and_watched_in_its_lot_and_neither_databases_nor_pages_are_kept(
    threads: ThreadPoolExecutor,
) -> None:
    sandbox = Recorded()
    found = solved(sandbox, threads)
    assert sorted(found.observations()) == [(number, "code") for number in range(5)]
    assert sorted(found.playthroughs) == sorted(found.paths) == [0, 1, 2, 3]
    assert sorted(end for _, ends in sandbox.watched for end in ends) == [0, 1, 2, 3]
    runs = [path.run for path in found.paths.values()]
    runs += [run for reply in found.playthroughs.values() if isinstance(reply, CallsReply) for run in reply.runs]
    assert len(runs) == 12 and not any(run.db for run in runs)
    assert {(result.kind, result.content) for run in runs for result in run.results} == {("ok", None)}


@pytest.mark.usefixtures("lots_of_two")
def test_what_chance_fills_in_one_lot_is_left_out_of_the_states_of_all(threads: ThreadPoolExecutor) -> None:
    sandbox = Recorded()
    found = solved(sandbox, threads)
    assert found.random_columns == [("hives", "token")]
    assert len({path.run.state for path in found.paths.values()}) == 1
    again = [tasks for tasks, columns in sandbox.played if columns]
    assert again == [[0, 1, 0, 1]], "only the lot that did not know of the column"


def test_verifiers_are_watched_where_the_app_does_not_start(threads: ThreadPoolExecutor) -> None:
    sandbox = Recorded()
    found = solved(sandbox, threads, served=False)
    assert sorted(found.observations()) == [(number, "code") for number in range(5)]
    assert found.playthroughs == {} and all(ends == [] for _, ends in sandbox.watched)
