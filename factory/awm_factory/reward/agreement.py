"""How far the modes agree on the same episodes, and where they don't: the paper's comparison."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from awm_factory.reward.judgement import Judgement


@dataclass(frozen=True)
class Pair:
    """Two modes, over the episodes both gave a reward for. What counts as agreement is `complete` or not."""

    first: str
    second: str
    both: int
    agreed: int
    kappa: float | None
    """Cohen's: agreement beyond what two judges with these habits have by chance. None where each says one thing only."""
    only_first: int
    """Episodes that only the first calls complete."""
    only_second: int

    @property
    def rate(self) -> float | None:
        return self.agreed / self.both if self.both else None


@dataclass(frozen=True)
class Dispute:
    episode: str
    judgements: dict[str, Judgement]


@dataclass(frozen=True)
class Agreement:
    episodes: int
    complete: dict[str, int]
    """Episodes called complete, by mode."""
    failed: dict[str, int]
    """Episodes without a reward, by mode; they count in no pair."""
    pairs: tuple[Pair, ...]
    disputes: tuple[Dispute, ...]


def agreement(episodes: Mapping[str, Mapping[str, Judgement]]) -> Agreement:
    """From judgements by episode and mode. A mode may lack an episode, and a truth by hand can stand as a mode of its own."""
    modes = sorted({mode for judgements in episodes.values() for mode in judgements})
    rewarded = {episode: _complete(judgements) for episode, judgements in episodes.items()}
    disputed = [episode for episode, said in rewarded.items() if len(set(said.values())) > 1]
    return Agreement(
        episodes=len(episodes),
        complete={mode: sum(said.get(mode, False) for said in rewarded.values()) for mode in modes},
        failed={mode: sum(mode in given and mode not in rewarded[name] for name, given in episodes.items()) for mode in modes},
        pairs=tuple(
            _pair(first, second, [(said[first], said[second]) for said in rewarded.values() if first in said and second in said])
            for first, second in combinations(modes, 2)
        ),
        disputes=tuple(Dispute(episode, dict(episodes[episode])) for episode in disputed),
    )


def _complete(judgements: Mapping[str, Judgement]) -> dict[str, bool]:
    return {mode: said.classification == "complete" for mode, said in judgements.items() if said.reward is not None}


def _pair(first: str, second: str, said: list[tuple[bool, bool]]) -> Pair:
    table = Counter(said)
    both, agreed = len(said), table[True, True] + table[False, False]
    return Pair(first, second, both, agreed, _kappa(table, both), table[True, False], table[False, True])


def _kappa(table: Counter[tuple[bool, bool]], both: int) -> float | None:
    if not both:
        return None
    first = (table[True, True] + table[True, False]) / both
    second = (table[True, True] + table[False, True]) / both
    chance = first * second + (1 - first) * (1 - second)
    return None if chance == 1 else ((table[True, True] + table[False, False]) / both - chance) / (1 - chance)
