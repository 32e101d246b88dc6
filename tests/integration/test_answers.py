"""The answers in tests/data/answers are what the synthesis is tested with; so they prove themselves, and their faults show.

`trials.json` holds near misses of each task, which its verifier must reject, and other ways that it must accept.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from awm_factory.bundle import Bundle, Solution
from awm_factory.certify import Certified, Options, certify
from awm_factory.problems import errors
from awm_factory.sandbox import ProcessSandbox, Sandbox
from awm_factory.synthesis.artifacts import ApiSpec, SampleData, Scenario, Schema, VerifierPair
from awm_factory.synthesis.draft import Draft
from awm_factory.synthesis.scripted import written
from awm_runtime.contract import (
    AppReply,
    AppRequest,
    CheckFailed,
    EnvironmentSource,
    LoadReply,
    LoadRequest,
    Statement,
    Trial,
    TrialRun,
    TrialsReply,
    TrialsRequest,
    VerifierSource,
    VerifyReply,
    VerifyRequest,
)

ANSWERS = Path(__file__).parents[1] / "data" / "answers"
FOLDERS = sorted(path.parent for path in ANSWERS.glob("*/scenario.json"))
FAULTY = ANSWERS / "community_vaccination_drive"
FAULTS = json.loads((FAULTY / "faults.json").read_text(encoding="utf-8"))
TASKS = range(10)


def text(folder: Path, name: str, attempt: int = 0) -> str:
    found = written(folder, name, attempt)
    assert found is not None, name
    return found


def part(folder: Path, name: str, attempt: int = 0) -> Any:
    return json.loads(text(folder, name, attempt))


def bundle_of(folder: Path) -> Bundle:
    return Draft(
        scenario=Scenario.model_validate(part(folder, "scenario.json")),
        tasks=tuple(part(folder, "tasks.json")),
        schema=Schema.model_validate(part(folder, "schema.json")),
        data=SampleData.model_validate(part(folder, "data.json")),
        spec=part(folder, "spec.json"),
        code=text(folder, "code.py"),
        verifiers={
            task: VerifierPair(code=text(folder, f"verifiers/{task}.code.py"), sql=text(folder, f"verifiers/{task}.sql.py"))
            for task in TASKS
        },
        solutions={
            entry["task_id"]: Solution(calls=entry["calls"], final_answer=entry["final_answer"])
            for entry in part(folder, "solutions.json")
        },
    ).bundle()


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with ProcessSandbox(2) as opened:
        yield opened


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest) -> Path:
    chosen: Path = request.param
    return chosen


@pytest.fixture(scope="module")
def certified(folder: Path, sandbox: Sandbox) -> Certified:
    return certify(bundle_of(folder), sandbox, Options(solvable_runs=2))


@pytest.fixture(scope="module")
def faulty(sandbox: Sandbox) -> Bundle:
    """The environment that the faults were put into, as it is without them."""
    whole = bundle_of(FAULTY)
    return certify(whole.with_(solutions={}), sandbox, Options()).bundle.with_(solutions=whole.solutions)


def source_of(bundle: Bundle, code: str | None = None) -> EnvironmentSource:
    assert bundle.seed_db is not None
    return EnvironmentSource(
        env_id=bundle.env_id,
        app_code=code or bundle.app_code,
        db=base64.b64encode(bundle.seed_db).decode(),
        world_time=bundle.manifest.world_time,
    )


def play(sandbox: Sandbox, bundle: Bundle, trials: list[dict[str, Any]]) -> list[TrialRun]:
    request = TrialsRequest(
        source=source_of(bundle),
        trials=[Trial(calls=trial["calls"], final_answer=trial["final_answer"], task_id=trial["task_id"]) for trial in trials],
        verifiers=[VerifierSource(task_id=task, mode="code", code=bundle.verifiers[task, "code"]) for task in TASKS],
    )
    reply = sandbox.check(request, 240.0)
    assert isinstance(reply, TrialsReply), reply
    return reply.runs


def test_it_is_as_large_as_asked_for(folder: Path, certified: Certified) -> None:
    figures = certified.certificate.figures
    assert isinstance(figures["tables"], int)
    assert isinstance(figures["rows"], int)
    assert figures["tables"] >= 12
    assert figures["rows"] >= 100
    assert len(certified.bundle.manifest.tools) >= 25
    assert len(certified.bundle.app_code.splitlines()) >= 1200
    assert all(1 <= len(solution.calls) <= 8 for solution in certified.bundle.solutions.values())
    assert len(part(folder, "tasks.json")) == len(TASKS)


def test_every_gate_is_passed_and_every_task_ships(certified: Certified) -> None:
    assert [str(problem) for problem in errors(certified.certificate.problems)] == []
    assert certified.certificate.shipped_tasks == list(TASKS)
    assert {mending.kind for mending in certified.bundle.manifest.mendings} <= {"null_allowed"}  # fastapi-mcp's fault, not theirs


def test_its_tools_are_those_of_the_spec(folder: Path, certified: Certified) -> None:
    spec = ApiSpec.model_validate(part(folder, "spec.json"))
    assert sorted(endpoint.operation_id for endpoint in spec.endpoints) == certified.bundle.manifest.tools


def test_near_misses_are_rejected_and_other_ways_accepted(folder: Path, certified: Certified, sandbox: Sandbox) -> None:
    trials = part(folder, "trials.json")
    wrong = {}
    for trial, run in zip(trials, play(sandbox, certified.bundle, trials), strict=True):
        [verdict] = run.verdicts
        unplayable = {"internal", "timeout", "crashed", "invalid_arguments", "not_found", "format_error"} & set(run.kinds)
        if run.error or unplayable or verdict.classification != trial["expect"]:
            wrong[f"{trial['task_id']}: {trial['why']}"] = (run.error, unplayable, verdict)
    assert wrong == {}


def test_each_task_has_at_least_four_near_misses(folder: Path) -> None:
    near = [trial["task_id"] for trial in part(folder, "trials.json") if trial["expect"] == "others"]
    assert {task: near.count(task) for task in TASKS if near.count(task) < 4} == {}


def test_every_fault_that_is_described_stands_in_a_file_of_its_own_beside_a_good_one() -> None:
    described = {entry["file"] for entry in FAULTS}
    present = {str(path.relative_to(FAULTY)) for path in FAULTY.rglob("*.[0-9].*")}
    assert described == present
    assert {entry["stage"] for entry in FAULTS} == {
        "scenario",
        "tasks",
        "schema",
        "data",
        "spec",
        "code",
        "verifiers",
        "solutions",
    }
    for entry in FAULTS:
        stem = entry["file"].removesuffix(".json").removesuffix(".edits").removesuffix(".py").removesuffix(f".{entry['attempt']}")
        good = next(f"{stem}{suffix}" for suffix in (".py", ".json") if (FAULTY / f"{stem}{suffix}").is_file())
        assert text(FAULTY, good, entry["attempt"]) != text(FAULTY, good)
        assert all(fault["where"] and fault["what"] and fault["found_by"] for fault in entry["faults"])


def failures(sandbox: Sandbox, schema: int, data: int | None) -> list[tuple[str, int]]:
    """Table and place of the statements that fail, of these attempts; 0 is the good one."""
    made = Schema.model_validate(part(FAULTY, "schema.json", schema))
    rows = SampleData.model_validate(part(FAULTY, "data.json", data)) if data is not None else SampleData(tables=[])
    request = LoadRequest(
        world_time="2026-01-01T00:00:00Z",
        statements_schema=[
            Statement(sql=sql, table=table.name, index=index)
            for table in made.tables
            for index, sql in enumerate((table.ddl, *table.indexes))
        ],
        statements_data=[
            Statement(sql=sql, table=table.table_name, index=index)
            for table in rows.tables
            for index, sql in enumerate(table.insert_statements)
        ],
    )
    reply = sandbox.check(request)
    assert isinstance(reply, LoadReply), reply
    return [(failure.table, failure.index) for failure in reply.failures]


def test_the_first_schema_and_the_first_rows_fail_where_it_is_said(sandbox: Sandbox) -> None:
    assert failures(sandbox, 1, None) == [("patients", 1), ("waitlist_entries", 0), ("waitlist_entries", 1)]
    assert failures(sandbox, 0, 1) == [("appointments", 15), ("vaccinations", 11)]
    assert failures(sandbox, 0, 0) == []


def app_of(sandbox: Sandbox, bundle: Bundle, attempt: int) -> AppReply | CheckFailed:
    reply = sandbox.check(AppRequest(source=source_of(bundle, text(FAULTY, "code.py", attempt))))
    assert isinstance(reply, AppReply | CheckFailed), reply
    return reply


def test_the_first_code_does_not_start_and_the_second_serves_other_tools(sandbox: Sandbox, faulty: Bundle) -> None:
    first, second = app_of(sandbox, faulty, 1), app_of(sandbox, faulty, 2)
    assert isinstance(first, AppReply)
    assert isinstance(second, AppReply)
    assert [finding.kind for finding in first.findings] == ["import_error"]
    assert first.tools == []
    assert {finding.omitted for finding in second.findings if finding.kind == "shadowed_route"} == {"find_open_slots"}
    served = {tool.name for tool in second.tools} | {"find_open_slots"}
    assert served ^ set(faulty.manifest.tools) == {"get_slot", "list_messages", "review_adverse_event", "close_adverse_event"}


def test_the_first_verifiers_reward_nothing_or_crash_on_a_database_nobody_touched(sandbox: Sandbox, faulty: Bundle) -> None:
    assert faulty.seed_db is not None
    database = base64.b64encode(faulty.seed_db).decode()
    request = VerifyRequest(
        verifiers=[
            VerifierSource(task_id=0, mode="code", code=text(FAULTY, "verifiers/0.code.py", 1)),
            VerifierSource(task_id=2, mode="sql", code=text(FAULTY, "verifiers/2.sql.py", 1)),
        ],
        initial_db=database,
        final_db=database,
        final_answer="",
        world_time=faulty.manifest.world_time,
    )
    reply = sandbox.check(request)
    assert isinstance(reply, VerifyReply), reply
    assert reply.verdicts[0].classification == "complete"
    assert "expiry_date" in (reply.verdicts[1].error or "")


def test_one_of_the_first_solutions_does_not_solve_its_task(sandbox: Sandbox, faulty: Bundle) -> None:
    runs = play(sandbox, faulty, part(FAULTY, "solutions.json", 1))
    said = {task: run.verdicts[0].classification for task, run in zip(TASKS, runs, strict=True)}
    assert {task for task, verdict in said.items() if verdict != "complete"} == {1}
