"""Verifiers printed from an outcome, run in the sandbox on databases that differ from it in one respect."""

import base64
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import date, datetime

import pytest

from awm_factory.llm.offline.outcome import (
    Added,
    Anything,
    Changed,
    Known,
    Made,
    Moment,
    Option,
    Outcome,
    Removed,
    Told,
    Wanted,
    united,
)
from awm_factory.llm.offline.verify import code_verifier, sql_verifier
from awm_factory.sandbox import ProcessSandbox, Sandbox
from awm_factory.sandbox.pool import expect
from awm_runtime.contract import WORLD_TIME, VerifierMode, VerifierSource, VerifyReply, VerifyRequest

START = """
CREATE TABLE loans (id INTEGER PRIMARY KEY, member_id INTEGER, status TEXT, due_on DATE, note TEXT, lent_at DATETIME);
CREATE TABLE items (id INTEGER PRIMARY KEY, loan_id INTEGER, title TEXT);
INSERT INTO loans VALUES (1, 3, 'open', '2026-01-05', NULL, '2025-12-01 10:00:00'), (2, 3, 'open', '2026-01-08', NULL, NULL);
INSERT INTO items VALUES (1, 1, 'Emma'), (2, 2, 'Dracula');
"""
LEND = """
INSERT INTO loans VALUES (3, 4, 'open', '2026-01-15', NULL, '2026-01-01 00:00:04.000000');
INSERT INTO items VALUES (3, 3, 'Ulysses'), (4, 3, 'Ivanhoe');
"""
LENT = Wanted(
    Outcome(
        added=(
            Added(
                "loan",
                "loans",
                {
                    "member_id": Known(4, "Emil"),
                    "status": "open",
                    "due_on": date(2026, 1, 15),
                    "note": Anything(),
                    "lent_at": Moment(datetime.fromisoformat("2026-01-01T00:00:02")),
                },
            ),
            Added("item 1", "items", {"loan_id": Made("loan"), "title": "Ivanhoe"}),
            Added("item 2", "items", {"loan_id": Made("loan"), "title": "Ulysses"}),
        )
    )
)
CLOSED = Wanted(Outcome(changed=(Changed("loans", 1, {"status": "closed"}, "Emma"),), removed=(Removed("items", 2, "Dracula"),)))
CLOSE = "UPDATE loans SET status = 'closed' WHERE id = 1; DELETE FROM items WHERE id = 2;"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with ProcessSandbox(1) as pool:
        yield pool


def database(changes: str = "") -> str:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(START + changes)
        return base64.b64encode(connection.serialize()).decode()


def judged(sandbox: Sandbox, code: str, changes: str, answer: str | None = None, mode: VerifierMode = "code") -> VerifyReply:
    request = VerifyRequest(
        verifiers=[VerifierSource(task_id=0, mode=mode, code=code)],
        initial_db=database(),
        final_db=database(changes),
        final_answer=answer,
        world_time=WORLD_TIME,
    )
    reply = expect(VerifyReply, sandbox.check(request))
    assert isinstance(reply, VerifyReply), reply
    return reply


def is_complete(sandbox: Sandbox, wanted: Wanted, changes: str, answer: str | None = None) -> bool:
    (verdict,) = judged(sandbox, code_verifier("Do it.", wanted), changes, answer).verdicts
    assert verdict.error is None, verdict.error
    return verdict.classification == "complete"


@pytest.mark.parametrize(
    ("changes", "is_right"),
    [
        (LEND, True),
        (LEND.replace("NULL", "'By phone'"), True),
        (LEND.replace("(3, 3, 'Ulysses'), (4, 3, 'Ivanhoe')", "(8, 3, 'Ivanhoe'), (9, 3, 'Ulysses')"), True),
        (LEND.replace("(4, 3, 'Ivanhoe')", "(4, 1, 'Ivanhoe')"), False),
        (LEND.replace(", (4, 3, 'Ivanhoe')", ""), False),
        (LEND.replace("(4, 3, 'Ivanhoe')", "(4, 3, 'Ivanhoe'), (5, 3, 'Ivanhoe')"), False),
        (LEND.replace("2026-01-15", "2026-01-16"), False),
        (LEND.replace("2026-01-01 00:00:04.000000", "2026-01-02 00:00:04.000000"), False),
        (LEND + "UPDATE items SET title = 'Emma 2' WHERE id = 1;", False),
        ("", False),
    ],
)
def test_rows_that_are_made_count_by_what_they_hold_and_no_others_may_be(sandbox: Sandbox, changes: str, is_right: bool) -> None:
    assert is_complete(sandbox, LENT, changes) == is_right


@pytest.mark.parametrize(
    ("changes", "is_right"),
    [
        (CLOSE, True),
        (CLOSE.replace("id = 1", "id = 2"), False),
        (CLOSE.replace("= 'closed'", "= 'closed', note = 'x'"), False),
        (CLOSE.partition(";")[0] + ";", False),
        (CLOSE + "DELETE FROM items WHERE id = 1;", False),
    ],
)
def test_rows_that_change_or_go_are_these_and_keep_the_rest(sandbox: Sandbox, changes: str, is_right: bool) -> None:
    assert is_complete(sandbox, CLOSED, changes) == is_right


@pytest.mark.parametrize(
    ("told", "right", "wrong"),
    [
        (
            Told("count", 4),
            ["There are 4.", "Four of them.", "4 loans on 12 March 2026."],
            ["5", "", "On 4 January 2026.", "3 or 4"],
        ),
        (Told("count", 1250), ["It is 1,250.", "1250"], ["1,251", "1250.50"]),
        (Told("count", 0), ["None at all.", "0", "There are no loans."], ["1", "Done."]),
        (Told("amount", 125000), ["€1,250.00", "1250 euros", "1.250,00 EUR"], ["€1,251.00", "12.50", "Done."]),
        (Told("amount", 80), ["0.80 EUR", "80 cents", "On 7 March: 80 cents."], ["80 euros", "8.00", "-€0.80"]),
        (Told("amount", -724000), ["-€7,240.00", "It is €-7240", "minus 7,240.00 EUR"], ["€7,240.00", "€72.40"]),
        (
            Told("day", date(2026, 3, 7)),
            ["2026-03-07", "7 March 2026", "March 7th", "On 7 Mar."],
            ["8 March 2026", "17 March 2026", "7 March 2025"],
        ),
        (
            Told("moment", datetime.fromisoformat("2026-03-07T19:30")),
            ["7 March 2026 at 19:30", "2026-03-07 19:30:00", "2026-03-07T19:30", "March 7, 7:30 pm"],
            ["7 March 2026", "7 March 2026 at 19:00", "19:30"],
        ),
        (
            Told("name", "Desk 1", ("Desk 2", "Desk 3")),
            ["It is desk 1.", "Desk 1, ahead of Desk 2"],
            ["Desk 12", "Desk 1, Desk 2, Desk 3"],
        ),
    ],
)
def test_an_answer_counts_in_any_dress_and_no_other_figure_does(
    sandbox: Sandbox, told: Told, right: list[str], wrong: list[str]
) -> None:
    wanted = Wanted(Outcome(), (told,))
    assert [answer for answer in right if not is_complete(sandbox, wanted, "", answer)] == []
    assert [answer for answer in wrong if is_complete(sandbox, wanted, "", answer)] == []
    assert not is_complete(sandbox, wanted, CLOSE, right[0])
    assert not is_complete(sandbox, wanted, "", None)


def test_each_of_several_ends_is_right_where_a_choice_is_open_and_no_mixture_of_them(sandbox: Sandbox) -> None:
    options = [
        Option(Outcome(changed=(Changed("loans", loan, {"status": "closed", "due_on": day}),)), (Told("name", name),))
        for loan, day, name in ((1, date(2026, 2, 1), "Emma"), (2, date(2026, 2, 2), "Dracula"))
    ]
    wanted = united(options)
    assert wanted is not None
    close = "UPDATE loans SET status = 'closed', due_on = '{}' WHERE id = {};"
    assert is_complete(sandbox, wanted, close.format("2026-02-01", 1), "Emma is closed.")
    assert is_complete(sandbox, wanted, close.format("2026-02-02", 2), "Dracula is closed.")
    assert not is_complete(sandbox, wanted, close.format("2026-02-02", 1), "Emma is closed.")
    assert not is_complete(sandbox, wanted, close.format("2026-02-02", 2), "Emma is closed.")
    assert not is_complete(sandbox, wanted, close.format("2026-02-01", 1) + close.format("2026-02-02", 2), "Emma, Dracula")


def test_ends_of_different_shape_are_no_choice() -> None:
    assert united([Option(Outcome(removed=(Removed("items", 1),))), Option(Outcome())]) is None


def test_evidence_for_the_judge_holds_the_rows_concerned_and_all_that_changed(sandbox: Sandbox) -> None:
    (verdict,) = judged(sandbox, sql_verifier('Close "Emma".', CLOSED, "Emma is closed."), CLOSE, mode="sql").verdicts
    assert verdict.error is None and isinstance(verdict.evidence, dict)
    evidence = verdict.evidence
    assert evidence["expected"] == "Emma is closed."
    assert evidence["evidence"]["loans concerned"]["after"][0]["status"] == "closed"  # type: ignore[index,call-overload]
    assert set(evidence["changed_tables"]) == {"loans", "items"}  # type: ignore[arg-type]
