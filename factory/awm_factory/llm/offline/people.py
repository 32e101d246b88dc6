"""People for all domains: names, addresses, numbers; no two of one draw share a name, and some share a family name."""

import random
import tomllib
from dataclasses import dataclass
from functools import cache

from awm_factory import resources

_NAMESAKES = 3
"""Every so many people share the family name of the one before: a search by it finds two."""


@cache
def _words() -> dict[str, list[str]]:
    path = resources.templates() / "offline" / "people.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Person:
    first: str
    last: str

    @property
    def name(self) -> str:
        return f"{self.first} {self.last}"

    def email(self, domain: str) -> str:
        return f"{self.first}.{self.last}@{domain}".lower()


def people(rng: random.Random, count: int) -> list[Person]:
    words = _words()
    firsts = rng.sample(words["first"], min(count, len(words["first"])))
    lasts = rng.sample(words["last"], len(words["last"]))
    found: list[Person] = []
    for index, first in enumerate(firsts):
        namesake = index % _NAMESAKES == _NAMESAKES - 1
        found.append(Person(first, found[-1].last if namesake else lasts[index % len(lasts)]))
    return found


def phone(rng: random.Random) -> str:
    """In the range that Ireland's regulator keeps free for fiction: 020 91x xxxx."""
    return f"+353 20 91{rng.randrange(10)} {rng.randrange(10_000):04d}"


def street(rng: random.Random) -> str:
    streets = _words()["streets"]
    return f"{rng.randint(1, 98)} {streets[rng.randrange(len(streets))]}"


def town(rng: random.Random) -> str:
    towns = _words()["towns"]
    return towns[rng.randrange(len(towns))]


def streets(rng: random.Random, count: int) -> list[str]:
    """Addresses on different streets."""
    return [f"{rng.randint(1, 98)} {name}" for name in rng.sample(_words()["streets"], count)]
