"""Limits that refusals name, arguments that answers show, acts done twice, and lists asked for bounds and orders."""

import asyncio
import sqlite3
from typing import Any

import pytest

from awm_runtime import dump, limits
from awm_runtime.agreement import Readers
from awm_runtime.contract import Tool, ToolCall, ToolResult
from awm_runtime.limits import Limits, Refused
from awm_runtime.watching import not_as_given

SHOWS = [
    {"id": number, "title": title, "minutes": minutes, "minimum_age": age, "opens_on": day}
    for number, (title, minutes, age, day) in enumerate(
        [("Tide", 90, 6, "2026-03-01"), ("Ash", 60, 0, "2026-03-09"), ("Crow", 120, 12, "2026-02-01")], 1
    )
]


def shows(arguments: dict[str, Any], *, turned: str = "") -> list[dict[str, Any]]:
    rows = list(SHOWS)
    for name, keep in (
        ("suitable_for_age", lambda row, v: row["minimum_age"] <= v),
        ("opens_from", lambda row, v: row["opens_on"] >= v),
        ("max_minutes", lambda row, v: row["minutes"] <= v),
    ):
        if name in arguments:
            rows = [row for row in rows if keep(row, arguments[name]) != (turned == name)]
    if order := arguments.get("sort"):
        rows.sort(key=lambda row: row[order.removeprefix("-")], reverse=order.startswith("-"))
    if turned == "sort":
        rows = list(SHOWS)
    if turned == "strict" and "max_minutes" in arguments:
        rows = [row for row in rows if row["minutes"] < arguments["max_minutes"]]
    return rows[: arguments.get("limit", 50)]


def told_of_lists(turned: str) -> list[tuple[str, str]]:
    properties = {
        "suitable_for_age": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "opens_from": {"type": "string", "format": "date"},
        "max_minutes": {"type": "integer"},
        "sort": {"type": "string", "enum": ["title", "-title", "minutes"]},
        "limit": {"type": "integer", "default": 50, "maximum": 100},
    }
    tool = Tool(
        name="list_shows",
        operation_id="list_shows",
        description="",
        method="GET",
        path="/shows",
        input_schema={"type": "object", "properties": properties},
    )

    async def ask(call: ToolCall) -> ToolResult:
        return ToolResult(is_error=False, kind="ok", status=200, content=shows(call.arguments, turned=turned))

    readers = Readers([tool], lambda _name: [])
    return [(one.kind, one.what) for one in asyncio.run(readers.disagreements(ask, readers.lists))]


@pytest.mark.parametrize(
    ("turned", "kind", "says"),
    [
        ("suitable_for_age", "filter", "minimum_age"),
        ("opens_from", "filter", "leaves out"),
        ("max_minutes", "filter", "minutes = "),
        ("strict", "filter", "gives 1 rows of 2"),
        ("sort", "sort", "in no order of title"),
    ],
)
def test_a_bound_that_is_turned_round_and_an_order_that_is_none_are_told(turned: str, kind: str, says: str) -> None:
    assert any(one == kind and says in what for one, what in told_of_lists(turned)), told_of_lists(turned)


def test_a_list_that_keeps_its_bounds_and_orders_is_told_nothing_of() -> None:
    assert told_of_lists("") == []


def test_an_object_that_counts_the_list_beside_it_wrong_is_told() -> None:
    from awm_runtime.relations import miscounted

    assert miscounted({"item_count": 2, "items": [1]}) == "item_count = 2 and lists 1"
    assert miscounted({"item_count": 1, "items": [1], "view_count": 7, "copies": [1]}) is None


LOTS = ("CREATE TABLE vaccine_lots (id INTEGER PRIMARY KEY, doses INTEGER)", "INSERT INTO vaccine_lots VALUES (1, 40), (2, 9)")


def unkept(refuses: Any, call: ToolCall, path: str = "/lots/{lot_id}/wastage") -> str | None:
    """`refuses`: of the doses in the row and the arguments, what the app says, or None where it lets the call through."""
    connection = sqlite3.connect(":memory:")
    for statement in LOTS:
        connection.execute(statement)
    connection.commit()
    seed = connection.serialize()

    async def attempt(state: bytes | None, asked: ToolCall) -> ToolResult:
        (doses,) = dump.open_bytes(state or seed).execute("SELECT doses FROM vaccine_lots WHERE id = 1").fetchone()
        said = refuses(doses, asked.arguments)
        if said is None:
            return ToolResult(is_error=False, kind="ok", status=200, content={})
        return ToolResult(is_error=True, kind="refused", status=409, content={"error": {"kind": "refused", "message": said}})

    tried = Limits(dump.layouts(connection), seed, attempt, {call.tool: path})

    async def go() -> str | None:
        refused = Refused(None, call, await attempt(None, call))
        assert limits.names_limit(call, refused.result)
        return await tried.unkept(refused)

    return asyncio.run(go())


def waste(doses: int) -> ToolCall:
    return ToolCall(tool="waste", arguments={"lot_id": 1, "doses": doses})


def has_only(row: int, arguments: dict[str, Any], more: int = 0) -> str | None:
    return f"Lot HB-1204 has only {row} doses left." if arguments["doses"] > row + more else None


def test_a_limit_that_is_named_is_kept_on_both_sides_or_told() -> None:
    assert unkept(has_only, waste(100)) is None
    assert unkept(lambda row, given: has_only(row, given, 1), waste(100)) == (
        "doses = 41 is not refused for it, though 100 is and 40 is named"
    )
    assert unkept(lambda row, given: has_only(row, given, -2), waste(100)) == "doses = 39 is refused, though it names 40 for it"
    assert unkept(lambda row, given: has_only(row, given, -1), waste(100)) is None, "at most 40 may well mean fewer than 40"


def test_a_number_that_is_no_limit_of_what_is_asked_for_is_told_nothing_of() -> None:
    assert unkept(lambda _row, _given: "Lot 12 was sent back on 2026-03-01.", waste(100)) is None
    room_12 = "Room 12 takes 40 at most."
    assert unkept(lambda row, given: room_12 if given["doses"] > row else None, waste(100)) is None


@pytest.mark.parametrize(("taken", "told"), [(2, None), (4, "doses = 39 is refused, though it names 40 for it")])
def test_what_two_numbers_leave_over_is_a_limit_too(taken: int, told: str | None) -> None:
    room_for_40 = f"It has room for 40, of which {taken} are taken."
    assert unkept(lambda row, given: room_for_40 if given["doses"] > row - 2 else None, waste(100)) == told


def test_another_refusal_in_the_way_of_a_limit_tells_nothing_but_for_the_databases_own() -> None:
    def waits(row: int, given: dict[str, Any]) -> str | None:
        """Nobody waits for free seats, and nobody books more than 38."""
        if given["doses"] > 38:
            return "At most 38 are sold to one person."
        return f"There are {row} left, nothing to wait for." if given["doses"] <= row else None

    assert unkept(waits, waste(6)) is None
    checked = lambda row, given: has_only(row, given, 1) or ("CHECK constraint failed: doses" if given["doses"] > row else None)  # noqa: E731
    assert unkept(checked, waste(100)) == "doses = 41 is not refused for it, though 100 is and 40 is named"


def test_a_limit_on_what_the_row_holds_is_tried_by_changing_the_row() -> None:
    call = ToolCall(tool="approve", arguments={"lot_id": 1})

    def approves(limit: int) -> Any:
        return lambda row, _given: f"{row} doses are above your limit of 30." if row > limit else None

    assert unkept(approves(30), call) is None
    assert (
        unkept(approves(31), call) == "a row of vaccine_lots with doses = 31 is not refused for it, though 40 is and 30 is named"
    )


def test_amounts_in_words_are_hundredths_as_well_and_days_are_none() -> None:
    content = {"error": {"message": "At most €1,022.00 by 2026-03-01 09:30, for GRT-4012."}}
    result = ToolResult(is_error=True, kind="refused", status=409, content=content)
    assert limits.quoted(result) == [1022.0, 102200.0]


@pytest.mark.parametrize(
    ("method", "given", "answered", "told"),
    [
        ("POST", {"town": "Galway", "note": " Two  seats"}, {"town": "galway", "note": "Two seats"}, False),
        ("POST", {"phone": "+353 91 555 010"}, {"phone": "0035391555010"}, False),
        ("POST", {"town": "Galway"}, {"town": "Sligo"}, True),
        ("POST", {"starts_at": "2026-01-02 09:00:00"}, {"starts_at": "2026-01-02T09:00:00Z"}, False),
        ("POST", {"starts_on": "2026-01-02"}, {"starts_on": "2026-01-03"}, True),
        ("POST", {"quantity": 3}, {"quantity": 5}, False),
        ("PATCH", {"quantity": 3}, {"quantity": 5}, True),
        ("POST", {"member_id": 3}, {"member_id": 4}, True),
        ("POST", {"copy_id": 3}, {"copy_id": 4}, False),
        ("PATCH", {"active": True}, {"active": False}, True),
    ],
)
def test_an_answer_that_shows_another_value_than_was_given_is_told(
    method: Any, given: dict[str, Any], answered: dict[str, Any], told: bool
) -> None:
    tool = Tool(name="t", operation_id="t", description="", method=method, path="/copies/{copy_id}", input_schema={})
    assert (not_as_given(tool, ToolCall(tool="t", arguments=given), answered) is not None) == told
