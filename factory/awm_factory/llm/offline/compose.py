"""From a pack to a domain with its rows: which modules and features a variant has, and all of them built and seeded."""

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from awm_factory.llm.offline.ir import Domain
from awm_factory.llm.offline.kit import Kit, Scenario
from awm_factory.llm.offline.modules import MODULES
from awm_factory.llm.offline.packs import ModulePart, Pack
from awm_factory.llm.offline.seeding import Seeding
from awm_factory.llm.offline.state import World
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


def recipe(pack: Pack, *name: object) -> Recipe:
    """Drawn by the variant's name: the core modules, some others, and about half of all features."""
    rng = draws("recipe", *name)
    parts = [part for part in pack.modules if part.module in MODULES]
    core = [part.module for part in parts if part.core]
    others = [part.module for part in parts if not part.core]
    most = max(0, min(len(others), 6 - len(core)))
    chosen = set(core) | set(rng.sample(others, rng.randint(min(1, most), most)))
    modules = ["frame", *(module for module in MODULES if module in chosen)]
    return Recipe({module: _features(rng, MODULES[module].FEATURES) for module in modules})


def _features(rng: random.Random, declared: tuple[str, ...]) -> frozenset[str]:
    return frozenset(feature for feature in declared if rng.randrange(100) < 50)


def compose(pack: Pack, chosen: Recipe) -> tuple[Domain, list[Kit]]:
    """The domain, without rows."""
    declared = {module: frozenset(MODULES[module].FEATURES) for module in chosen.modules}
    scenario = Scenario(pack, declared)
    kits = []
    for module, features in chosen.modules.items():
        part = ModulePart(module=module) if module == "frame" else pack.part(module)
        kit = Kit(scenario, part, features)
        MODULES[module].build(kit)
        kits.append(kit)
    return scenario.domain(kits, _WORLD_START), kits


def seeded(domain: Domain, kits: list[Kit], seed: object) -> World:
    """The start state that belongs to a seed."""
    world = World(domain)
    for kit in kits:
        MODULES[kit.module].seed(Seeding(world, kit, draws("rows", domain.name, kit.module, seed)))
    return world
