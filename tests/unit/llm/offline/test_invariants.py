"""What an environment's author declares: invariants as queries that find what the interpreter finds, and what it follows from."""

import sqlite3
from functools import cache

import pytest

from awm_factory.bundle import Author as Provenance
from awm_factory.llm.offline.author import Author
from awm_factory.llm.offline.compose import Recipe, compose, seeded
from awm_factory.llm.offline.emit.data import data
from awm_factory.llm.offline.emit.schema import schema
from awm_factory.llm.offline.model import NAME, version
from awm_factory.llm.offline.modules import MODULES
from awm_factory.llm.offline.packs import packs
from awm_factory.llm.offline.state import World
from awm_factory.synthesis.draft import Draft
from offline_support import bundle_of

DECLARING = sorted(MODULES.keys() - {"frame", "catalogue", "order"})


@cache
def world_of(module: str) -> World:
    pack = next(pack for pack in packs().values() if any(part.module == module for part in pack.modules))
    domain, kits = compose(pack, Recipe({"frame": frozenset(), module: frozenset(MODULES[module].FEATURES)}))
    return seeded(domain, kits, 0)


def spoilt(world: World) -> World:
    """The same with another state, and another figure, in every second row."""
    after = world.copy()
    for role, entity in world.domain.entities.items():
        for row in list(world.all(role))[::2]:
            for column in entity.columns:
                if row[column.key] is None or column.unique or any(column.key in keys for keys in entity.uniques):
                    continue
                if column.kind == "choice":
                    place = column.choices.index(row[column.key])
                    after.change(role, row["id"], **{column.key: column.choices[(place + 1) % len(column.choices)]})
                elif column.kind in ("int", "money"):
                    after.change(role, row["id"], **{column.key: row[column.key] // 2 - 1})
    return after


def broken(world: World) -> dict[str, set[int]]:
    """By invariant, what its query finds."""
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA ignore_check_constraints = ON")
    for table in schema(world.domain)["tables"]:
        connection.execute(table["ddl"])
    for table in data(world)["tables"]:
        for statement in table["insert_statements"]:
            connection.execute(statement)
    return {
        sentence: {row[0] for row in connection.execute(query)} for sentence, query in schema(world.domain)["invariants"].items()
    }


@pytest.mark.parametrize("module", DECLARING)
def test_a_query_finds_the_rows_that_the_interpreter_finds(module: str) -> None:
    world = world_of(module)
    assert world.domain.invariants and set().union(*broken(world).values()) == set()
    after = spoilt(world)
    known = {
        f"in {world.domain.entity(one.entity).plural}, {one.about}": {
            int(fault.partition(":")[0].rpartition(" ")[2])
            for fault in after.faults()
            if fault.startswith(f"{one.entity} ") and fault.endswith(f": {one.about}")
        }
        for one in world.domain.invariants
    }
    assert broken(after) == known


def test_most_invariants_can_be_broken_by_other_states_and_figures() -> None:
    """What the test above compares is not only emptiness."""
    found = [rows for module in DECLARING for rows in broken(spoilt(world_of(module))).values()]
    assert sum(map(bool, found)) >= 0.8 * len(found) > 10


def test_a_bundle_says_what_wrote_it_from_which_seed_and_keeps_that_when_it_is_taken_up() -> None:
    bundle = bundle_of(Author("corner_shop_till", seed=3, count=1))
    assert bundle.manifest.author == Provenance(name=NAME, version=version(), seed=3) and bundle.manifest.invariants
    again = Draft.from_bundle(bundle).bundle()
    assert (again.manifest, again.digest()) == (bundle.manifest, bundle.digest())
