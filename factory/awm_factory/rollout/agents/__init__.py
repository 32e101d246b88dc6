"""Scripted agents: no language model, no knowledge of an environment but its tools and what they answer.

From weakest to strongest: `random` calls whatever is valid; `greedy` takes the tool whose name the task mentions, and the first
rows that it finds; `chaining` follows ids from tool to tool and picks the rows that the task's words fit; `search` besides
compares, counts, works through several rows and tries again where it was refused; `solution` replays a reference solution.
They measure how hard tasks are (benchmarks/bench_difficulty.py), and stand in for a model in rollouts.
"""

from collections.abc import Sequence
from typing import Final

from awm_factory.errors import UsageError
from awm_factory.rollout.agents.protocol import Agent, Move, Say, Scene, Step
from awm_factory.rollout.agents.random_calls import RandomAgent
from awm_factory.rollout.agents.solution import SolutionAgent
from awm_factory.rollout.agents.solver import Skills, SolvingAgent

AGENTS: Final[Sequence[str]] = ("random", "greedy", "chaining", "search", "solution")
"""From the weakest to the strongest."""
_SKILLS: Final = {
    "greedy": Skills(),
    "chaining": Skills(matches=True),
    "search": Skills(matches=True, compares=True, perseveres=True),
}

__all__ = ["AGENTS", "Agent", "Move", "RandomAgent", "Say", "Scene", "SolutionAgent", "SolvingAgent", "Step", "agent"]


def agent(name: str, seed: int = 0) -> Agent:
    """An agent by name; `solution` is made by `SolutionAgent` itself, from the solutions that it replays."""
    if name == "random":
        return RandomAgent(seed)
    if name in _SKILLS:
        return SolvingAgent(name, _SKILLS[name])
    raise UsageError(f"there is no scripted agent {name!r} to be had by its name; there are {', '.join(['random', *_SKILLS])}")
