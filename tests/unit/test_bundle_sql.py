"""SQL scripts: statements in, statements out, nothing lost and nothing swallowed."""

import sqlite3
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from awm_factory.bundle import canonical, finished, join_statements, split_statements, terminate

TRIGGER = "CREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE b SET n = n + 1; SELECT CASE WHEN 1 THEN 2 END; END"

QUOTES = ["'", '"', "`", "[", "]", ";", "--", "/*", "*/", "*", "/"]
SPACES = ["\n", "\r\n", " ", "\t", "\0", "\u2028", "\u00a0"]
WORDS = ["SELECT 1", "x", "é", "\\", "CREATE", "TRIGGER", "BEGIN", "END", "EXPLAIN", "TEMP", TRIGGER]
MARKERS = ["-- unfinished statement: ", '-- unfinished statement: "\'"']
fragments = st.sampled_from(QUOTES + SPACES + WORDS + MARKERS)
statements = st.lists(st.lists(fragments, max_size=8).map("".join), max_size=5)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("INSERT INTO b VALUES ('dented; see note'); SELECT 2;", ["INSERT INTO b VALUES ('dented; see note')", "SELECT 2"]),
        ("INSERT INTO b VALUES ('it''s; loud'); -- tenor", ["INSERT INTO b VALUES ('it''s; loud')\n-- tenor"]),
        ("-- first; of all\nSELECT 1;\n/* then; this */ SELECT 2;", ["-- first; of all\nSELECT 1", "/* then; this */ SELECT 2"]),
        ("-- nothing;\n", []),
        (";;\n ; SELECT 1;;", ["SELECT 1"]),
        ("-- before\n;SELECT 1;", ["-- before\nSELECT 1"]),
        (f"{TRIGGER}; SELECT 2;", [TRIGGER, "SELECT 2"]),
        ('CREATE TABLE "a;b" ([c;d] TEXT, `e;f` TEXT); SELECT 2', ['CREATE TABLE "a;b" ([c;d] TEXT, `e;f` TEXT)', "SELECT 2"]),
        ("SELECT 1 /* to the end ; of all", ["SELECT 1 /* to the end ; of all*/"]),
        ("SELECT 'open; SELECT 2;", ["SELECT 'open; SELECT 2;"]),
    ],
)
def test_a_script_is_split_where_sqlite_would(script: str, expected: list[str]) -> None:
    assert split_statements(script) == expected


@settings(deadline=None)
@given(statements)
def test_writing_and_reading_a_canonical_list_is_the_identity(raw: list[str]) -> None:
    listed = canonical(raw)
    assert split_statements(join_statements(listed)) == listed
    assert canonical(listed) == listed


@settings(deadline=None)
@given(st.lists(st.sampled_from(QUOTES + SPACES + WORDS), max_size=14).map("".join))
def test_statements_end_where_sqlites_own_check_says_so(script: str) -> None:
    """The oracle asks SQLite about each prefix that ends in a semicolon outside quotes, which takes quadratic time."""
    expected, start = [], 0
    for position, character in enumerate(script):
        prefix = script[start : position + 1].replace("\0", "\1")
        if character == ";" and sqlite3.complete_statement(prefix):
            expected.append(script[start:position])
            start = position + 1
    expected.append(script[start:])

    listed = split_statements(script)
    assert len(listed) == sum(not is_blank(piece) for piece in expected)


def is_blank(piece: str) -> bool:
    """True for space and comments: behind a semicolon they leave a statement complete."""
    piece = piece.replace("\0", "\1")
    return sqlite3.complete_statement(f";{piece}") or sqlite3.complete_statement(f";{piece}*/")


@settings(deadline=None)
@given(st.lists(st.text(), max_size=4))
def test_the_same_holds_for_any_text_at_all(raw: list[str]) -> None:
    listed = canonical(raw)
    assert split_statements(join_statements(listed)) == listed


def test_a_written_script_does_the_same_in_sqlite_as_its_statements_one_by_one() -> None:
    listed = canonical(
        [
            "CREATE TABLE a (id INTEGER, t TEXT) -- the table",
            "INSERT INTO a VALUES (1, 'x;y') -- ; one",
            "INSERT INTO a VALUES (2, 'open",
            "INSERT INTO a VALUES (3, 'z') /* unclosed",
            "CREATE TRIGGER g AFTER INSERT ON a BEGIN SELECT 1",
            TRIGGER.replace("ON a", "ON b"),
            "INSERT INTO a VALUES (4, 'w')",
        ]
    )
    one_by_one, as_script = sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
    for statement in listed:
        try:
            one_by_one.execute(statement)
        except sqlite3.Error:
            continue
    for statement in split_statements(join_statements(listed)):
        if finished(statement):
            try:
                as_script.executescript(terminate(statement))
            except sqlite3.Error:
                continue
    rows = "SELECT * FROM a ORDER BY id"
    assert as_script.execute(rows).fetchall() == one_by_one.execute(rows).fetchall() == [(1, "x;y"), (3, "z"), (4, "w")]


def test_an_unfinished_statement_is_a_comment_in_the_script() -> None:
    script = join_statements(["INSERT INTO a VALUES ('open", "SELECT 2"])
    assert script.splitlines()[0].startswith("-- ")
    assert split_statements(script) == ["INSERT INTO a VALUES ('open", "SELECT 2"]


@pytest.mark.parametrize(
    "script",
    [
        "INSERT INTO a VALUES (1, 'a;b''c');\n" * 50_000,
        "INSERT INTO a VALUES ('" + ";" * 2_000_000 + "');",
        "-" * 2_000_000,
        "/*" * 1_000_000,
        "'" * 1_999_999,
        "-- c\n" * 400_000 + "SELECT 1;",
        "/* c */;" * 200_000,
        "CREATE TRIGGER t AFTER INSERT ON a BEGIN " + "SELECT 1; " * 200_000,
        "-- c\n" * 100_000 + "x\n" + '-- unfinished statement: "\'"\n' * 100_000,
        '-- unfinished statement: "\'"\n' * 100_000,
        "-- unfinished statement: 1\n" * 100_000,
    ],
    ids=[
        "many",
        "long string",
        "dashes",
        "comment openers",
        "quotes",
        "comments",
        "empty statements",
        "open trigger",
        "markers in text",
        "markers",
        "broken markers",
    ],
)
def test_the_time_grows_with_the_length_of_a_script_only(script: str) -> None:
    start = time.process_time()
    listed = split_statements(script)
    assert split_statements(join_statements(listed)) == listed
    assert time.process_time() - start < 10
