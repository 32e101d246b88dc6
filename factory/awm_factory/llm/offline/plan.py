"""Tasks for a domain in a state: drawn kind by kind, state first and text last, each solved on the model before it is told."""

import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from awm_factory.bundle import Difficulty, Solution
from awm_factory.errors import ConfigError
from awm_factory.llm.offline.difficulty import difficulty
from awm_factory.llm.offline.goals.act import act
from awm_factory.llm.offline.goals.ask import ask
from awm_factory.llm.offline.goals.conditional import conditional
from awm_factory.llm.offline.goals.find import find_and_act
from awm_factory.llm.offline.goals.ground import Draft, Ground, Kind
from awm_factory.llm.offline.goals.opens import open_choice
from awm_factory.llm.offline.goals.policy import policy
from awm_factory.llm.offline.goals.repair import Slip, plant, repair
from awm_factory.llm.offline.goals.several import several
from awm_factory.llm.offline.ir import Domain
from awm_factory.llm.offline.outcome import Wanted
from awm_factory.llm.offline.state import World
from awm_factory.llm.offline.verify import code_verifier, sql_verifier

_SPREAD: Final[tuple[Kind, ...]] = (
    *("find", "act", "ask", "several", "policy", "conditional", "open", "repair", "ask", "find"),
    *("several", "act", "find", "conditional", "several", "open", "ask", "act", "policy", "find"),
)
"""Kinds in the order in which they are drawn, round and round: of any ten, about three change nothing."""
_CHANGING: Final[tuple[Kind, ...]] = ("find", "several", "act", "open", "conditional")
"""What stands in for a kind that the domain has no more of."""
_FEWEST_CHANGING: Final = 7
"""Of ten tasks."""
_PATIENCE: Final = 40
"""Draws of tasks that are known or of another level, before a kind is given up."""
_BARREN: Final = 5
"""Draws that find no task at all, before a kind is given up; each of them looks at several operations."""
_SLIPS: Final = 12
"""One planted slip for so many tasks, and one more."""
_MOST_SLIPS: Final = 20


@dataclass(frozen=True)
class PlannedTask:
    instruction: str
    kind: Kind
    solution: Solution
    wanted: Wanted
    expected: str
    difficulty: Difficulty

    @property
    def changes(self) -> bool:
        return not self.wanted.outcome.nothing

    @property
    def code_verifier(self) -> str:
        return code_verifier(self.instruction, self.wanted)

    @property
    def sql_verifier(self) -> str:
        return sql_verifier(self.instruction, self.wanted, self.expected)


class TooFewTasksError(ConfigError):
    """The domain has no more tasks of the kind that was asked for."""


def plan_tasks(
    domain: Domain, world: World, rng: random.Random, count: int, level: int | Collection[int] | None = None
) -> list[PlannedTask]:
    """`count` tasks, no two alike. Plants the slips that some of them are to put right into `world`: emit its rows afterwards.

    Raises TooFewTasksError with the number that was found where there are fewer (of that level).
    """
    assert world.domain is domain
    levels = {level} if isinstance(level, int) else set(level or ())
    planner = _Planner(world, rng, plant(world, rng, min(_MOST_SLIPS, 1 + count // _SLIPS)), levels)
    tasks = planner.tasks(count)
    if len(tasks) < count:
        at = f" of level {', '.join(map(str, sorted(levels)))}" if levels else ""
        raise TooFewTasksError(f"{domain.name} has {len(tasks)} tasks{at} that differ, not {count}; ask for at most {len(tasks)}")
    return tasks


class _Planner:
    def __init__(self, world: World, rng: random.Random, slips: list[Slip], levels: set[int]) -> None:
        self._ground = Ground(world, rng)
        self._rng, self._slips, self._levels = rng, list(slips), levels
        self._taken: set[tuple[object, ...]] = set()
        self._ends: set[tuple[str, str]] = set()
        self._ways: Counter[tuple[object, ...]] = Counter()
        self._texts: set[str] = set()
        self._made: set[str] = set()
        self._given_up: set[Kind] = set()
        self._faults = world.faults()
        self._relaxed = False
        self._draws: Mapping[Kind, Callable[[Ground], Draft | None]] = {
            "act": act,
            "find": find_and_act,
            "ask": ask,
            "conditional": conditional,
            "several": several,
            "repair": self._repair,
            "open": open_choice,
            "policy": policy,
        }

    def tasks(self, count: int) -> list[PlannedTask]:
        found: list[PlannedTask] = []
        # Where it begins is drawn, so that tasks of the same number are of different kinds from seed to seed.
        place = self._rng.randrange(len(_SPREAD))
        while len(found) < count:
            kind: Kind | None = _SPREAD[place % len(_SPREAD)]
            place += 1
            still = count - count * _FEWEST_CHANGING // 10 - sum(not task.changes for task in found)
            if kind in ("ask", "policy") and still <= 0:
                kind = self._stand_in()
            task = self._one(kind) if kind is not None and kind not in self._given_up else None
            if task is None and (kind := self._stand_in()) is not None:
                task = self._one(kind)
            if task is not None and not task.changes and still <= 0:
                continue
            if task is not None:
                found.append(task)
            elif self._stand_in() is None:
                if self._relaxed:
                    break
                self._relaxed, self._given_up = True, set()
        return found

    def _stand_in(self) -> Kind | None:
        left = [kind for kind in _CHANGING if kind not in self._given_up]
        return self._rng.choice(left) if left else None

    def _one(self, kind: Kind) -> PlannedTask | None:
        barren = 0
        for _ in range(_PATIENCE):
            draft = self._draws[kind](self._ground)
            if draft is None:
                barren += 1
                if kind == "repair":
                    return None
                if barren == _BARREN:
                    break
                continue
            if not self._is_new(draft) or draft.trace.world.faults() != self._faults:
                continue  # the second would be a state that the database refuses
            hard = difficulty(self._ground.world, draft)
            if self._levels and hard.level not in self._levels:
                continue
            self._taken.add(draft.signature)
            self._ends.add(_end(draft))
            self._ways[draft.way] += 1
            self._texts.add(draft.instruction)
            self._made |= {text.lower() for text in draft.made}
            solution = Solution(
                calls=draft.trace.tool_calls(),
                final_answer=draft.answer,
                alternatives=list(draft.alternatives),
                near_misses=list(draft.near_misses),
            )
            return PlannedTask(draft.instruction, draft.kind, solution, draft.wanted, draft.expected, hard)
        self._given_up.add(kind)
        return None

    def _is_new(self, draft: Draft) -> bool:
        """Another goal or other rows, other words, another end; and no text that one task stores is spoken of by another."""
        if draft.signature in self._taken or draft.instruction in self._texts or _end(draft) in self._ends:
            return False
        if self._ways[draft.way] and not self._relaxed:
            return False
        if any(len(text) > 3 and text in draft.instruction.lower() for text in self._made):
            return False
        return not any(len(text) > 3 and text.lower() in other.lower() for text in draft.made for other in self._texts)

    def _repair(self, ground: Ground) -> Draft | None:
        while self._slips:
            draft = repair(ground, self._slips.pop(0))
            if draft is not None:
                return draft
        return None


def _end(draft: Draft) -> tuple[str, str]:
    """What is wanted, and the calls that bring it about: two figures of one report may well be the same."""
    return repr(draft.wanted), repr(draft.trace.tool_calls())
