"""`awm-factory synth` as its users run it: over HTTP against the stub, at any speed, killed at any moment."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from awm_factory.bundle import Bundle
from awm_factory.llm.stub_faults import Faults, Latency
from awm_factory.llm.stub_server import Stub, running_stub
from awm_factory.store import Store
from awm_factory.synthesis.scripted import ScriptedModel
from synthesis_support import ANSWERS, DATA

KILLS = 20
SETTINGS = "tasks = 3\nsolvable_runs = 1\n"


class Workspace:
    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self._url = url
        folder.mkdir()
        (folder / "registry").mkdir()
        (folder / "settings.toml").write_text(SETTINGS)

    def program(self, *words: str) -> list[str]:
        return [sys.executable, "-c", "from awm_factory.cli import main; main()", "--workspace", str(self.folder), *words]

    def command(self, *options: str) -> list[str]:
        fixed = ["--model", "stub", "--sandbox", "process", "--settings", str(self.folder / "settings.toml")]
        taken = [] if "--count" in options or "--input" in options else ["--scenarios", str(DATA / "scenarios.jsonl")]
        return self.program("synth", *fixed, *taken, *options)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "AWM_", "EMBEDDING_"))}
        return kept | {"OPENAI_BASE_URL": self._url}

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*options), env=self.environment, capture_output=True, text=True, timeout=240, check=False
        )

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command("--jobs", "2"), env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def digests(self) -> dict[str, tuple[str, str]]:
        bundles = [Bundle.read(path.parent) for path in sorted((self.folder / "registry").glob("*/manifest.json"))]
        return {bundle.env_id: (bundle.digest(), bundle.solutions_digest()) for bundle in bundles}

    def paid(self) -> Counter[str]:
        """How often each content was answered and paid for, as the store knows it."""
        path = self.folder / "runs.db"
        if not path.is_file():
            return Counter()
        with Store.open(str(path)) as store, store._read() as connection:
            rows = connection.exec_driver_sql("SELECT key FROM calls WHERE hit = 0 AND failed = 0").scalars()
            return Counter(rows)


@pytest.fixture
def stub() -> Stub:
    return Stub(ScriptedModel(ANSWERS), latency=Latency(median=0.05), seed=3)


@pytest.fixture
def url(stub: Stub) -> Iterator[str]:
    with running_stub(stub) as address:
        yield address


@pytest.fixture
def undisturbed(tmp_path: Path, url: str) -> dict[str, tuple[str, str]]:
    workspace = Workspace(tmp_path / "undisturbed", url)
    finished = workspace.run("--jobs", "1", "--requests", "1")
    assert finished.returncode == 0, finished.stderr
    assert workspace.digests()
    return workspace.digests()


def test_a_run_says_what_it_made_and_what_it_cost(tmp_path: Path, url: str, stub: Stub) -> None:
    workspace = Workspace(tmp_path / "w", url)
    prices = tmp_path / "prices.toml"
    prices.write_text("[stub]\ninput = 1.0\noutput = 4.0\n")
    finished = workspace.run("--json", "--prices", str(prices), "--budget", "20")
    assert finished.returncode == 0, finished.stderr
    shown = json.loads(finished.stdout)
    assert [(row["env_id"], row["outcome"], row["tasks_shipped"]) for row in shown["rows"]] == [("tool_shelf", "made", 3)]
    assert [(rate["stage"], rate["success"], rate["iterations"]) for rate in shown["rates"]][-1] == ("solutions", 1.0, 1.0)
    counted = [entry["usage"] for entry in stub.log if entry["usage"]]
    assert sum(cost["prompt_tokens"] for cost in shown["costs"]) == sum(usage["prompt_tokens"] for usage in counted)
    assert sum(cost["completion_tokens"] for cost in shown["costs"]) == sum(usage["completion_tokens"] for usage in counted)
    assert "about 30 calls" in finished.stderr
    again = workspace.run("--json")
    assert again.returncode == 0
    assert json.loads(again.stdout)["rows"] == shown["rows"]
    assert len([entry for entry in stub.log if entry["usage"]]) == len(counted)


def test_what_a_run_has_made_is_not_executed_again_unless_it_is_gone_or_changed(tmp_path: Path, url: str, stub: Stub) -> None:
    workspace = Workspace(tmp_path / "w", url)
    first = workspace.run("--json")
    made, asked = workspace.digests(), len(stub.log)
    code = workspace.folder / "registry" / "tool_shelf" / "app.py"
    certificate = code.with_name("certificate.json")
    certificate.write_text(certificate.read_text() + "\n")

    again = workspace.run("--json")
    assert "tool_shelf: made, 3 of 3 tasks; 1 of 1 ended" in again.stderr
    assert "tool_shelf: tasks" not in again.stderr
    assert json.loads(again.stdout)["rows"] == json.loads(first.stdout)["rows"]
    assert certificate.read_text().endswith("\n\n")

    code.write_text(code.read_text() + "\n# changed\n")
    assert "tool_shelf: tasks" in workspace.run().stderr
    assert workspace.digests() == made
    shutil.rmtree(code.parent)
    assert "tool_shelf: tasks" in workspace.run().stderr
    assert workspace.digests() == made
    assert len(stub.log) == asked


def test_a_new_scenario_is_written_classified_and_made(tmp_path: Path, url: str, stub: Stub) -> None:
    workspace = Workspace(tmp_path / "w", url)
    finished = workspace.run("--count", "1")
    assert finished.returncode == 0, finished.stderr
    assert list(workspace.digests()) == ["tool_shelf"]
    assert Counter(entry["purpose"]["stage"] for entry in stub.log)["classify"] == 5


def test_some_stages_go_file_to_file(tmp_path: Path, url: str) -> None:
    workspace = Workspace(tmp_path / "w", url)
    first = workspace.run("--to", "data", "--output", str(tmp_path / "half"))
    assert first.returncode == 0, first.stderr
    files = sorted(path.name for path in (tmp_path / "half").iterdir())
    assert files == ["gen_db.jsonl", "gen_sample.jsonl", "gen_scenario.jsonl", "gen_tasks.jsonl"]
    assert not workspace.digests()
    second = workspace.run("--from", "spec", "--input", str(tmp_path / "half"))
    assert second.returncode == 0, second.stderr
    assert list(workspace.digests()) == ["tool_shelf"]


def test_past_runs_are_shown(tmp_path: Path, url: str) -> None:
    workspace = Workspace(tmp_path / "w", url)
    assert workspace.run("--to", "schema", "--run", "first").returncode == 0
    shown = subprocess.run(
        workspace.program("runs", "show", "first", "--env", "tool_shelf", "--json"), capture_output=True, text=True, check=True
    )
    told = json.loads(shown.stdout)
    assert told["run"]["state"] == "done"
    assert [(one["stage"], one["number"], one["chosen"]) for one in told["attempts"]] == [("schema", 1, True), ("tasks", 1, True)]
    assert {cost["stage"] for cost in told["costs"]} == {"tasks", "schema"}
    listed = subprocess.run(workspace.program("runs", "list"), capture_output=True, text=True, check=True)
    assert "first" in listed.stdout


def test_a_budget_stops_cleanly_and_the_same_command_goes_on(tmp_path: Path, url: str, undisturbed: Any) -> None:
    workspace = Workspace(tmp_path / "w", url)
    prices = tmp_path / "prices.toml"
    prices.write_text("[stub]\ninput = 100.0\noutput = 400.0\n")
    stopped = workspace.run("--prices", str(prices), "--budget", "3")
    assert stopped.returncode == 9, stopped.stderr
    assert "run the same command with a larger --budget" in stopped.stderr
    assert not workspace.digests()
    finished = workspace.run("--prices", str(prices), "--budget", "100")
    assert finished.returncode == 0, finished.stderr
    assert workspace.digests() == undisturbed
    assert set(workspace.paid().values()) == {1}


def test_without_a_model_a_scenario_of_no_pack_is_refused_and_nothing_is_sent(tmp_path: Path, url: str, stub: Stub) -> None:
    workspace = Workspace(tmp_path / "w", url)
    command = [word for word in workspace.command() if word not in {"--model", "stub"}]
    finished = subprocess.run(command, env=workspace.environment, capture_output=True, text=True, timeout=60, check=False)
    assert finished.returncode == 2
    assert "name a model with --model" in finished.stderr
    assert stub.log == []


@pytest.mark.parametrize("way", ["--scenarios", "--input"])
def test_a_scenario_that_is_a_name_alone_is_refused_before_anything_is_sent(
    tmp_path: Path, url: str, stub: Stub, way: str
) -> None:
    workspace = Workspace(tmp_path / "w", url)
    given = tmp_path / "gen_scenario.jsonl"
    given.write_text('{"name": "Tool Shelf", "description": "Lends tools."}\n{"name": "Ice Rink", "description": " "}\n')
    command = workspace.program("synth", "--model", "stub", "--sandbox", "process", way)
    finished = subprocess.run(
        [*command, str(given if way == "--scenarios" else tmp_path)],
        env=workspace.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert finished.returncode == 2
    assert "no description, and no tasks to go by: 'Ice Rink'; say in `description` what each is for" in finished.stderr
    assert stub.log == []


def test_tasks_that_exist_stand_in_for_a_description(tmp_path: Path, url: str) -> None:
    """As in an imported environment, or an AWM run without gen_scenario.jsonl."""
    workspace = Workspace(tmp_path / "w", url)
    given = tmp_path / "run"
    assert workspace.run("--to", "schema", "--output", str(given)).returncode == 0
    (given / "gen_scenario.jsonl").unlink()
    finished = workspace.run("--input", str(given), "--to", "schema", "--json")
    assert finished.returncode == 0, finished.stderr
    assert [row["outcome"] for row in json.loads(finished.stdout)["rows"]] == ["made"]


def test_concurrency_faults_and_latency_change_no_content(tmp_path: Path, undisturbed: dict[str, tuple[str, str]]) -> None:
    faults = Faults(rate_limit=0.1, rate_limit_after=0.1, server_error=0.1, disconnect=0.1, empty=0.1, thinking=0.3)
    rough = Stub(ScriptedModel(ANSWERS), faults=faults, latency=Latency(median=0.1), seed=11, retry_after=0.1)
    with running_stub(rough) as address:
        workspace = Workspace(tmp_path / "w", address)
        finished = workspace.run("--jobs", "2", "--requests", "64")
    assert finished.returncode == 0, finished.stderr
    assert workspace.digests() == undisturbed
    assert len({fault for entry in rough.log for fault in entry["faults"]}) >= 4


def test_a_recording_replays_with_no_endpoint(tmp_path: Path, url: str, undisturbed: dict[str, tuple[str, str]]) -> None:
    recorded = Workspace(tmp_path / "recorded", url)
    assert recorded.run("--record", str(tmp_path / "tape")).returncode == 0
    replayed = Workspace(tmp_path / "replayed", "http://127.0.0.1:9/v1")
    finished = replayed.run("--replay", str(tmp_path / "tape"))
    assert finished.returncode == 0, finished.stderr
    assert replayed.digests() == undisturbed


@pytest.mark.timeout(900)
def test_twenty_kills_at_random_moments_cost_nothing_and_change_nothing(
    tmp_path: Path, url: str, stub: Stub, undisturbed: dict[str, tuple[str, str]]
) -> None:
    draw, latest = random.Random(20), 6.0
    kills = rounds = 0
    while kills < KILLS:
        rounds += 1
        workspace = Workspace(tmp_path / f"round{rounds}", url)
        for _ in range(5):
            paid, asked = set(workspace.paid()), len(stub.log)
            process, started = workspace.start(), time.monotonic()
            try:
                process.wait(draw.uniform(0.5, latest))
                latest = max(1.0, time.monotonic() - started)  # a fast machine was done before it could be killed
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                kills += 1
            ended = process.wait() == 0
            assert not paid & {entry["key"] for entry in stub.log[asked:]}
            if ended:
                break
        paid, asked = set(workspace.paid()), len(stub.log)
        finished = workspace.run("--jobs", "2")
        assert finished.returncode == 0, finished.stderr
        assert workspace.digests() == undisturbed
        assert set(workspace.paid().values()) == {1}
        assert not paid & {entry["key"] for entry in stub.log[asked:]}
