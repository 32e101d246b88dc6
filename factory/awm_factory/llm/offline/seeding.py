"""What a module fills its tables with: draws, moments around the world's first day, and rows of earlier modules."""

import random
import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any, TypeVar

from awm_factory.llm.offline.kit import Kit
from awm_factory.llm.offline.state import World
from awm_factory.llm.offline.values import Row, Value

T = TypeVar("T")


class Seeding:
    def __init__(self, world: World, kit: Kit, rng: random.Random) -> None:
        self.world = world
        self.kit = kit
        self.rng = rng
        self.state = kit.state
        self.policy = kit.policy

    def has(self, feature: str) -> bool:
        return self.kit.has(feature)

    # Rows

    def insert(self, key: str, /, **values: Value) -> Row:
        """Columns that this variant lacks (features) are left out silently, so that one call serves all variants."""
        role = self.kit.role(key)
        entity = self.world.domain.entity(role)
        return self.world.insert(role, **{name: value for name, value in values.items() if entity.has(name)})

    def change(self, key: str, row: Row, /, **values: Value) -> Row:
        return self.world.change(self.kit.role(key), row["id"], **values)

    def rows(self, key: str, /, **where: Any) -> list[Row]:
        return self.world.where(self.kit.role(key), **where)

    def row(self, key: str, row_id: int) -> Row:
        return self.world.row(self.kit.role(key), row_id)

    # Draws

    def pick(self, values: Sequence[T]) -> T:
        return values[self.rng.randrange(len(values))]

    def some(self, values: Sequence[T], count: int) -> list[T]:
        """So many different ones, in their order; all of them where there are no more."""
        chosen = sorted(self.rng.sample(range(len(values)), min(count, len(values))))
        return [values[index] for index in chosen]

    def shuffled(self, values: Sequence[T]) -> list[T]:
        return self.rng.sample(list(values), len(values))

    def weighted(self, **weights: int) -> str:
        """A key by its weight: `weighted(booked=5, cancelled=1)`."""
        at = self.rng.randrange(sum(weights.values()))
        for key, weight in weights.items():
            at -= weight
            if at < 0:
                return key
        raise AssertionError("weights sum to more than the draw")

    def chance(self, percent: int) -> bool:
        return self.rng.randrange(100) < percent

    def between(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def number(self, name: str, low: float = 1, high: float = 20) -> int:
        """A whole number from the pack's range of this name."""
        least, most = self.kit.part.ranges.get(name, (low, high))
        return self.rng.randint(round(least), max(round(least), round(most)))

    def cents(self, name: str, low: float = 5, high: float = 100) -> int:
        """An amount from the pack's range of this name, of a kind that people charge: whole, or ending in 50, 90 or 95."""
        return price(self.rng, *self.kit.part.ranges.get(name, (low, high)))

    def values(self, name: str, *fallback: str) -> list[str]:
        """The pack's values of this name, or plain ones where it has none; the latter may hold `<…>`."""
        return list(self.kit.part.values.get(name) or (self.kit.text(words) for words in fallback))

    # Time

    @property
    def today(self) -> date:
        return self.world.now.date()

    @property
    def now(self) -> datetime:
        return self.world.now

    def at(self, days: int, hour: int = 0, minute: int = 0) -> datetime:
        """So many days after the world's first, at this time of day."""
        return datetime.combine(self.today + timedelta(days=days), datetime.min.time()).replace(hour=hour, minute=minute)

    def past(self, least: int = 2, most: int = 120) -> datetime:
        """A working hour so many days ago."""
        return self.at(-self.between(least, most), self.between(8, 17), self.pick((0, 5, 12, 20, 25, 35, 40, 48, 55)))


def price(rng: random.Random, low: float, high: float) -> int:
    least, most = round(low * 100), round(high * 100)
    amount = rng.randint(least, max(least, most))
    if most >= 10_000:
        step = 500 if amount >= 5_000 else 100
    else:
        step = 50 if amount >= 500 else 10
    rounded = amount // step * step
    return rounded if rounded >= least else least


def graded(names: Sequence[str], prices: Sequence[int]) -> list[int]:
    """The prices, dealt anew among names that differ in a number alone: the larger battery is the dearer one."""
    found = list(prices)
    kinds: dict[str, list[tuple[float, int]]] = {}
    for place, name in enumerate(names):
        if (number := re.search(r"\d+(?:\.\d+)?", name)) is not None:
            kinds.setdefault(name.replace(number[0], "#", 1), []).append((float(number[0]), place))
    for kind in kinds.values():
        for (_, place), cents in zip(sorted(kind), sorted(prices[place] for _, place in kind), strict=True):
            found[place] = cents
    return found
