"""Verifiers that reject honest solutions or accept none, read beside the code they judge; and solutions that know too much."""

import pytest

from awm_factory.problems import Problem
from awm_factory.synthesis.checks import solutions, verifiers
from awm_runtime.contract import ToolCall, ToolResult
from synthesis_support import changed, part, said, shelf, shelf_rows

CODE = part("code.py")
AUDIT = "CREATE TABLE audit_log (id INTEGER PRIMARY KEY, action TEXT, actor TEXT)"


def check(verifier: str, code: str = CODE, mode: str = "code", extra: tuple[str, ...] = ()) -> list[Problem]:
    draft = shelf()
    assert draft.schema is not None
    rows = shelf_rows()
    if extra:
        from synthesis_support import rows_of

        rows = rows | rows_of(extra)
    return verifiers.check(0, mode, verifier, code, rows, [*draft.schema.statements, *extra])


def complete_if(condition: str) -> str:
    return (
        "import sqlite3\n\n\ndef verify_task_completion(initial_db_path, final_db_path, final_answer=None):\n"
        "    db = sqlite3.connect(final_db_path)\n"
        f"    done = {condition}\n"
        "    return {'result': 'complete' if done else 'others'}\n"
    )


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("mode", ["code", "sql"])
def test_good_verifiers_pass(number: int, mode: str) -> None:
    assert check(part(f"verifiers/{number}.{mode}.py"), mode=mode) == []


def test_a_verifier_that_wants_rows_no_handler_writes_is_refused() -> None:
    found = check(complete_if("db.execute(\"SELECT 1 FROM audit_log WHERE action = 'lend'\").fetchone()"), extra=(AUDIT,))
    assert "reads audit_log, which is empty at the start and which no handler writes" in said(found)


def test_a_verifier_that_wants_a_column_no_handler_writes_is_refused() -> None:
    code = changed(CODE, ("lent_at=now())", ")"))
    code = changed(code, ("    lent_at: Mapped[datetime]\n", "    lent_at: Mapped[datetime]\n    note: Mapped[Optional[str]]\n"))
    rows = shelf_rows()
    from synthesis_support import rows_of

    noted = rows_of(
        ["CREATE TABLE loans (id INTEGER PRIMARY KEY, tool_id, note TEXT)"], ["INSERT INTO loans VALUES (1, 3, NULL)"]
    )
    verifier = complete_if("db.execute(\"SELECT 1 FROM loans WHERE note = 'lent'\").fetchone()")
    found = verifiers.check(0, "code", verifier, code, rows | noted, ["CREATE TABLE loans (id, tool_id, note)"])
    assert "wants a value in loans.note, which no handler writes" in said(found)


def test_a_verifier_that_names_a_column_the_schema_lacks_is_refused_though_it_swallows_the_error() -> None:
    verifier = (
        "import sqlite3\n\n\ndef verify_task_completion(initial_db_path, final_db_path, final_answer=None):\n    try:\n"
        "        rows = sqlite3.connect(final_db_path).execute('SELECT due_at FROM loans WHERE tool_id = ?', (1,)).fetchall()\n"
        "    except Exception:\n        rows = []\n    return {'result': 'complete' if rows else 'others'}\n"
    )
    found = said(check(verifier))
    assert "no such column: due_at" in found
    assert "catches its own faults" in found


@pytest.mark.parametrize(
    "condition",
    [
        "db.execute(\"SELECT 1 FROM loans WHERE returned_at = '2026-01-01T00:00:01Z'\").fetchone()",
        "db.execute('SELECT returned_at FROM loans').fetchone()['returned_at'] == '2026-01-01 00:00:01'",
    ],
)
def test_a_stored_time_compared_as_text_is_refused(condition: str) -> None:
    assert "the code stores '2026-03-01 00:00:00.000000'" in said(check(complete_if(condition)))


def test_a_stored_time_that_is_parsed_first_is_fine() -> None:
    verifier = "from datetime import datetime\n" + complete_if(
        "datetime.fromisoformat(db.execute('SELECT returned_at FROM loans').fetchone()[0]).isoformat() == '2026-01-01T00:00:01'"
    )
    assert check(verifier) == []


def test_other_weekdays_than_the_codes_are_refused() -> None:
    code = CODE + "\n\ndef weekday(day):\n    return day.weekday()\n"
    found = check(complete_if("db.execute(\"SELECT 1 FROM loans WHERE strftime('%w', due_on) = '1'\").fetchone()"), code)
    assert "counts weekdays as 0 is Sunday (%w), the code as 0 is Monday (weekday())" in said(found)


@pytest.mark.parametrize(
    ("condition", "fault"),
    [
        ("db.execute('SELECT 1').fetchone()[0] + 0.45 == 2.65", "compares a fraction with =="),
        ("final_answer == 'The Belt Sander is lent.'", "one wording of the answer"),
        ("(final_answer or '').strip().lower() == 'lent'", "one wording of the answer"),
    ],
)
def test_money_as_fractions_and_single_wordings_are_refused(condition: str, fault: str) -> None:
    assert fault in said(check(complete_if(condition)))


def test_a_real_column_compared_in_sql_is_refused() -> None:
    receipts = "CREATE TABLE receipts (id INTEGER PRIMARY KEY, total REAL)"
    found = check(
        complete_if("db.execute('SELECT 1 FROM receipts WHERE total = ?', (2.65,)).fetchone()"),
        CODE + "\n# receipts\n",
        extra=(receipts,),
    )
    assert "compares a REAL column" in said(found)


def call(tool: str, **arguments: object) -> ToolCall:
    return ToolCall.model_validate({"tool": tool, "arguments": arguments})


def answered(content: object) -> ToolResult:
    return ToolResult.model_validate({"is_error": False, "kind": "ok", "status": 200, "content": content})


def test_an_id_that_nobody_showed_is_refused() -> None:
    found = solutions.check(0, "Take back the Tile Cutter.", [call("return_tool", loan_id=2)], [answered({})])
    assert "return_tool is given loan_id = 2, which neither the task says nor an earlier call showed" in said(found)


@pytest.mark.parametrize(
    ("task", "calls", "results"),
    [
        ("End loan 2.", [call("return_tool", loan_id=2)], [answered({})]),
        ("End it.", [call("list_loans"), call("return_tool", loan_id=2)], [answered({"loans": [{"id": 2}]}), answered({})]),
        ("End it.", [call("list_loans"), call("return_tool", loan_id="{{calls[0].loans[0].id}}")], [answered({}), answered({})]),
        ("Show my loans.", [call("list_loans", user_id=1)], [answered({})]),
        ("Approve the loan 7 with me as the approver.", [call("approve", loan_id=7, approver_id=1)], [answered({})]),
    ],
)
def test_an_id_that_was_told_or_shown_is_fine(task: str, calls: list[ToolCall], results: list[ToolResult]) -> None:
    assert list(solutions.check(0, task, calls, results)) == []


def test_the_transcript_tells_calls_and_answers() -> None:
    told = solutions.transcript([call("list_loans", tool_id=3)], [answered({"loans": []})])
    assert told == 'call 0: list_loans({"tool_id": 3}) -> ok 200 {"loans": []}'
