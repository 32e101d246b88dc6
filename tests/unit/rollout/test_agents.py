"""Scripted agents in an application of two tables: what each of them can do that a weaker one can't."""

from typing import Any

import pytest

from awm_factory.bundle import Solution
from awm_factory.errors import UsageError
from awm_factory.llm.protocol import ToolSpec
from awm_factory.rollout.agents import Agent, Move, Say, Scene, SolutionAgent, Step, agent
from awm_factory.rollout.agents.reading import Reading
from awm_factory.rollout.agents.tooling import Tool, side
from awm_runtime.contract import ToolCall

MEMBERS = [
    {"id": 3, "full_name": "Dana Reyes", "town": "Ashford"},
    {"id": 4, "full_name": "Dana Reyes-Holm", "town": "Redhill"},
    {"id": 9, "full_name": "Emil Quinn", "town": "Ashford"},
]
LOAN_KEYS = ("id", "member_id", "member_name", "title", "status", "due_on", "fee_cents")
LOANS: list[dict[str, Any]] = [
    dict(zip(LOAN_KEYS, values, strict=True))
    for values in (
        (11, 9, "Emil Quinn", "Moby-Dick", "open", "2026-01-09", 150),
        (12, 3, "Dana Reyes", "Dracula", "open", "2026-01-20", 40),
        (13, 3, "Dana Reyes", "Emma", "open", "2026-01-12", 975),
        (14, 3, "Dana Reyes", "Ulysses", "closed", "2026-01-02", 0),
    )
]


def spec(name: str, description: str, **properties: Any) -> ToolSpec:
    required = [key for key, schema in properties.items() if schema.pop("required", False)]
    return ToolSpec(
        name=name, description=description, parameters={"type": "object", "properties": properties, "required": required}
    )


REQUIRED: dict[str, Any] = {"type": "integer", "required": True}
TOOLS = (
    spec("list_members", "List members", q={"type": "string"}, limit={"type": "integer"}),
    spec("list_loans", "List loans", member_id={"type": "integer"}, limit={"type": "integer"}),
    spec("renew_loan", "Renew a loan", loan_id={"type": "integer", "required": True}),
    spec("remove_member", "Remove a member", member_id={"type": "integer", "required": True}),
)


class Library:
    """Answers calls as an environment does, and keeps what was written. The loan of Dracula can't be renewed."""

    def __init__(self) -> None:
        self.writes: list[tuple[str, int]] = []

    def call(self, call: ToolCall) -> Step:
        arguments: dict[str, Any] = call.arguments
        if call.tool == "list_members":
            found = [row for row in MEMBERS if arguments.get("q", "").lower() in str(row["full_name"]).lower()]
            return Step(call, {"items": found, "total": len(found)}, is_error=False)
        if call.tool == "list_loans":
            found = [row for row in LOANS if arguments.get("member_id") in (None, row["member_id"])]
            return Step(call, {"items": found, "total": len(found)}, is_error=False)
        key = next(iter(arguments.values()), 0)
        if (call.tool, key) == ("renew_loan", 12):
            return Step(call, {"detail": "A loan can be renewed 2 times."}, is_error=True)
        self.writes.append((call.tool, key))
        return Step(call, {"id": key, "due_on": "2026-02-11"}, is_error=False)


def played(player: Agent, instruction: str, tools: tuple[ToolSpec, ...] = TOOLS) -> tuple[list[tuple[str, int]], str]:
    library, steps = Library(), ()
    for _ in range(40):
        move: Move = player.move(Scene(instruction, tools, steps))
        if isinstance(move, Say):
            return library.writes, move.answer
        steps = (*steps, library.call(move))
    raise AssertionError("it never comes to an end")


def test_an_agent_that_chains_finds_the_row_that_the_words_fit() -> None:
    task = 'Please renew Dana Reyes\'s loan "Emma".'
    assert played(agent("chaining"), task)[0] == [("renew_loan", 13)]
    assert played(agent("greedy"), task)[0] == [("renew_loan", 11)]


def test_an_agent_that_searches_compares_and_one_that_chains_does_not() -> None:
    task = "Renew Dana Reyes's open loan that is due first."
    assert played(agent("search"), task)[0] == [("renew_loan", 13)]
    assert played(agent("chaining"), task)[0] != [("renew_loan", 13)]


def test_an_agent_that_searches_takes_the_second_choice_where_the_first_is_refused() -> None:
    task = 'Renew the loan "Dracula", or if that is not possible, with the loan "Emma" in place of the loan "Dracula".'
    assert played(agent("search"), task)[0] == [("renew_loan", 13)]
    assert played(agent("chaining"), task)[0] == []


def test_an_agent_that_searches_tells_what_a_refusal_says() -> None:
    task = 'Renew the loan "Dracula" if the rules allow it. If not, change nothing and tell me the number that the rule sets.'
    writes, answer = played(agent("search"), task)
    assert writes == [] and "2 times" in answer


def test_an_agent_that_searches_counts_and_adds_up() -> None:
    assert played(agent("search"), "How many open loans does Dana Reyes have?")[1] == "There are 2."
    assert played(agent("search"), "Tell me the total fee of Dana Reyes's open loans.")[1] == "It comes to 10.15."


def test_an_agent_that_searches_does_a_thing_to_all_rows_that_are_meant() -> None:
    writes, _ = played(agent("search"), "Renew all of Emil Quinn's open loans.")
    assert writes == [("renew_loan", 11)]
    assert len(played(agent("search"), "Please renew all the open loans with a fee of at least $1.00.")[0]) == 2


def test_an_agent_that_searches_takes_any_row_that_will_do_and_only_one() -> None:
    """The loan of Dracula comes first and is refused."""
    assert played(agent("search"), "Renew any of Dana Reyes's loans, please. They are all the same to me.")[0] == [
        ("renew_loan", 13)
    ]


def test_an_agent_that_searches_calls_no_tool_of_which_an_argument_is_unknown() -> None:
    tools = (*TOOLS, spec("note_loan", "Note something about a loan", loan_id=dict(REQUIRED), remark=dict(REQUIRED)))
    writes, _ = played(agent("search"), "Note that any of Dana Reyes's loans is to be renewed.", tools)
    assert [tool for tool, _ in writes] == ["renew_loan"]


def test_of_two_rows_of_a_kind_each_is_looked_for_where_its_side_is_spoken_of() -> None:
    tool = Tool(spec("pay", "Pay", debit_member_id=dict(REQUIRED), credit_member_id=dict(REQUIRED)))
    debit, credit = tool.properties.values()
    reading = Reading("Pay it by crediting Dana Reyes and debiting Emil Quinn today.")
    assert side(debit, tool, reading) == Reading("debiting Emil Quinn today.")
    assert side(credit, tool, reading) == Reading("crediting Dana Reyes and ")
    assert side(debit, tool, Reading("Pay it by crediting Dana Reyes.")) is None
    (alone,) = Tool(spec("renew", "Renew", loan_id=dict(REQUIRED))).properties.values()
    assert side(alone, Tool(spec("renew", "Renew", loan_id=dict(REQUIRED))), reading) is reading


def test_a_solution_is_replayed_with_its_references_filled_in() -> None:
    calls = [
        ToolCall(tool="list_loans", arguments={}),
        ToolCall(tool="renew_loan", arguments={"loan_id": "{{calls[0].items[?(@.title == 'Emma' && @.status == 'open')].id}}"}),
    ]
    player = SolutionAgent({"Renew it.": Solution(calls=calls, final_answer="Renewed.")})
    assert played(player, "Renew it.") == ([("renew_loan", 13)], "Renewed.")


def test_random_calls_are_the_same_for_the_same_seed_and_come_to_an_end() -> None:
    assert played(agent("random", 5), "Do something.") == played(agent("random", 5), "Do something.")
    assert played(agent("random"), "Do something.")[1] == "Done."


def test_an_unknown_agent_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(UsageError, match="random, greedy, chaining, search"):
        agent("genius")
