"""Short ways to say what is wrong."""

from awm_factory.problems import Problem, Severity


def error(gate: str, where: str, what: str, fix: str, task_id: int | None = None, severity: Severity = "error") -> Problem:
    return Problem(gate=gate, severity=severity, where=where, what=what, fix=fix, task_id=task_id)


def excerpt(text: str, limit: int = 120) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def listed(names: list[str], limit: int = 6) -> str:
    shown = ", ".join(names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown
