"""Stage *spec*: the API that the tools will be. The draft keeps the answer's own JSON, which is AWM's form."""

import json
from typing import Any

from awm_factory.llm.answers import json_answer
from awm_factory.llm.protocol import Message
from awm_factory.problems import Problem
from awm_factory.synthesis.artifacts import ApiSpec, validated
from awm_factory.synthesis.checks import spec as rules
from awm_factory.synthesis.draft import Draft
from awm_factory.synthesis.stages.common import ask, fenced_json
from awm_factory.synthesis.workbench import Workbench


class SpecStage:
    name = "spec"
    item = ""
    what = "API"

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench

    def prompt(self, draft: Draft) -> tuple[Message, ...]:
        return ask("spec", draft)

    def parse(self, reply: str) -> dict[str, Any]:
        answer = json_answer(reply)
        validated(ApiSpec, answer, "API")
        assert isinstance(answer, dict)
        return answer

    def check(self, artifact: dict[str, Any], draft: Draft) -> list[Problem]:
        return rules.check(ApiSpec.model_validate(artifact), self._workbench.rows(draft))

    def apply(self, artifact: dict[str, Any], draft: Draft) -> Draft:
        return draft.with_(spec=json.loads(json.dumps(artifact)))

    def existing(self, draft: Draft) -> dict[str, Any] | None:
        return draft.spec if isinstance(draft.spec, dict) else None

    def show(self, artifact: dict[str, Any]) -> str:
        return fenced_json(artifact)
