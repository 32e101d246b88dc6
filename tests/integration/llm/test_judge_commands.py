"""`awm-factory verify` and `agreement` on stored trajectories, with a judge behind real HTTP."""

import json
from pathlib import Path
from typing import Any

import pytest

from awm_factory.cli import run
from awm_factory.llm.protocol import ModelRequest
from awm_factory.llm.stub_server import Stub, running_stub
from llm_support import FunctionModel


def line(episode: str, code: str | None, **more: Any) -> str:
    verdict = None if code is None else {"mode": "code", "classification": code, "reward": 1.0 if code == "complete" else 0.0}
    fields = {"episode": episode, "task": f"Task of {episode}.", "trajectory": [], "env_id": "kiosk", "task_id": 1}
    return json.dumps(fields | {"verdict": verdict, "tokens": 12} | more) + "\n"


def says(request: ModelRequest) -> str:
    done = "Task of one" in request.messages[-1].content
    return json.dumps({"reason": "Seen.", "classification": "complete" if done else "incomplete"})


@pytest.fixture
def trajectories(tmp_path: Path) -> Path:
    path = tmp_path / "episodes.jsonl"
    path.write_text(line("one", "complete") + line("two", "complete") + line("three", None))
    return path


def command(*words: object) -> list[str]:
    return [str(word) for word in words]


def test_a_judge_adds_its_word_to_each_episode_and_asks_nothing_twice(
    trajectories: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = tmp_path / "judged.jsonl"
    with running_stub(Stub(FunctionModel(says))) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        words = command(
            "--workspace", tmp_path, "verify", trajectories, "--mode", "llm", "--model", "stub-model", "--output", judged
        )
        assert run([*words, "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert run([*words, "--json"]) == 0
        again = json.loads(capsys.readouterr().out)
    assert {name: said["reward"] for name, said in report["episodes"].items()} == {"one": 1.0, "two": 0.1, "three": 0.1}
    assert sum(cost["calls"] - cost["hits"] for cost in again["costs"]) == 3
    rows = [json.loads(row) for row in judged.read_text().splitlines()]
    assert [row["judgements"]["llm"]["classification"] for row in rows] == ["complete", "incomplete", "incomplete"]
    assert rows[0]["tokens"] == 12

    assert run(command("agreement", judged, "--json")) == 0
    result = json.loads(capsys.readouterr().out)
    assert [(pair["both"], pair["agreed"], pair["only_first"]) for pair in result["pairs"]] == [(2, 1, 1)]
    assert [dispute["episode"] for dispute in result["disputes"]] == ["two"]
    assert run(command("agreement", judged)) == 0
    assert "two" in capsys.readouterr().out


def test_code_mode_needs_no_model_and_an_episode_without_a_verdict_has_no_reward(
    trajectories: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command("--workspace", tmp_path, "verify", trajectories, "--mode", "code", "--json")) == 1
    report = json.loads(capsys.readouterr().out)
    assert {name: said["reward"] for name, said in report["episodes"].items()} == {"one": 1.0, "two": 1.0, "three": None}
    assert "no verdict" in report["episodes"]["three"]["error"]


@pytest.mark.parametrize(
    ("text", "says_"),
    [
        ("not json\n", "line 1 is no stored episode"),
        (line("one", None) + line("one", None), "names episode 'one' again"),
        ('{"episode": "one"}\n', "task: Field required"),
    ],
)
def test_a_file_that_holds_no_episodes_is_refused_by_line(
    text: str, says_: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    assert run(command("agreement", path)) == 3
    assert says_ in capsys.readouterr().err


def test_one_mode_alone_can_be_compared_with_nothing(trajectories: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command("agreement", trajectories)) == 2
    assert "one mode only" in capsys.readouterr().err
