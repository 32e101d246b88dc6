"""The repair loop, with a stage that counts sheep: what it asks, what it keeps, what it writes down."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from awm_factory.errors import BudgetSpent, Malformed
from awm_factory.llm.protocol import Message, ModelReply, ModelRequest, conversation
from awm_factory.problems import Problem
from awm_factory.store import Store
from awm_factory.synthesis.draft import Draft
from awm_factory.synthesis.notebook import Notebook
from awm_factory.synthesis.repair import Outcome, Repair
from awm_factory.synthesis.settings import Settings
from awm_factory.synthesis.slots import Lanes
from llm_support import FunctionModel
from synthesis_support import shelf


def sheep(number: int, severity: Any = "error", gate: str = "code") -> Problem:
    return Problem(gate=gate, severity=severity, where=f"sheep {number}", what=f"Sheep {number} is missing.", fix="Find it.")


class Sheep:
    """Wants ten sheep, and complains of each that is missing."""

    name = "code"
    item = ""
    what = "flock"

    def __init__(self, existing: int | None = None, foreign: Sequence[Problem] = ()) -> None:
        self._existing = existing
        self._foreign = list(foreign)

    def prompt(self, draft: Draft) -> tuple[Message, ...]:
        return conversation("You are a shepherd.", "Bring ten sheep.")

    def parse(self, reply: str) -> int:
        if not reply.isdigit():
            raise Malformed(f"{reply!r} is no number")
        return int(reply)

    def check(self, artifact: int, draft: Draft) -> list[Problem]:
        return [sheep(number) for number in range(artifact, 10)] + self._foreign

    def apply(self, artifact: int, draft: Draft) -> Draft:
        return draft

    def existing(self, draft: Draft) -> int | None:
        return self._existing

    def show(self, artifact: int) -> str:
        return f"flock of {artifact}"


class Talk:
    """What was asked, and the store that it was written to."""

    def __init__(self, *answers: str, **settings: Any) -> None:
        self.requests: list[ModelRequest] = []
        self.store = Store.open("sqlite://")
        self.store.start_run("r", "m", {})
        self._answers = list(answers)
        self._settings = Settings(**({"advice": False} | settings))

    def answer(self, request: ModelRequest) -> str:
        self.requests.append(request)
        if request.purpose.stage == "advice":
            return "Count again."
        return self._answers.pop(0)

    def run(self, stage: Sheep, given: Sequence[Problem] = (), model: Any = None) -> Outcome[int]:
        lanes = Lanes(1)
        try:
            repair = Repair(model or FunctionModel(self.answer), self._settings, Notebook(self.store, "r"), lanes)
            return asyncio.run(repair.run(stage, shelf(), given))
        finally:
            lanes.close()

    def asked(self, number: int) -> str:
        return "\n".join(f"{message.role}: {message.content}" for message in self.requests[number].messages)


def test_a_good_first_answer_is_the_only_one() -> None:
    talk = Talk("10")
    outcome = talk.run(Sheep())
    assert (outcome.artifact, outcome.answers, outcome.passed, len(talk.requests)) == (10, 1, True, 1)


def test_the_next_prompt_holds_the_answer_and_what_is_wrong_with_it() -> None:
    talk = Talk("8", "10")
    assert talk.run(Sheep()).passed
    assert "assistant: flock of 8" in talk.asked(1)
    assert "sheep 8: Sheep 8 is missing. Find it." in talk.asked(1)
    assert "sheep 7" not in talk.asked(1)


def test_an_answer_that_can_not_be_read_says_why_and_is_no_artifact() -> None:
    talk = Talk("many", "10")
    assert talk.run(Sheep()).answers == 2
    assert "could not be used: 'many' is no number" in talk.asked(1)
    assert "assistant:" not in talk.asked(1)


def test_the_best_attempt_is_kept_with_its_problems_and_never_passes_as_good() -> None:
    talk = Talk("5", "8", "many", "7", "6")
    outcome = talk.run(Sheep())
    assert (outcome.artifact, outcome.answers, outcome.passed) == (8, 5, False)
    assert [problem.where for problem in outcome.own] == ["sheep 8", "sheep 9"]
    assert [attempt.number for attempt in talk.store.attempts("r") if attempt.chosen] == [2]


def test_a_worse_answer_is_not_built_upon() -> None:
    talk = Talk("8", "3", "10")
    talk.run(Sheep())
    assert "assistant: flock of 8" in talk.asked(2)


def test_the_best_is_that_with_the_least_left_for_this_stage_whatever_it_leaves_to_others() -> None:
    class Costly(Sheep):
        def check(self, artifact: int, draft: Draft) -> list[Problem]:
            return super().check(artifact, draft) + [sheep(n, gate="data") for n in range(artifact)]

    outcome = Talk("7", "9", "1", attempts=3).run(Costly())
    assert (outcome.artifact, len(outcome.own), len(outcome.foreign), len(outcome.errors)) == (9, 1, 9, 10)


def test_errors_are_told_before_warnings_and_warnings_of_others_are_no_errors() -> None:
    class Backwards(Sheep):
        def check(self, artifact: int, draft: Draft) -> list[Problem]:
            return super().check(artifact, draft)[::-1]

    talk = Talk("9", "10")
    outcome = talk.run(Backwards(foreign=[sheep(1, "warning"), sheep(2, "warning", gate="data")]))
    assert talk.asked(1).index("sheep 9") < talk.asked(1).index("sheep 1:")
    assert (outcome.own, outcome.foreign, len(outcome.problems)) == ([], [], 2)


def test_no_usable_answer_at_all_gives_no_artifact() -> None:
    outcome = Talk("a", "b", attempts=2).run(Sheep())
    assert (outcome.artifact, outcome.passed, outcome.answers) == (None, False, 2)


def test_warnings_ask_for_nothing() -> None:
    outcome = Talk("10").run(Sheep(foreign=[sheep(1, "warning")]))
    assert (outcome.passed, outcome.answers, len(outcome.problems)) == (True, 1, 1)


def test_what_another_stage_must_mend_is_handed_on_and_not_asked_for_again() -> None:
    outcome = Talk("10").run(Sheep(foreign=[sheep(1, gate="data")]))
    assert (outcome.artifact, outcome.answers, outcome.passed) == (10, 1, False)
    assert [problem.gate for problem in outcome.foreign] == ["data"]


def test_what_exists_and_is_good_costs_nothing() -> None:
    talk = Talk()
    assert talk.run(Sheep(existing=10)).answers == 0
    assert talk.requests == []


def test_what_exists_is_mended_where_it_is_not_good() -> None:
    talk = Talk("10")
    assert talk.run(Sheep(existing=9)).answers == 1
    assert "assistant: flock of 9" in talk.asked(0)


def test_a_fault_that_others_found_is_mended_though_the_own_check_is_silent() -> None:
    talk = Talk("10")
    assert talk.run(Sheep(existing=10), given=[sheep(4)]).passed
    assert "Sheep 4 is missing" in talk.asked(0)


def test_errors_of_all_attempts_are_condensed_into_advice() -> None:
    talk = Talk("8", "9", "10", advice=True)
    talk.run(Sheep())
    stages = [request.purpose.stage for request in talk.requests]
    assert stages == ["code", "advice", "code", "advice", "code"]
    assert "Attempt 1" in talk.asked(3)
    assert "Attempt 2" in talk.asked(3)
    assert "Count again." in talk.asked(4)


def test_equal_retries_are_told_apart_so_that_no_cache_answers_the_same_again() -> None:
    talk = Talk("8", "8", "8", "10")
    talk.run(Sheep())
    assert len({request.key() for request in talk.requests}) == 4


def test_every_attempt_is_written_down_with_prompt_answer_and_problems() -> None:
    talk = Talk("many", "8", "10")
    talk.run(Sheep())
    first, second, third = talk.store.attempts("r")
    assert (first.answer, first.artifact, len(first.problems)) == ("many", None, 1)
    assert (second.artifact, len(second.problems), second.weight) == (b"flock of 8", 2, 20)
    assert "Bring ten sheep." in third.prompt
    assert third.chosen


def test_a_truncated_answer_is_a_problem_and_its_text_is_never_used() -> None:
    class Cut:
        name = "cut"

        async def complete(self, request: ModelRequest) -> ModelReply:
            return ModelReply(model="cut", raw="10", outcome="truncated")

    talk = Talk(attempts=2)
    assert talk.run(Sheep(), model=Cut()).artifact is None
    assert ["stops at the token limit" in attempt.problems[0].what for attempt in talk.store.attempts("r")] == [True, True]


@pytest.mark.parametrize("error", [BudgetSpent("all gone")])
def test_what_ends_a_run_goes_through(error: Exception) -> None:
    def broke(request: ModelRequest) -> str:
        raise error

    raised: Callable[[ModelRequest], str] = broke
    with pytest.raises(BudgetSpent):
        Talk().run(Sheep(), model=FunctionModel(raised))


def test_what_ended_the_run_for_one_ends_it_for_those_who_wait_before_they_ask() -> None:
    asked = []

    def broke(request: ModelRequest) -> str:
        asked.append(request)
        raise BudgetSpent("all gone")

    async def both() -> list[Any]:
        lanes = Lanes(1)
        try:
            repair = Repair(FunctionModel(broke), Settings(requests=1), Notebook(Store.open("sqlite://"), "r"), lanes)
            passes = (repair.run(Sheep(), shelf()) for _ in range(2))
            return await asyncio.gather(*passes, return_exceptions=True)
        finally:
            lanes.close()

    assert [(type(end), str(end)) for end in asyncio.run(both())] == [(BudgetSpent, "all gone")] * 2
    assert len(asked) == 1
