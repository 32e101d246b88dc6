"""Numbers of a rollout. The defaults are AWM's (arXiv 2602.10090 and its public code), unless one says otherwise."""

import hashlib
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from awm_factory.rollout.forms import FormName
from awm_factory.rollout.window import TURNS

FORMAT_PENALTY: Final = -1.0
"""Reward of an episode that a format error ends."""


class Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    form: FormName = "native"
    """AWM's agent speaks the text form; endpoints that know tools do better with theirs."""
    turns: int = Field(30, ge=1)
    """Replies of the policy in an episode, at most."""
    window: int | None = Field(TURNS, ge=1)
    """Turns that the policy sees; None for all."""
    temperature: float = Field(1.0, ge=0)
    max_tokens: int = Field(2048, ge=1)
    call_timeout: float = Field(60.0, gt=0)
    """Seconds."""
    stop_on_format_error: bool = True
    """A format error ends the episode at once with -1.0. Off: the policy is told what is wrong, and goes on."""
    seed: int = 0
    """Of the first sample's episode; the next has the next."""

    def digest(self, policy: str) -> str:
        """Names the rollouts that belong together: same policy, same numbers."""
        content = f"{policy}\n{self.model_dump_json(exclude={'call_timeout'})}"
        return hashlib.sha256(content.encode()).hexdigest()[:12]
