"""Scenarios to proved bundles in the child-process sandbox: faults in every stage, faults found late, and what is kept."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from awm_factory.llm.protocol import Model, ModelRequest
from awm_factory.sandbox import ProcessSandbox
from awm_factory.sandbox.pool import Reply, Request
from awm_factory.store import Store
from awm_factory.synthesis.artifacts import Scenario, VerifierPair
from awm_factory.synthesis.draft import STAGES, Draft
from awm_factory.synthesis.files import read_drafts, write_drafts
from awm_factory.synthesis.notebook import Notebook
from awm_factory.synthesis.pipeline import Made, Pipeline
from awm_factory.synthesis.settings import Settings
from awm_factory.synthesis.stages.common import fenced_json, fenced_python
from awm_factory.synthesis.workbench import Workbench
from awm_runtime.contract import CallsRequest, TrialsRequest, VerifyRequest
from synthesis_support import Edited, Quiet, changed, each, part, said, shelf

BLANK = Draft(scenario=Scenario.model_validate(part("scenario.json")))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    with ProcessSandbox(2) as opened:
        yield opened


class Run:
    """One draft's way through the stages, and all that was asked and written meanwhile."""

    def __init__(self, sandbox: ProcessSandbox, edit: Callable[[ModelRequest, str], str] = lambda _, text: text) -> None:
        self.sandbox = sandbox
        self.model = Edited(edit)
        self.store = Store.open("sqlite://")
        self.store.start_run("r", "scripted", {})

    def go(self, draft: Draft = BLANK, plan: Sequence[str] = STAGES, model: Model | None = None, **settings: Any) -> Made:
        chosen = Settings(**({"tasks": 3, "solvable_runs": 2, "advice": False} | settings))
        made: list[Made] = []

        async def run() -> None:
            bench = Workbench(self.sandbox, chosen)
            pipeline = Pipeline(model or self.model, bench, chosen, Notebook(self.store, "r"), Quiet(), 2)
            report = await pipeline.run(each([draft]), plan, made.append)
            assert made, report.rows[0].error

        asyncio.run(run())
        return made[0]

    def asked(self, stage: str) -> list[ModelRequest]:
        return [request for request in self.model.requests if request.purpose.stage == stage]

    def complaints(self, stage: str) -> str:
        return said(problem for attempt in self.store.attempts("r", stage=stage) for problem in attempt.problems)


def first_answer(stage: str, text: str, item: str = "") -> Callable[[ModelRequest, str], str]:
    def edit(request: ModelRequest, answer: str) -> str:
        mine = request.purpose.stage == stage and request.purpose.item == item and request.purpose.attempt == 1
        return text if mine else answer

    return edit


def test_a_scenario_becomes_a_proved_bundle(sandbox: ProcessSandbox) -> None:
    made = Run(sandbox).go()
    assert made.bundle is not None
    assert made.bundle.certificate is not None
    assert (made.row.outcome, made.row.tasks_shipped, made.row.tasks_total) == ("made", 3, 3)
    assert made.bundle.certificate.passed
    assert made.bundle.manifest.tools == ["lend_tool", "list_loans", "list_members", "list_tools", "return_tool"]
    assert all(figures.answers == figures.questions for figures in made.row.stages.values())


FAULTS = [
    ("tasks", fenced_json({"tasks": part("tasks.json")[:2]}), "", "There are 2, not 3"),
    ("schema", changed(json.dumps(part("schema.json")), ("due_on DATE NOT NULL,", "due_on DATE NOT NULL")), "", "syntax error"),
    (
        "data",
        changed(json.dumps(part("data.json")), ("'garden', 'in_repair'", "'garden', 'broken'")),
        "",
        "CHECK constraint failed",
    ),
    ("data", changed(json.dumps(part("data.json")), ("(2, 3, 2,", "(2, 99, 2,")), "", "FOREIGN KEY constraint failed"),
    ("data", json.dumps(part("data.json"))[:-200], "", "stops in line"),
    ("spec", changed(json.dumps(part("spec.json")), ('"lend_tool"', '"list_loans"')), "", "2 endpoints have this operation_id"),
    (
        "code",
        fenced_python(changed(part("code.py"), ("from pydantic import BaseModel", "from pydantic import BaseModell"))),
        "",
        "BaseModell",
    ),
    (
        "code",
        fenced_python(changed(part("code.py"), ('operation_id="lend_tool"', 'operation_id="lend"'))),
        "",
        "does not serve it",
    ),
    ("code", "Of course! Here is what I would do: nothing.", "", "not plain Python"),
    (
        "verifiers",
        "\n\n".join(
            fenced_python(code)
            for code in (
                "def verify_task_completion(initial_db_path, final_db_path, final_answer):\n    return {'result': 'complete'}",
                part("verifiers/1.sql.py"),
            )
        ),
        "1",
        "doing nothing is rewarded",
    ),
    (
        "solutions",
        fenced_json({"calls": [{"tool": "list_members", "arguments": {}}], "final_answer": "Done."}),
        "0",
        "does not accept the solution",
    ),
    (
        "solutions",
        fenced_json({"calls": [{"tool": "return_tool", "arguments": {"loan_id": 2}}], "final_answer": "Done."}),
        "1",
        "neither the task says nor an earlier call showed",
    ),
]


@pytest.mark.parametrize(("stage", "text", "item", "fault"), FAULTS, ids=[f"{fault[0]}: {fault[3]}" for fault in FAULTS])
def test_a_fault_in_any_stage_is_found_by_executing_it_and_mended(
    sandbox: ProcessSandbox, stage: str, text: str, item: str, fault: str
) -> None:
    run = Run(sandbox, first_answer(stage, text, item))
    made = run.go()
    assert fault in run.complaints(stage)
    assert (made.row.outcome, made.row.tasks_shipped) == ("made", 3)
    assert made.row.stages[stage].answers == made.row.stages[stage].questions + 1
    assert fault in said(message.content for request in run.asked(stage) for message in request.messages)


def test_a_verifier_that_rejects_a_right_solution_is_mended_when_the_solver_proves_it(sandbox: ProcessSandbox) -> None:
    strict = changed(part("verifiers/1.code.py"), ('(i, n, "available" if i == tool', '(i, n, "returned" if i == tool'))
    accused = part("solutions.json")[1] | {
        "blame": {"part": "verifier", "why": "It wants the status returned, which no tool has."}
    }
    pair = "\n\n".join(map(fenced_python, (strict, part("verifiers/1.sql.py"))))

    def edit(request: ModelRequest, answer: str) -> str:
        purpose = (request.purpose.stage, request.purpose.item, request.purpose.attempt)
        if purpose == ("verifiers", "1", 1):
            return pair
        return fenced_json(accused) if purpose == ("solutions", "1", 2) else answer

    run = Run(sandbox, edit)
    made = run.go()
    assert (made.row.outcome, made.row.tasks_shipped) == ("made", 3)
    again = run.asked("verifiers")[-1]
    assert (again.purpose.item, again.purpose.attempt) == ("1", 2)
    assert "It wants the status returned" in again.messages[-1].content
    assert "return_tool" in again.messages[-1].content
    assert len(run.asked("verifiers")) == 4


def test_data_that_no_tool_can_read_goes_back_to_the_data_though_the_code_stage_finds_it(sandbox: ProcessSandbox) -> None:
    schema = changed(json.dumps(part("schema.json")), ("lent_at DATETIME", "lent_at TEXT"))
    data = changed(json.dumps(part("data.json")), ("'2025-12-28 10:15:00'", "'28 December 2025'"))

    def edit(request: ModelRequest, answer: str) -> str:
        if request.purpose.stage == "schema":
            return schema
        return data if request.purpose.stage == "data" and request.purpose.attempt == 1 else answer

    run = Run(sandbox, edit)
    made = run.go()
    assert made.row.outcome == "made"
    assert [request.purpose.attempt for request in run.asked("data")] == [1, 2]
    assert "28 December 2025" in run.asked("data")[1].messages[-1].content
    assert len(run.asked("code")) == 1


def test_a_tolerated_share_of_failing_schema_statements_is_recorded_and_asks_for_nothing(sandbox: ProcessSandbox) -> None:
    schema = changed(json.dumps(part("schema.json")), ("ON tools (category)", "ON tools (kind)"))
    run = Run(sandbox, first_answer("schema", schema))
    made = run.go(schema_error_ratio=0.2, plan=("tasks", "schema"))
    assert made.row.stages["schema"].answers == 1
    assert "1 of 5 statements fail, an error ratio of 0.20" in run.complaints("schema")


def test_what_can_not_be_mended_is_kept_marked_and_its_task_is_not_shipped(sandbox: ProcessSandbox) -> None:
    def edit(request: ModelRequest, answer: str) -> str:
        idle = fenced_json({"calls": [{"tool": "list_members", "arguments": {}}], "final_answer": "Done."})
        return idle if (request.purpose.stage, request.purpose.item) == ("solutions", "0") else answer

    run = Run(sandbox, edit)
    made = run.go(attempts=2)
    assert (made.row.outcome, made.row.tasks_shipped, made.row.tasks_total) == ("marked", 2, 3)
    assert made.bundle is not None
    assert made.bundle.certificate is not None
    assert made.bundle.certificate.shipped_tasks == [1, 2]
    assert len([request for request in run.asked("solutions") if request.purpose.item == "0"]) == 2
    assert "does not accept the solution" in said(made.row.problems)


class Counted(ProcessSandbox):
    """Knows what it was asked."""

    def __init__(self) -> None:
        super().__init__(2)
        self.asked: list[Request] = []

    def check(self, request: Request, time_limit: float = 60.0) -> Reply:
        self.asked.append(request)
        return super().check(request, time_limit)


def test_what_is_proved_once_is_executed_by_the_proof_alone_and_held_to_the_same() -> None:
    def edit(request: ModelRequest, answer: str) -> str:
        match request.purpose.stage, request.purpose.item:
            case "solutions", "0":
                return fenced_json({"calls": [{"tool": "list_members", "arguments": {}}], "final_answer": "Done."})
            case "solutions", "1":
                return fenced_json({"calls": [{"tool": "return_tool", "arguments": {"loan_id": 2}}], "final_answer": "Done."})
        return answer

    with Counted() as sandbox:
        made = Run(sandbox, edit).go(attempts=1, rounds=0, calls=0, mutants=0, prove_once=True)
        played = [len(request.trials) for request in sandbox.asked if isinstance(request, TrialsRequest)]
    assert played == [3 * 2]
    assert not any(isinstance(request, VerifyRequest | CallsRequest) for request in sandbox.asked)
    assert (made.row.outcome, made.row.tasks_shipped) == ("marked", 2)
    assert "does not accept the solution" in said(made.row.problems)
    assert "neither the task says nor an earlier call showed" in said(made.row.problems)


def test_an_environment_that_never_starts_is_refused_and_no_bundle_is_written(sandbox: ProcessSandbox) -> None:
    run = Run(sandbox, lambda request, text: "import nothing_of_the_kind\napp = 1\n" if request.purpose.stage == "code" else text)
    made = run.go(attempts=2)
    assert (made.row.outcome, made.bundle) == ("refused", None)
    assert "nothing_of_the_kind" in said(made.row.problems)


def test_a_scenario_whose_answers_are_missing_is_a_row_and_the_others_are_made(sandbox: ProcessSandbox) -> None:
    store = Store.open("sqlite://")
    store.start_run("r", "scripted", {})
    chosen = Settings(tasks=3, solvable_runs=1, advice=False)
    rows = []

    async def go() -> None:
        pipeline = Pipeline(Edited(lambda _, text: text), Workbench(sandbox, chosen), chosen, Notebook(store, "r"), Quiet(), 2)
        drafts = [Draft(scenario=Scenario(name="Ghost Town")), BLANK]
        rows.extend((await pipeline.run(each(drafts), STAGES, lambda _: None)).rows)

    asyncio.run(go())
    assert [row.outcome for row in rows] == ["failed", "made"]
    assert [(one.env_id, one.state) for one in store.scenarios("r")] == [("ghost_town", "failed"), ("tool_shelf", "done")]


def test_stages_run_file_to_file(sandbox: ProcessSandbox, tmp_path: Path) -> None:
    first = Run(sandbox).go(plan=("tasks", "schema"))
    write_drafts([first.draft], tmp_path / "a")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["gen_db.jsonl", "gen_scenario.jsonl", "gen_tasks.jsonl"]
    (draft,) = read_drafts(tmp_path / "a", "2026-01-01T00:00:00Z")
    assert draft.scenario == BLANK.scenario
    rest = Run(sandbox)
    made = rest.go(draft, plan=STAGES[3:])
    assert made.row.outcome == "made"
    assert not rest.asked("tasks")
    write_drafts([made.draft], tmp_path / "b")
    (whole,) = read_drafts(tmp_path / "b", "2026-01-01T00:00:00Z")
    assert whole.bundle().digest() == made.draft.bundle().digest()
    assert whole.bundle().solutions_digest() == made.draft.bundle().solutions_digest()


def test_an_environment_that_exists_is_only_mended_where_it_is_broken(sandbox: ProcessSandbox) -> None:
    lenient = (
        "def verify_task_completion(initial_db_path, final_db_path, final_answer=None):\n    return {'result': 'complete'}\n"
    )
    broken = shelf(verifiers={**shelf().verifiers, 1: VerifierPair(code=lenient, sql=part("verifiers/1.sql.py"))}, solutions={})
    run = Run(sandbox)
    made = run.go(Draft.from_bundle(broken.bundle()), plan=("data", "verifiers", "solutions"))
    assert (made.row.outcome, made.row.tasks_shipped) == ("made", 3)
    assert not run.asked("data")
    assert [request.purpose.item for request in run.asked("verifiers")] == ["1"]
    assert len(run.asked("solutions")) == 3
