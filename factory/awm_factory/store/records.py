"""What goes into the store and comes out of it."""

from dataclasses import dataclass
from typing import Any, Literal

from awm_factory.problems import Problem

RunState = Literal["running", "done", "stopped", "failed"]
"""`stopped`: by its budget or by the user; the same command goes on with it."""
ScenarioState = Literal["pending", "running", "done", "failed"]


@dataclass(frozen=True)
class Run:
    run_id: str
    state: RunState
    model: str
    settings: dict[str, Any]
    note: str
    created_at: float
    finished_at: float | None


@dataclass(frozen=True)
class Scenario:
    env_id: str
    position: int
    record: dict[str, Any]
    state: ScenarioState = "pending"
    note: str = ""


@dataclass(frozen=True)
class Attempt:
    """One turn of one stage. `artifact` is what was parsed out of the answer, None where nothing could be."""

    env_id: str
    stage: str
    number: int
    prompt: str
    answer: str | None = None
    artifact: bytes | None = None
    problems: tuple[Problem, ...] = ()
    weight: float = 0.0
    """Of the problems; the attempt with the least is kept when attempts run out."""
    item: str = ""
    chosen: bool = False
    cpu_seconds: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Cost:
    """The ledger's row for one stage of one environment (or of everything outside an environment: `env_id` is empty)."""

    env_id: str
    stage: str
    calls: int = 0
    hits: int = 0
    """Calls answered from the store, at no cost."""
    retries: int = 0
    """Requests beyond the first of each call."""
    failures: int = 0
    """Calls that got no answer at all."""
    unmetered: int = 0
    """Requests that broke off before the endpoint said how many tokens it counted; they may be on its bill, but not on ours."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    usd: float | None = 0.0
    """None where a price is unknown."""
    cpu_seconds: float = 0.0
    seconds: float = 0.0
    """Summed over calls that ran side by side."""
