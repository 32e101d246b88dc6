"""Stage *code*: the service, started in the sandbox, its tools listed and called."""

import json

from awm_factory.certify import certify
from awm_factory.llm.answers import python_answer
from awm_factory.llm.protocol import Message
from awm_factory.problems import Problem
from awm_factory.synthesis.checks import code as rules
from awm_factory.synthesis.checks import tools as tool_rules
from awm_factory.synthesis.checks.finding import error
from awm_factory.synthesis.draft import Draft
from awm_factory.synthesis.stage import owner
from awm_factory.synthesis.stages.common import ask, fenced_python
from awm_factory.synthesis.workbench import Workbench
from awm_runtime.contract import AppReply


class CodeStage:
    name = "code"
    item = ""
    what = "Python file"

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench

    def prompt(self, draft: Draft) -> tuple[Message, ...]:
        return ask("code", draft, spec=json.dumps(draft.spec, ensure_ascii=False, indent=1))

    def parse(self, reply: str) -> str:
        return python_answer(reply, defines="app")

    def check(self, artifact: str, draft: Draft) -> list[Problem]:
        """The gates of the environment as a whole, without tasks; schema and data have been through theirs.

        A row that can't be read is the data's fault: its value is wrong, not the class that reads it.
        """
        trial = draft.with_(code=artifact)
        alone = trial.bundle().with_(tasks=[], verifiers={}, solutions={})
        certified = certify(alone, self._workbench.sandbox, self._workbench.options)
        app = certified.evidence.app
        findings = app.findings if isinstance(app, AppReply) else []
        unreadable = [finding for finding in findings if finding.kind == "unreadable_row"]
        # Calls that fail may fail for these rows alone: they are tried again once the data is mended.
        doubtful = {(finding.where, finding.what) for finding in findings if finding.kind in {"unreadable_row", "failing_read"}}
        found = [
            problem
            for problem in certified.certificate.problems
            if owner(problem) == "code"
            and not (unreadable and (problem.gate == "behaviour" or (problem.where, problem.what) in doubtful))
        ]
        found += [error("data", finding.where, finding.what, finding.fix) for finding in unreadable]
        found += rules.check(artifact, self._workbench.rows(trial), self._workbench.parse)
        return found + list(tool_rules.check(app.tools) if isinstance(app, AppReply) else [])

    def apply(self, artifact: str, draft: Draft) -> Draft:
        return draft.with_(code=artifact)

    def existing(self, draft: Draft) -> str | None:
        return draft.code

    def show(self, artifact: str) -> str:
        return fenced_python(artifact)
