"""The auditor on a small AWM run, solutions from files, and trajectories kept as solutions."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from awm_factory.awm_format import write_run
from awm_factory.catalog import Catalog
from awm_factory.certify import Options, certify
from awm_factory.certify.audit import Audited, audit_run
from awm_factory.certify.report import html, summary
from awm_factory.certify.solutions_file import read_solutions, read_trajectory
from awm_factory.certify.trajectory import keep
from awm_factory.errors import UsageError
from awm_factory.reward import Case, Judgement
from awm_factory.sandbox import ProcessSandbox
from bee_yard import working

OPTIONS = Options(calls=60, solvable_runs=2)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    with ProcessSandbox(2) as opened:
        yield opened


@pytest.fixture
def run_dir(tmp_path: Path, sandbox: ProcessSandbox) -> Path:
    bundle = certify(working(), sandbox, Options(calls=0, mutants=0)).bundle
    write_run([bundle], tmp_path / "run")
    return tmp_path / "run"


def truth(folder: Path, **changes: object) -> Path:
    entry = {
        "scenario": "bee yard",
        "task_idx": 0,
        "label": "sound",
        "solution": [{"tool": "list_hives", "arguments": {}}, {"tool": "add_hive", "arguments": {"label": "South"}}],
        "final_answer": "Done.",
        "near_misses": [
            {
                "kind": "wrong value",
                "what": "West",
                "solution": [{"tool": "add_hive", "arguments": {"label": "West"}}],
                "final_answer": "Done.",
                "verdict": "others",
            }
        ],
    }
    path = folder / "truth.json"
    path.write_text(json.dumps([entry | changes]), encoding="utf-8")
    return path


def audited(run_dir: Path, sandbox: ProcessSandbox, path: Path) -> Audited:
    (one,) = audit_run(run_dir, sandbox, OPTIONS, read_solutions(path))
    return one


def test_an_audit_agrees_with_true_labels_and_writes_nothing_into_the_run(
    run_dir: Path, sandbox: ProcessSandbox, tmp_path: Path
) -> None:
    before = {path: path.read_bytes() for path in run_dir.rglob("*") if path.is_file()}
    one = audited(run_dir, sandbox, truth(tmp_path))
    assert {path: path.read_bytes() for path in run_dir.rglob("*") if path.is_file()} == before
    (task,) = one.tasks
    assert (task.label, task.solvable, task.null_pass, task.agrees) == ("sound", True, False, True)
    assert one.certificate is not None and task.certificate.rates["by_kind"] != {}
    assert "1 of 1 tasks the gates agree" in summary([one])


def test_an_audit_disagrees_with_a_false_label_and_with_a_near_miss_said_to_pass(
    run_dir: Path, sandbox: ProcessSandbox, tmp_path: Path
) -> None:
    assert audited(run_dir, sandbox, truth(tmp_path, label="unsolvable_data")).tasks[0].agrees is False
    passed = json.loads(truth(tmp_path).read_text())[0]["near_misses"]
    passed[0]["verdict"] = "complete"
    assert audited(run_dir, sandbox, truth(tmp_path, near_misses=passed)).tasks[0].agrees is False


def test_a_task_without_a_solution_says_which_gates_did_not_run(run_dir: Path, sandbox: ProcessSandbox) -> None:
    (one,) = audit_run(run_dir, sandbox, OPTIONS, [])
    gates = one.tasks[0].certificate.gates
    assert {name for name, outcome in gates.items() if outcome == "not_run"} == {
        "solvable",
        "near_misses",
        "equivalents",
        "alternatives",
    }
    assert one.tasks[0].agrees is None


def test_the_report_is_one_page_that_asks_nothing_of_the_network_and_shows_text_as_text(
    run_dir: Path, sandbox: ProcessSandbox, tmp_path: Path
) -> None:
    page = html("Audit of <run>", [audited(run_dir, sandbox, truth(tmp_path))])
    assert "<title>Audit of &lt;run&gt;</title>" in page
    assert "http" not in page and "<script" not in page and "<link" not in page
    assert "near misses rejected" in page and "Set up a hive called South." in page


def test_references_of_both_kinds_are_read(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    calls = [
        {"tool": "a", "arguments": {}},
        {"name": "b", "arguments": {"id": {"$from": [0, "items.2.id"]}, "text": "{{calls[0].x}}"}},
    ]
    path.write_text(json.dumps({"scenario": "Bee Yard", "task_id": 3, "steps": calls, "final_answer": "x"}))
    known = read_trajectory(path)
    assert (known.env_id, known.task_id) == ("bee_yard", 3)
    assert known.solution.calls[1].arguments == {"id": "{{calls[0].items[2].id}}", "text": "{{calls[0].x}}"}


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"scenario": "x"}]', '{"calls": [{"tool": 1, "arguments": 2}]}'])
def test_what_is_no_file_of_solutions_is_a_usage_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    if text:
        with pytest.raises(UsageError, match=r"bad\.json can't be read"):
            read_solutions(path)
    with pytest.raises(UsageError, match=r"bad\.json can't be read"):
        read_trajectory(path)


def trajectory(folder: Path, label: str) -> Path:
    path = folder / "played.json"
    path.write_text(json.dumps({"calls": [{"tool": "add_hive", "arguments": {"label": label}}], "final_answer": "It is there."}))
    return path


def test_a_trajectory_that_the_verifier_accepts_becomes_the_solution(tmp_path: Path, sandbox: ProcessSandbox) -> None:
    catalog = Catalog(tmp_path)
    catalog.write(working().with_(solutions={}))
    assert keep(trajectory(tmp_path, "South"), catalog, sandbox, OPTIONS, ["bee_yard"], 0) == "bee_yard"
    assert catalog.read("bee_yard").solutions[0].final_answer == "It is there."


EVIDENCE = """
import sqlite3


def verify_task(initial_db_path, final_db_path):
    with sqlite3.connect(final_db_path) as connection:
        return {"labels": [label for (label,) in connection.execute("SELECT label FROM hives ORDER BY id")]}
"""


def test_where_the_code_verifier_does_not_say_complete_a_judge_may_by_evidence_and_changes(
    tmp_path: Path, sandbox: ProcessSandbox
) -> None:
    asked: list[Case] = []

    def judge(case: Case) -> Judgement:
        asked.append(case)
        return Judgement.of(
            "sql", "complete" if case.evidence == {"labels": ["North", "West"]} else "incomplete", "By the labels."
        )

    catalog = Catalog(tmp_path)
    verifiers = {**working().verifiers, (0, "sql"): EVIDENCE}
    catalog.write(working().with_(solutions={}, verifiers=verifiers))
    assert keep(trajectory(tmp_path, "West"), catalog, sandbox, OPTIONS, ["bee_yard"], 0, judge) == "bee_yard"
    assert catalog.read("bee_yard").solutions[0].calls[0].arguments == {"label": "West"}
    (case,) = asked
    assert case.task == "Set up a hive called South." and case.final_answer == "It is there."
    assert case.changes is not None and [row.after for row in case.changes.tables["hives"]] == [{"id": 2, "label": "West"}]
    with pytest.raises(UsageError, match=r"the verifier says others, and the judge incomplete: By the labels\."):
        keep(trajectory(tmp_path, "East"), catalog, sandbox, OPTIONS, ["bee_yard"], 0, judge)
    keep(trajectory(tmp_path, "South"), catalog, sandbox, OPTIONS, ["bee_yard"], 0, judge)
    assert len(asked) == 2, "what the code verifier accepts no judge is asked of"


def test_a_trajectory_that_is_not_complete_is_refused_and_nothing_is_kept(tmp_path: Path, sandbox: ProcessSandbox) -> None:
    catalog = Catalog(tmp_path)
    catalog.write(working().with_(solutions={}))
    with pytest.raises(UsageError, match="the verifier says others"):
        keep(trajectory(tmp_path, "West"), catalog, sandbox, OPTIONS, ["bee_yard"], 0)
    with pytest.raises(UsageError, match="has no task 7"):
        keep(trajectory(tmp_path, "South"), catalog, sandbox, OPTIONS, ["bee_yard"], 7)
    assert catalog.read("bee_yard").solutions == {}
