"""The scenarios that the offline author knows, in the order in which it offers them."""

from collections.abc import Mapping

from pydantic import JsonValue

from awm_factory.llm.offline.compose import draws
from awm_factory.llm.offline.packs import Pack, Variant, packs, scenarios


def shuffled(seed: int) -> list[str]:
    """Every scenario by env_id: first the packs' own, then their variants, each time one of every category after the other."""
    own = [key for key, (_, variant) in scenarios().items() if variant is None]
    others = [key for key, (_, variant) in scenarios().items() if variant is not None]
    return _by_category(own, seed) + _by_category(others, seed)


def _by_category(keys: list[str], seed: int) -> list[str]:
    rng = draws("order", seed)
    groups: dict[str, list[str]] = {}
    for key in rng.sample(keys, len(keys)):
        groups.setdefault(packs()[scenarios()[key][0]].category, []).append(key)
    turns = max((len(group) for group in groups.values()), default=0)
    return [group[turn] for turn in range(turns) for group in groups.values() if turn < len(group)]


def described(key: str) -> Mapping[str, JsonValue]:
    """A scenario as the scenario stage answers it."""
    name, variant = scenarios()[key]
    found: Pack | Variant = variant or packs()[name]
    description = found.setting if isinstance(found, Variant) else found.description
    return {"name": found.name, "description": description, "category": packs()[name].category}
