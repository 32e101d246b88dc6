"""Classifications and their rewards (arXiv 2602.10090, and AWM's public code)."""

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from awm_runtime.contract import Classification, Verdict

Mode = Literal["code", "sql", "llm"]
"""`code`: a verifier decides. `sql`: a judge, with a verifier's evidence. `llm`: a judge, by the trajectory alone."""

REWARDS: Final[dict[Classification, float]] = {
    "complete": 1.0,
    "incomplete": 0.1,
    "agent_error": 0.0,
    "server_error": 0.0,
    "others": 0.0,
}
"""`others` is a code verifier's word for all that is not complete."""


class Vote(BaseModel):
    model_config = ConfigDict(frozen=True)

    classification: Classification | None
    reason: str
    """The judge's own, or why it gave none."""


class Judgement(BaseModel):
    """`reward` is None, and `error` says why, where a verifier or the judge itself failed; trainers mask such episodes."""

    model_config = ConfigDict(frozen=True)

    mode: Mode
    classification: Classification | None = None
    reward: float | None = None
    reason: str = ""
    error: str | None = None
    votes: tuple[Vote, ...] = ()

    @classmethod
    def of(cls, mode: Mode, classification: Classification, reason: str = "", votes: tuple[Vote, ...] = ()) -> "Judgement":
        return cls(mode=mode, classification=classification, reward=REWARDS[classification], reason=reason, votes=votes)

    @classmethod
    def failed(cls, mode: Mode, error: str, votes: tuple[Vote, ...] = ()) -> "Judgement":
        return cls(mode=mode, error=error, votes=votes)

    def fill(self, verdict: Verdict) -> Verdict:
        """The container's verdict in sql mode, which holds evidence only, with this judgement in it."""
        changes = {"classification": self.classification, "reward": self.reward, "error": self.error}
        return verdict.model_copy(update=changes)


def from_code_verifier(verdict: Verdict) -> Judgement:
    """A verifier that crashed, hung or returned nonsense is no verdict on the agent."""
    if verdict.error is not None:
        return Judgement.failed("code", f"no reward, the verifier failed: {verdict.error}")
    if verdict.mode != "code" or verdict.classification not in {"complete", "others"}:
        return Judgement.failed("code", f"no reward: a code verifier says complete or others, not {verdict.classification!r}")
    return Judgement.of("code", verdict.classification)
