"""Gate *null*: an agent that does nothing and says nothing is not rewarded, and the verifier survives looking at it.

Nor is one that only looks around: the solution's reads without its writes, and no answer.
Example: a verifier that only counts rows which the seed already holds says `complete` before the episode begins.
"""

from awm_factory.bundle import Bundle
from awm_factory.certify.evidence import Evidence, Options, modes_of, severity
from awm_factory.problems import Problem
from awm_runtime.contract import CheckFailed

NAME = "null"
VERSION = 3


def check(bundle: Bundle, evidence: Evidence, options: Options) -> list[Problem]:
    if isinstance(evidence.load, CheckFailed):
        return []
    problems = []
    for task in bundle.tasks:
        modes = modes_of(bundle, task)
        if not modes:
            problems.append(
                Problem(
                    gate=NAME,
                    severity=severity(bundle.manifest.origin),
                    where=f"task {task.task_id}",
                    what="It has no verifier.",
                    fix="Write one, or score it by a judge alone.",
                    task_id=task.task_id,
                )
            )
        for mode in modes:
            where = f"verifiers/{task.task_id}.{mode}.py"
            verdict = evidence.untouched.get((task.task_id, mode))
            if verdict is None:
                continue
            if verdict.error is not None:
                problems.append(
                    Problem(
                        gate=NAME,
                        severity="error",
                        where=where,
                        what=f"It fails on the untouched database: {verdict.error}",
                        fix="Let it answer in its schema for every pair of databases, in time, without writing.",
                        task_id=task.task_id,
                    )
                )
            elif verdict.classification == "complete":
                observed = evidence.observed.get((task.task_id, mode))
                rows = f" It finds the task done by: {', '.join(observed.already)}." if observed and observed.already else ""
                problems.append(
                    Problem(
                        gate=NAME,
                        severity="error",
                        where=where,
                        what=f"It says complete for the untouched database and an empty answer: doing nothing is rewarded.{rows}",
                        fix="Compare with the initial database, so that only a change made in the episode counts.",
                        task_id=task.task_id,
                    )
                )
        problems += [
            _reads(task.task_id) for one in evidence.tried.get(task.task_id, ()) if one.attempt.role == "reads" and one.complete
        ]
    return problems


def _reads(task_id: int) -> Problem:
    return Problem(
        gate=NAME,
        severity="error",
        where=f"verifiers/{task_id}.code.py",
        what="It says complete for the solution's reads alone, without its writes and with an empty answer.",
        fix="Ask for the change, or the answer, that the task is about.",
        task_id=task_id,
    )
