"""Rollouts: policies play episodes, hundreds side by side; each leaves a line of JSON and a verdict."""

from awm_factory.rollout.play import Chosen, Environment, play
from awm_factory.rollout.policy import ModelPolicy, Policy, Turn
from awm_factory.rollout.record import Rollout
from awm_factory.rollout.run import Width, run
from awm_factory.rollout.settings import FORMAT_PENALTY, Settings
from awm_factory.rollout.summary import Summary, summaries
from awm_factory.rollout.trajectories import Trajectories
from awm_factory.rollout.window import context

__all__ = [
    "FORMAT_PENALTY",
    "Chosen",
    "Environment",
    "ModelPolicy",
    "Policy",
    "Rollout",
    "Settings",
    "Summary",
    "Trajectories",
    "Turn",
    "Width",
    "context",
    "play",
    "run",
    "summaries",
]
