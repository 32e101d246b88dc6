"""Tasks as they are planned for a scenario of the packs: solvable by what they say, none like another, in words of a user."""

import random
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from awm_factory.certify import answers
from awm_factory.llm.offline.author import Author
from awm_factory.llm.offline.compose import Recipe, compose, draws, seeded
from awm_factory.llm.offline.goals.repair import plant
from awm_factory.llm.offline.mention import mention, similar
from awm_factory.llm.offline.modules import MODULES
from awm_factory.llm.offline.packs import packs
from awm_factory.llm.offline.plan import PlannedTask, TooFewTasksError, plan_tasks
from awm_factory.llm.offline.state import World
from awm_factory.llm.offline.wording import ASKING, LEAVING_OPEN
from awm_factory.rollout.agents import SolutionAgent
from awm_factory.rollout.agents.protocol import Say, Scene, Step
from awm_factory.synthesis.checks import tasks as rules
from offline_support import WorldEpisode

TESTS = Path(__file__).parents[3]
SCENARIOS = {"canteen_kitchen": ("frame", "inventory", "order"), "bistro_reservations": ("frame", "booking")}


@dataclass(frozen=True)
class Planned:
    world: World
    """As the tasks find it, slips planted."""
    tasks: list[PlannedTask]


def world(name: str) -> World:
    """With all features and all tools, whatever the author would draw."""
    modules = {module: frozenset(MODULES[module].FEATURES) for module in SCENARIOS[name]}
    domain, kits = compose(packs()[name], Recipe(modules))
    return seeded(domain, kits, 1)


@cache
def planned(name: str, count: int = 40) -> Planned:
    state = world(name)
    return Planned(state, plan_tasks(state.domain, state, draws("tasks", name), count))


def solved(name: str, task: PlannedTask) -> tuple[World, tuple[Step, ...]]:
    """The world after the solution was played in it, its references filled in from what the calls answered."""
    episode = WorldEpisode(planned(name).world.copy())
    player = SolutionAgent({task.instruction: task.solution})
    steps: tuple[Step, ...] = ()
    while not isinstance(move := player.move(Scene(task.instruction, (), steps)), Say):
        steps = (*steps, episode.call(move))
    return episode.world, steps


@pytest.mark.parametrize("name", SCENARIOS)
def test_of_ten_tasks_seven_change_something_and_many_kinds_are_there(name: str) -> None:
    tasks = planned(name, 10).tasks
    assert len(tasks) == 10
    assert sum(task.changes for task in tasks) >= 7
    assert len({task.kind for task in tasks}) >= 6
    assert rules.check([task.instruction for task in tasks], 10) == []


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_solution_played_by_what_it_says_comes_to_what_is_wanted(name: str) -> None:
    for task in planned(name).tasks:
        after, steps = solved(name, task)
        edits = planned(name).world.difference(after)
        refused = [step for step in steps if step.is_error]
        assert len(refused) <= (task.kind in ("policy", "conditional")), (task.instruction, refused)
        assert {after.domain.entity(edit.role).plural for edit in edits} == set(task.wanted.outcome.tables())


@pytest.mark.parametrize("name", SCENARIOS)
def test_ids_are_looked_up_and_never_guessed(name: str) -> None:
    for task in planned(name).tasks:
        for call in task.solution.calls:
            for key, value in leaves(call.arguments):
                looked_up = isinstance(value, str) and value.startswith("{{calls[")
                assert not key.endswith("_id") or looked_up or value == 1, (task.instruction, call)
        assert not re.search(r"\bids?\b", task.instruction, re.IGNORECASE)


def leaves(value: Any, key: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [leaf for name, item in value.items() for leaf in leaves(item, name)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves(item, key)]
    return [(key, value)]


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_two_tasks_say_or_want_the_same(name: str) -> None:
    tasks = planned(name).tasks
    assert len({task.instruction for task in tasks}) == 40
    ends = Counter(repr((task.wanted, [call.model_dump() for call in task.solution.calls])) for task in tasks)
    assert max(ends.values()) == 1


def test_words_single_a_row_out_or_are_not_used() -> None:
    for name in SCENARIOS:
        state = planned(name).world
        for role in state.domain.entities:
            for row in list(state.all(role))[:12]:
                found = mention(state, role, row["id"], described=True)
                assert found is None or [one["id"] for one in similar(state, role, found.facts)] == [row["id"]]


def test_a_planted_slip_breaks_no_rule_and_its_correction_is_the_only_change_that_is_wanted() -> None:
    before = world("bistro_reservations")
    after = before.copy()
    slips = plant(after, random.Random(3), 6)
    assert len(slips) == 6
    assert after.faults() == before.faults()
    assert [(edit.role, edit.id, edit.columns) for edit in before.difference(after)] == sorted(
        ((slip.role, slip.id, (slip.key,)) for slip in slips),
        key=lambda change: (list(before.domain.entities).index(change[0]), change[1]),
    )
    # A bill's total hangs on the quantities of its lines, so none of these is mistyped.
    bills = Author("sailing_ship_berths", count=0).world
    mistyped = bills.copy()
    for slip in plant(mistyped, random.Random(4), 40):
        operation = mistyped.domain.operations[slip.operation]
        corrected = mistyped.copy()
        corrected.run(slip.operation, {operation.params[0].key: slip.id, slip.param: slip.right})
        edits = [edit for edit in mistyped.difference(corrected) if edit.role != "activity"]
        assert [(edit.role, edit.id) for edit in edits] == [(slip.role, slip.id)]
    repairs = [task for task in planned("bistro_reservations").tasks if task.kind == "repair"]
    for task in repairs:
        assert [change.table for change in task.wanted.outcome.changed if change.table != "activity_log"]
        assert not task.wanted.outcome.removed


def test_an_open_task_names_every_choice_and_accepts_as_many_ends() -> None:
    tasks = [task for name in SCENARIOS for task in planned(name).tasks if task.kind == "open"]
    assert tasks
    for task in tasks:
        assert len(task.wanted.choices) >= 2
        assert len(task.solution.alternatives) == len(task.wanted.choices) - 1


def test_a_policy_task_that_is_refused_asks_for_a_figure_that_its_words_do_not_hold() -> None:
    tasks = [task for name in SCENARIOS for task in planned(name).tasks if task.kind == "policy" and not task.changes]
    assert tasks
    for task in tasks:
        (told,) = task.wanted.told
        if told.kind == "count":
            assert not re.search(rf"(?<![\d.]){told.value}(?![\d.])", task.instruction)


def test_a_limit_that_is_an_amount_is_asked_for_and_judged_as_one() -> None:
    """The ledger's, of which the refusal once gave the figure and `.00` behind it: the verifier took no amount for a number."""
    tasks = Author("ticket_agency_remittance").tasks
    (task,) = (task for task in tasks if task.kind == "policy" and "debiting" in task.instruction)
    assert [(told.kind, told.value) for told in task.wanted.told] == [("amount", 500_000)]
    assert "the amount that the rule sets" in task.instruction


@pytest.mark.parametrize("level", [1, 3, 5])
def test_tasks_of_one_level_are_to_be_had(level: int) -> None:
    state = world("canteen_kitchen")
    tasks = plan_tasks(state.domain, state, draws("levels"), 6, level)
    assert [task.difficulty.level for task in tasks] == [level] * 6


def test_too_many_tasks_are_an_error_that_says_how_many_there_are() -> None:
    domain, kits = compose(packs()["canteen_kitchen"], Recipe({"frame": frozenset()}))
    state = seeded(domain, kits, 1)
    for role in ("party", "item"):
        for row in list(state.all(role))[2:]:
            state.remove(role, row["id"])
    with pytest.raises(TooFewTasksError, match=r"has \d+ tasks of level 3 that differ, not 500; ask for at most \d+"):
        plan_tasks(domain, state, draws("many"), 500, 3)


def test_the_same_seed_gives_the_same_tasks_whatever_the_hashes() -> None:
    code = """
import hashlib
from test_plan import planned
tasks = planned("canteen_kitchen", 10).tasks
said = [(task.instruction, task.solution, task.code_verifier, task.difficulty) for task in tasks]
print(hashlib.sha256(repr(said).encode()).hexdigest())
"""
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": f"{TESTS}:{Path(__file__).parent}"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


def test_words_that_ask_or_leave_open_are_those_that_certify_goes_by() -> None:
    assert ASKING.pattern == answers._ASKS.pattern
    assert LEAVING_OPEN.pattern == answers._OPEN.pattern
