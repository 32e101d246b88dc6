"""How hard a task is, by what a solver has to do: from calls, look-ups and conditions to a score and a level from 1 to 5.

The weights follow a linear fit to what scripted agents fail at (benchmarks/bench_difficulty.py), a call counting 1.
"""

import math
import re
from typing import Any, Final

from awm_factory.bundle import Difficulty
from awm_factory.llm.offline.goals.ground import Draft
from awm_factory.llm.offline.mention import Mention
from awm_factory.llm.offline.state import World
from awm_factory.llm.offline.trace import Trace

LEVELS: Final = (1, 2, 3, 4, 5)
_THRESHOLDS: Final = (6.8, 9.0, 10.5, 12.0)
"""Scores at which level 2, 3, 4 and 5 begin."""
_KINDS: Final = {
    "act": 0.0,
    "repair": 0.0,
    "open": 2.0,
    "conditional": 2.0,
    "find": 3.0,
    "policy": 4.0,
    "several": 4.0,
    "ask": 4.5,
}
"""What a kind asks beyond the calls of its solution: to compare, to weigh a condition, to know when it is done."""
_REFERENCE: Final = re.compile(r"calls\[(\d+)\]")


def difficulty(world: World, draft: Draft) -> Difficulty:
    trace = draft.trace
    tools = len(world.domain.operations)
    used = len({call.key for call in trace.calls})
    calls, depth = len(trace.calls), _depth(trace)
    hops = max((trace.depth(call.arguments) for call in trace.calls), default=0)
    constraints = draft.constraints + sum(mention.constraints for mention in draft.mentions)
    distractors = sum(_alike(world, mention) for mention in draft.mentions)
    score = (
        1.0 * calls
        + 0.3 * (depth - 1)
        + 0.2 * hops
        + 0.7 * constraints
        + 0.1 * math.log2(1 + distractors)
        + 0.03 * (tools - used)
        + _KINDS[draft.kind]
    )
    return Difficulty(
        kind=draft.kind,
        level=level_of(score),
        score=round(score, 2),
        calls=calls,
        depth=depth,
        id_hops=hops,
        constraints=constraints,
        distractors=distractors,
        irrelevant_tools=tools - used,
    )


def level_of(score: float) -> int:
    return 1 + sum(score >= threshold for threshold in _THRESHOLDS)


def _depth(trace: Trace) -> int:
    depths: list[int] = []
    for call in trace.calls:
        needed = {int(number) for number in _REFERENCE.findall(str(_sources(call.arguments)))}
        depths.append(1 + max((depths[number] for number in needed), default=0))
    return max(depths, default=0)


def _sources(arguments: Any) -> list[str]:
    if isinstance(arguments, dict):
        return [source for item in arguments.values() for source in _sources(item)]
    if isinstance(arguments, list):
        return [source for item in arguments for source in _sources(item)]
    return [arguments.source] if arguments.source else []


def _alike(world: World, mention: Mention) -> int:
    """Other rows of which part of the words is true."""
    cells = mention.cells()
    return sum(
        row["id"] != mention.id and any(row[key] == value for key, value in cells.items()) for row in world.all(mention.role)
    )
