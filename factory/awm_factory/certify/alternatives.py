"""Gate *alternatives*: where a task leaves a choice open, other choices are accepted too.

Example: "book any free slot", and a verifier that looks for the slot which the solution happened to take.
"""

from awm_factory.bundle import Bundle
from awm_factory.certify import answers
from awm_factory.certify.evidence import Evidence, Options, severity
from awm_factory.certify.weighing import difference, weigh
from awm_factory.problems import Problem

NAME = "alternatives"
VERSION = 3


def check(bundle: Bundle, evidence: Evidence, options: Options) -> list[Problem]:
    problems = []
    for task_id, tried in evidence.tried.items():
        path = evidence.paths[task_id]
        weighed = weigh(path, tried)
        where = f"verifiers/{task_id}.code.py"
        problems += [
            Problem(
                gate=NAME,
                severity=severity(bundle.manifest.origin),
                where=where,
                what=f"It rejects an alternative that its author names: {one.attempt.what}. {difference(path, one)}.",
                fix="Accept every end that fulfils the task, not only the solution's.",
                task_id=task_id,
            )
            for one in weighed.alternatives
            if not one.complete
        ]
        if weighed.searched and not any(one.complete for one in (*weighed.searched, *weighed.alternatives)):
            words = answers.leaves_open(path.task.instruction)
            first, count = weighed.searched[0].attempt.what, len(weighed.searched)
            problems.append(
                Problem(
                    gate=NAME,
                    severity="warning",
                    where=where,
                    what=f'The task says "{words}", yet none of {count} other choices is accepted, such as {first}.',
                    fix="See whether the solution's choice is the only valid one; if not, accept the others.",
                    task_id=task_id,
                )
            )
    return problems
