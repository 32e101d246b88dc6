"""What a batch came to: a row an environment, whatever happened to it."""

from dataclasses import dataclass, field
from typing import Literal, Protocol

from awm_factory.certificate import Certificate
from awm_factory.problems import Problem, errors

Outcome = Literal["built", "unchanged", "checked", "imported", "exported", "refused", "failed"]


class Progress(Protocol):
    """Told what goes on, from any thread. The library prints nothing itself."""

    def total(self, count: int | None) -> None:
        """How many environments there are; None while nobody knows."""

    def stage(self, env_id: str, stage: str) -> None:
        """`env_id` enters a stage: import, check, render, build, smoke."""

    def done(self, row: "Row") -> None: ...

    def say(self, message: str) -> None:
        """Something a person should know at once: which OS image, which sandbox."""


class Silent:
    """The Progress of nobody watching."""

    def total(self, count: int | None) -> None: ...
    def stage(self, env_id: str, stage: str) -> None: ...
    def done(self, row: "Row") -> None: ...
    def say(self, message: str) -> None: ...


@dataclass(frozen=True)
class Row:
    env_id: str
    outcome: Outcome
    problems: list[Problem] = field(default_factory=list)
    error: str | None = None
    """Why it failed, where the fault is not a Problem of its artifacts."""
    reference: str | None = None
    """`awm/<env_id>:<tag>` of the verified image."""
    tasks_total: int = 0
    tasks_shipped: list[int] = field(default_factory=list)
    figures: dict[str, object] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time by stage."""

    @property
    def ok(self) -> bool:
        return self.outcome not in {"refused", "failed"}

    @property
    def errors(self) -> list[Problem]:
        return errors(self.problems)


@dataclass(frozen=True)
class BatchReport:
    rows: list[Row]

    @property
    def ok(self) -> bool:
        return all(row.ok for row in self.rows)


def row(env_id: str, outcome: Outcome, certificate: Certificate | None, **more: object) -> Row:
    """A row that tells what the certificate says."""
    if certificate is None:
        return Row(env_id, outcome, **more)  # type: ignore[arg-type]
    return Row(
        env_id,
        outcome,
        problems=certificate.problems,
        tasks_total=len(certificate.tasks),
        tasks_shipped=certificate.shipped_tasks,
        figures=dict(certificate.figures),
        **more,  # type: ignore[arg-type]
    )
