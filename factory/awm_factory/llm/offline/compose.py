"""From a pack to a domain with its rows: which modules and features a variant has, and all of them built and seeded."""

import hashlib
import random
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from awm_factory.llm.offline.declaring import Scenario
from awm_factory.llm.offline.ir import Domain
from awm_factory.llm.offline.kit import Kit
from awm_factory.llm.offline.modules import MODULES
from awm_factory.llm.offline.packs import ModulePart, Pack
from awm_factory.llm.offline.seeding import Seeding
from awm_factory.llm.offline.state import World
from awm_factory.llm.offline.trim import trimmed
from awm_runtime.contract import WORLD_TIME

_WORLD_START: Final = datetime.fromisoformat(WORLD_TIME).replace(tzinfo=None)


def draws(*name: object) -> random.Random:
    """A stream of chance of its own for each name, the same on every machine and version of Python."""
    digest = hashlib.sha256("\0".join(map(str, name)).encode()).digest()
    return random.Random(int.from_bytes(digest, "big"))


@dataclass(frozen=True)
class Recipe:
    """What a variant is made of: its modules in order of building, each with the features it has."""

    modules: Mapping[str, frozenset[str]]
    tools: int = 1000
    """Tools at most, as far as some can be spared."""


_MODULES: Final = (4, 6)
"""Fewest and most of a scenario, besides the frame."""
_TABLES: Final = (19, 23)
_TOOLS: Final = (37, 46)


def recipe(pack: Pack, *name: object) -> Recipe:
    """Drawn by the variant's name: the core modules and some others, and as many features as make a schema of the size wanted.

    The pack's `draw` counts the draws that were not taken.
    """
    rng = draws("recipe", *name, *([pack.draw] if pack.draw else []))
    parts = [part for part in pack.modules if part.module in MODULES]
    chosen = [part.module for part in parts if part.core]
    others = [part.module for part in parts if not part.core]
    chosen += rng.sample(others, min(len(others), max(0, rng.randint(*_MODULES) - len(chosen))))
    modules = ["frame", *(module for module in MODULES if module in chosen)]
    order = [(module, feature) for module in modules for feature in MODULES[module].FEATURES]
    order = rng.sample(order, len(order))
    wanted, tools = rng.randint(*_TABLES), rng.randint(*_TOOLS)

    def first(count: int) -> Recipe:
        return Recipe({module: frozenset(feature for of, feature in order[:count] if of == module) for module in modules}, tools)

    # Each feature adds tables or none, so the fewest that suffice are found by halves.
    count = bisect_left(range(len(order) + 1), wanted, key=lambda count: _tables(pack, first(count)))
    return first(min(count, len(order)))


def compose(pack: Pack, chosen: Recipe) -> tuple[Domain, list[Kit]]:
    """The domain, without rows."""
    scenario, kits = _built(pack, chosen, Kit)
    return trimmed(scenario.domain(kits, _WORLD_START), chosen.tools), kits


def _tables(pack: Pack, chosen: Recipe) -> int:
    return len(_built(pack, chosen, _Tables)[0].entities)


def _built(pack: Pack, chosen: Recipe, kind: type[Kit]) -> tuple[Scenario, list[Kit]]:
    declared = {module: frozenset(MODULES[module].FEATURES) for module in chosen.modules}
    scenario = Scenario(pack, declared)
    kits = []
    for module, features in chosen.modules.items():
        part = ModulePart(module=module) if module == "frame" else pack.part(module)
        kit = kind(scenario, part, features)
        MODULES[module].build(kit)
        kits.append(kit)
    return scenario, kits


class _Tables(Kit):
    """Declares tables alone: how many there are is asked far more often than what can be done with them."""

    def _nothing(self, *_: Any, **__: Any) -> None:
        return

    listing = get = create = update = act = delete = report = operation = _nothing


def seeded(domain: Domain, kits: list[Kit], seed: object) -> World:
    """The start state that belongs to a seed."""
    world = World(domain)
    for kit in kits:
        MODULES[kit.module].seed(Seeding(world, kit, draws("rows", domain.name, kit.module, seed)))
    return world
