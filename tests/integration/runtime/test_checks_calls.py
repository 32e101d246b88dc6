import base64

import pytest

from awm_runtime.contract import VerifierSource
from runtime_support import COMPLETE_IF_LENT, LIBRARY_APP, Checks, rows


def test_values_of_earlier_results_go_into_later_calls(sandbox: Checks) -> None:
    lend = ("lend", {"member_id": "{{calls[0][0].member_id}}", "title": "after {{calls[0][0].title}}"})
    (run,) = sandbox.calls(("list_loans", {}), lend).runs
    assert run.results[1].content == {"id": 2, "member_id": 2, "title": "after Moss atlas", "days": 14}


def test_a_reference_that_finds_nothing_is_an_error_of_that_call(sandbox: Checks) -> None:
    (run,) = sandbox.calls(("lend", {"member_id": "{{calls[3].id}}", "title": "x"})).runs
    assert run.results[0].kind == "invalid_arguments"


def test_runs_are_alike_and_judged(sandbox: Checks) -> None:
    verifier = VerifierSource(task_id=0, mode="code", code=COMPLETE_IF_LENT)
    calls = [("lend", {"member_id": 1, "title": "Kite book"}), ("stamp", {})]
    reply = sandbox.calls(*calls, verifiers=[verifier], repeat=2)
    assert reply.runs[0] == reply.runs[1]
    assert reply.runs[0].verdicts[0].reward == 1.0
    other = sandbox.calls(*calls, seed=5).runs[0]
    assert other.dump_sha256 != reply.runs[0].dump_sha256


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "says"),
    [
        ("lend", {"member_id": 99, "title": "x"}, "constraint", "members has no row with id = 99"),
        ("lend", {"member_id": 1, "title": "x", "days": -1}, "constraint", "days > 0"),
        ("lend", {"member_id": "1", "title": "x"}, "invalid_arguments", "member_id must be integer"),
        ("lend", {"member_id": 1, "title": "x", "colour": "red"}, "invalid_arguments", "unknown argument: colour"),
        ("lend", {"title": "x"}, "invalid_arguments", "member_id"),
        ("remove_member", {"member_id": 77}, "not_found", "Member.id == member_id"),
        ("commit_then_refuse", {}, "refused", "the shelf is closed"),
        ("flush_then_fail", {}, "internal", "RuntimeError: lost the key"),
        ("no_such_tool", {}, "format_error", "unknown tool"),
    ],
)
def test_a_failing_call_says_why_and_changes_nothing(
    sandbox: Checks, tool: str, arguments: dict[str, object], kind: str, says: str
) -> None:
    (run,) = sandbox.calls((tool, arguments), ("list_loans", {}), ("lend", {"member_id": 1, "title": "next"})).runs  # type: ignore[arg-type]
    assert run.results[0].kind == kind
    assert says in run.results[0].content["error"]["message"]
    assert run.results[1].content == [{"member_id": 2, "title": "Moss atlas", "days": 7, "id": 1}]
    assert run.results[2].kind == "ok"


def test_foreign_keys_cascade_while_serving(sandbox: Checks) -> None:
    (run,) = sandbox.calls(("remove_member", {"member_id": 2}), ("list_loans", {})).runs
    assert run.results[1].content == []


def test_the_end_holds_what_an_app_wrote_to_its_write_ahead_log(sandbox: Checks) -> None:
    """A copy of the database's one file would lack it."""
    logged = (
        "from sqlalchemy import event\n"
        + LIBRARY_APP
        + "\n@event.listens_for(engine, 'connect')\ndef wal(connection, _):\n"
        + "    connection.execute('PRAGMA journal_mode = WAL')\n"
    )
    titles = ["one", "two"]
    (run,) = sandbox.calls(*[("lend", {"member_id": 1, "title": title}) for title in titles], code=logged).runs
    assert rows(base64.b64decode(run.db), "SELECT title FROM loans") == [("Moss atlas",), ("one",), ("two",)]


def test_many_failing_calls_spoil_nothing(sandbox: Checks) -> None:
    held = LIBRARY_APP.replace("session.flush()\n", "session.flush()\n    HELD.append(session)\n").replace(
        "engine =", "HELD = []\nengine =", 1
    )
    calls = [("flush_then_fail", {})] * 20 + [("lend", {"member_id": 1, "title": "after"})]
    (run,) = sandbox.calls(*calls, code=held).runs
    assert {result.kind for result in run.results[:20]} == {"internal"}
    assert run.results[20].kind == "ok"
    assert rows(base64.b64decode(run.db), "SELECT title FROM loans") == [("Moss atlas",), ("after",)]


def test_null_is_an_argument_like_any_other(sandbox: Checks) -> None:
    (run,) = sandbox.calls(("list_loans", {"title": None}), ("lend", {"member_id": 1, "title": "x", "days": None})).runs
    assert [len(run.results[0].content), run.results[1].content["days"]] == [1, 14]


def test_the_world_clock_moves_by_a_second_a_call_in_python_and_sql(sandbox: Checks) -> None:
    (run,) = sandbox.calls(("list_loans", {}), ("stamp", {}), ("stamp", {})).runs
    sql, python = run.results[1].content
    assert python.startswith("2026-01-01 00:00:02 1767225602.0 ")
    assert sql.startswith("2026-01-01 00:00:02 ")
    assert run.results[2].content[2].startswith("2026-01-01 00:00:03 ")


@pytest.mark.parametrize("what", ["socket", "program", "kill", "fork", "write"])
def test_environment_code_reaches_nothing_outside(sandbox: Checks, what: str) -> None:
    (run,) = sandbox.calls(("reach", {"what": what})).runs
    assert run.results[0].kind == "internal"
    assert "PermissionError" in run.results[0].content["error"]["message"]


@pytest.mark.parametrize("path", ["/etc/passwd", "/proc/self/environ", "/proc/1/cmdline", __file__])
def test_environment_code_reads_no_files(sandbox: Checks, path: str) -> None:
    (run,) = sandbox.calls(("peek", {"path": path})).runs
    assert "PermissionError" in run.results[0].content["error"]["message"]


def test_environment_code_sees_no_variables(sandbox: Checks) -> None:
    (run,) = sandbox.calls(("reach", {"what": ""})).runs
    assert run.results[0].content["reached"].keys() <= {"TZ", "LC_CTYPE"}


NESTED = (
    LIBRARY_APP
    + """

def titles():
    session = Session()
    found = [loan.title for loan in session.query(Loan).order_by(Loan.id)]
    session.close()
    return found


@application.post("/nested", operation_id="nested")
async def nested():
    session = Session()
    session.add(Loan(member_id=1, title="outer", days=1))
    session.flush()
    seen = titles()
    session.commit()
    return {"seen": seen[:1], "after": titles()}


@application.post("/clash", operation_id="clash")
async def clash():
    first, second = Session(), Session()
    first.add(Loan(member_id=1, title="first", days=1))
    first.flush()
    second.add(Loan(member_id=1, title="second", days=1))
    second.commit()
"""
)


def test_a_second_session_may_read_while_the_first_has_written(sandbox: Checks) -> None:
    (run,) = sandbox.calls(("nested", {}), ("list_loans", {}), code=NESTED).runs
    assert run.results[0].content == {"seen": ["Moss atlas"], "after": ["Moss atlas", "outer"]}
    assert len(run.results[1].content) == 2


def test_two_sessions_that_write_at_once_are_refused_and_undone(sandbox: Checks) -> None:
    (run,) = sandbox.calls(("clash", {}), ("list_loans", {}), code=NESTED).runs
    assert "locked" in run.results[0].content["error"]["message"]
    assert len(run.results[1].content) == 1


DEPENDING = (
    LIBRARY_APP
    + """

from typing import Annotated
from fastapi import Depends, Header, Request

CLOSED = "CREATE TABLE IF NOT EXISTS closed (how TEXT)"


def session_of(limit: int = 5):
    session = Session()
    session.info["limit"] = limit
    how = "well"
    try:
        yield session
    except HTTPException:
        session.rollback()
        how = "refused"
        raise
    finally:
        session.execute(text(CLOSED))
        session.execute(text("INSERT INTO closed VALUES (:how)"), {"how": how})
        session.commit()
        session.close()


async def reader(session=Depends(session_of)):
    return session


def member_of(member_id: int, session=Depends(session_of)):
    member = session.get(Member, member_id)
    if member is None:
        raise HTTPException(404, "no such member")
    return member.name


@application.get("/of/{member_id}", operation_id="loans_of")
async def loans_of(member_id: int, name: str = Depends(member_of), session=Depends(session_of), again=Depends(reader)):
    assert session is again
    titles = [loan.title for loan in session.query(Loan).filter(Loan.member_id == member_id).limit(session.info["limit"])]
    return {"name": name, "titles": titles}


@application.get("/asked", operation_id="asked")
async def asked(request: Request, title: str = "none", agent: Annotated[str, Header()] = "nobody"):
    return {"method": request.method, "path": request.url.path, "title": title, "agent": agent}


@application.middleware("http")
async def stamp_answers(request, call_next):
    return await call_next(request)
"""
)


@pytest.mark.parametrize("short", [True, False])
def test_dependencies_are_solved_and_closed_on_either_way_to_an_endpoint(sandbox: Checks, short: bool) -> None:
    code = DEPENDING.partition("\n\n@application.middleware")[0] if short else DEPENDING
    calls = [
        ("loans_of", {"member_id": 2}),
        ("loans_of", {"member_id": 2, "limit": 0}),
        ("loans_of", {"member_id": 9}),
        ("asked", {"title": "a&b"}),
    ]
    (run,) = sandbox.calls(*calls, code=code).runs
    assert run.results[0].content == {"name": "Bo", "titles": ["Moss atlas"]}
    assert run.results[1].content == {"name": "Bo", "titles": []}
    assert (run.results[2].kind, run.results[2].content["error"]["message"]) == ("not_found", "no such member")
    assert run.results[3].content == {"method": "GET", "path": "/asked", "title": "a&b", "agent": "nobody"}
    assert rows(base64.b64decode(run.db), "SELECT how FROM closed") == [("well",), ("well",)]


DATED = """
from datetime import date
from typing import Optional
from fastapi import FastAPI
from pydantic import BaseModel, FutureDatetime, PastDate
app = FastAPI()


class Trip(BaseModel):
    born: Optional[PastDate] = None
    leaves: Optional[FutureDatetime] = None


@app.post("/trips", operation_id="plan")
async def plan(body: Trip):
    return body
"""
ASIDE = """

@app.middleware("http")
async def aside(request, call_next):
    return await call_next(request)
"""


@pytest.mark.parametrize("short", [True, False])
def test_past_and_future_in_a_model_are_the_worlds(sandbox: Checks, short: bool) -> None:
    calls = [
        {"born": "2025-12-31"},
        {"born": "2026-01-02"},
        {"leaves": "2026-01-02T00:00:00Z"},
        {"leaves": "2025-01-02T00:00:00Z"},
    ]
    (run,) = sandbox.calls(*(("plan", call) for call in calls), code=DATED + ("" if short else ASIDE), sql="").runs
    assert [result.kind for result in run.results] == ["ok", "invalid_arguments", "ok", "invalid_arguments"]


@pytest.mark.parametrize("short", [True, False])
def test_a_body_whose_fields_are_all_optional_may_be_left_out(sandbox: Checks, short: bool) -> None:
    (run,) = sandbox.calls(("plan", {}), code=DATED + ("" if short else ASIDE), sql="").runs
    assert run.results[0].content == {"born": None, "leaves": None}
