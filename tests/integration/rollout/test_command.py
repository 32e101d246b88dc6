"""`awm-factory rollout` against a container's server and an endpoint, both over HTTP."""

import json
from pathlib import Path
from typing import Any

import pytest

from awm_factory.cli import run
from awm_factory.llm.protocol import ModelReply, ModelRequest, ToolUse, Usage
from awm_factory.llm.stub_server import Stub, running_stub
from awm_factory.reward import read_episodes
from runtime_support import Served, serve, write_environment


class Lender:
    """Speaks as a served model would: lends the book, then says so. Sample 1 asks for a tool that does not exist."""

    name = "lender"

    def __init__(self) -> None:
        self.asked: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request)
        usage = Usage(prompt=100, completion=10)
        if request.messages[-1].role != "user":
            return ModelReply(model=self.name, raw="The Kite book is lent to Ada.", usage=usage)
        tool = "lend_everything" if request.sample == 1 else "lend"
        arguments = json.dumps({"member_id": 1, "title": "Kite book", "days": 14})
        return ModelReply(model=self.name, tool_calls=(ToolUse(id="c1", name=tool, arguments=arguments),), usage=usage)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = write_environment(tmp_path_factory.mktemp("environment") / "env", tasks=("Lend the Kite book to Ada.", "Again."))
    with serve(directory, AWM_TOKEN="a-secret") as served:
        yield served


def arguments(served: Served, url: str, tmp_path: Path, *more: str) -> list[str]:
    token = tmp_path / "token"
    token.write_text("a-secret\n")
    place = ["--url", f"http://127.0.0.1:{served.port}", "--token-file", str(token)]
    model = ["--model", "lender", "--base-url", url]
    plan = ["--env", "library", "--task", "0", "--task", "1", "--samples", "3"]
    return ["rollout", *plan, *place, *model, "--output", str(tmp_path / "out.jsonl"), *more]


def test_episodes_are_played_over_http_and_summed_up(library: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = Lender()
    with running_stub(Stub(model)) as url:
        assert run(arguments(library, url, tmp_path, "--json")) == 0
    own, whole = json.loads(capsys.readouterr().out)
    assert (own["env_id"], own["episodes"], own["masked"]) == ("library", 6, 0)
    assert own["pass_at"] == {"1": pytest.approx(2 / 3), "2": 1.0}
    assert own["mean_reward"] == pytest.approx((4 * 1.0 - 2) / 6)
    assert own["format_errors"] == pytest.approx(1 / 3)
    assert whole["calls"] == pytest.approx(4 / 6)
    assert {tool.name for tool in model.asked[0].tools} >= {"lend", "list_loans"}
    stored = list(read_episodes([tmp_path / "out.jsonl"]))
    lent = next(one for one in stored if one.episode == "library/0/0")
    assert lent.changes is not None
    assert list(lent.changes.tables) == ["loans"]
    assert library.request("GET", "/health")[1]["episodes"] == 0


def test_a_second_run_of_the_command_asks_the_model_nothing(library: Served, tmp_path: Path) -> None:
    model = Lender()
    with running_stub(Stub(model)) as url:
        assert run(arguments(library, url, tmp_path)) == 0
        asked = len(model.asked)
        assert run(arguments(library, url, tmp_path)) == 0
    assert len(model.asked) == asked


def test_an_endpoint_that_is_down_masks_its_episodes_and_the_next_run_plays_them(
    library: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_stub(Stub(Lender())) as url:
        pass
    assert run(arguments(library, url, tmp_path)) != 0
    assert "6 of 6 episodes have no reward" in capsys.readouterr().err
    with running_stub(Stub(Lender())) as url:
        assert run(arguments(library, url, tmp_path)) == 0
    assert len(list(read_episodes([tmp_path / "out.jsonl"]))) == 6


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--fleet", "http://127.0.0.1:1"], "two places"),
        (["--env", "another"], "one environment"),
    ],
)
def test_contradictions_are_refused_before_anything_runs(
    more: list[str], why: str, library: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments(library, "http://127.0.0.1:1/v1", tmp_path, *more)) == 2
    assert why in capsys.readouterr().err
