"""A real environment of a real AWM run, of whose ten tasks one was sound, repaired without touching its tasks or its code.

One of its tables misses a bracket and was never made, so the schema is among the stages.

An extra test: the run is not part of the project, so it is skipped where it is absent.
"""

import asyncio
import json
import re
import shutil
from pathlib import Path

import pytest

from awm_factory import resources
from awm_factory.awm_format import AwmRecordSet, draft_bundle, read_run
from awm_factory.sandbox import ProcessSandbox
from awm_factory.sandbox.pool import expect
from awm_factory.store import Store
from awm_factory.synthesis.draft import Draft
from awm_factory.synthesis.notebook import Notebook
from awm_factory.synthesis.pipeline import Made, Pipeline
from awm_factory.synthesis.scripted import ScriptedModel
from awm_factory.synthesis.settings import Settings
from awm_factory.synthesis.workbench import Workbench
from awm_runtime.contract import WORLD_TIME, LoadReply
from synthesis_support import DATA, Quiet, each, said

RUN = (resources.checkout() or Path()).parent / "shared" / "awm-run"
MENDED = [0, 2, 3, 4, 5, 7]
"""Tasks that the tools can solve once the rows are there; the others lack a tool, and say so."""
ROWS = [
    (
        "programs",
        "id, owner_user_id, name, default_time_zone, created_at, updated_at",
        "(30, 13, 'STEM Scholars Grant', 'America/New_York', '2025-12-01 09:00:00', '2025-12-01 09:00:00')",
    ),
    (
        "cycles",
        "id, program_id, name, open_at, deadline_at, created_at, updated_at",
        (
            "(30, 1, 'Fall 2026', '2026-08-01T09:00:00-05:00', '2026-10-01T17:00:00-05:00', '2025-12-01 09:00:00', "
            "'2025-12-01 09:00:00')"
        ),
    ),
    *(
        (
            "submissions",
            "id, submission_code, cycle_id, applicant_user_id, status, created_at, updated_at",
            f"({number}, 'SUB-{number}', 30, {applicant}, '{status}', '{day} 09:30:00', '{day} 09:30:00')",
        )
        for number, applicant, status, day in (
            (1101, 2, "Submitted", "2026-09-14"),
            (1102, 3, "Submitted", "2026-09-15"),
            (1103, 4, "Submitted", "2026-09-22"),
            (1104, 5, "Submitted", "2026-09-30"),
            (1105, 6, "Submitted", "2026-10-01"),
            (1106, 7, "Draft", "2026-09-20"),
            (1107, 8, "In Review", "2026-09-21"),
            (1108, 9, "Shortlisted", "2026-09-18"),
        )
    ),
]


@pytest.fixture(scope="module")
def sandbox() -> ProcessSandbox:
    with ProcessSandbox(2) as opened:
        yield opened


@pytest.mark.skipif(not RUN.is_dir(), reason="the real run is not here")
def test_an_imported_environment_is_repaired_by_new_rows_verifiers_and_solutions(sandbox: ProcessSandbox, tmp_path: Path) -> None:
    (records,) = read_run(RUN, {"surveymonkey_apply"})
    assert isinstance(records, AwmRecordSet)
    reply = expect(LoadReply, sandbox.check(records.load_request(WORLD_TIME)))
    assert isinstance(reply, LoadReply)
    draft = Draft.from_bundle(draft_bundle(records, reply, WORLD_TIME))
    folder = tmp_path / "answers" / "survey"
    shutil.copytree(DATA / "survey", folder)
    assert draft.data is not None
    tables = draft.data.model_dump(mode="json")["tables"]
    tables += [
        {"table_name": t, "insert_statements": [f"INSERT INTO {t} ({names}) VALUES {values}"]} for t, names, values in ROWS
    ]
    assert draft.schema is not None
    schema = draft.schema.model_dump(mode="json")
    for table in schema["tables"]:
        table["ddl"] += ")" * (table["ddl"].count("(") - table["ddl"].count(")"))
    (folder / "schema.json").write_text(json.dumps(schema))
    still = re.sub(r"datetime\('now', ?'-\d+ days'\)", "'2025-12-01 09:00:00'", json.dumps({"tables": tables}))
    (folder / "data.json").write_text(still)

    settings = Settings(advice=False, solvable_runs=2)
    made: list[Made] = []
    with Store.open("sqlite://") as store:
        store.start_run("r", "scripted", {})

        async def go() -> None:
            bench = Workbench(sandbox, settings)
            pipeline = Pipeline(ScriptedModel(tmp_path / "answers"), bench, settings, Notebook(store, "r"), Quiet(), 2)
            report = await pipeline.run(each([draft]), ("schema", "data", "verifiers", "solutions"), made.append)
            assert made, report.rows[0].error

        asyncio.run(go())
    bundle = made[0].bundle
    assert bundle is not None, said(made[0].row.problems)
    assert bundle.certificate is not None
    assert bundle.certificate.shipped_tasks == MENDED
    assert bundle.app_code == records.app_code
    assert [task.instruction for task in bundle.tasks] == [task.instruction for task in records.tasks]
    assert made[0].row.stages["data"].answers == 1, said(p for p in made[0].row.problems if p.gate == "data")
    assert made[0].row.stages["solutions"].answers == 10
