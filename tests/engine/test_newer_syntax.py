"""The base image's Python is newer than the host's may be: its syntax is no fault, and the rules read it all the same."""

import json

import pytest

from awm_factory.certify import certify
from awm_factory.images.base import BaseImage
from awm_factory.images.docker_client import session_id
from awm_factory.images.engine import Engine
from awm_factory.sandbox import ContainerSandbox
from awm_factory.synthesis.artifacts import VerifierPair
from awm_factory.synthesis.settings import Settings
from awm_factory.synthesis.stages.code import CodeStage
from awm_factory.synthesis.stages.verifiers import VerifierStage
from awm_factory.synthesis.workbench import Workbench
from synthesis_support import changed, part, shelf

TYPES = "\n\ntype Ids = list[int]\n\n\ndef first[T](found: list[T]) -> T:\n    return found[0]\n"
"""PEP 695."""
QUOTES = '\n\ndef told(row: dict[str, int]) -> str:\n    return f"{\', \'.join(f"{name}: {row["id"]}" for name in row)}"\n'
"""PEP 701."""
COMMIT = "        session.commit()\n        return answer\n\n\n@app.post"
RAISES = COMMIT.replace("commit()\n", "commit()\n        if not answer:\n            raise HTTPException(409, 'no')\n")


@pytest.fixture(scope="module")
def bench(engine: Engine, base: BaseImage) -> Workbench:  # type: ignore[misc]
    with ContainerSandbox(engine.client, base.image_id, base.tag, 1, session_id()) as sandbox:
        yield Workbench(sandbox, Settings(tasks=3, solvable_runs=1))


def test_an_environment_in_newer_syntax_passes(bench: Workbench) -> None:
    code = part("code.py") + TYPES + QUOTES
    assert [p for p in CodeStage(bench).check(code, shelf()) if p.severity == "error"] == []
    draft = shelf(code=code)
    pair = VerifierPair(code=draft.verifiers[0].code + TYPES + QUOTES, sql=draft.verifiers[0].sql + QUOTES)
    assert VerifierStage(bench, 0).check(pair, draft) == []
    proved = certify(draft.with_(verifiers={**draft.verifiers, 0: pair}).bundle(), bench.sandbox, bench.options)
    assert proved.certificate.shipped_tasks == [0, 1, 2], proved.certificate.problems


def test_the_rules_read_newer_syntax(bench: Workbench) -> None:
    code = changed(part("code.py"), (COMMIT, RAISES)) + TYPES + QUOTES
    found = CodeStage(bench).check(code, shelf())
    assert any("may raise an error after that" in problem.what for problem in found), found
    writing = changed(shelf().verifiers[0].code, ("SELECT", "INSERT INTO x SELECT")) + QUOTES
    draft = shelf(verifiers={**shelf().verifiers, 0: VerifierPair(code=writing, sql=shelf().verifiers[0].sql)})
    problems = certify(draft.bundle(), bench.sandbox, bench.options).certificate.problems
    assert any(p.gate == "hygiene" and "a statement that writes" in p.what for p in problems), json.dumps(
        [p.what for p in problems]
    )


def test_what_is_no_python_there_either_names_its_line(bench: Workbench) -> None:
    found = CodeStage(bench).check(part("code.py") + "\ndef f(:\n", shelf())
    line = len(part("code.py").splitlines()) + 2
    assert any(problem.gate == "code" and f"in line {line}" in problem.what for problem in found), found
