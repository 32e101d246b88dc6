"""What a run will use, said before anything is sent."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from awm_factory.llm.prices import Prices
from awm_factory.llm.protocol import Usage

ITERATIONS: Final = 1.13
"""Mean attempts of a stage until its artifact works, as AWM's paper reports (arXiv 2602.10090)."""


@dataclass(frozen=True)
class StagePlan:
    """Tokens of one environment in one stage: of each call, and how many calls there are when all goes well."""

    stage: str
    calls: float
    prompt: int
    completion: int


PLAN: Final = (
    StagePlan("scenario", 0.1, 1_100, 2_000),
    StagePlan("classify", 0.1, 2_200, 60),
    StagePlan("tasks", 1, 900, 600),
    StagePlan("schema", 1, 1_400, 2_500),
    StagePlan("data", 1, 3_500, 10_500),
    StagePlan("spec", 1, 3_500, 18_000),
    StagePlan("code", 1, 30_000, 18_000),
    StagePlan("verifiers", 10, 30_000, 2_300),
    StagePlan("solutions", 10, 30_000, 300),
    StagePlan("advice", 3, 500, 200),
)
"""Between what written answers of ours for three environments take at 3.5 characters a token (a test holds this to a factor
of two) and AWM's public artifacts (13 kB of schema, 31 kB of data, 24 kB of spec, 50 kB of code, 13 kB a verifier). Thinking that
an endpoint bills as answer comes on top. The names are the stages' own."""


@dataclass(frozen=True)
class EstimateRow:
    stage: str
    calls: int
    usage: Usage
    usd: float | None


@dataclass(frozen=True)
class Estimate:
    model: str
    environments: int
    rows: tuple[EstimateRow, ...]

    @property
    def usage(self) -> Usage:
        return sum((row.usage for row in self.rows), Usage())

    @property
    def usd(self) -> float | None:
        """None where the price is unknown."""
        known = [row.usd for row in self.rows if row.usd is not None]
        return sum(known) if len(known) == len(self.rows) else None

    def __str__(self) -> str:
        calls = sum(row.calls for row in self.rows)
        price = f"about ${self.usd:,.2f}" if self.usd is not None else "price unknown"
        return (
            f"{self.environments} environments with {self.model}: about {calls:,} calls, {self.usage.prompt:,} tokens of prompts "
            f"and {self.usage.completion:,} of answers, {price}"
        )


def estimate(prices: Prices, model: str, environments: int, plan: Iterable[StagePlan] = PLAN) -> Estimate:
    rows = []
    for stage in plan:
        calls = stage.calls * environments * ITERATIONS
        usage = Usage(prompt=round(calls * stage.prompt), completion=round(calls * stage.completion))
        rows.append(EstimateRow(stage.stage, round(calls), usage, prices.usd(model, usage)))
    return Estimate(model, environments, tuple(rows))
