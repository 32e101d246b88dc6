"""The large environments whose answers are written by hand, as a capable model would give them, with and without faults."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from awm_factory.sandbox import ProcessSandbox
from awm_factory.store import Store
from awm_factory.synthesis.artifacts import Scenario
from awm_factory.synthesis.draft import STAGES, Draft
from awm_factory.synthesis.notebook import Notebook
from awm_factory.synthesis.pipeline import Made, Pipeline
from awm_factory.synthesis.scripted import ScriptedModel
from awm_factory.synthesis.settings import Settings
from awm_factory.synthesis.workbench import Workbench
from synthesis_support import DATA, Quiet, each, said

ANSWERS = DATA.parent / "answers"
FOLDERS = sorted(path.parent for path in ANSWERS.glob("*/solutions.json"))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    with ProcessSandbox(2) as opened:
        yield opened


@pytest.mark.timeout(900)
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_all_ten_tasks_are_proved_and_every_planted_fault_is_mended(sandbox: ProcessSandbox, folder: Path) -> None:
    settings = Settings(advice=False)
    draft = Draft(scenario=Scenario.model_validate_json((folder / "scenario.json").read_text()))
    made: list[Made] = []
    with Store.open("sqlite://") as store:
        store.start_run("r", "scripted", {})

        async def go() -> None:
            bench = Workbench(sandbox, settings)
            pipeline = Pipeline(ScriptedModel(ANSWERS), bench, settings, Notebook(store, "r"), Quiet(), 2)
            report = await pipeline.run(each([draft]), STAGES, made.append)
            assert made, report.rows[0].error

        asyncio.run(go())
    row, bundle = made[0].row, made[0].bundle
    assert row.outcome == "made", said(row.problems)
    assert (row.tasks_shipped, row.tasks_total) == (10, 10)
    assert bundle is not None
    assert len(bundle.manifest.tools) >= 25
    faults = json.loads((folder / "faults.json").read_text()) if (folder / "faults.json").is_file() else []
    for stage in {fault["stage"] for fault in faults} - {"scenario"}:
        figures = row.stages[stage]
        assert figures.answers > figures.questions, stage
