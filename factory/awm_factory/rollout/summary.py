"""What a set of rollouts comes to, by environment and in all."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from awm_factory.reward import REWARDS
from awm_factory.rollout.record import Rollout

ALL = "all"


@dataclass(frozen=True)
class Summary:
    env_id: str
    """`all` for the set as a whole."""
    episodes: int
    masked: int
    """Episodes without a reward, for a trainer to leave out; no other figure counts them, but for environment errors."""
    pass_at: dict[int, float]
    """By k: the chance that one of k episodes of a task is complete, in the mean over the tasks."""
    mean_reward: float | None
    environment_errors: float
    """Share of the episodes in which a call or the verifier failed by the environment's own fault."""
    format_errors: float
    """Share of the episodes with at least one."""
    turns: float
    calls: float
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    """Mean of an episode, its policy's time included."""


def summaries(rollouts: Sequence[Rollout]) -> list[Summary]:
    """One an environment, in order of their names, and last the whole."""
    by_env: dict[str, list[Rollout]] = defaultdict(list)
    for rollout in rollouts:
        by_env[rollout.env_id].append(rollout)
    return [_summary(env_id, own) for env_id, own in sorted(by_env.items())] + [_summary(ALL, rollouts)]


def pass_at_k(episodes: int, complete: int, k: int) -> float:
    """The unbiased estimate from `episodes` tries of which `complete` succeeded (Chen et al., 2021, arXiv 2107.03374)."""
    return 1.0 - math.comb(episodes - complete, k) / math.comb(episodes, k)


def _summary(env_id: str, rollouts: Sequence[Rollout]) -> Summary:
    counted = [rollout for rollout in rollouts if rollout.reward is not None]
    tries: dict[tuple[str, int | None], list[bool]] = defaultdict(list)
    for rollout in counted:
        tries[rollout.env_id, rollout.task_id].append(rollout.reward == REWARDS["complete"])
    most = max(map(len, tries.values()), default=0)
    return Summary(
        env_id=env_id,
        episodes=len(rollouts),
        masked=len(rollouts) - len(counted),
        pass_at={k: _mean([pass_at_k(len(own), sum(own), k) for own in tries.values() if len(own) >= k]) for k in _powers(most)},
        mean_reward=_mean([rollout.reward for rollout in counted if rollout.reward is not None]) if counted else None,
        environment_errors=_mean([rollout.environment_failed for rollout in rollouts]),
        format_errors=_mean([bool(rollout.format_errors) for rollout in counted]),
        turns=_mean([rollout.turns for rollout in counted]),
        calls=_mean([len(rollout.calls) for rollout in counted]),
        prompt_tokens=sum(rollout.tokens.prompt for rollout in rollouts),
        completion_tokens=sum(rollout.tokens.completion for rollout in rollouts),
        seconds=_mean([rollout.seconds.whole for rollout in counted]),
    )


def _powers(most: int) -> list[int]:
    return [2**n for n in range(most.bit_length())]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
