"""Stage *verifiers*, task by task: both kinds in one answer, run on the untouched database before anything is built on them."""

from awm_factory.bundle import MODES
from awm_factory.certify import Evidence
from awm_factory.certify import null as gate
from awm_factory.llm.answers import python_answer
from awm_factory.llm.protocol import Message
from awm_factory.problems import Problem
from awm_factory.synthesis.artifacts import VerifierPair
from awm_factory.synthesis.checks import verifiers as rules
from awm_factory.synthesis.draft import Draft
from awm_factory.synthesis.stages.common import ask, fenced_python
from awm_factory.synthesis.workbench import Workbench
from awm_runtime.contract import CheckFailed, VerifierSource


class VerifierStage:
    name = "verifiers"
    what = "pair of verifiers"

    def __init__(self, workbench: Workbench, task_id: int) -> None:
        self._workbench = workbench
        self._task_id = task_id
        self.item = str(task_id)

    def prompt(self, draft: Draft) -> tuple[Message, ...]:
        return ask("verifiers", draft, self.item, task=(draft.tasks or ())[self._task_id])

    def parse(self, reply: str) -> VerifierPair:
        return VerifierPair(
            code=python_answer(reply, defines="verify_task_completion"), sql=python_answer(reply, defines="verify_task")
        )

    def check(self, artifact: VerifierPair, draft: Draft) -> list[Problem]:
        trial = self.apply(artifact, draft.with_(verifiers={}, solutions={}))
        load = self._workbench.load(trial)
        problems: list[Problem] = []
        if isinstance(load, CheckFailed):
            return problems
        sources = [
            VerifierSource(task_id=self._task_id, mode=mode, code=code) for mode in MODES if (code := getattr(artifact, mode))
        ]
        if not self._workbench.settings.prove_once:
            reply = self._workbench.verify_untouched(trial, sources)
            if reply is None or isinstance(reply, CheckFailed):
                return problems
            untouched = {(source.task_id, source.mode): verdict for source, verdict in zip(sources, reply.verdicts, strict=True)}
            bundle = trial.bundle()
            mine = [task for task in bundle.tasks if task.task_id == self._task_id]
            problems += gate.check(bundle.with_(tasks=mine), Evidence(load, untouched=untouched), self._workbench.options)
        rows, ddl = self._workbench.rows(trial), draft.schema.statements if draft.schema else []
        for source in sources:
            problems += rules.check(self._task_id, source.mode, source.code, draft.code or "", rows, ddl, self._workbench.parse)
        return problems

    def apply(self, artifact: VerifierPair, draft: Draft) -> Draft:
        return draft.with_(verifiers={**draft.verifiers, self._task_id: artifact})

    def existing(self, draft: Draft) -> VerifierPair | None:
        return draft.verifiers.get(self._task_id)

    def show(self, artifact: VerifierPair) -> str:
        return "\n\n".join(fenced_python(code) for code in (artifact.code, artifact.sql) if code)
