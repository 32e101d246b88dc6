"""Gate *near misses*: whatever falls just short of the task is rejected.

Example: a verifier that looks for a payment of any amount says `complete` for one that is a cent too high.
"""

from awm_factory.bundle import Bundle
from awm_factory.certify.evidence import Evidence, Options, could_not_run, severity
from awm_factory.certify.trying import Path, Tried
from awm_factory.certify.weighing import difference, weigh
from awm_factory.problems import Problem

NAME = "near_misses"
VERSION = 3
SHOWN = 5
"""Survivors of a task that are told one by one."""


def check(bundle: Bundle, evidence: Evidence, options: Options) -> list[Problem]:
    problems = []
    if evidence.untried is not None and evidence.paths:
        problems.append(could_not_run(NAME, "Trying near misses", evidence.untried))
    strictness = severity(bundle.manifest.origin)
    for task_id, tried in evidence.tried.items():
        path = evidence.paths[task_id]
        weighed = weigh(path, tried)
        total = len(weighed.killed) + len(weighed.survivors)
        for one in weighed.survivors[:SHOWN]:
            more = f" ({len(weighed.survivors)} of {total} near misses survive.)" if len(weighed.survivors) > 1 else ""
            problems.append(
                Problem(
                    gate=NAME,
                    severity=strictness,
                    where=f"verifiers/{task_id}.code.py",
                    what=f"It says complete for a near miss: {_told(path, one)}.{more}",
                    fix="Reject this: compare the whole state with the start, so that nothing but what is asked for may differ.",
                    task_id=task_id,
                )
            )
        if weighed.broken:
            one = weighed.broken[0]
            error = next(verdict.error for verdict in one.run.verdicts if verdict.error is not None)
            problems.append(
                Problem(
                    gate=NAME,
                    severity=strictness,
                    where=f"verifiers/{task_id}.code.py",
                    what=f"It gives no verdict for {one.attempt.what} ({len(weighed.broken)} trials so): {error}",
                    fix="Answer in its schema for whatever state an agent may leave.",
                    task_id=task_id,
                )
            )
    return problems


def _told(path: Path, one: Tried) -> str:
    attempt = one.attempt
    said = f" It answers {attempt.answer!r}." if attempt.kind == "wrong answer" else ""
    return f"{attempt.kind}, {attempt.what}.{said} Against the solution: {difference(path, one)}"
