import pytest

from runtime_support import LIBRARY_APP, LIBRARY_SQL, Checks, source

X = "@app.get('/x', operation_id='x')\nasync def x():\n    return 1\n"

HEAD = "from fastapi import FastAPI\nfrom pydantic import BaseModel\nfrom typing import List, Optional\napp = FastAPI()\n"


def kinds(reply: object) -> list[str]:
    return [finding.kind for finding in reply.findings]  # type: ignore[attr-defined]


def test_the_tools_are_those_of_fastapi_mcp_with_null_allowed(sandbox: Checks) -> None:
    reply = sandbox.app(LIBRARY_APP, LIBRARY_SQL)
    tools = {tool.name: tool for tool in reply.tools}
    assert list(tools)[:3] == ["list_loans", "lend", "remove_member"]
    assert tools["lend"].input_schema["required"] == ["member_id", "title"]
    assert tools["lend"].input_schema["properties"]["days"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]
    assert "type" not in tools["lend"].input_schema["properties"]["days"]
    assert {(m.tool, m.kind) for m in reply.mendings} == {("lend", "null_allowed"), ("list_loans", "null_allowed")}


def test_an_app_of_any_name_and_shape_is_found(sandbox: Checks) -> None:
    factory = "from fastapi import FastAPI\ndef create_app():\n    made = FastAPI()\n    @made.get('/x', operation_id='x')\n"
    factory += "    async def x():\n        return 1\n    return made\n"
    run = (
        HEAD + "import uvicorn\n@app.get('/x', operation_id='x')\nasync def x():\n    return 1\nuvicorn.run(\n"
        "    app,\n    port=1,\n)\n"
    )
    for code in (factory, run):
        assert [tool.name for tool in sandbox.app(code).tools] == ["x"]


@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        ("print(5 +", "import_error", "SyntaxError"),
        ("import sys; sys.exit(3)", "import_error", "SystemExit"),
        ("open('/etc/passwd')", "import_error", "PermissionError"),
        ("x = 1", "no_app", "no FastAPI object"),
        ("from fastapi import FastAPI\napp = FastAPI()", "no_tools", "no endpoint"),
    ],
)
def test_an_app_that_can_not_be_served_says_why(sandbox: Checks, code: str, kind: str, says: str) -> None:
    reply = sandbox.app(code)
    assert reply.tools == []
    assert reply.findings[0].kind == kind
    assert says in reply.findings[0].what


def test_code_that_kills_its_process_fails_its_check_only(sandbox: Checks) -> None:
    failure = sandbox.failed({"op": "app", "source": source("import os; os._exit(4)", "")})
    assert failure.reason == "crashed"
    assert "exit status 4" in failure.message
    assert sandbox.failed({"op": "app", "source": source("while True: pass", "")}, time_limit=1).reason == "timeout"
    assert sandbox.app(LIBRARY_APP, LIBRARY_SQL).tools


def test_a_fixed_path_behind_a_parameter_is_reported_and_left_out(sandbox: Checks) -> None:
    code = HEAD + "\n".join(
        f"@app.get('{path}', operation_id='{name}')\nasync def {name}({args}):\n    return 1"
        for path, name, args in [
            ("/plots/{plot_id}", "get_plot", "plot_id: int"),
            ("/plots/vacant", "vacant", ""),
            ("/plots/{plot_id}/history", "history", "plot_id: int"),
            ("/{kind}/count", "count", "kind: str"),
        ]
    )
    reply = sandbox.app(code)
    assert [tool.name for tool in reply.tools] == ["get_plot", "history", "count"]
    (finding,) = reply.findings
    assert (finding.kind, finding.omitted) == ("shadowed_route", "vacant")
    assert "answered by get_plot" in finding.what


def test_of_two_endpoints_with_one_method_and_path_the_listed_one_is_left_out(sandbox: Checks) -> None:
    code = HEAD + "@app.post('/p', operation_id='one')\nasync def one():\n    return 1\n"
    code += "@app.post('/p', operation_id='two')\nasync def two():\n    return 2\n" + X
    reply = sandbox.app(code)
    assert [tool.name for tool in reply.tools] == ["x"]
    assert [(finding.kind, finding.omitted) for finding in reply.findings] == [("duplicate_route", "two")]


def test_a_field_named_like_its_type_is_named_with_its_class(sandbox: Checks) -> None:
    head = "from datetime import date\n" + HEAD
    dies = sandbox.app(head + "from pydantic import Field\nclass Trip(BaseModel):\n    date: date = Field(...)\n")
    assert dies.findings[0].kind == "import_error"
    assert "Trip" in dies.findings[0].what
    assert "date" in dies.findings[0].what
    starts = sandbox.app(
        head + "class Trip(BaseModel):\n    date: Optional[date] = None\n@app.post('/t', operation_id='t')\n"
        "async def t(b: Trip):\n    return b\n"
    )
    assert [tool.name for tool in starts.tools] == ["t"]
    assert [(finding.kind, finding.where) for finding in starts.findings] == [("field_shadows_type", "class Trip, field date")]
    mended = (
        "from datetime import date as day\n"
        + HEAD
        + (
            "class Trip(BaseModel):\n    date: Optional[day] = None\n"
            "@app.post('/t', operation_id='t')\nasync def t(b: Trip):\n    return b\n"
        )
    )
    assert sandbox.app(mended).findings == []
    (run,) = sandbox.calls(("t", {"date": "2026-07-01"}), code=mended, sql="").runs
    assert run.results[0].content == {"date": "2026-07-01"}


def test_a_model_that_refers_to_itself_is_served_with_definitions(sandbox: Checks) -> None:
    code = HEAD + "class Node(BaseModel):\n    name: str\n    kids: List['Node'] = []\nNode.model_rebuild()\n"
    code += "@app.post('/n', operation_id='put')\nasync def put(node: Node):\n    return node\n"
    reply = sandbox.app(code)
    assert kinds(reply) == ["recursive_model"]
    assert reply.findings[0].mended
    assert "Node" in reply.tools[0].input_schema["$defs"]
    tree = {"name": "a", "kids": [{"name": "b", "kids": [{"name": "c"}]}]}
    (run,) = sandbox.calls(("put", tree), ("put", {"name": "a", "kids": [{"kids": []}]}), code=code, sql="").runs
    assert run.results[0].content == {"name": "a", "kids": [{"name": "b", "kids": [{"name": "c", "kids": []}]}]}
    assert run.results[1].kind == "invalid_arguments"


def test_one_name_in_path_and_body_goes_to_both(sandbox: Checks) -> None:
    code = HEAD + "class M(BaseModel):\n    member_id: int\n    name: str\n@app.put('/m/{member_id}', operation_id='put')\n"
    code += "async def put(member_id: int, body: M):\n    return [member_id, body.member_id, body.name]\n"
    reply = sandbox.app(code)
    assert kinds(reply) == ["name_clash"]
    assert reply.tools[0].input_schema["required"] == ["member_id", "name"]
    (run,) = sandbox.calls(("put", {"member_id": 12, "name": "Jo"}), code=code, sql="").runs
    assert run.results[0].content == [12, 12, "Jo"]


def test_names_that_clients_refuse_get_short_distinct_stable_ones(sandbox: Checks) -> None:
    long = "list_" + "very_" * 14 + "long_name"
    code = HEAD + "".join(
        f"@app.get('/{n}', operation_id='{name}')\nasync def f{n}():\n    return {n}\n"
        for n, name in enumerate([long, long + "_v2", "get.user profile/é"])
    )
    first, second = sandbox.app(code), sandbox.app(code)
    names = [tool.name for tool in first.tools]
    assert len(set(names)) == 3
    assert all(len(name) <= 48 for name in names)
    assert names == [tool.name for tool in second.tools]
    assert [tool.operation_id for tool in first.tools] == [long, long + "_v2", "get.user profile/é"]
    assert kinds(first) == ["long_name"] * 3


def test_rows_that_the_code_can_not_read_are_named_cell_by_cell(sandbox: Checks) -> None:
    code = HEAD + (
        "from datetime import datetime\nfrom sqlalchemy import Column, DateTime, Integer, create_engine\n"
        "from sqlalchemy.orm import declarative_base, sessionmaker\nengine = create_engine('sqlite:///x.db')\n"
        "Base = declarative_base()\nS = sessionmaker(engine)\n"
        "class Tide(Base):\n    __tablename__ = 'tides'\n    id = Column(Integer, primary_key=True)\n    at = Column(DateTime)\n"
        "@app.get('/tides/{tide_id}', operation_id='get_tide')\nasync def get_tide(tide_id: int):\n"
        "    return {'at': S().query(Tide).filter(Tide.id == tide_id).first().at}\n"
        "@app.get('/tides', operation_id='list_tides')\nasync def list_tides():\n"
        "    return [t.id for t in S().query(Tide).all()]\n"
    )
    sql = "CREATE TABLE tides (id INTEGER PRIMARY KEY, at DATETIME);"
    sql += "INSERT INTO tides VALUES (1, '2026-01-02 03:04:05'), (2, '2/1/2026');"
    findings = sandbox.app(code, sql).findings
    unreadable = [finding for finding in findings if finding.kind == "unreadable_row"]
    assert [finding.where for finding in unreadable] == ["table tides, id 2, column at"]
    assert "'2/1/2026'" in unreadable[0].what
    assert [finding.where for finding in findings if finding.kind == "failing_read"] == ["tool get_tide", "tool list_tides"]


def test_enums_and_booleans_that_the_code_can_not_read_are_named_too(sandbox: Checks) -> None:
    code = HEAD + (
        "import enum\nfrom sqlalchemy import Boolean, Column, Enum, Integer, create_engine\n"
        "from sqlalchemy.orm import declarative_base\nengine = create_engine('sqlite:///x.db')\nBase = declarative_base()\n"
        "class State(enum.Enum):\n    open = 1\n    shut = 2\n"
        "class Gate(Base):\n    __tablename__ = 'gates'\n    id = Column(Integer, primary_key=True)\n"
        "    state = Column(Enum(State))\n    locked = Column(Boolean)\n"
    )
    sql = "CREATE TABLE gates (id INTEGER PRIMARY KEY, state TEXT, locked BOOLEAN);"
    sql += "INSERT INTO gates VALUES (1, 'open', 1), (2, 'ajar', 0), (3, 'shut', 'false');"
    unreadable = [finding for finding in sandbox.app(code + X, sql).findings if finding.kind == "unreadable_row"]
    assert [finding.where for finding in unreadable] == ["table gates, id 2, column state", "table gates, id 3, column locked"]


def test_a_null_that_the_answer_forbids_is_named_by_row_and_column(sandbox: Checks) -> None:
    code = HEAD + (
        "import sqlite3\nclass Bird(BaseModel):\n    id: int\n    grams: float\n"
        "@app.get('/birds/{bird_id}', operation_id='get_bird', response_model=Bird)\nasync def get_bird(bird_id: int):\n"
        "    c = sqlite3.connect('birds.db')\n"
        "    row = c.execute('SELECT id, grams FROM birds WHERE id = ?', (bird_id,)).fetchone()\n"
        "    return row and {'id': row[0], 'grams': row[1]}\n"
    )
    sql = "CREATE TABLE birds (id INTEGER PRIMARY KEY, grams REAL); INSERT INTO birds VALUES (1, 9.5), (2, NULL);"
    (finding,) = sandbox.app(code, sql).findings
    assert finding.kind == "failing_read"
    assert "get_bird(bird_id=2)" in finding.what
    assert "table birds, id 2: grams is NULL" in finding.what
    (run,) = sandbox.calls(("get_bird", {"bird_id": 99}), code=code, sql=sql).runs
    assert run.results[0].kind == "not_found"


def test_module_state_that_handlers_write_is_reported(sandbox: Checks) -> None:
    code = HEAD + "SEEN = []\n@app.get('/x', operation_id='x')\nasync def x():\n    SEEN.append(1)\n    return SEEN\n"
    assert kinds(sandbox.app(code)) == ["module_state"]
    kept = (
        HEAD + "import sqlite3\nc = sqlite3.connect('x.db', check_same_thread=False)\n"
        "@app.get('/x', operation_id='x')\nasync def x():\n    return 1\n"
    )
    assert kinds(sandbox.app(kept)) == ["module_state"]


@pytest.mark.parametrize(
    "state",
    [
        "from functools import lru_cache\n@lru_cache\ndef tick(): return []\ndef step(): tick().append(1); return len(tick())\n",
        "class Up:\n    n = 0\n    def up(self):\n        self.n += 1\n        return self.n\nUP = Up()\nstep = UP.up\n",
        "def made():\n    n = [0]\n    def up():\n        n[0] += 1\n        return n[0]\n    return up\nstep = made()\n",
    ],
)
def test_module_state_that_no_reading_shows_is_found_by_trial(sandbox: Checks, state: str) -> None:
    code = HEAD + state + "@app.post('/x', operation_id='x')\nasync def x():\n    return step()\n"
    (finding,) = sandbox.app(code + X.replace("/x", "/y").replace("x", "y")).findings
    assert (finding.kind, finding.where, finding.mended) == ("module_state", "tool x", True)


def test_two_episodes_of_a_sound_app_tell_nothing_of_each_other(sandbox: Checks) -> None:
    assert "module_state" not in kinds(sandbox.app(LIBRARY_APP, LIBRARY_SQL))


def test_an_address_in_an_error_is_no_state_and_no_agent_sees_it(sandbox: Checks) -> None:
    code = HEAD + "@app.post('/x', operation_id='x')\nasync def x():\n    raise ValueError(f'no {object()} here')\n"
    assert "module_state" not in kinds(sandbox.app(code))
    (run,) = sandbox.calls(("x", {}), code=code, sql="").runs
    assert run.results[0].content["error"]["message"] == "ValueError: no <object object> here (in x, line 7)"


def test_a_thread_that_outlives_its_call_is_reported(sandbox: Checks) -> None:
    code = HEAD + "import threading, time\n@app.post('/x', operation_id='x')\nasync def x():\n"
    code += "    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n    return 1\n"
    assert kinds(sandbox.app(code)) == ["lasting_thread"]
