"""The rules are silent about environments that are known to be good: a rule that cries wolf costs a paid retry each time."""

import json
from pathlib import Path

import pytest

from awm_factory import resources
from awm_factory.bundle import Bundle
from awm_factory.synthesis.artifacts import ApiSpec, SampleData, Schema
from awm_factory.synthesis.checks import code, data, schema, spec, tasks, verifiers
from awm_factory.synthesis.draft import Draft
from awm_factory.synthesis.scripted import unwrapped
from synthesis_support import ANSWERS, rows_of, said

FOLDERS = sorted(
    path.parent for path in [*ANSWERS.glob("*/solutions.json"), *(ANSWERS.parents[1] / "answers").glob("*/solutions.json")]
)


def read(folder: Path, stage: str) -> object:
    return unwrapped(stage, json.loads((folder / f"{stage}.json").read_text()))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_nothing_is_wrong_with_good_answers(folder: Path) -> None:
    texts = json.loads((folder / "tasks.json").read_text())
    texts = texts["tasks"] if isinstance(texts, dict) else texts
    made = Schema.model_validate(read(folder, "schema"))
    filled = SampleData.model_validate(read(folder, "data"))
    rows = rows_of(made.statements, filled.statements)
    source = (folder / "code.py").read_text()
    found = [
        *tasks.check(texts, len(texts)),
        *schema.check(made, _loaded(rows)),
        *data.check(filled, texts, _loaded(rows), rows),
        *spec.check(ApiSpec.model_validate(read(folder, "spec")), rows),
        *code.check(source, rows),
    ]
    for task_id in range(len(texts)):
        for mode in ("code", "sql"):
            text = (folder / "verifiers" / f"{task_id}.{mode}.py").read_text()
            found += verifiers.check(task_id, mode, text, source, rows, made.statements)
    assert said(found) == ""


def _loaded(rows: dict[str, object]) -> object:
    from synthesis_support import loaded

    return loaded(rows)


def test_nothing_is_wrong_with_a_service_written_by_hand() -> None:
    root = resources.checkout()
    assert root is not None
    for folder in sorted((root / "registry").glob("*/manifest.json")):
        bundle = Bundle.read(folder.parent)
        draft = Draft.from_bundle(bundle)
        rows = rows_of(bundle.schema_sql, bundle.seed_sql)
        errors = [problem for problem in code.check(bundle.app_code, rows) if "first line is no import" not in problem.what]
        for task_id, pair in draft.verifiers.items():
            errors += verifiers.check(task_id, "code", pair.code, bundle.app_code, rows, bundle.schema_sql)
        errors += spec.check(ApiSpec.model_validate(bundle.api_spec), rows)
        assert said(errors) == "", bundle.env_id
