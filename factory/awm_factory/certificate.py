"""certificate.json: the recorded evidence that a bundle's tasks and verifiers are sound, gate by gate.

Written by certify, read by whatever builds, labels and serves images; so the type stands here, left of both.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from awm_factory.problems import Problem

Outcome = Literal["passed", "failed", "warned", "not_run"]


class TaskCertificate(BaseModel):
    """What is known of one task. A task that is not shipped keeps its index; its neighbours keep theirs."""

    model_config = ConfigDict(frozen=True)

    task_id: int
    shipped: bool
    reason: str | None = None
    """Why it is left out."""
    gates: dict[str, Outcome]
    rates: dict[str, JsonValue] = {}
    """Counts behind the outcomes: near misses tried and rejected, equivalents tried and accepted."""


class Subject(BaseModel):
    """What a certificate speaks of; when any of it differs, the certificate is stale."""

    model_config = ConfigDict(frozen=True)

    bundle_digest: str
    solutions_digest: str
    base: str
    """Tag of the base image the checks ran in, or `process` for the child-process sandbox."""
    gates: dict[str, int]
    """Version of each gate that ran."""
    seed: int
    budget: dict[str, JsonValue]
    """Knobs that bear on the outcome: calls a gate may make, `max_failed_statements`."""


class Certificate(BaseModel):
    model_config = ConfigDict(frozen=True)

    subject: Subject
    gates: dict[str, Outcome]
    problems: list[Problem]
    tasks: list[TaskCertificate]
    figures: dict[str, JsonValue] = {}
    """Counts behind the outcomes: statements failed and total, tools listed, rows seeded."""
    left_out: list[str] = []
    """Gates that were not asked for; where there are any, the certificate is partial."""

    @property
    def passed(self) -> bool:
        """True if the environment may ship: all gates ran, and none of the environment itself failed."""
        return self.clean and not self.left_out

    @property
    def clean(self) -> bool:
        """True if no gate of the environment that ran failed; what a partial certificate can say at most."""
        return "failed" not in self.gates.values()

    def counts(self, tried: str, right: str) -> list[int]:
        """How many of how many over all tasks, such as near misses that were rejected."""
        found = [[task.rates.get(name, 0) for name in (right, tried)] for task in self.tasks]
        return [sum(count for pair in found if isinstance(count := pair[place], int)) for place in (0, 1)]

    def summary(self) -> dict[str, JsonValue]:
        """In a few words, for an image's label and the catalogue: each pair is right and tried."""
        return {
            "passed": self.passed,
            **({"left_out": list(self.left_out)} if self.left_out else {}),
            "gates": dict(self.gates),
            "tasks": list(self.shipped_tasks),
            "near_misses": list(self.counts("near_misses", "killed")),
            "equivalents": list(self.counts("equivalents", "accepted")),
            "alternatives": list(self.counts("alternatives", "alternatives_accepted")),
        }

    @property
    def shipped_tasks(self) -> list[int]:
        return [task.task_id for task in self.tasks if task.shipped]
