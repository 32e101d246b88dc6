"""The commands that the offline author stands behind: `synth` without a model, `reseed`, and `stub-llm`."""

import json
from pathlib import Path
from typing import Any

import pytest

from awm_factory.bundle import Bundle
from awm_factory.cli import run
from awm_factory.llm import stub_server
from awm_factory.llm.stub_server import Stub, running_stub

ENV = "solar_panel_leads"
"""The first scenario of seed 0."""


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no endpoint and no model, whatever the machine has."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AWM_SYN_OVERRIDE_MODEL", "EMBEDDING_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "registry").mkdir()
    return tmp_path


def bundle(workspace: Path) -> Bundle:
    return Bundle.read(workspace / "registry" / ENV)


def said(capsys: pytest.CaptureFixture[str], workspace: Path, *words: str) -> tuple[Any, str]:
    assert run(["--workspace", str(workspace), *words, "--sandbox", "process", "--jobs", "1", "--json"]) == 0
    captured = capsys.readouterr()
    return json.loads(captured.out), captured.err


def test_synth_without_a_model_writes_a_proved_environment_for_nothing(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report, told = said(capsys, workspace, "synth", "--count", "1", "--tasks", "2")
    assert "no model is named: the offline author writes" in told
    assert [(row["env_id"], row["outcome"], row["tasks_shipped"]) for row in report["rows"]] == [(ENV, "made", 2)]
    assert sum(cost["prompt_tokens"] + cost["completion_tokens"] for cost in report["costs"]) == 0
    made = bundle(workspace)
    assert made.certificate is not None and made.certificate.clean and made.certificate.shipped_tasks == [0, 1]
    assert made.manifest.origin == "synthesized" and [task.difficulty is not None for task in made.tasks] == [True, True]
    _, told = said(capsys, workspace, "reseed", ENV, "--seed", "5", "--tasks", "3")
    other = bundle(workspace)
    assert (other.app_code, other.schema_sql) == (made.app_code, made.schema_sql) and other.seed_sql != made.seed_sql
    assert other.certificate is not None and other.certificate.shipped_tasks == [0, 1, 2]
    assert not {task.instruction for task in other.tasks} & {task.instruction for task in made.tasks}
    said(capsys, workspace, "reseed", ENV, "--seed", "0", "--tasks", "2")
    assert (bundle(workspace).digest(), bundle(workspace).solutions_digest()) == (made.digest(), made.solutions_digest())

    app = workspace / "registry" / ENV / "app.py"
    app.write_text(app.read_text() + "\n# mended by hand\n")
    assert run(["--workspace", str(workspace), "reseed", ENV, "--sandbox", "process"]) == 2
    assert "is not what the offline author writes for it" in capsys.readouterr().err


def test_the_stub_answers_from_the_offline_author_what_synth_writes_without_a_model(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stubs: list[Stub] = []
    monkeypatch.setattr(stub_server, "serve_stub", lambda stub, port: stubs.append(stub))
    assert run(["stub-llm", "--port", "9"]) == 0
    assert "OPENAI_BASE_URL=http://127.0.0.1:9/v1" in capsys.readouterr().err
    scenarios = tmp_path / "scenarios.jsonl"
    scenarios.write_text(json.dumps({"name": "Solar Panel Leads", "description": "Leads with roof data and site visits."}) + "\n")
    settings = tmp_path / "settings.toml"
    settings.write_text("tasks = 2\ncalls = 0\nmutants = 0\nadvice = false\n")
    given = ["--scenarios", str(scenarios), "--settings", str(settings)]
    with running_stub(stubs[0]) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        report, told = said(capsys, workspace, "synth", "--model", "stub", *given)
    assert "no model is named" not in told and stubs[0].log
    assert [(row["outcome"], row["tasks_shipped"]) for row in report["rows"]] == [("made", 2)]
    over_http = bundle(workspace)
    monkeypatch.delenv("OPENAI_BASE_URL")
    said(capsys, workspace, "synth", *given)
    own = bundle(workspace)
    assert own.app_code == over_http.app_code and own.schema_sql == over_http.schema_sql
    assert (own.seed_sql, own.tasks) == (over_http.seed_sql, over_http.tasks)
    assert (own.verifiers, own.solutions) == (over_http.verifiers, over_http.solutions)
    assert own.manifest == over_http.manifest and own.manifest.author is not None and own.manifest.author.seed == 0
