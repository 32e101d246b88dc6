"""The command line: what goes to which stream, which exit code an outcome has, and that every command is documented."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from awm_factory import build as build_package
from awm_factory.build import BatchReport, Row, pushing
from awm_factory.build.pushing import PushRow
from awm_factory.catalog import Catalog, Record
from awm_factory.cli import cli, output, run
from awm_factory.errors import AwmError, EngineError, PushError, SmokeError
from awm_factory.images import engine
from awm_factory.problems import Problem
from bee_yard import certified

ROOT = Path(__file__).parents[2]


def a_problem(**changes: Any) -> Problem:
    fields = {
        "gate": "data",
        "severity": "error",
        "where": "inserts of hives[3]",
        "what": "CHECK constraint failed.",
        "fix": "Mend it.",
    }
    return Problem(**(fields | changes))


GOOD = Row(
    "bee_yard", "built", reference="awm/bee_yard:0123456789abcdef", tasks_total=3, tasks_shipped=[0, 2], seconds={"smoke": 1.25}
)
BAD = Row(
    "note_pad",
    "refused",
    problems=[a_problem(), a_problem(severity="warning", gate="interface", where="tool [x]")],
    figures={"statements": {"schema": 66, "data": 105}, "failed": {"schema": 3, "data": 22}, "tools": 7},
)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("bee_yard", "note_pad"):
        (tmp_path / "registry" / name).mkdir(parents=True)
        (tmp_path / "registry" / name / "manifest.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def batch(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Stands for the main job: what it was asked, and what it will answer or raise."""
    state: dict[str, Any] = {"rows": [GOOD], "asked": None, "imported": []}

    class Shop:
        def __init__(self) -> None:
            self.catalog, self.sandbox = Catalog(workspace), None

    @contextmanager
    def open_workshop(config: Any, progress: Any) -> Iterator[Shop]:
        progress.say("the engine is found")
        yield Shop()

    def build_envs(env_ids: list[str], shop: Shop, knobs: Any, progress: Any) -> BatchReport:
        state["asked"] = (env_ids, knobs)
        if isinstance(state["rows"], BaseException):
            raise state["rows"]
        for row in state["rows"]:
            progress.stage(row.env_id, "smoke")
            progress.done(row)
        return BatchReport(state["rows"])

    def import_run(run_dir: Path, catalog: Any, sandbox: Any, progress: Any, only: Any, world_time: Any) -> BatchReport:
        state["import"] = (run_dir, only, world_time)
        return BatchReport(state["imported"])

    monkeypatch.setattr(build_package, "open_workshop", open_workshop)
    monkeypatch.setattr(build_package, "build_envs", build_envs)
    monkeypatch.setattr(build_package, "import_run", import_run)
    return state


def test_the_result_goes_to_stdout_and_progress_to_stderr(batch: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["build", "bee_yard"]) == 0
    out, err = capsys.readouterr()
    assert "bee_yard" in out
    assert "2 of 3" in out
    assert "awm/bee_yard:0123456789abcdef" in out
    assert "the engine is found" in err
    assert "bee_yard: smoke" in err
    assert "smoke" not in out


def test_one_failed_environment_is_a_row_with_its_figures_and_an_exit_code_of_1(
    batch: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    batch["rows"] = [GOOD, BAD]
    assert run(["build"]) == 1
    out, err = capsys.readouterr()
    assert "3 of 66 failed" in out
    assert "22 of 105 failed" in out
    assert "error (data) inserts of hives[3]: CHECK constraint failed. Mend it." in out
    assert "tool [x]" in out, "square brackets in what a model wrote are no markup"
    assert "1 of 2 environments failed: note_pad" in err
    assert batch["asked"][0] == ["bee_yard", "note_pad"]


def test_json_is_the_only_thing_on_stdout(batch: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    batch["rows"] = [GOOD, BAD]
    assert run(["build", "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["outcome"] for row in rows] == ["built", "refused"]
    assert rows[1]["problems"][0]["where"] == "inserts of hives[3]"


def test_many_problems_of_one_kind_are_counted_rather_than_spelled_out(
    batch: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    batch["rows"] = [Row("note_pad", "refused", problems=[a_problem(where=f"row {number}") for number in range(22)])]
    run(["build"])
    out = capsys.readouterr().out
    assert "row 4" in out
    assert "row 5:" not in out
    assert "and 17 more of this kind" in out


def test_options_reach_the_job(batch: dict[str, Any]) -> None:
    run(["build", "Bee yard", "--jobs", "3", "--max-failed-statements", "0.1", "--allow-problems", "--force"])
    env_ids, knobs = batch["asked"]
    assert env_ids == ["bee_yard"]
    assert (knobs.jobs, knobs.certify.max_failed_statements, knobs.allow_problems, knobs.force) == (3, 0.1, True, True)


def test_a_run_is_imported_first_and_what_failed_there_stays_in_the_table(
    batch: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    note = a_problem(severity="warning", gate="import", where="gen_db.jsonl line 1")
    batch["imported"] = [Row("bee_yard", "imported", problems=[note]), Row("broken", "failed", problems=[a_problem()])]
    (tmp_path / "run").mkdir()
    assert run(["build", "--source", str(tmp_path / "run"), "--world-time", "2026-05-01T12:00:00+02:00"]) == 1
    assert batch["import"] == (tmp_path / "run", None, "2026-05-01T10:00:00Z")
    assert batch["asked"][0] == ["bee_yard"]
    out = capsys.readouterr().out
    assert "broken" in out
    assert "gen_db.jsonl line 1" in out


@pytest.mark.parametrize("error", [EngineError("no engine answers"), SmokeError("it did not start"), PushError("refused")])
def test_an_error_is_one_message_and_its_own_exit_code(
    error: AwmError, batch: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    batch["rows"] = error
    assert run(["build"]) == error.exit_code
    out, err = capsys.readouterr()
    assert f"error: {error}" in err
    assert "Traceback" not in err + out
    assert out == ""


def test_an_interrupt_is_told_and_has_the_exit_code_of_one(batch: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    batch["rows"] = KeyboardInterrupt()
    assert run(["build"]) == 130
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["build", "no_such_environment"],
        ["build", "--jobs", "0"],
        ["build", "--max-failed-statements", "11"],
        ["build", "--world-time", "tomorrow"],
        ["build", "--world-time", "2026-01-01T00:00:00"],
        ["import", "no/such/folder"],
        ["push"],
        ["fly"],
    ],
)
def test_what_makes_no_sense_is_refused_with_exit_code_2(arguments: list[str], batch: dict[str, Any]) -> None:
    assert run(arguments) == 2
    assert batch["asked"] is None


def test_a_workspace_without_environments_says_where_some_come_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--workspace", str(tmp_path), "check"]) == 2
    assert "awm-factory import" in capsys.readouterr().err


def test_a_broken_folder_is_a_row_of_the_list(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list"]) == 0
    out, err = capsys.readouterr()
    assert "bee_yard" in out
    assert "can't be read" in out
    assert "manifest.json" in err


def test_a_failed_push_is_an_error_naming_image_and_cause(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        PushRow("bee_yard", "ghcr.io/acme/bee_yard@sha256:12", ("latest",)),
        PushRow("note_pad", error="note_pad was not pushed: denied", exit_code=6),
    ]
    monkeypatch.setattr(engine, "ensure_engine", lambda *_: SimpleNamespace(client=None))
    monkeypatch.setattr(pushing, "push_envs", lambda *_: rows)
    assert run(["push", "bee_yard", "note_pad", "--registry", "ghcr.io/acme"]) == 6
    out, err = capsys.readouterr()
    assert "ghcr.io/acme/bee_yard@sha256:12" in out
    assert "note_pad was not pushed: denied" in err


def test_without_names_those_with_an_image_are_pushed(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(engine, "ensure_engine", lambda *_: SimpleNamespace(client=None))
    monkeypatch.setattr(pushing, "push_envs", lambda ids, *_: asked.append(ids) or [])
    assert run(["push", "--registry", "ghcr.io/acme"]) == 2
    catalog = Catalog(workspace)
    catalog.write(certified())
    catalog.write_record("bee_yard", Record(bundle_digest="", images={"awm/bee_yard:0123456789abcdef": "sha256:1"}))
    assert run(["push", "--registry", "ghcr.io/acme"]) == 0
    assert asked == [["bee_yard"]]


def test_help_and_mistakes_answer_without_loading_what_commands_need() -> None:
    heavy = ["docker", "testcontainers", "mcp", "httpx", "jinja2", "sqlalchemy", "fastapi"]
    code = f"import sys, awm_factory.cli; sys.stdout.write(repr([name for name in {heavy} if name in sys.modules]))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]"


def generator() -> Any:
    spec = importlib.util.spec_from_file_location("generate_cli", ROOT / "docs" / "generate_cli.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def commands() -> list[tuple[str, click.Command]]:
    """Every command by the words that call it, groups left out."""
    found: list[tuple[str, click.Command]] = []

    def walk(command: click.Command, words: str) -> None:
        if isinstance(command, click.Group):
            for name, child in command.commands.items():
                walk(child, f"{words} {name}".strip())
        else:
            found.append((words, command))

    walk(cli, "")
    return found


def test_the_reference_says_what_the_commands_say_of_themselves() -> None:
    module = generator()
    assert module.PAGE.read_text() == module.page(), "run .venv/bin/python docs/generate_cli.py"
    for words, _ in commands():
        assert f"\n## {words}\n" in module.page()


def test_the_reference_knows_every_exit_code_an_error_has() -> None:
    def codes(kind: type[AwmError]) -> set[int]:
        return {kind.exit_code}.union(*map(codes, kind.__subclasses__()))

    page = generator().page()
    assert [code for code in codes(AwmError) if f"\n| {code} | " not in page] == []


PRINTS_NOTHING = {"stub-llm": "it serves until it is ended"}


def test_every_command_that_prints_a_result_has_json() -> None:
    for words, command in commands():
        options = {option for parameter in command.params for option in parameter.opts}
        assert ("--json" in options) != (words in PRINTS_NOTHING), words


def test_every_command_and_option_explains_itself() -> None:
    for words, command in commands():
        assert command.help, words
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert getattr(parameter, "help", None), f"{words} {parameter.opts}"


def test_square_brackets_in_a_cell_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["scenario"], [["Mugs [bold]and[/bold] plates"]])
    assert "Mugs [bold]and[/bold] plates" in capsys.readouterr().out


@pytest.mark.parametrize(
    "surroundings",
    [{"COLUMNS": "60"}, {"COLUMNS": "60", "TERM": "dumb", "FORCE_COLOR": "1"}, {"TERM": "dumb", "TTY_COMPATIBLE": "1"}, {}],
    ids=["narrow", "forced colours", "said to be a terminal", "nothing said"],
)
def test_what_is_no_terminal_gets_every_cell_whole_on_one_line(
    surroundings: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("COLUMNS", "TERM", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in surroundings.items():
        monkeypatch.setenv(name, value)
    cells = ["bee_yard_" + "north_" * 30, "awm-fleet-bee-yard-north-1:8001", "word " * 50 + "end"]
    output.table(["environment", "address", "state"], [cells, ["b", "c", "d"]], ["green", ""])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all(cell in lines[2] for cell in cells)


def test_colours_that_are_forced_make_no_bars_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with output.StderrProgress() as progress:
        progress.total(1)
        progress.stage("bee_yard", "check")
        progress.done(GOOD)
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "bee_yard: check" and told[1].startswith("bee_yard: built after")


def test_progress_on_a_terminal_shows_a_bar_and_removes_what_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with output.StderrProgress() as progress:
        progress.total(None)
        progress.total(2)
        progress.stage("bee_yard", "check")
        progress.stage("bee_yard", "smoke")
        progress.done(GOOD)
        progress.say("[not markup]")
    out, err = capsys.readouterr()
    assert out == ""
    assert "1/2" in err
    assert "[not markup]" in err
