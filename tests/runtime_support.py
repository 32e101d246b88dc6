"""What tests of the runtime stand on: the checks process, a server in a process of its own, and an environment for both."""

import base64
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from awm_runtime.contract import (
    WORLD_TIME,
    AppReply,
    CallsReply,
    CheckEnvelope,
    CheckFailed,
    EnvironmentSource,
    LoadReply,
    ReplyEnvelope,
    Statement,
    ToolCall,
    VerifierSource,
    VerifyReply,
)

LIBRARY_SQL = """
CREATE TABLE members (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE loans (
  id INTEGER PRIMARY KEY,
  member_id INTEGER NOT NULL REFERENCES members(id) ON DELETE CASCADE,
  title TEXT NOT NULL,
  days INTEGER NOT NULL CHECK (days > 0),
  lent_at TEXT DEFAULT CURRENT_TIMESTAMP
);
INSERT INTO members VALUES (1, 'Ada'), (2, 'Bo');
INSERT INTO loans VALUES (1, 2, 'Moss atlas', 7, '2025-12-30 10:00:00');
"""

LIBRARY_APP = """
import os, time, uuid, random
from datetime import datetime
from typing import List, Optional
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy import Column, ForeignKey, Integer, String, create_engine, text
from sqlalchemy.orm import declarative_base, sessionmaker
from sqlalchemy.pool import NullPool

engine = create_engine(
    os.environ.get("DATABASE_PATH") or "sqlite:////nowhere/library.db",
    poolclass=NullPool, connect_args={"check_same_thread": False, "timeout": 30},
)
Session = sessionmaker(bind=engine)
Base = declarative_base()
application = FastAPI(title="Library")


class Member(Base):
    __tablename__ = "members"
    id = Column(Integer, primary_key=True)
    name = Column(String, nullable=False)


class Loan(Base):
    __tablename__ = "loans"
    id = Column(Integer, primary_key=True)
    member_id = Column(Integer, ForeignKey("members.id", ondelete="CASCADE"), nullable=False)
    title = Column(String, nullable=False)
    days = Column(Integer, nullable=False)


class Stamp(Base):
    __tablename__ = "stamps"
    id = Column(Integer, primary_key=True)
    text = Column(String)


Base.metadata.create_all(engine)


class LoanIn(BaseModel):
    member_id: int
    title: str
    days: Optional[int] = 14


class LoanOut(LoanIn):
    id: int


@application.get("/loans", operation_id="list_loans", response_model=List[LoanOut])
async def list_loans(title: Optional[str] = None):
    session = Session()
    found = session.query(Loan)
    if title is not None:
        found = found.filter(Loan.title == title)
    rows = [LoanOut(id=r.id, member_id=r.member_id, title=r.title, days=r.days) for r in found.all()]
    session.close()
    return rows


@application.post("/loans", operation_id="lend", response_model=LoanOut)
async def lend(body: LoanIn):
    session = Session()
    loan = Loan(member_id=body.member_id, title=body.title, days=body.days or 14)
    session.add(loan)
    session.commit()
    out = LoanOut(id=loan.id, member_id=loan.member_id, title=loan.title, days=loan.days)
    session.close()
    return out


@application.delete("/members/{member_id}", operation_id="remove_member")
def remove_member(member_id: int):
    session = Session()
    member = session.query(Member).filter(Member.id == member_id).first()
    session.delete(member)
    session.commit()
    return {"removed": member_id}


@application.post("/half", operation_id="commit_then_refuse")
async def commit_then_refuse():
    session = Session()
    session.add(Loan(member_id=1, title="half", days=1))
    session.commit()
    raise HTTPException(409, "the shelf is closed")


@application.post("/flush", operation_id="flush_then_fail")
async def flush_then_fail():
    session = Session()
    session.add(Loan(member_id=1, title="flushed", days=1))
    session.flush()
    raise RuntimeError("lost the key")


@application.post("/stamp", operation_id="stamp")
async def stamp():
    session = Session()
    session.add(Stamp(text=f"{datetime.now()} {time.time()} {uuid.uuid4()} {random.random()} {os.urandom(4).hex()}"))
    session.execute(text("INSERT INTO stamps (text) VALUES (datetime('now') || ' ' || random())"))
    session.commit()
    rows = [row.text for row in session.query(Stamp).order_by(Stamp.id)]
    session.close()
    return rows


@application.post("/misbehave", operation_id="misbehave")
async def misbehave(how: str):
    session = Session()
    session.add(Loan(member_id=1, title=how, days=1))
    session.commit()
    if how == "loop":
        while True:
            pass
    if how == "swallow":
        while True:
            try:
                time.sleep(1)
            except BaseException:
                pass
    if how == "query":
        session.execute(text("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c")).all()
    if how == "exit":
        os._exit(7)
    if how == "crash":
        import ctypes
        ctypes.string_at(0)
    return {"how": how}


@application.get("/peek", operation_id="peek")
async def peek(path: str):
    return {"text": open(path).read()}


@application.post("/reach", operation_id="reach")
async def reach(what: str):
    import socket, subprocess
    if what == "socket":
        socket.create_connection(("192.0.2.1", 9), timeout=1)
    if what == "program":
        subprocess.run(["true"])
    if what == "kill":
        os.kill(os.getppid(), 15)
    if what == "fork":
        os.fork()
    if what == "write":
        open("/tmp/written-by-an-environment", "w")
    return {"reached": dict(os.environ)}
"""

COMPLETE_IF_LENT = """
def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    import sqlite3
    connection = sqlite3.connect(f"file:{final_db_path}?mode=ro", uri=True)
    found = connection.execute("SELECT count(*) FROM loans WHERE title = 'Kite book'").fetchone()[0]
    return {"result": "complete" if found == 1 else "others"}
"""


def database(sql: str) -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.executescript(sql)
    connection.execute("VACUUM")  # an empty database has no bytes before
    return connection.serialize()


def rows(data: bytes, sql: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(":memory:")
    connection.deserialize(data)
    return connection.execute(sql).fetchall()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def source(code: str = LIBRARY_APP, sql: str = LIBRARY_SQL) -> EnvironmentSource:
    return EnvironmentSource(env_id="library", app_code=code, db=b64(database(sql)), world_time=WORLD_TIME)


def statements(*texts: str, table: str = "t") -> list[Statement]:
    return [Statement(sql=text, table=table, index=index) for index, text in enumerate(texts)]


@dataclass
class Checks:
    """`python -m awm_runtime.checks`, spoken to as the host does."""

    process: "subprocess.Popen[bytes]"
    asked: int = 0

    def ask(self, request: dict[str, Any], time_limit: float = 30) -> Any:
        self.asked += 1
        envelope = CheckEnvelope.model_validate({"id": self.asked, "time_limit": time_limit, "request": request})
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(envelope.model_dump_json().encode() + b"\n")
        self.process.stdin.flush()
        reply = ReplyEnvelope.model_validate_json(self.process.stdout.readline())
        assert reply.id == self.asked
        return reply.reply

    def load(self, schema: list[Statement], data: list[Statement], world_time: str = WORLD_TIME) -> LoadReply:
        reply = self.ask({"op": "load", "world_time": world_time, "statements_schema": schema, "statements_data": data})
        assert isinstance(reply, LoadReply), reply
        return reply

    def app(self, code: str, sql: str = "") -> AppReply:
        reply = self.ask({"op": "app", "source": source(code, sql)})
        assert isinstance(reply, AppReply), reply
        return reply

    def calls(
        self, *calls: tuple[str, dict[str, Any]], code: str = LIBRARY_APP, sql: str = LIBRARY_SQL, **rest: Any
    ) -> CallsReply:
        played = [ToolCall(tool=tool, arguments=arguments) for tool, arguments in calls]
        reply = self.ask({"op": "calls", "source": source(code, sql), "calls": played, **rest})
        assert isinstance(reply, CallsReply), reply
        return reply

    def verify(self, code: str, *, mode: str = "code", sql: str = LIBRARY_SQL, answer: str | None = None) -> Any:
        verifier = VerifierSource.model_validate({"task_id": 0, "mode": mode, "code": code})
        db = b64(database(sql))
        request = {"op": "verify", "verifiers": [verifier], "initial_db": db, "final_db": db, "final_answer": answer}
        reply = self.ask(request | {"world_time": WORLD_TIME})
        assert isinstance(reply, VerifyReply), reply
        return reply.verdicts[0]

    def failed(self, request: dict[str, Any], time_limit: float = 30) -> CheckFailed:
        reply = self.ask(request, time_limit)
        assert isinstance(reply, CheckFailed), reply
        return reply


@contextmanager
def checks(**environment: str) -> Iterator[Checks]:
    command = [sys.executable, "-m", "awm_runtime.checks"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONWARNINGS": "ignore", **environment}
    )
    try:
        yield Checks(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(10)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Served:
    """A running `awm-runtime serve`."""

    process: "subprocess.Popen[bytes]"
    port: int
    agent_port: int
    headers: dict[str, str] = field(default_factory=dict)

    def request(
        self, method: str, path: str, body: Any = None, *, port: int | None = None, headers: dict[str, str] | None = None
    ) -> Any:
        """Status and decoded body."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        url = f"http://127.0.0.1:{port or self.port}{path}"
        request = urllib.request.Request(url, data, {**self.headers, **(headers or {})}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, _decoded(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, _decoded(error.read())

    def new(self, **asked: Any) -> dict[str, Any]:
        status, episode = self.request("POST", "/episodes", asked)
        assert status == 201, episode
        return dict(episode)

    def rpc(self, path: str, method: str, params: dict[str, Any] | None = None, *, port: int | None = None) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        return self.request("POST", path, message, port=port or self.agent_port)[1]

    def call(self, episode: dict[str, Any], tool: str, arguments: dict[str, Any] | None = None) -> tuple[bool, Any]:
        """Whether it is an error, and the JSON that the tool answered."""
        answer = self.rpc(episode["mcp_path"], "tools/call", {"name": tool, "arguments": arguments or {}})
        return answer["result"]["isError"], json.loads(answer["result"]["content"][0]["text"])

    def of(self, episode: dict[str, Any], action: str, body: Any = None, method: str = "POST") -> Any:
        status, answer = self.request(method, f"/episodes/{episode['episode_id']}/{action}", body)
        assert status in (200, 201), (status, answer)
        return answer

    def db(self, episode: dict[str, Any]) -> bytes:
        url = f"http://127.0.0.1:{self.port}/episodes/{episode['episode_id']}/db"
        with urllib.request.urlopen(urllib.request.Request(url, headers=self.headers), timeout=60) as answer:
            return bytes(answer.read())


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body


def write_environment(
    directory: Path, code: str = LIBRARY_APP, sql: str = LIBRARY_SQL, tasks: tuple[str, ...] = ("Lend the Kite book to Ada.",)
) -> Path:
    """The files that an image has under /env."""
    (directory / "verifiers").mkdir(parents=True)
    (directory / "manifest.json").write_text(json.dumps({"env_id": "library", "scenario": "Library", "world_time": WORLD_TIME}))
    (directory / "app.py").write_text(code)
    (directory / "seed.db").write_bytes(database(sql))
    lines = [json.dumps({"task_id": number, "instruction": text}) for number, text in enumerate(tasks)]
    (directory / "tasks.jsonl").write_text("\n".join(lines) + "\n")
    for number in range(len(tasks)):
        (directory / "verifiers" / f"{number}.code.py").write_text(COMPLETE_IF_LENT)
    return directory


@contextmanager
def serve(directory: Path, ports: tuple[int, int] | None = None, **settings: str) -> Iterator[Served]:
    port, agent_port = ports or (free_port(), free_port())
    environment = {**os.environ, "AWM_ENV_DIR": str(directory), "PORT": str(port), "AGENT_PORT": str(agent_port), **settings}
    process = subprocess.Popen([sys.executable, "-m", "awm_runtime.main", "serve"], env=environment)
    headers = {"Authorization": f"Bearer {settings['AWM_TOKEN']}"} if "AWM_TOKEN" in settings else {}
    served = Served(process, port, agent_port, headers)
    try:
        _until_healthy(served)
        yield served
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


def _until_healthy(served: Served) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if served.process.poll() is not None:
            raise RuntimeError(f"the server ended with status {served.process.returncode}")
        try:
            if served.request("GET", "/health")[0] == 200:
                return
        except OSError:
            served.process.poll()
            _pause()
    raise TimeoutError("the server did not become healthy")


def _pause() -> None:
    """Until the server listens there is nothing to wait on but its port."""
    import select

    select.select([], [], [], 0.05)
