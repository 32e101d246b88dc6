"""From what an episode left behind to a reward, in AWM's three ways: a code verifier, a judge with evidence, a judge without."""

from awm_factory.reward.agreement import Agreement, agreement
from awm_factory.reward.case import Case
from awm_factory.reward.judge import Judge
from awm_factory.reward.judgement import REWARDS, Judgement, Mode, Vote, from_code_verifier
from awm_factory.reward.stored import StoredEpisode, read_episodes, write_episodes

__all__ = [
    "REWARDS",
    "Agreement",
    "Case",
    "Judge",
    "Judgement",
    "Mode",
    "StoredEpisode",
    "Vote",
    "agreement",
    "from_code_verifier",
    "read_episodes",
    "write_episodes",
]
