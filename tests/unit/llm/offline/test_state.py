"""The interpreter: expressions over rows, and operations with their refusals."""

from datetime import date, datetime

import pytest

from awm_factory.llm.offline.arguments import Refusal
from awm_factory.llm.offline.expr import Bound, evaluate
from awm_factory.llm.offline.ir import Column, Domain, Entity, Operation, Param, Show
from awm_factory.llm.offline.state import World
from awm_factory.llm.offline.steps import Change, Each, Fill, Insert, Let, Load, Remove, Require, ReturnPage, ReturnRow

SHELF = Entity("shelf", "rack", "racks", (Column("name", "text", unique=True), Column("room", "int", low=0)), ("name",))
BOOK = Entity(
    "stock.book",
    "volume",
    "volumes",
    (
        Column("title", "text", name="title"),
        Column("shelf_id", "ref", ref="shelf", owned=True),
        Column("status", "choice", choices=("in", "lent")),
        Column("due_on", "date", null=True),
        Column("changed_at", "datetime", null=True),
    ),
    ("title",),
    shows=(Show("shelf_name", "text", "self.shelf.name"),),
    checks=("due_on is None or status == state.lent",),
)
LEND = Operation(
    "stock.lend",
    "act",
    "stock.book",
    "POST",
    "/<books>/{book_id}/loan",
    "Lend",
    "Lend",
    params=(Param("book_id", "ref", "path", ref="stock.book"), Param("days", "int", low=1, high=60)),
    steps=(
        Load("book", "stock.book", "book_id"),
        Require("book.status == state.home", 409, "It is {book.status} until {book.due_on}.", "at_home"),
        Require("count('stock.book', status=state.lent) < policy.most", 409, "No more than {policy.most} go out.", "most"),
        Change("book", {"status": "state.lent", "due_on": "today + days(days)", "changed_at": "now"}),
        Let("room", "book.shelf.room - 1"),
    ),
    returns=ReturnRow("book"),
)
ADD = Operation(
    "stock.add",
    "create",
    "stock.book",
    "POST",
    "/<books>",
    "Add",
    "Add",
    params=(
        Param("shelf_id", "ref", ref="shelf"),
        Param("titles", "list", low=1, high=3, items=(Param("title", "text"), Param("copies", "int", required=False))),
    ),
    steps=(
        Load("shelf", "shelf", "shelf_id"),
        Each(
            "entry",
            param="titles",
            steps=(
                Require("not exists('stock.book', title=entry.title)", 409, "There is {entry.title} already."),
                Insert("book", "stock.book", {"title": "entry.title", "shelf_id": "shelf.id", "status": "state.home"}),
            ),
        ),
    ),
    returns=ReturnRow("shelf", children=(("stock.book", "shelf_id"),)),
)
LIST = Operation(
    "stock.list",
    "list",
    "stock.book",
    "GET",
    "/<books>",
    "List",
    "List",
    params=(
        Param("q", "text", "query", False, filter="title__contains"),
        Param("due_by", "date", "query", False, filter="due_on__le"),
    ),
    returns=ReturnPage(),
    order=("-title",),
    sorts=("title",),
)
CLEAR = Operation(
    "stock.clear",
    "delete",
    "shelf",
    "DELETE",
    "/<shelves>/{shelf_id}",
    "Remove",
    "Remove",
    params=(Param("shelf_id", "ref", "path", ref="shelf"),),
    steps=(Load("shelf", "shelf", "shelf_id"), Remove("shelf")),
    returns=ReturnPage(),
)


RENAME = Operation(
    "stock.rename",
    "act",
    "shelf",
    "PATCH",
    "/<shelves>/{shelf_id}",
    "Rename",
    "Rename",
    params=(
        Param("shelf_id", "ref", "path", ref="shelf"),
        Param("name", "text", required=False),
        Param("room", "int", required=False),
    ),
    steps=(Load("shelf", "shelf", "shelf_id"), Fill("shelf", ("name", "room"))),
    returns=ReturnRow("shelf"),
)


def world() -> World:
    domain = Domain(
        name="Reading Room",
        description="",
        category="",
        currency="EUR",
        world_time=datetime.fromisoformat("2026-01-01"),
        modules=("stock",),
        entities={"shelf": SHELF, "stock.book": BOOK},
        operations={operation.key: operation for operation in (LEND, ADD, LIST, CLEAR, RENAME)},
        states={"stock": {"home": "in", "lent": "lent"}},
        policies={"stock": {"most": 1}},
        nouns={},
    )
    made = World(domain)
    made.insert("shelf", name="A", room=1)
    made.insert("stock.book", title="Anna", shelf_id=1, status="in")
    made.insert("stock.book", title="Bel Ami", shelf_id=1, status="in")
    return made


def value(text: str, **variables: object) -> object:
    return evaluate(text, world().scope("stock", **variables))


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("1 + 2 * 3 - 7 // 2", 4),
        ("book.title", "Anna"),
        ("book.shelf.name", "A"),
        ("book.shelf_name", "A"),
        ("book.due_on is None and not book.status == state.lent", True),
        ("'x' if book.id in (2, 3) else f'no {book.id}'", "no 1"),
        ("count('stock.book', shelf_id=1, id__gt=1)", 1),
        ("exists('stock.book', title__contains='BEL')", True),
        ("total('stock.book', 'id')", 3),
        ("highest('stock.book', 'due_on')", None),
        ("add_months(today, 1) + days(30)", date(2026, 3, 3)),
        ("days_between(today + days(3), day(now))", 3),
        ("money(123456)", "EUR 1234.56"),
        ("serial('stock.book', 'B')", "B-1003"),
        ("0 < policy.most <= len((1, 2))", True),
    ],
)
def test_an_expression_gives_what_python_would(text: str, result: object) -> None:
    assert value(text, book=Bound("stock.book", 1)) == result


def test_an_expression_outside_the_subset_is_refused_by_its_words() -> None:
    with pytest.raises(ValueError, match="outside the subset"):
        value("[x for x in (1, 2)]")
    with pytest.raises(ValueError, match="don't have"):
        value("open('x')")


def test_a_call_changes_rows_a_second_after_the_one_before_it() -> None:
    before = world()
    after = before.copy()
    result = after.run("stock.lend", {"book_id": 1, "days": 2})
    assert isinstance(result, dict) and result["due_on"] == "2026-01-03" and result["shelf_name"] == "A"
    (edit,) = before.difference(after)
    assert edit.columns == ("status", "due_on", "changed_at")
    assert edit.after is not None and edit.after["changed_at"] == datetime.fromisoformat("2026-01-01T00:00:01")
    assert after.faults() == [] and before.row("stock.book", 1)["status"] == "in"


def test_a_refused_call_says_why_and_changes_nothing_but_the_clock() -> None:
    state = world()
    state.run("stock.lend", {"book_id": 1, "days": 2})
    before = state.copy()
    assert state.run("stock.lend", {"book_id": 1, "days": 2}) == Refusal(409, "It is lent until 2026-01-03.", "at_home")
    assert state.run("stock.lend", {"book_id": 2, "days": 2}) == Refusal(409, "No more than 1 go out.", "most")
    assert state.run("stock.lend", {"book_id": 9, "days": 2}) == Refusal(404, "There is no volume with id 9.")
    assert isinstance(refused := state.run("stock.lend", {"book_id": 1, "days": 61}), Refusal) and refused.status == 422
    assert isinstance(refused := state.run("stock.lend", {"book_id": 1}), Refusal) and refused.status == 422
    assert before.difference(state) == [] and state.calls == 6


def test_rows_written_before_a_refusal_are_gone_with_it() -> None:
    state = world()
    result = state.run("stock.add", {"shelf_id": 1, "titles": [{"title": "Carmen"}, {"title": "Anna"}]})
    assert isinstance(result, Refusal) and state.count("stock.book") == 2
    result = state.run("stock.add", {"shelf_id": 1, "titles": [{"title": "Carmen"}, {"title": "Dune"}]})
    assert isinstance(result, dict) and [row["title"] for row in result["stock.book"]] == ["Anna", "Bel Ami", "Carmen", "Dune"]


def test_a_list_filters_sorts_and_pages() -> None:
    state = world()
    assert isinstance(page := state.run("stock.list", {"limit": 1, "offset": 1}), dict)
    assert (page["total"], [row["title"] for row in page["items"]]) == (2, ["Anna"])
    assert isinstance(page := state.run("stock.list", {"sort": "title"}), dict)
    assert [row["title"] for row in page["items"]] == ["Anna", "Bel Ami"]
    assert isinstance(page := state.run("stock.list", {"q": "ami"}), dict) and page["total"] == 1
    assert isinstance(page := state.run("stock.list", {"due_by": "2026-02-01"}), dict) and page["total"] == 0


@pytest.mark.parametrize("values", [{}, {"name": "A"}, {"name": None, "room": 1}])
def test_an_update_by_which_nothing_would_change_is_refused(values: dict[str, object]) -> None:
    state = world()
    assert isinstance(refused := state.run("stock.rename", {"shelf_id": 1, **values}), Refusal) and refused.status == 409
    assert isinstance(state.run("stock.rename", {"shelf_id": 1, **values, "room": 2}), dict)
    assert state.row("shelf", 1)["name"] == "A" and state.row("shelf", 1)["room"] == 2


def test_a_row_takes_along_what_it_owns() -> None:
    state = world()
    state.run("stock.clear", {"shelf_id": 1})
    assert state.count("shelf") == state.count("stock.book") == 0


def test_faults_name_what_the_database_would_refuse() -> None:
    state = world()
    state.insert("shelf", name="A", room=-1)
    state.insert("stock.book", title=None, shelf_id=7, status="gone", due_on="2026-01-01", changed_at=date(2026, 1, 1))
    found = " ".join(state.faults())
    for what in ("twice", "out of bounds", "title is NULL", "points to no shelf", "is none of", "is no date", "does not hold"):
        assert what in found
