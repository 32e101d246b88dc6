"""An agent's trajectory as the solution of its task, where the task's code verifier accepts it."""

from collections.abc import Sequence
from pathlib import Path

from awm_factory.bundle import Bundle
from awm_factory.catalog import Catalog
from awm_factory.certify.evidence import Options
from awm_factory.certify.gathering import gather
from awm_factory.certify.solutions_file import read_trajectory
from awm_factory.errors import UsageError
from awm_factory.sandbox.pool import Sandbox
from awm_runtime.contract import CallsReply


def keep(path: Path, catalog: Catalog, sandbox: Sandbox, options: Options, envs: Sequence[str], task: int | None) -> str:
    """Write it into the bundle and return the env_id. Raises UsageError where it fits no task, or is not complete."""
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
        reason = _refused(solved, task_id, sandbox, options)
        if reason is not None:
            raise UsageError(f"{path} is no solution of task {task_id} of {env_id}: {reason}")
        catalog.write(solved)
    return env_id


def _refused(bundle: Bundle, task_id: int, sandbox: Sandbox, options: Options) -> str | None:
    """Why the verifier does not accept it; None where it does."""
    alone = bundle.with_(tasks=[task for task in bundle.tasks if task.task_id == task_id])
    quick = Options(max_failed_statements=options.max_failed_statements, solvable_runs=1, calls=0, mutants=0, seed=options.seed)
    _, evidence = gather(alone, sandbox, quick)
    reply = evidence.solved.get(task_id)
    if not isinstance(reply, CallsReply):
        return "it could not be played" if reply is None else reply.message
    verdict = next((verdict for verdict in reply.runs[0].verdicts if verdict.mode == "code"), None)
    if verdict is None:
        return "the task has no code verifier"
    return None if verdict.classification == "complete" else f"the verifier says {verdict.error or verdict.classification}"
