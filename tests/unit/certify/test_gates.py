"""Each gate alone, on evidence as the sandbox would give it: one thing wrong at a time, and the gate must see just that."""

import base64

import pytest

from awm_factory.bundle import Bundle, Manifest, Origin, Solution, Task
from awm_factory.certify import Options, data, interface, null, schema, solvable
from awm_factory.certify.evidence import Evidence
from awm_factory.problems import Problem
from awm_runtime.contract import (
    AppReply,
    CallsReply,
    CheckFailed,
    Finding,
    ForeignKeyViolation,
    LoadReply,
    MovingStatement,
    Playthrough,
    StatementFailure,
    Table,
    Tool,
    ToolCall,
    ToolResult,
    Verdict,
)

KETTLE = StatementFailure(
    phase="data",
    table="jobs",
    index=5,
    sql="INSERT INTO jobs (id, item, state) VALUES (6, 'kettle', 'waiting_parts')",
    error="CHECK constraint failed: state IN ('queued','bench','done')",
)


def load(**changes: object) -> LoadReply:
    fields: dict[str, object] = {
        "failures": [],
        "statements_total": {"schema": 2, "data": 11},
        "schema_sql": ["CREATE TABLE jobs (id INTEGER PRIMARY KEY)"],
        "seed_sql": ["INSERT INTO jobs (id, item) VALUES (1, 'toaster')"],
        "moving": [],
        "db": base64.b64encode(b"db").decode(),
        "dump_sha256": "d",
        "integrity": [],
        "dangling": [],
        "tables": [Table(name="jobs", columns=[], rows=10)],
    }
    return LoadReply.model_validate(fields | changes)


def bundle(origin: Origin = "synthesized", *instructions: str, **changes: object) -> Bundle:
    tasks = [Task(task_id=number, instruction=text) for number, text in enumerate(instructions)]
    made = Bundle(Manifest(env_id="cafe", scenario="Cafe", origin=origin), ["CREATE TABLE jobs (id)"], [], "app", tasks=tasks)
    return made.with_(**changes)


def tool(name: str) -> Tool:
    return Tool(name=name, operation_id=name, method="GET", path=f"/{name}", description="", input_schema={})


def only(problems: list[Problem]) -> Problem:
    assert len(problems) == 1, problems
    return problems[0]


def test_one_failed_insert_of_eleven_is_an_error_by_default_and_a_warning_within_the_tolerance() -> None:
    evidence = Evidence(load(failures=[KETTLE]))
    problem = only(data.check(bundle(), evidence, Options()))
    assert problem.severity == "error" and problem.statement
    assert "jobs" in problem.where and "CHECK constraint failed" in problem.what and "kettle" in problem.what
    assert only(data.check(bundle(), evidence, Options(max_failed_statements=0.1))).severity == "warning"
    assert only(data.check(bundle(), evidence, Options(max_failed_statements=0.09))).severity == "error"


def test_a_task_that_names_what_only_a_failed_insert_would_have_stored_is_flagged() -> None:
    evidence = Evidence(load(failures=[KETTLE]))
    repair = bundle("imported", "Move Oskar's kettle to the bench.", "List what is queued for Uma.")
    flagged = [problem for problem in data.check(repair, evidence, Options()) if problem.task_id is not None]
    assert only(flagged).task_id == 0 and "'kettle'" in flagged[0].what


def test_a_name_stored_by_another_row_is_not_missing() -> None:
    stored = ["INSERT INTO jobs (id, item) VALUES (2, 'kettle')", KETTLE.sql]
    evidence = Evidence(load(failures=[KETTLE], seed_sql=stored))
    assert only(data.check(bundle("imported", "Move the kettle."), evidence, Options())).task_id is None


def test_a_dangling_row_is_an_error_of_ours_and_a_warning_of_an_import() -> None:
    evidence = Evidence(load(dangling=[ForeignKeyViolation(table="jobs", rowid=3, parent="visitors")]))
    assert only(data.check(bundle(), evidence, Options())).severity == "error"
    assert only(data.check(bundle("imported"), evidence, Options())).severity == "warning"


def test_a_clock_in_the_seed_is_frozen_with_a_warning_and_chance_is_an_error_of_ours() -> None:
    clock = load(moving=[MovingStatement(table="loans", index=1, source="clock")])
    assert only(data.check(bundle(), Evidence(clock), Options())).severity == "warning"
    chance = load(moving=[MovingStatement(table="loans", index=1, source="random")])
    assert only(data.check(bundle(), Evidence(chance), Options())).severity == "error"
    assert only(data.check(bundle("imported"), Evidence(chance), Options())).severity == "warning"


def test_a_task_whose_day_only_the_clock_tells_is_warned_of() -> None:
    tasks = ["Extend what is overdue today.", "Today is 2026-01-01; extend what is overdue today.", 'Call the loan "Next week".']
    problem = only(data.check(bundle("imported", *tasks), Evidence(load()), Options()))
    assert (problem.severity, problem.task_id) == ("warning", 0)
    assert '"today"' in problem.what and problem.fix == "Say in the task that today is 2026-01-01."


def test_damage_and_an_empty_schema_fail_the_schema_gate() -> None:
    assert only(schema.check(bundle(), Evidence(load(integrity=["row 1 missing from index i"])), Options())).severity == "error"
    assert "no table" in only(schema.check(bundle(), Evidence(load(tables=[])), Options())).what


def test_a_load_that_could_not_be_carried_out_is_one_problem_of_the_schema_gate() -> None:
    evidence = Evidence(CheckFailed(reason="timeout", message="60 s"))
    assert "timeout" in only(schema.check(bundle(), evidence, Options())).what
    assert data.check(bundle(), evidence, Options()) == []


def test_an_app_that_does_not_start_is_an_error_even_of_an_import() -> None:
    finding = Finding(kind="import_error", where="app.py", what="It raises NameError.", fix="Define it.")
    problems = interface.check(bundle("imported"), Evidence(load(), AppReply(tools=[], findings=[finding])), Options())
    assert only(problems).severity == "error"


def test_an_omitted_tool_is_a_warning_of_an_import_and_an_error_of_ours() -> None:
    finding = Finding(kind="duplicate_route", where="tool b", what="b runs a.", fix="Give b its own path.", omitted="b")
    evidence = Evidence(load(), AppReply(tools=[tool("a")], findings=[finding]))
    assert only(interface.check(bundle("imported"), evidence, Options())).severity == "warning"
    assert only(interface.check(bundle(), evidence, Options())).severity == "error"


def test_tools_are_compared_with_the_spec_both_ways() -> None:
    spec = {"api_groups": [{"endpoints": [{"operation_id": "a"}, {"operation_id": "b"}]}]}
    evidence = Evidence(load(), AppReply(tools=[tool("a"), tool("c")], findings=[]))
    wheres = {problem.where for problem in interface.check(bundle(api_spec=spec), evidence, Options())}
    assert wheres == {"tool b", "tool c"}


@pytest.mark.parametrize(
    ("verdict", "severity", "says"),
    [
        (Verdict(mode="code", classification="complete", reward=1.0), "error", "doing nothing is rewarded"),
        (Verdict(mode="code", error="returned None"), "error", "returned None"),
    ],
)
def test_a_verifier_that_rewards_nothing_or_fails_is_an_error_of_its_task(verdict: Verdict, severity: str, says: str) -> None:
    env = bundle("imported", "Do it.", verifiers={(0, "code"): "…"})
    problem = only(null.check(env, Evidence(load(), untouched={(0, "code"): verdict}), Options()))
    assert (problem.severity, problem.task_id) == (severity, 0) and says in problem.what


def test_a_verifier_that_says_others_passes() -> None:
    env = bundle("synthesized", "Do it.", verifiers={(0, "code"): "…"})
    verdict = Verdict(mode="code", classification="others", reward=0.0)
    assert null.check(env, Evidence(load(), untouched={(0, "code"): verdict}), Options()) == []


def play(classification: str, dump: str = "d", kind: str = "ok") -> Playthrough:
    result = ToolResult.model_validate({"is_error": kind != "ok", "kind": kind, "status": 200, "content": "because"})
    verdict = Verdict.model_validate({"mode": "code", "classification": classification})
    return Playthrough(results=[result], verdicts=[verdict], db="", dump_sha256=dump)


@pytest.mark.parametrize(
    ("runs", "says"),
    [
        ([play("others")] * 3, "does not accept"),
        ([play("complete"), play("others"), play("complete")], "1 of 3 runs"),
        ([play("complete"), play("complete", "other"), play("complete")], "2 states"),
        ([play("others", kind="internal")] * 3, "answered internal: because"),
    ],
)
def test_a_solution_must_be_complete_each_time_and_end_in_one_state(runs: list[Playthrough], says: str) -> None:
    env = bundle("imported", "Do it.", solutions={0: Solution(calls=[ToolCall(tool="a", arguments={})])})
    problem = only(solvable.check(env, Evidence(load(), solved={0: CallsReply(runs=runs)}), Options()))
    assert problem.severity == "error" and says in problem.what
    assert solvable.check(env, Evidence(load(), solved={0: CallsReply(runs=[play("complete")] * 3)}), Options()) == []
