"""The auditor: every environment of anybody's AWM run through all gates, beside what is known of its tasks."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from awm_factory.awm_format import AwmRecordSet, BrokenScenario, draft_bundle, read_run
from awm_factory.bundle import Bundle
from awm_factory.certificate import Certificate, TaskCertificate
from awm_factory.certify.evidence import Evidence, Options
from awm_factory.certify.run import certify
from awm_factory.certify.solutions_file import Known
from awm_factory.certify.weighing import weigh
from awm_factory.problems import Problem
from awm_factory.sandbox.pool import Sandbox, expect
from awm_runtime.contract import WORLD_TIME, CheckFailed, LoadReply

SOUND = "sound"


@dataclass(frozen=True)
class TaskFinding:
    """One task beside what the file of solutions says of it."""

    env_id: str
    task_id: int
    instruction: str
    certificate: TaskCertificate
    label: str | None = None
    solvable: bool | None = None
    """None where there was no solution to try."""
    null_pass: bool = False
    author_survivors: list[str] = field(default_factory=list)
    """Near misses of the file that the verifier accepts."""
    expected_survivors: int = 0

    @property
    def agrees(self) -> bool | None:
        """Whether the gates come to the file's word on it; None where the file says nothing."""
        if self.label is None or self.solvable is None:
            return None
        ok = self.solvable and not self.null_pass
        near = self.label != SOUND or len(self.author_survivors) == self.expected_survivors
        return ok == (self.label == SOUND) and near


@dataclass(frozen=True)
class Audited:
    """One environment of the run."""

    env_id: str
    scenario: str
    certificate: Certificate | None
    problems: list[Problem]
    tasks: list[TaskFinding] = field(default_factory=list)
    error: str | None = None


def audit_run(
    run_dir: Path,
    sandbox: Sandbox,
    options: Options,
    known: list[Known],
    world_time: str | None = None,
    only: Collection[str] | None = None,
    tell: Callable[[str, str], None] = lambda _env_id, _stage: None,
) -> list[Audited]:
    """Nothing is written and nothing of the workspace is touched. Raises FormatError if the folder holds no AWM run."""
    by_task = {(one.env_id, one.task_id): one for one in known}
    found = []
    for records in read_run(run_dir, only):
        if isinstance(records, BrokenScenario):
            found.append(Audited(records.env_id or "(unnamed)", "", None, records.problems, error="its records are broken"))
            continue
        tell(records.env_id, "audit")
        found.append(_one(records, sandbox, options, by_task, world_time or records.world_time or WORLD_TIME))
    return found


def _one(
    records: AwmRecordSet, sandbox: Sandbox, options: Options, known: dict[tuple[str | None, int | None], Known], world_time: str
) -> Audited:
    reply = expect(LoadReply, sandbox.check(records.load_request(world_time)))
    if isinstance(reply, CheckFailed):
        return Audited(records.env_id, records.scenario, None, records.notes, error=f"it does not load: {reply.message}")
    bundle = draft_bundle(records, reply, world_time)
    solutions = {
        task.task_id: one.solution for task in bundle.tasks if (one := known.get((bundle.env_id, task.task_id))) is not None
    }
    bundle = bundle.with_(solutions=solutions)
    certified = certify(bundle, sandbox, options)
    tasks = [
        _finding(certified.bundle, certified.evidence, task, known.get((bundle.env_id, task.task_id)))
        for task in certified.certificate.tasks
    ]
    return Audited(
        bundle.env_id, records.scenario, certified.certificate, [*records.notes, *certified.certificate.problems], tasks
    )


def _finding(bundle: Bundle, evidence: Evidence, task: TaskCertificate, known: Known | None) -> TaskFinding:
    verdict = evidence.untouched.get((task.task_id, "code"))
    path = evidence.paths.get(task.task_id)
    weighed = weigh(path, evidence.tried.get(task.task_id, [])) if path is not None else None
    survivors = [one for one in weighed.survivors if one.attempt.kind == "by its author"] if weighed is not None else []
    return TaskFinding(
        bundle.env_id,
        task.task_id,
        next(one.instruction for one in bundle.tasks if one.task_id == task.task_id),
        task,
        label=known.label if known is not None else None,
        solvable=task.gates.get("solvable") == "passed" if task.gates.get("solvable") != "not_run" else None,
        null_pass=verdict is not None and verdict.classification == "complete",
        author_survivors=[one.attempt.what for one in survivors],
        expected_survivors=sum(known.accepted) if known is not None else 0,
    )
