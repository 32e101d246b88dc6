"""Trajectories cut, reordered and changed: what refers to an earlier call must go on referring to it."""

import pytest

from awm_factory.bundle import Solution, Task
from awm_factory.certify.stored import Stored
from awm_factory.certify.trying import Leaf, leaves, path_of, picked, property_of, replaced, without
from awm_factory.certify.values import is_free
from awm_runtime.contract import Tool, ToolCall, TrialRun


def call(tool: str, **arguments: object) -> ToolCall:
    return ToolCall.model_validate({"tool": tool, "arguments": arguments})


CALLS = [call("list"), call("book", seat="{{calls[0].items[1].id}}"), call("pay", booking="{{calls[1].id}}", cents=500)]


def test_writes_alone_take_in_what_they_had_from_reads_and_refer_to_each_other() -> None:
    run = TrialRun.model_validate(
        {"arguments": [{}, {"seat": 7}, {"booking": 31, "cents": 500}], "wrote": [False, True, True], "kinds": ["ok"] * 3}
    )
    path = path_of(Task(task_id=0, instruction="Book it."), Solution(calls=CALLS), run)
    assert path.core == (call("book", seat=7), call("pay", booking="{{calls[0].id}}", cents=500))


def test_a_dropped_call_takes_those_along_that_need_it() -> None:
    assert without(CALLS, 1) == (call("list"),)
    assert without(CALLS, 2) == tuple(CALLS[:2])


def test_a_repeated_call_shifts_later_references() -> None:
    twice = picked(CALLS, [0, 1, 1, 2])
    assert [one.tool for one in twice] == ["list", "book", "book", "pay"]
    assert twice[3].arguments["booking"] == "{{calls[1].id}}"


def test_one_value_deep_inside_is_replaced_and_its_neighbours_stay() -> None:
    calls = [call("book", seats=[{"id": 1}, {"id": 2}])]
    (changed,) = replaced(calls, 0, ["seats", 1, "id"], 9)
    assert changed.arguments == {"seats": [{"id": 1}, {"id": 9}]}
    assert calls[0].arguments == {"seats": [{"id": 1}, {"id": 2}]}


def test_leaves_carry_the_name_of_the_list_they_stand_in() -> None:
    found = {leaf.where: leaf.name for leaf in leaves({"seat_ids": [1, 2], "note": "x"})}
    assert found == {("seat_ids", 0): "seat_ids", ("seat_ids", 1): "seat_ids", ("note",): "note"}


@pytest.mark.parametrize(("where", "kind"), [(["size"], "integer"), (["rows", 0, "name"], "string"), (["none"], None)])
def test_the_schema_of_an_argument_is_found_behind_options(where: list[str | int], kind: str | None) -> None:
    row = {"type": "object", "properties": {"name": {"type": "string"}}}
    schema = {"properties": {"size": {"type": "integer"}, "rows": {"anyOf": [{"type": "array", "items": row}, {"type": "null"}]}}}
    tool = Tool(name="t", operation_id="t", method="POST", path="/t", description="", input_schema=schema)
    assert property_of(tool, where).get("type") == kind


HALLS = Stored(columns={"halls": {"id": [1, 2], "name": ["Great Hall", "Annexe"]}}, keys={"halls": "id"})


@pytest.mark.parametrize(
    ("kind", "name", "value", "instruction", "free"),
    [
        ("sibling row", "hall_id", 1, "Book any free hall on 5 May.", True),
        ("sibling row", "hall_id", 1, "Book the Great Hall at any time on 5 May.", False),
        ("off by one", "held_on", "2026-05-05", "Book the Great Hall on any day of that week.", True),
        ("off by one", "held_on", "2026-05-05", "Book any free hall for Friday.", False),
        ("off by one", "held_on", "2026-05-05", "Book a hall on 2026-05-05, on any day but a Monday.", False),
        ("other enum value", "category", "music", "File it under any category.", True),
        ("other enum value", "category", "music", "File any of the letters under the category for songs.", False),
        ("off by one", "amount_cents", 500, "Pay any amount.", False),
        ("dropped write", "hall_id", 1, "Book any free hall.", False),
    ],
)
def test_another_value_is_another_choice_only_where_the_words_leave_just_that_open(
    kind: str, name: str, value: object, instruction: str, free: bool
) -> None:
    assert is_free(kind, Leaf((name,), name, value), HALLS, instruction) is free
