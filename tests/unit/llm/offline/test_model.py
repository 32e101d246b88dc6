"""The offline author as a model: it answers every stage in the form asked for, and the same each time."""

import asyncio
from typing import Any

import pytest

from awm_factory.cli.offline import SETTINGS, tasks_option
from awm_factory.errors import UsageError
from awm_factory.llm.answers import json_answer, python_answer
from awm_factory.llm.offline.author import Author, author_of
from awm_factory.llm.offline.catalogue import described, shuffled
from awm_factory.llm.offline.model import OfflineModel
from awm_factory.llm.offline.packs import packs, scenarios
from awm_factory.llm.protocol import ModelRequest, Purpose, conversation
from awm_factory.synthesis.settings import Settings

ENV = "corner_shop_till"


def ask(stage: str, text: str = "", item: str = "", env: str = ENV, model: OfflineModel | None = None) -> str:
    purpose = Purpose(env_id=env, stage=stage, item=item)
    request = ModelRequest(messages=conversation("", text), max_tokens=1, purpose=purpose)
    return asyncio.run((model or OfflineModel()).complete(request)).text


def answer(reply: str) -> dict[str, Any]:
    found = json_answer(reply)
    assert isinstance(found, dict)
    return found


def test_every_stage_is_answered_in_its_form() -> None:
    tasks = answer(ask("tasks", "Write 10 tasks that a user of this application"))
    assert len(tasks["tasks"]) == 10
    for stage, key in (("schema", "tables"), ("data", "tables"), ("spec", "api_groups")):
        assert answer(ask(stage))[key]
    assert "app = FastAPI(" in python_answer(ask("code"), defines="app")
    text = f"## The task\nTask 3: {tasks['tasks'][3]}"
    pair = ask("verifiers", text, "3")
    assert python_answer(pair, defines="verify_task_completion") and python_answer(pair, defines="verify_task")
    assert answer(ask("solutions", text, "3"))["calls"]


def test_two_authors_of_one_scenario_and_seed_write_the_same_and_those_of_another_seed_do_not() -> None:
    one, again, other = Author(ENV), Author(ENV), Author(ENV, seed=1)
    assert (one.code, one.schema, one.data, one.spec) == (again.code, again.schema, again.data, again.spec)
    assert [task.instruction for task in one.tasks] == [task.instruction for task in again.tasks]
    assert one.code == other.code and one.schema == other.schema and one.data != other.data


def test_a_scenario_of_no_pack_is_refused_with_the_way_out() -> None:
    with pytest.raises(UsageError, match="name a model with --model"):
        ask("schema", env="flight_simulator")


def test_a_task_that_was_made_otherwise_is_refused() -> None:
    with pytest.raises(UsageError, match="no such task"):
        ask("verifiers", "## The task\nTask 0: Do something else.", "0")


@pytest.mark.parametrize("count", [500, 10_000])
def test_as_many_tasks_can_be_asked_for_as_a_domain_may_have(count: int) -> None:
    assert Settings.model_validate({**SETTINGS, "tasks": count}).tasks == count
    assert tasks_option(lambda: None).__click_params__[0].type.convert(str(count), None, None) == count  # type: ignore[attr-defined]


def test_no_two_of_many_tasks_of_an_environment_say_the_same() -> None:
    tasks = Author(ENV, count=150).tasks
    assert len({" ".join(task.instruction.lower().split()) for task in tasks}) == 150


def test_new_scenarios_are_variants_that_the_prompt_does_not_show() -> None:
    first = answer(ask("scenario", "Write 5 new ones, different", item="1-0"))
    names = [scenario["name"] for scenario in first["scenarios"]]
    assert len(set(names)) == 5
    shown = "\n".join(f"- {name} (Some category): …" for name in names)
    second = answer(ask("scenario", f"{shown}\nWrite 5 new ones, different", item="1-0"))
    assert not {scenario["name"] for scenario in second["scenarios"]} & set(names)


def test_what_is_content_and_not_records_is_rated_low() -> None:
    asked = "0. Shop: orders and stock\n1. Weather Now: forecasts by town"
    assert answer(ask("classify", asked)) == {"suitability": [9, 4]}


def test_scenarios_are_offered_one_of_each_category_first() -> None:
    every = shuffled(0)
    assert sorted(every) == sorted(scenarios()) and every != shuffled(1)
    categories = [described(key)["category"] for key in every]
    count = len({pack.category for pack in packs().values()})
    assert len(set(categories[:count])) == count


def test_the_name_of_the_model_says_what_answers_follow_from() -> None:
    assert OfflineModel().name != OfflineModel(seed=1).name != OfflineModel(levels=(4, 5)).name
    assert author_of(ENV) is author_of(ENV)
