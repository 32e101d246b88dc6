"""What environments have in common, told with and without their names."""

import numpy as np
import pytest

from awm_factory.bundle import Bundle, Manifest, Solution
from awm_factory.diversity import features, measure
from awm_factory.diversity.measure import vendi
from awm_runtime.contract import ToolCall

BOOKS = (
    "CREATE TABLE authors (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
    "CREATE TABLE books (id INTEGER PRIMARY KEY, author_id INTEGER NOT NULL REFERENCES authors(id), title TEXT NOT NULL)",
)
BOATS = (
    "CREATE TABLE yards (yid INTEGER PRIMARY KEY, town TEXT NOT NULL)",
    "CREATE TABLE boats (id INTEGER PRIMARY KEY, yard INTEGER NOT NULL, name TEXT NOT NULL, FOREIGN KEY (yard) REFERENCES yards)",
)


def endpoint(operation: str, method: str, path: str, **params: str) -> dict[str, object]:
    kinds = {name: {"type": "integer", "param_type": where, "required": True} for name, where in params.items()}
    return {"operation_id": operation, "method": method, "path": path, "request_params": kinds}


def environment(env_id: str, schema: tuple[str, ...], spec: list[dict[str, object]], *solutions: list[str]) -> Bundle:
    return Bundle(
        manifest=Manifest(env_id=env_id, scenario=env_id.title(), description=f"About {env_id}.", origin="synthesized"),
        schema_sql=list(schema),
        seed_sql=[],
        app_code="",
        api_spec={"api_groups": [{"group_name": "all", "endpoints": spec}]},
        solutions={
            number: Solution(calls=[ToolCall(tool=tool, arguments={}) for tool in tools])
            for number, tools in enumerate(solutions)
        },
    )


def books(*solutions: list[str], schema: tuple[str, ...] = BOOKS) -> Bundle:
    spec = [endpoint("get_book", "GET", "/books/{book_id}", book_id="path"), endpoint("list_books", "GET", "/books")]
    return environment("books", schema, spec, *solutions)


def boats(*solutions: list[str]) -> Bundle:
    spec = [endpoint("find_boats", "GET", "/boats"), endpoint("show_boat", "GET", "/boats/{id}", id="path")]
    return environment("boats", BOATS, spec, *solutions)


def test_environments_that_differ_in_words_alone_have_the_same_structure() -> None:
    assert features(books()).structure == features(boats()).structure


@pytest.mark.parametrize(
    "change",
    [
        ("author_id INTEGER NOT NULL REFERENCES authors(id)", "author_id INTEGER NOT NULL"),
        ("title TEXT NOT NULL", "title TEXT"),
        ("title TEXT NOT NULL", "title TEXT NOT NULL, pages INTEGER"),
        ("title TEXT NOT NULL", "title TEXT NOT NULL UNIQUE"),
    ],
)
def test_a_reference_a_constraint_or_a_column_more_makes_another_structure(change: tuple[str, str]) -> None:
    schema = tuple(statement.replace(*change) for statement in BOOKS)
    assert features(books(schema=schema)).structure != features(boats()).structure


def test_a_tool_with_another_parameter_makes_another_structure() -> None:
    spec = [
        endpoint("get_book", "GET", "/books/{book_id}", book_id="path"),
        endpoint("list_books", "GET", "/books", page="query"),
    ]
    assert features(environment("books", BOOKS, spec)).structure != features(boats()).structure


def test_sql_that_no_parser_reads_is_counted_and_the_rest_compared() -> None:
    found = features(books(schema=(*BOOKS, "CREATE TABLE ((")))
    assert found.unread == 1
    assert {node for node in found.schema if isinstance(node, str)} == {"authors", "books"}


def test_the_vendi_score_counts_kinds_not_copies() -> None:
    assert vendi(np.eye(5)) == pytest.approx(5)
    assert vendi(np.array([[1.0, 0.0]] * 7)) == pytest.approx(1)
    assert vendi(np.array([[1.0, 0.0], [0.0, 1.0]]), weights=[9, 1]) == pytest.approx(
        vendi(np.array([[1.0, 0.0]] * 9 + [[0.0, 1.0]]))
    )


def test_solutions_alike_but_for_names_count_once_without_names_and_twice_with_them() -> None:
    found = [features(books(["list_books", "get_book"])), features(boats(["find_boats", "show_boat"]))]
    result = measure(found, np.eye(2), threshold=0.6)
    assert result.calls_vendi == pytest.approx(1)
    assert result.calls_vendi_named == pytest.approx(2)
    assert (result.solutions, result.solution_kinds) == (2, 1)


def test_near_duplicates_are_those_of_close_text_and_those_of_one_structure() -> None:
    other = environment("hens", ("CREATE TABLE hens (id INTEGER PRIMARY KEY)",), [])
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 0.9949874]])
    result = measure([features(books()), features(boats()), features(other)], vectors, threshold=0.6)
    assert [(pair.one, pair.other, pair.same_structure) for pair in result.pairs] == [
        ("books", "boats", True),
        ("boats", "hens", False),
    ]
    assert result.near_duplicates == 3
    assert result.near_duplicate_share == 1.0


def test_novelty_of_a_set_of_copies_is_nothing_and_its_size_is_told() -> None:
    copies = [features(books(["list_books"])) for _ in range(12)]
    result = measure(copies, np.array([[1.0, 0.0]] * 12), threshold=0.6)
    assert [step.size for step in result.novelty] == [10, 12]
    assert all((step.text, step.schema, step.calls) == pytest.approx((0, 0, 0)) for step in result.novelty)


def test_the_figures_of_one_environment_are_no_division_by_nothing() -> None:
    result = measure([features(books())], np.array([[1.0, 0.0]]), threshold=0.6)
    assert (result.text_similarity, result.near_duplicates, result.novelty, result.calls_vendi) == (0.0, 0, [], None)
