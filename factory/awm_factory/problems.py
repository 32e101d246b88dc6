"""A fault found in an artifact, as data: what a gate saw, and what to do about it."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

Severity = Literal["error", "warning"]


class Problem(BaseModel):
    """One finding of one gate.

    Rendered into tables for people and into the next prompt for a model, so `what` and `fix` are whole sentences
    that make sense without the code that wrote them.
    """

    model_config = ConfigDict(frozen=True)

    gate: str
    severity: Severity
    where: str
    """The part at fault: `users[3]`, `tool create_order`, `task 9`, `verifiers/9.code.py`."""
    what: str
    fix: str
    task_id: int | None = None
    """Set when only this task is at fault; the environment itself may still ship without it."""
    statement: bool = False
    """True for a schema or data statement that failed; what `--max-failed-statements` counts."""

    def __str__(self) -> str:
        return f"[{self.gate}] {self.where}: {self.what} {self.fix}"


def errors(problems: list[Problem]) -> list[Problem]:
    return [problem for problem in problems if problem.severity == "error"]
