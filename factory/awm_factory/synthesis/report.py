"""What a run came to: a row a scenario, and per stage how often it succeeded and how many answers that took."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from awm_factory.problems import Problem
from awm_factory.synthesis.draft import STAGES

Outcome = Literal["made", "marked", "refused", "failed", "stopped"]
"""`made`: proved and written. `marked`: written, but some stage kept an attempt with errors. `refused`: the gates let nothing
through. `failed`: something other than the artifacts broke. `stopped`: the budget, the quota or the user ended it."""


@dataclass
class StageFigures:
    """One stage of one scenario, over all its questions (one, or one a task) and passes."""

    questions: int = 0
    passed: int = 0
    answers: int = 0


@dataclass
class Row:
    env_id: str
    scenario: str
    outcome: Outcome = "failed"
    tasks_shipped: int = 0
    tasks_total: int = 0
    digest: str = ""
    """Of the bundle written."""
    solutions_digest: str = ""
    """Of the solutions written with it."""
    stages: dict[str, StageFigures] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    """Errors that are left, of the attempts that were kept."""
    error: str | None = None


@dataclass(frozen=True)
class StageRate:
    stage: str
    questions: int
    success: float
    """Share of the questions that ended without an error of their own."""
    iterations: float
    """Mean answers a question; AWM reports 1.13 at over 85 % success."""


@dataclass(frozen=True)
class SynthesisReport:
    rows: Sequence[Row]

    @property
    def rates(self) -> list[StageRate]:
        return list(_rates(self.rows))

    @property
    def ok(self) -> bool:
        return all(row.outcome in {"made", "marked"} for row in self.rows)


def _rates(rows: Sequence[Row]) -> Iterable[StageRate]:
    for name in STAGES:
        figures = [row.stages[name] for row in rows if name in row.stages]
        questions = sum(one.questions for one in figures)
        if questions:
            yield StageRate(
                stage=name,
                questions=questions,
                success=sum(one.passed for one in figures) / questions,
                iterations=sum(one.answers for one in figures) / questions,
            )
