"""Stage *solutions*, task by task: the calls that solve it, played over MCP; only then is its verifier trusted."""

from typing import Final

from awm_factory.certify import Evidence
from awm_factory.certify import solvable as gate
from awm_factory.llm.answers import json_answer
from awm_factory.llm.protocol import Message
from awm_factory.problems import Problem
from awm_factory.synthesis.artifacts import Attempted, validated
from awm_factory.synthesis.checks import solutions as rules
from awm_factory.synthesis.checks.finding import error
from awm_factory.synthesis.draft import Draft
from awm_factory.synthesis.stages.common import ask, fenced_json
from awm_factory.synthesis.workbench import Workbench
from awm_runtime.contract import CallsReply, CallsRequest, CheckFailed, VerifierSource

_BLAMED: Final = {"verifier": "verifiers", "data": "data", "code": "code", "spec": "spec"}


class SolutionStage:
    name = "solutions"
    what = "solution"

    def __init__(self, workbench: Workbench, task_id: int) -> None:
        self._workbench = workbench
        self._task_id = task_id
        self.item = str(task_id)

    def prompt(self, draft: Draft) -> tuple[Message, ...]:
        pair = draft.verifiers.get(self._task_id)
        verifier = pair.code if pair else ""
        return ask("solutions", draft, self.item, task=self._task(draft), verifier=verifier)

    def parse(self, reply: str) -> Attempted:
        return validated(Attempted, json_answer(reply), "solution")

    def check(self, artifact: Attempted, draft: Draft) -> list[Problem]:
        if self._workbench.settings.prove_once:
            return self._idle(artifact)
        source = self._workbench.source(draft)
        pair = draft.verifiers.get(self._task_id)
        if source is None or pair is None or not pair.code:
            return [
                error(
                    "solutions",
                    f"task {self._task_id}",
                    "It has no verifier to be accepted by.",
                    "Write one first.",
                    self._task_id,
                )
            ]
        request = CallsRequest(
            source=source,
            calls=artifact.calls,
            final_answer=artifact.final_answer,
            verifiers=[VerifierSource(task_id=self._task_id, mode="code", code=pair.code)],
            repeat=self._workbench.settings.solvable_runs,
            seed=self._workbench.settings.seed,
        )
        reply = self._workbench.play(draft, request)
        trial = draft.with_(solutions={self._task_id: artifact.solution})
        bundle = trial.bundle()
        mine = bundle.with_(tasks=[task for task in bundle.tasks if task.task_id == self._task_id])
        evidence = Evidence(self._workbench.load(trial), solved={self._task_id: reply})
        problems = gate.check(mine, evidence, self._workbench.options)
        if isinstance(reply, CheckFailed):
            return problems
        problems += rules.check(self._task_id, self._task(draft), artifact.calls, reply.runs[0].results)
        return self._argued(artifact, problems + self._idle(artifact), reply)

    def _idle(self, artifact: Attempted) -> list[Problem]:
        if artifact.calls:
            return []
        return [error("solutions", f"task {self._task_id}", "It makes no call.", "Solve the task by the tools.", self._task_id)]

    def _argued(self, artifact: Attempted, problems: list[Problem], reply: CallsReply) -> list[Problem]:
        """The transcript goes with the faults; and where the solver blames another part, the fault goes to that part."""
        if not problems:
            return []
        said = rules.transcript(artifact.calls, reply.runs[0].results)
        blamed = _BLAMED.get(artifact.blame.part) if artifact.blame else None
        if artifact.blame is not None and blamed is not None:
            what = f"Its solver says: {artifact.blame.why} What happened: {problems[0].what} Transcript: {said}."
            return [error(blamed, f"task {self._task_id}", what, "Mend this, and leave everything else as it is.", self._task_id)]
        return [*problems[:-1], problems[-1].model_copy(update={"what": f"{problems[-1].what} Transcript: {said}."})]

    def _task(self, draft: Draft) -> str:
        return (draft.tasks or ())[self._task_id]

    def apply(self, artifact: Attempted, draft: Draft) -> Draft:
        return draft.with_(solutions={**draft.solutions, self._task_id: artifact.solution})

    def existing(self, draft: Draft) -> Attempted | None:
        solution = draft.solutions.get(self._task_id)
        return Attempted.of(solution) if solution else None

    def show(self, artifact: Attempted) -> str:
        return fenced_json(artifact.model_dump(mode="json", exclude_defaults=True))


def unshown(draft: Draft, evidence: Evidence) -> list[Problem]:
    """What solutions know that nothing has shown, by the plays of a proof; `check` says it where each is played by itself."""
    return [
        problem
        for task_id, reply in evidence.solved.items()
        if isinstance(reply, CallsReply)
        for problem in rules.check(task_id, (draft.tasks or ())[task_id], draft.solutions[task_id].calls, reply.runs[0].results)
    ]
