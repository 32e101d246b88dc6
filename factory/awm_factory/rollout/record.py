"""One finished episode of a rollout, as a line of JSON; `verify` and `agreement` read the same lines (docs/rewards.md)."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from awm_factory.errors import Whose
from awm_factory.reward import StoredEpisode

Ended = Literal["answer", "format_error", "turns", "tokens", "fault"]
"""The policy answered, broke the form, used up its turns, used up the tokens of a reply, or something failed around it."""


class PlayedCall(BaseModel):
    model_config = ConfigDict(frozen=True)

    turn: int
    tool: str
    arguments: dict[str, JsonValue]
    text: str
    """What the tool answered."""
    kind: str
    """`ok`, or what kind of error: docs/runtime.md lists them."""
    fault: Whose | None = None
    seconds: float


class Failure(BaseModel):
    """Why an episode has no reward."""

    model_config = ConfigDict(frozen=True)

    fault: Whose
    code: str
    message: str


class Tokens(BaseModel):
    model_config = ConfigDict(frozen=True)

    prompt: int = 0
    completion: int = 0


class Seconds(BaseModel):
    model_config = ConfigDict(frozen=True)

    policy: float = 0.0
    tools: float = 0.0
    verify: float = 0.0
    whole: float = 0.0


class Rollout(StoredEpisode):
    run: str
    """Digest of policy and settings."""
    policy: str
    sample: int
    seed: int
    ended: Ended
    reward: float | None
    """None for an episode that a trainer must mask, by the rule of `awm_factory.client.Verdict.masked`."""
    turns: int
    calls: list[PlayedCall] = Field(default_factory=list)
    format_errors: list[str] = Field(default_factory=list)
    failure: Failure | None = None
    tokens: Tokens = Tokens()
    seconds: Seconds = Seconds()

    @property
    def environment_failed(self) -> bool:
        """Whether a call or the verifier failed by the environment's own fault."""
        faults = {call.fault for call in self.calls} | ({self.failure.fault} if self.failure else set())
        return "environment" in faults

    @property
    def to_repeat(self) -> bool:
        """Whether it failed by nobody's fault that playing it again would not mend."""
        return self.failure is not None and self.failure.fault == "infrastructure"


def episode_name(env_id: str, task_id: int | None, sample: int) -> str:
    return f"{env_id}/{'-' if task_id is None else task_id}/{sample}"
