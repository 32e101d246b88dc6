"""Rules that hold for any app, asked of answers and databases made by hand."""

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from awm_runtime import canonical
from awm_runtime.agreement import Readers
from awm_runtime.contract import Tool, ToolCall, ToolResult, ToolUse
from awm_runtime.errands import Errands, moved
from awm_runtime.upkeep import Signs, Upkeep

ROWS = [{"id": number, "colour": colour} for number, colour in enumerate(("red", "blue", "red", "green"), 1)]
Lister = Callable[[dict[str, Any]], Any]


def list_tool() -> Tool:
    properties = {
        "colour": {"type": "string", "enum": ["red", "blue", "green"]},
        "limit": {"type": "integer", "default": 50, "maximum": 100},
        "offset": {"type": "integer", "default": 0},
    }
    return Tool(
        name="list_balls",
        operation_id="list_balls",
        description="",
        method="GET",
        path="/balls",
        input_schema={"type": "object", "properties": properties},
    )


def sound(arguments: dict[str, Any]) -> Any:
    rows = [row for row in ROWS if arguments.get("colour") in (None, row["colour"])]
    start = arguments.get("offset", 0)
    return {"items": rows[start : start + arguments.get("limit", 50)], "total": len(rows)}


def told(lister: Lister) -> list[tuple[str, str]]:
    async def ask(call: ToolCall) -> ToolResult:
        return ToolResult(is_error=False, kind="ok", status=200, content=lister(call.arguments))

    readers = Readers([list_tool()], lambda _name: [])
    return [(one.kind, one.what) for one in asyncio.run(readers.disagreements(ask, readers.lists))]


def test_a_list_whose_pages_total_and_filters_agree_is_told_nothing_of() -> None:
    assert told(sound) == []


@pytest.mark.parametrize(
    ("lister", "kind", "says"),
    [
        (
            lambda a: sound({**a, "offset": a.get("offset", 0) + ("limit" in a and a["limit"] == 1)}),
            "page",
            "not the row that is",
        ),
        (lambda a: sound({**a, "limit": a.get("limit", 50) + 1}), "page", "gives 2 rows"),
        (lambda a: sound(a) | {"total": 7}, "page", "total = 7 and lists 4 rows"),
        (lambda a: {"items": [{"id": 9, "colour": a["colour"]}], "total": 1} if "colour" in a else sound(a), "filter", "row 9"),
        (lambda a: sound({**a, "colour": None}), "filter", "both with colour"),
    ],
    ids=["page begins late", "page too long", "wrong total", "foreign row", "filter that filters nothing"],
)
def test_a_list_that_does_not_agree_with_itself_is_told(lister: Lister, kind: str, says: str) -> None:
    assert any(one == kind and says in what for one, what in told(lister)), told(lister)


def started(*statements: str) -> tuple[sqlite3.Connection, canonical.Start]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    return connection, canonical.Start(connection.serialize(), 0.0)


SHIFTS = "CREATE TABLE shifts (id INTEGER PRIMARY KEY, starts_on TEXT, ends_on TEXT, seats_booked INTEGER, seats_total INTEGER)"


def broken(change: str, rows: int = 3) -> list[str]:
    inserts = [f"INSERT INTO shifts VALUES ({n}, '2026-01-0{n}', '2026-01-0{n + 1}', {n}, 9)" for n in range(1, rows + 1)]
    connection, start = started(SHIFTS, *inserts)
    upkeep, before = Upkeep(start, {}), connection.serialize()
    connection.execute(change)
    return [kind for kind, _ in upkeep.broken_by(connection, before, canonical.contents(connection))]


def test_two_ends_of_a_span_that_are_in_order_at_the_start_must_stay_so() -> None:
    assert broken("UPDATE shifts SET ends_on = '2025-12-31' WHERE id = 1") == ["order"]
    assert broken("INSERT INTO shifts VALUES (9, '2026-01-05', '2026-01-04', 0, 9)") == ["order"]
    assert broken("UPDATE shifts SET seats_booked = 10 WHERE id = 2") == ["order"]
    assert broken("UPDATE shifts SET seats_booked = 9, ends_on = '2026-02-01'") == []
    assert broken("UPDATE shifts SET ends_on = '2025-12-31' WHERE id = 1", rows=2) == [], "too few rows to call it a rule"


def test_an_amount_that_turns_negative_in_an_answer_is_told_unless_it_may_be() -> None:
    _, start = started(
        "CREATE TABLE entries (id INTEGER PRIMARY KEY, amount_cents INTEGER)", "INSERT INTO entries VALUES (1, -5)"
    )
    signs = Signs(start)
    signs.learn({"due_cents": 0, "lines": [{"balance": -1}]})
    assert signs.turned({"booking": {"due_cents": -1}}) == "due_cents = -1"
    assert signs.turned({"balance": -3, "amount_cents": -5, "paid_cents": -1, "due_cents": 3}) is None


def test_edges_move_each_number_of_a_script_that_is_no_id_once_up_and_once_down() -> None:
    pay = Tool(name="pay", operation_id="pay", description="", method="POST", path="/pay", input_schema={})
    script = [ToolCall(tool="pay", arguments={"booking_id": 4, "parts": [{"cents": 100, "note": "cash"}]})]
    errands = Errands([pay, list_tool()], [script, script], {"pay": ToolUse()})
    assert [(path, step) for _, path, step in errands.edges()] == [(("parts", 0, "cents"), 1), (("parts", 0, "cents"), -1)]
    assert moved(script[0].arguments, ("parts", 0, "cents"), -1)["parts"][0]["cents"] == 99
    assert moved(script[0].arguments, ("parts", 0, "note"), 1) is None
