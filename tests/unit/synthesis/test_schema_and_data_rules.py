"""Schemas and start data that SQLite takes without a word, and that the stages refuse all the same."""

from typing import Any

import pytest

from awm_factory.problems import Problem
from awm_factory.synthesis.artifacts import SampleData, Schema
from awm_factory.synthesis.checks import data, schema
from awm_runtime.contract import MovingStatement
from synthesis_support import changed, loaded, part, rows_of, said, shelf, shelf_rows

TASKS = part("tasks.json")


def shelf_data(**changes: Any) -> SampleData:
    return SampleData.model_validate(part("data.json") | changes)


def found(*pairs: tuple[str, str], tasks: list[str] | None = None) -> list[Problem]:
    """What is wrong with the tool library's data after these changes, promises left out."""
    return data.check(shelf_data(tasks=[]), tasks if tasks is not None else TASKS, loaded(), shelf_rows(*pairs))


def schema_of(ddl: str, name: str = "users") -> str:
    return said(schema.check(Schema.model_validate({"tables": [{"name": name, "ddl": ddl}]}), loaded([name])))


def test_a_good_schema_passes() -> None:
    assert schema.check(Schema.model_validate(part("schema.json")), loaded(["users"])) == []


@pytest.mark.parametrize(
    ("ddl", "fault"),
    [
        ("CREATE TABLE users (id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES teams (id))", "points to 'teams'"),
        ("CREATE TABLE members (id INTEGER PRIMARY KEY)", "Its DDL makes 'members'"),
        ("CREATE TABLE users (id INTEGER PRIMARY KEY, at DATETIME DEFAULT CURRENT_TIMESTAMP)", "depend on the clock"),
        ("CREATE TABLE users (id INTEGER PRIMARY KEY, code INTEGER DEFAULT (random()))", "depend on chance"),
        ("CREATE TABLE users (id INTEGER PRIMARY KEY, password_hash TEXT)", "passwords or tokens"),
    ],
)
def test_a_schema_that_leads_astray_is_refused(ddl: str, fault: str) -> None:
    assert fault in schema_of(ddl)


def test_a_schema_without_users_is_refused() -> None:
    assert "No table holds users" in schema_of("CREATE TABLE tools (id INTEGER PRIMARY KEY)", "tools")


def test_a_table_defined_twice_is_refused() -> None:
    table = {"name": "users", "ddl": "CREATE TABLE users (id INTEGER PRIMARY KEY)"}
    assert "stands there 2 times" in said(schema.check(Schema.model_validate({"tables": [table, table]}), loaded()))


def test_good_data_passes() -> None:
    assert data.check(shelf_data(), TASKS, loaded(), shelf_rows()) == []


def test_start_data_that_holds_the_goal_is_refused_by_its_own_promise() -> None:
    pair = ("(1, 'Belt Sander', 'wood', 'available')", "(1, 'Belt Sander', 'wood', 'on_loan')")
    problems = data.check(shelf_data(), TASKS, loaded(), shelf_rows(pair))
    assert "needs a row of tools with name = 'Belt Sander'" in said(problems)


def test_a_task_that_is_done_already_is_refused_by_its_own_promise() -> None:
    pair = ("(3, 'Tile Cutter', 'stone', 'on_loan')", "(3, 'Tile Cutter', 'stone', 'available')")
    assert "done before it begins" in said(data.check(shelf_data(), TASKS, loaded(), shelf_rows(pair)))


def test_start_data_that_holds_what_a_task_is_to_make_is_refused() -> None:
    tasks = ['Add a tool named "Edger" of the category "garden".']
    assert "is to make 'Edger', and a row of tools is called so already" in said(found(tasks=tasks))


def test_start_data_that_holds_an_unquoted_person_to_register_is_refused() -> None:
    tasks = ["Register Omar Saleh, phone 555-0101, as a new member."]
    assert "is to make 'Omar Saleh'" in said(found(tasks=tasks))


def test_rows_that_a_task_names_and_nobody_inserted_are_missed() -> None:
    tasks = ['Take back the tool "Jigsaw", which is on loan.']
    assert "speaks of the tool 'Jigsaw', which no row of tools" in said(found(tasks=tasks))


def test_a_promise_about_a_table_that_is_not_there_is_refused() -> None:
    promise = [{"task_id": 0, "present": [{"table": "drills", "equals": {"id": 1}}]}]
    assert "names the table 'drills'" in said(data.check(shelf_data(tasks=promise), TASKS, loaded(), shelf_rows()))


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (
            "'2026-01-05', '2025-12-28 10:15:00'",
            "'05.01.2026', '2025-12-28 10:15:00'",
            "no DATE that the ORM reads: '05.01.2026'",
        ),
        ("'2025-12-28 10:15:00'", "'28/12/2025 10:15'", "no DATETIME that the ORM reads"),
        ("'2025-12-28 10:15:00', NULL", "'2025-12-28 10:15:00', ''", "1 rows hold ''"),
        ("(1, 'Piet Aalders', 'keeper')", "(9, 'Piet Aalders', 'keeper')", "no row with id 1"),
    ],
)
def test_values_that_load_and_fail_later_are_refused(old: str, new: str, fault: str) -> None:
    assert fault in said(found((old, new)))


def test_an_insert_without_columns_is_refused() -> None:
    tables = [{"table_name": "users", "insert_statements": ["INSERT INTO users VALUES (1, 'Piet', 'keeper');"]}]
    problems = data.check(shelf_data(tables=tables, tasks=[]), TASKS, loaded(), shelf_rows())
    assert "It names no columns" in said(problems)


def test_data_that_moves_with_the_clock_is_an_error_here() -> None:
    load = loaded(moving=[MovingStatement(table="loans", index=0, source="clock")])
    problems = data.check(shelf_data(), TASKS, load, shelf_rows())
    assert [(problem.severity, problem.where) for problem in problems] == [("error", "loans, insert 0")]


def test_the_draft_survives_a_bundle_and_back() -> None:
    draft = shelf()
    again = type(draft).from_bundle(draft.bundle())
    assert again.bundle().digest() == draft.bundle().digest()
    assert again.bundle().solutions_digest() == draft.bundle().solutions_digest()


def test_rows_are_read_whatever_their_names() -> None:
    rows = rows_of(['CREATE TABLE "order" ("a ""b" TEXT)'], ["INSERT INTO \"order\" VALUES ('x')"])
    assert rows["order"].column('a "b') == ["x"]
    assert changed("ab", ("a", "c")) == "cb"
