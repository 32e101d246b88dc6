"""Gate *equivalents*: what does the same in another way is accepted as well.

Example: a verifier that looks for the text "1250.00" rejects an answer of "1,250.00".
"""

from awm_factory.bundle import Bundle
from awm_factory.certify.evidence import Evidence, Options, severity
from awm_factory.certify.weighing import weigh
from awm_factory.problems import Problem

NAME = "equivalents"
VERSION = 1
SHOWN = 3


def check(bundle: Bundle, evidence: Evidence, options: Options) -> list[Problem]:
    problems = []
    for task_id, tried in evidence.tried.items():
        rejected = weigh(evidence.paths[task_id], tried).rejected
        for one in rejected[:SHOWN]:
            said = f" The answer was {one.attempt.answer!r}." if one.attempt.kind.startswith("answer") else ""
            problems.append(
                Problem(
                    gate=NAME,
                    severity=severity(bundle.manifest.origin),
                    where=f"verifiers/{task_id}.code.py",
                    what=f"It rejects an equivalent of the solution: {one.attempt.kind}, {one.attempt.what}.{said}",
                    fix="Judge the facts: not the way to them, nor ids, moments or the dress of an answer.",
                    task_id=task_id,
                )
            )
    return problems
