"""The main job's judgement of a real AWM run that nobody here wrote; only where that run lies beside the checkout."""

from pathlib import Path

import pytest

from awm_factory.build import Knobs, Row, Silent, check_envs, import_run
from awm_factory.catalog import Catalog
from awm_factory.certify import Options
from awm_factory.sandbox import ProcessSandbox

RUN = Path(__file__).parents[3] / "shared" / "awm-run"

pytestmark = pytest.mark.skipif(not RUN.is_dir(), reason="the real run is not beside this checkout")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    catalog = Catalog(tmp_path_factory.mktemp("workspace"))
    with ProcessSandbox(2) as sandbox:
        imported = import_run(RUN, catalog, sandbox, Silent(), None, None)
        assert imported.ok, imported
        report = check_envs(catalog.env_ids(), catalog, sandbox, Knobs(jobs=2), Silent())
        again = import_run(RUN, catalog, sandbox, Silent(), None, None)
        assert {row.outcome for row in again.rows} == {"unchanged"}
    return {row.env_id: row for row in report.rows}


def test_surveymonkey_is_refused_for_its_failed_statements_and_loses_the_task_that_rewards_nothing(rows: dict[str, Row]) -> None:
    row = rows["surveymonkey_apply"]
    assert row.outcome == "refused"
    assert (row.figures["statements"], row.figures["failed"]) == ({"schema": 66, "data": 105}, {"schema": 3, "data": 22})
    assert row.tasks_shipped == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert any(problem.gate == "null" and problem.task_id == 9 for problem in row.errors)


def test_etsy_is_refused_for_one_insert(rows: dict[str, Row]) -> None:
    row = rows["etsy_digital_downloads"]
    assert row.outcome == "refused"
    assert [(problem.gate, problem.statement) for problem in row.errors] == [("data", True)]


def test_gofundme_passes_without_the_tool_that_would_run_the_code_of_another(rows: dict[str, Row]) -> None:
    row = rows["gofundme"]
    assert row.outcome == "checked"
    assert any("one method and path" in problem.what and problem.severity == "warning" for problem in row.problems)
    assert row.figures["tools"] == 9


def test_fortnite_passes(rows: dict[str, Row]) -> None:
    assert rows["fortnite_item_shop"].outcome == "checked"


def test_awms_own_tolerance_lets_one_failed_insert_of_138_pass(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    with ProcessSandbox(1) as sandbox:
        import_run(RUN, catalog, sandbox, Silent(), ["etsy_digital_downloads"], None)
        knobs = Knobs(certify=Options(max_failed_statements=0.1))
        (row,) = check_envs(["etsy_digital_downloads"], catalog, sandbox, knobs, Silent()).rows
    assert row.outcome == "checked"
    assert any(problem.statement and problem.severity == "warning" for problem in row.problems)
