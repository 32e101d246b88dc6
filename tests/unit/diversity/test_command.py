"""The command `diversity`: an AWM run or a workspace in, one table or one JSON out."""

import json
from pathlib import Path

import pytest

from awm_factory.catalog import Catalog
from awm_factory.cli import run
from bee_yard import certified

RUN = Path(__file__).parents[2] / "data" / "awm_run_small"


def test_a_run_is_compared_without_being_executed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diversity", "--run", str(RUN), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["environments"] > 1
    assert told["calls_vendi"] is None
    assert 1 < told["schema_vendi"] <= told["environments"]


def test_a_workspace_is_compared_by_its_solutions_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Catalog(tmp_path).write(certified())
    assert run(["--workspace", str(tmp_path), "diversity"]) == 0
    assert "Vendi score of the solutions" in capsys.readouterr().out


def test_a_workspace_without_environments_is_an_error_that_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--workspace", str(tmp_path), "diversity"]) != 0
    assert "registry" in capsys.readouterr().err
