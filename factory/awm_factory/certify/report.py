"""Certificates for people: one HTML page without anything from elsewhere, and the lines of a table."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from awm_factory import resources
from awm_factory.certificate import Certificate
from awm_factory.certify.audit import Audited, TaskFinding
from awm_factory.problems import Problem


def html(title: str, audited: Sequence[Audited]) -> str:
    """A page that needs no network and no script."""
    environment = Environment(
        loader=FileSystemLoader(resources.templates() / "report"), undefined=StrictUndefined, autoescape=True, trim_blocks=True
    )
    return environment.get_template("report.html.j2").render(
        title=title, summary=summary(audited), environments=[_shown(one) for one in audited]
    )


def summary(audited: Sequence[Audited]) -> str:
    tasks = [task for one in audited for task in one.tasks]
    shipped = sum(task.certificate.shipped for task in tasks)
    compared = [task.agrees for task in tasks if task.agrees is not None]
    text = f"{len(audited)} environments, {shipped} of {len(tasks)} tasks pass every gate that decides."
    if compared:
        text += f" On {sum(compared)} of {len(compared)} tasks the gates agree with the solutions' own labels."
    return text


def of_certificate(env_id: str, scenario: str, instructions: dict[int, str], certificate: Certificate) -> Audited:
    """A certified bundle in the auditor's form."""
    tasks = [TaskFinding(env_id, task.task_id, instructions.get(task.task_id, ""), task) for task in certificate.tasks]
    return Audited(env_id, scenario, certificate, certificate.problems, tasks)


def fraction(good: object, total: object) -> str:
    return f"{good} of {total}" if total else ""


def rates(task: TaskFinding) -> str:
    found = task.certificate.rates
    parts = [
        (fraction(found.get("killed", 0), found.get("near_misses", 0)), "near misses rejected"),
        (fraction(found.get("accepted", 0), found.get("equivalents", 0)), "equivalents accepted"),
        (fraction(found.get("alternatives_accepted", 0), found.get("alternatives", 0)), "alternatives accepted"),
    ]
    return ", ".join(f"{text} {what}" for text, what in parts if text)


def totals(one: Audited, good: str, total: str) -> str:
    counts = [(task.certificate.rates.get(good, 0), task.certificate.rates.get(total, 0)) for task in one.tasks]
    right = sum(count for count, _ in counts if isinstance(count, int))
    return fraction(right, sum(count for _, count in counts if isinstance(count, int)))


def _shown(one: Audited) -> dict[str, Any]:
    certificate = one.certificate
    by_gate: dict[str, list[Problem]] = defaultdict(list)
    for problem in one.problems:
        by_gate[problem.gate].append(problem)
    return {
        "env_id": one.env_id,
        "scenario": one.scenario,
        "error": one.error,
        "gates": certificate.gates if certificate is not None else {},
        "subject": certificate.subject if certificate is not None else None,
        "shipped": sum(task.certificate.shipped for task in one.tasks),
        "killed": totals(one, "killed", "near_misses"),
        "accepted": totals(one, "accepted", "equivalents"),
        "errors": sum(problem.severity == "error" for problem in one.problems),
        "warnings": sum(problem.severity == "warning" for problem in one.problems),
        "task_gates": list(dict.fromkeys(gate for task in one.tasks for gate in task.certificate.gates)),
        "labelled": any(task.label for task in one.tasks),
        "problems": dict(by_gate),
        "tasks": [
            {
                "task_id": task.task_id,
                "instruction": task.instruction,
                "shipped": task.certificate.shipped,
                "reason": task.certificate.reason,
                "gates": task.certificate.gates,
                "rates": rates(task),
                "label": task.label,
                "agrees": {None: "", True: "yes", False: "no"}[task.agrees],
            }
            for task in one.tasks
        ],
    }
