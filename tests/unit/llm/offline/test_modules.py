"""Modules in the words of real packs: their start state is sound, and what is emitted of them is well formed."""

import ast
import sqlite3
from collections import Counter
from functools import cache

import pytest

from awm_factory.llm.offline.compose import Recipe, compose, recipe, seeded
from awm_factory.llm.offline.emit.code import code
from awm_factory.llm.offline.emit.data import data
from awm_factory.llm.offline.emit.schema import schema
from awm_factory.llm.offline.emit.spec import spec
from awm_factory.llm.offline.modules import MODULES
from awm_factory.llm.offline.packs import Pack, packs
from awm_factory.llm.offline.state import World
from awm_factory.llm.offline.steps import Change, Insert, Require, ReturnRow

MOST_SUMMARY, MOST_DESCRIPTION, MOST_NAME = 80, 200, 64


@cache
def pack_with(module: str) -> Pack:
    return next(
        (pack for pack in packs().values() if any(part.module == module for part in pack.modules)), next(iter(packs().values()))
    )


def world_of(pack: Pack, modules: dict[str, frozenset[str]], tools: int = 1000) -> World:
    domain, kits = compose(pack, Recipe(modules, tools))
    return seeded(domain, kits, 0)


def feature_sets() -> list[tuple[str, frozenset[str]]]:
    """None, each alone and all of the features of every module."""
    found = []
    for name, module in MODULES.items():
        found += [(name, frozenset(chosen)) for chosen in ((), *((one,) for one in module.FEATURES), module.FEATURES)]
    return found


@pytest.mark.parametrize(
    ("module", "features"), feature_sets(), ids=lambda value: value if isinstance(value, str) else "+".join(sorted(value))
)
def test_a_module_with_these_features_is_sound(module: str, features: frozenset[str]) -> None:
    modules = {"frame": frozenset(), module: features}
    world = world_of(pack_with(module), modules)
    assert world.faults() == []
    assert_loads(world)
    assert_fits(world)
    tree = ast.parse(code(world.domain))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef):
            names = Counter(
                part.name for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            )
            assert [name for name, count in names.items() if count > 1] == []


def assert_loads(world: World) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA foreign_keys = ON")
    for table in schema(world.domain)["tables"]:
        for statement in (table["ddl"], *table["indexes"]):
            connection.execute(statement)
    for table in data(world)["tables"]:
        for statement in table["insert_statements"]:
            connection.execute(statement)
    for entity in world.domain.entities.values():
        assert connection.execute(f"SELECT count(*) FROM {entity.plural}").fetchone()[0] == world.count(entity.role)


def assert_fits(world: World) -> None:
    endpoints = [endpoint for group in spec(world)["api_groups"] for endpoint in group["endpoints"]]
    assert len({endpoint["operation_id"] for endpoint in endpoints}) == len(endpoints)
    assert len({(endpoint["method"], endpoint["path"]) for endpoint in endpoints}) == len(endpoints)
    for endpoint in endpoints:
        assert 0 < len(endpoint["summary"]) <= MOST_SUMMARY, endpoint["summary"]
        assert 0 < len(endpoint["description"]) <= MOST_DESCRIPTION, endpoint["description"]
        assert len(endpoint["operation_id"]) <= MOST_NAME
        for text in (endpoint["summary"], endpoint["description"]):
            assert not any(mark in text for mark in "<>{}"), text


@pytest.mark.parametrize("name", ["corner_shop_till", "spare_parts_counter", "vintage_record_shop"])
def test_a_scenario_has_the_size_that_was_asked_for_and_every_id_is_listed(name: str) -> None:
    pack = packs()[name]
    chosen = recipe(pack, name)
    assert chosen == recipe(pack, name)
    domain, kits = compose(pack, chosen)
    assert 17 <= len(domain.entities) <= 25
    assert 35 <= len(domain.operations) <= 48
    listed = {operation.entity for operation in domain.operations.values() if operation.kind in ("list", "report")}
    answers = [operation.returns for operation in domain.operations.values()]
    listed |= {role for answer in answers if isinstance(answer, ReturnRow) for role, _ in answer.children}
    wanted = {param.ref for operation in domain.operations.values() for param in operation.params if param.ref and param.required}
    assert wanted <= listed
    assert 200 <= sum(seeded(domain, kits, 0).count(role) for role in domain.entities) <= 800


def test_features_make_another_schema_and_other_tools() -> None:
    pack = pack_with("booking")
    plain, _ = compose(pack, Recipe({"frame": frozenset(), "booking": frozenset()}))
    rich, _ = compose(pack, Recipe({"frame": frozenset(), "booking": frozenset({"waitlist", "equipment"})}))
    assert rich.entities.keys() - plain.entities.keys() == {"booking.waiting", "booking.extra"}
    assert {"booking.join_waiting", "booking.add_extra"} <= rich.operations.keys() - plain.operations.keys()


def test_rows_of_another_seed_differ_and_those_of_the_same_do_not() -> None:
    pack = pack_with("order")
    domain, kits = compose(pack, Recipe({"frame": frozenset(), "order": frozenset()}))
    assert seeded(domain, kits, 1).difference(seeded(domain, kits, 1)) == []
    assert seeded(domain, kits, 1).difference(seeded(domain, kits, 2)) != []


@pytest.mark.parametrize("module", MODULES)
def test_what_sets_a_value_refuses_the_one_that_is_there(module: str) -> None:
    """An answer that all went well, where nothing changed, would have an agent believe that it did something."""
    world = world_of(pack_with(module), {"frame": frozenset(), module: frozenset(MODULES[module].FEATURES)})
    for operation in world.domain.operations.values():
        changes = [(step.var, *pair) for step in operation.steps if isinstance(step, Change) for pair in step.values.items()]
        moves_on = any(isinstance(step, Insert) for step in operation.steps) or any(
            value.startswith("state.") or value in ("now", "today") for _, _, value in changes
        )
        given = [(f"{var}.{column}", value) for var, column, value in changes if value in {one.key for one in operation.params}]
        if operation.kind == "act" and given and not moves_on:
            conditions = [step.condition for step in operation.steps if isinstance(step, Require)]
            assert any(column in one and value in one for one in conditions for column, value in given), operation.key
