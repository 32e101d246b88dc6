"""Stage *data*: the rows before any task begins, from which each task can start and none is done."""

from awm_factory.certify import Evidence, Options
from awm_factory.certify import data as gate
from awm_factory.llm.answers import json_answer
from awm_factory.llm.protocol import Message
from awm_factory.problems import Problem
from awm_factory.synthesis.artifacts import SampleData, validated
from awm_factory.synthesis.checks import data as rules
from awm_factory.synthesis.draft import Draft
from awm_factory.synthesis.stages.common import ask, fenced_json
from awm_factory.synthesis.workbench import Workbench


class DataStage:
    name = "data"
    item = ""
    what = "start data"

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench

    def prompt(self, draft: Draft) -> tuple[Message, ...]:
        return ask("data", draft)

    def parse(self, reply: str) -> SampleData:
        return validated(SampleData, json_answer(reply), "start data")

    def check(self, artifact: SampleData, draft: Draft) -> list[Problem]:
        trial = draft.with_(data=artifact)
        load = self._workbench.load(trial)
        options = Options(max_failed_statements=self._workbench.settings.data_error_ratio)
        found = gate.check(trial.bundle(), Evidence(load), options)
        return found + rules.check(artifact, list(draft.tasks or ()), load, self._workbench.rows(trial))

    def apply(self, artifact: SampleData, draft: Draft) -> Draft:
        return draft.with_(data=artifact)

    def existing(self, draft: Draft) -> SampleData | None:
        return draft.data

    def show(self, artifact: SampleData) -> str:
        return fenced_json(artifact.model_dump(mode="json"))
