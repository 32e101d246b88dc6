"""Stage *schema*: tables that SQLite makes without a complaint."""

from awm_factory.certify import Evidence, Options
from awm_factory.certify import schema as gate
from awm_factory.llm.answers import json_answer
from awm_factory.llm.protocol import Message
from awm_factory.problems import Problem
from awm_factory.synthesis.artifacts import Schema, validated
from awm_factory.synthesis.checks import schema as rules
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
        options = Options(max_failed_statements=self._workbench.settings.schema_error_ratio)
        return gate.check(trial.bundle(), Evidence(load), options) + rules.check(artifact, load)

    def apply(self, artifact: Schema, draft: Draft) -> Draft:
        return draft.with_(schema=artifact)

    def existing(self, draft: Draft) -> Schema | None:
        return draft.schema

    def show(self, artifact: Schema) -> str:
        return fenced_json(artifact.model_dump(mode="json"))


def error_ratio(load: LoadReply | CheckFailed) -> float:
    """Failed over total statements of the schema, as AWM counts it; 1 where nothing could be loaded."""
    if isinstance(load, CheckFailed):
        return 1.0
    failed = sum(failure.phase == "schema" for failure in load.failures)
    return failed / max(1, load.statements_total.get("schema", 0))
