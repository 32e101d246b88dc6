"""Numbers of the synthesis in one place. Each default is Agent World Model's own (arXiv 2602.10090) unless it says otherwise."""

from typing import Final

from pydantic import BaseModel, ConfigDict, Field

K: Final = 1024


class ScenarioSettings(BaseModel):
    """Self-Instruct over an embedding space that must stay diverse."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    requests_at_once: int = Field(default=5, ge=1)
    scenarios_per_request: int = Field(default=10, ge=1)
    focused_share: float = Field(default=0.7, ge=0, le=1)
    """Share of the requests that name one category group, in rotation; the others are free."""
    examples: int = Field(default=8, ge=0)
    example_suitability: int = 8
    """Accepted scenarios from this suitability on may stand as examples."""
    least_suitability: int = 6
    refuse_above: float | None = None
    """Cosine to any accepted scenario above which a candidate is refused; None for the embedder's own threshold (AWM: 0.85)."""
    crowded_above: float | None = None
    """From here to `refuse_above` a candidate passes only while its category holds fewer than `category_cap` (AWM: 0.75)."""
    category_cap: int = Field(default=80, ge=1)
    audit_every: int = Field(default=200, ge=1)
    barren_rounds: int = Field(default=10, ge=1)
    """Rounds with nothing accepted before the thresholds are relaxed."""
    relax_threshold: float = 0.05
    relax_cap: float = 1.2
    most_rounds: int = Field(default=2000, ge=1)
    """Ours: a model that only repeats itself ends the run instead of going on for ever."""


class MaxTokens(BaseModel):
    """Tokens an answer may take, by stage; the client clamps them to the model's own limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: int = 16 * K
    tasks: int = 32 * K
    schema_: int = Field(default=128 * K, alias="schema")
    data: int = 128 * K
    spec: int = 128 * K
    code: int = 128 * K
    verifiers: int = 32 * K
    solutions: int = 32 * K
    advice: int = 4 * K

    def of(self, stage: str) -> int:
        return int(getattr(self, "schema_" if stage == "schema" else stage))


class Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    scenarios: ScenarioSettings = ScenarioSettings()
    tasks: int = Field(default=10, ge=1, le=10_000)
    """Tasks a scenario."""
    attempts: int = Field(default=5, ge=1)
    """Answers asked for in one run of the repair loop."""
    attempts_tasks: int = Field(default=5, ge=1)
    """For the tasks stage: one answer and up to four retries."""
    rounds: int = Field(default=3, ge=0)
    """Ours: how often a scenario may go back to an earlier stage because a later one showed it to be at fault."""
    schema_error_ratio: float = Field(default=0.0, ge=0, le=1)
    """Share of failing schema statements from which on a schema is asked for again (AWM: 0.1)."""
    data_error_ratio: float = Field(default=0.0, ge=0, le=1)
    advice: bool = True
    """Condense a stage's errors into advice by a call of its own before every retry."""
    temperature: float = Field(default=1.0, ge=0, le=2)
    max_tokens: MaxTokens = MaxTokens()
    requests: int = Field(default=64, ge=1)
    """Requests in flight at once."""
    in_flight: int = Field(default=1000, ge=1)
    """Ours: scenarios worked on at once."""
    seed: int = 0
    solvable_runs: int = Field(default=3, ge=1, le=10)
    calls: int = Field(default=600, ge=0)
    """Ours: calls that certify explores an environment with; 0 leaves exploration to a later `awm-factory certify`."""
    mutants: int = Field(default=40, ge=0)
    """Ours: near misses of a task that certify tries; 0 leaves all trials but the solution to a later `awm-factory certify`."""
    prove_once: bool = False
    """Ours: verifiers and solutions are executed by the proof at the end only, where no answer could be mended before it."""
    least_tasks: int = Field(default=1, ge=0)
    """Ours: tasks that must have been proved for a bundle to be written."""

    def attempts_of(self, stage: str) -> int:
        return self.attempts_tasks if stage == "tasks" else self.attempts
