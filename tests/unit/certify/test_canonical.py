"""Canonical state on real databases: what may differ between equal outcomes, and what may not."""

import sqlite3

import pytest

from awm_runtime import canonical

WORLD = 1_772_000_000.0  # 2026-02-25T06:13:20Z
SCHEMA = """
CREATE TABLE singers (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE visits (id INTEGER PRIMARY KEY AUTOINCREMENT, singer_id INTEGER REFERENCES singers (id), at TEXT, price REAL);
CREATE TABLE log (id INTEGER PRIMARY KEY, entity TEXT, entity_id INTEGER, token TEXT);
INSERT INTO singers VALUES (1, 'Ada'), (2, 'Bo'), (3, 'Cy'), (4, 'Cy');
INSERT INTO visits VALUES (1, 1, '2026-01-05 10:00:00', 4.5);
"""


def database(*statements: str) -> bytes:
    with sqlite3.connect(":memory:") as connection:
        connection.executescript(SCHEMA + ";".join(statements))
        return connection.serialize()


def state(*statements: str) -> str:
    start = canonical.Start(database(), WORLD)
    with sqlite3.connect(":memory:") as connection:
        connection.deserialize(database(*statements))
        return start.digest(canonical.contents(connection))


VISIT = "INSERT INTO visits (singer_id, at, price) VALUES ({singer}, '{at}', {price})"


def visit(singer: int = 2, at: str = "2026-02-25 06:13:21.000000", price: float = 4.5) -> str:
    return VISIT.format(singer=singer, at=at, price=price)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([visit(2), visit(3)], [visit(3), visit(2)]),
        (["INSERT INTO singers VALUES (5, 'Di')"], ["INSERT INTO singers VALUES (9, 'Di')"]),
        (["INSERT INTO singers VALUES (5, 'Di')", visit(5)], ["INSERT INTO singers VALUES (9, 'Di')", visit(9)]),
        (["DELETE FROM singers WHERE id = 4", "INSERT INTO singers VALUES (4, 'Di')"],
         ["INSERT INTO singers VALUES (5, 'Di')", "DELETE FROM singers WHERE id = 4"]),
        (["DELETE FROM singers WHERE id = 2", "INSERT INTO singers VALUES (7, 'Bo')"], []),
        ([visit(at="2026-02-25 06:13:21.000000")], [visit(at="2026-02-25T06:13:25Z")]),
        (["INSERT INTO singers VALUES (5, 'Di')", "INSERT INTO log VALUES (1, 'singer', 5, 'a')"],
         ["INSERT INTO singers VALUES (8, 'Di')", "INSERT INTO log VALUES (4, 'singer', 8, 'a')"]),
        (["INSERT INTO log VALUES (1, 'x', NULL, '3f2b8c1e-9d4a-4c55-8a11-0c9f7e6d5b4a')"],
         ["INSERT INTO log VALUES (1, 'x', NULL, '00000000-9d4a-4c55-8a11-0c9f7e6d5b4a')"]),
    ],
    ids=["order", "key", "reference", "freed key", "removed and made again", "moment", "undeclared reference", "chance"],
)  # fmt: skip
def test_ends_that_hold_the_same_facts_are_equal(one: list[str], other: list[str]) -> None:
    assert state(*one) == state(*other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([visit(2)], [visit(3)]),
        ([visit(3)], [visit(4)]),
        ([visit(2)], [visit(2), visit(2)]),
        ([visit(price=4.5)], [visit(price=4.51)]),
        ([visit(at="2026-02-25 06:13:21")], [visit(at="2026-02-26 06:13:21")]),
        (["DELETE FROM singers WHERE id = 3"], ["DELETE FROM singers WHERE id = 4"]),
        (["UPDATE singers SET name = 'Di' WHERE id = 3"], ["UPDATE singers SET name = 'Di' WHERE id = 2"]),
        (["INSERT INTO singers VALUES (5, 'Di'), (6, 'Di')", visit(5), visit(5)],
         ["INSERT INTO singers VALUES (5, 'Di'), (6, 'Di')", visit(5), visit(6)]),
    ],
    ids=["row", "twin of the start", "twice", "amount", "day", "which twin went", "which row changed", "children of new twins"],
)  # fmt: skip
def test_ends_that_hold_other_facts_differ(one: list[str], other: list[str]) -> None:
    assert state(*one) != state(*other)


def test_columns_that_chance_fills_are_found_from_two_seeds_and_left_out() -> None:
    start = canonical.Start(database(), WORLD)
    sides = []
    for token in ("AX-17", "QP-92"):
        with sqlite3.connect(":memory:") as connection:
            connection.deserialize(database(f"INSERT INTO log VALUES (1, 'note', NULL, '{token}')"))
            sides.append(canonical.contents(connection))
    columns = start.random_columns(*sides)
    assert columns == {("log", "token")}
    assert start.digest(sides[0], columns) == start.digest(sides[1], columns)
    assert start.digest(sides[0]) != start.digest(sides[1])
