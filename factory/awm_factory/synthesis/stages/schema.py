"""Stage *schema*: tables that SQLite makes without a complaint."""

from awm_factory.certify import Evidence, Options
from awm_factory.certify import schema as gate
from awm_factory.llm.answers import json_answer
from awm_factory.llm.protocol import Message
from awm_factory.problems import Problem, Severity
from awm_factory.synthesis.artifacts import Schema, validated
from awm_factory.synthesis.checks import schema as rules
from awm_factory.synthesis.checks.finding import error
from awm_factory.synthesis.draft import Draft
from awm_factory.synthesis.stages.common import ask, fenced_json
from awm_factory.synthesis.workbench import Workbench
from awm_runtime.contract import CheckFailed, LoadReply


class SchemaStage:
    name = "schema"
    item = ""
    what = "schema"

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench

    def prompt(self, draft: Draft) -> tuple[Message, ...]:
        return ask("schema", draft)

    def parse(self, reply: str) -> Schema:
        return validated(Schema, json_answer(reply), "schema")

    def check(self, artifact: Schema, draft: Draft) -> list[Problem]:
        trial = draft.with_(schema=artifact, data=None)
        load = self._workbench.load(trial)
        tolerated = self._workbench.settings.schema_error_ratio
        found = gate.check(trial.bundle(), Evidence(load), Options(max_failed_statements=tolerated))
        return [*_error_ratio(load, tolerated), *found, *rules.check(artifact, load)]

    def apply(self, artifact: Schema, draft: Draft) -> Draft:
        return draft.with_(schema=artifact)

    def existing(self, draft: Draft) -> Schema | None:
        return draft.schema

    def show(self, artifact: Schema) -> str:
        return fenced_json(artifact.model_dump(mode="json", exclude={"invariants"} if not artifact.invariants else None))


def _error_ratio(load: LoadReply | CheckFailed, tolerated: float) -> list[Problem]:
    """AWM's figure, failed over total statements: by it attempts are compared, and it is written down with them."""
    if isinstance(load, CheckFailed):
        return []
    failed, total = sum(failure.phase == "schema" for failure in load.failures), load.statements_total.get("schema", 0)
    if not failed:
        return []
    what = f"{failed} of {total} statements fail, an error ratio of {failed / total:.2f}."
    severity: Severity = "error" if failed / total > tolerated else "warning"
    return [error("schema", "schema", what, "Write statements that SQLite executes.", severity=severity)]
