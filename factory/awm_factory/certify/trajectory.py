"""An agent's trajectory as the solution of its task, where the task's code verifier, or a judge, accepts it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from awm_factory.bundle import MODES, Bundle
from awm_factory.catalog import Catalog
from awm_factory.certify.evidence import Options
from awm_factory.certify.gathering import gather
from awm_factory.certify.solutions_file import read_trajectory
from awm_factory.errors import UsageError
from awm_factory.reward import Case, Judgement
from awm_factory.sandbox.pool import Sandbox, expect
from awm_runtime.contract import (
    CheckFailed,
    EnvironmentSource,
    StateDiff,
    Trial,
    TrialRun,
    TrialsReply,
    TrialsRequest,
    VerifierSource,
)

Judged = Callable[[Case], Judgement]
"""Judges one finished episode by its evidence."""


def keep(
    path: Path,
    catalog: Catalog,
    sandbox: Sandbox,
    options: Options,
    envs: Sequence[str],
    task: int | None,
    judge: Judged | None = None,
) -> str:
    """Write it into the bundle and return the env_id. Raises UsageError where it fits no task, or is not complete.

    `judge` is asked where the code verifier does not say complete.
    """
    known = read_trajectory(path)
    env_id = known.env_id or (envs[0] if len(envs) == 1 else None)
    task_id = known.task_id if task is None else task
    if env_id is None or task_id is None:
        raise UsageError(f"{path} names no environment or no task; give one ENV and --task")
    with catalog.lock(env_id):
        bundle = catalog.read(env_id)
        if task_id not in {one.task_id for one in bundle.tasks}:
            raise UsageError(f"{env_id} has no task {task_id}; its tasks are {[one.task_id for one in bundle.tasks]}")
        solved = bundle.with_(solutions={**bundle.solutions, task_id: known.solution})
        reason = _refused(solved, task_id, sandbox, options, judge)
        if reason is not None:
            raise UsageError(f"{path} is no solution of task {task_id} of {env_id}: {reason}")
        catalog.write(solved)
    return env_id


def _refused(bundle: Bundle, task_id: int, sandbox: Sandbox, options: Options, judge: Judged | None) -> str | None:
    """Why nobody accepts it; None where somebody does."""
    run = _played(bundle, task_id, sandbox, options)
    if isinstance(run, CheckFailed):
        return f"it could not be played: {run.message}"
    if run.error is not None:
        return f"it could not be played: {run.error}"
    code = next((verdict for verdict in run.verdicts if verdict.mode == "code"), None)
    if code is not None and code.classification == "complete":
        return None
    said = "the task has no code verifier" if code is None else f"the verifier says {code.error or code.classification}"
    if judge is None:
        return said
    judgement = judge(_case(bundle, task_id, run))
    if judgement.classification == "complete":
        return None
    return f"{said}, and the judge {judgement.error or judgement.classification}: {judgement.reason}".rstrip(": ")


def _played(bundle: Bundle, task_id: int, sandbox: Sandbox, options: Options) -> TrialRun | CheckFailed:
    loaded, evidence = gather(bundle, sandbox, replace(options, gates=("interface",)))
    if isinstance(evidence.load, CheckFailed):
        return evidence.load
    source = EnvironmentSource(
        env_id=bundle.env_id, app_code=loaded.app_code, db=evidence.load.db, world_time=bundle.manifest.world_time
    )
    solution = bundle.solutions[task_id]
    trial = Trial(calls=solution.calls, final_answer=solution.final_answer, task_id=task_id, seed=options.seed)
    verifiers = [
        VerifierSource(task_id=task_id, mode=mode, code=bundle.verifiers[task_id, mode])
        for mode in MODES
        if (task_id, mode) in bundle.verifiers
    ]
    reply = expect(TrialsReply, sandbox.check(TrialsRequest(source=source, trials=[trial], verifiers=verifiers)))
    return reply if isinstance(reply, CheckFailed) else reply.runs[0]


def _case(bundle: Bundle, task_id: int, run: TrialRun) -> Case:
    sql = next((verdict for verdict in run.verdicts if verdict.mode == "sql"), None)
    solution = bundle.solutions[task_id]
    steps = [
        {"tool": call.tool, "arguments": arguments, "result": result.content}
        for call, arguments, result in zip(solution.calls, run.arguments, run.results, strict=True)
    ]
    return Case(
        task=next(task.instruction for task in bundle.tasks if task.task_id == task_id),
        trajectory=steps,
        final_answer=solution.final_answer,
        evidence=sql.evidence if sql is not None else None,
        evidence_error=sql.error if sql is not None else None,
        changes=StateDiff(tables=run.changes),
        internal_errors=sum(verdict.internal_errors for verdict in run.verdicts[:1]),
        env_id=bundle.env_id,
        task_id=task_id,
    )
