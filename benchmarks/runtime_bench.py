"""What the benchmarks of the runtime stand on: the servers it is measured against, the least a client can be, what is called."""

import asyncio
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from runtime_support import LIBRARY_APP, write_environment

HEADERS: Final = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}

_numbers = itertools.count(1)

_AWM_SERVER: Final = """
import os, sys
os.environ["DATABASE_PATH"] = "sqlite:///" + sys.argv[2]
source = open(sys.argv[1]).read()
module = type(sys)("environment_app")
sys.modules["environment_app"] = module
exec(compile(source, sys.argv[1], "exec"), module.__dict__)
from fastapi import FastAPI
app = next(value for value in vars(module).values() if isinstance(value, FastAPI))
from fastapi_mcp import FastApiMCP
import uvicorn
FastApiMCP(app).mount_http()
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[3]), log_level="warning")
"""

_PLAIN_SERVER: Final = """
import json, sqlite3, sys, uvicorn
connection = sqlite3.connect(sys.argv[1], check_same_thread=False, isolation_level=None)
(table,) = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchone()
canned = json.loads(sys.argv[3])
async def app(scope, receive, send):
    asked = json.loads((await receive()).get("body") or b"{}")
    if asked.get("method") == "tools/call" and sys.argv[4] == "limit":
        answer = connection.execute(f'SELECT * FROM "{table}" LIMIT 1').fetchone()
    else:
        answer = canned.get(asked.get("method"))
    reply = json.dumps({"jsonrpc": "2.0", "id": asked.get("id"), "result": answer}).encode()
    status = 200 if "id" in asked else 202
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(reply)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": reply})
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning", lifespan="off", loop="uvloop", http="httptools",
            access_log=False)
"""
"""The least a server can do, for two limits: one row read by plain sqlite3, and answers that were ready before."""

_ENDPOINT_ALONE: Final = """
import asyncio, itertools, json, statistics, sys, time, warnings
from pathlib import Path
now, asked, directory = time.process_time, json.loads(sys.argv[2]), Path(sys.argv[1])  # `now` before clocks stand still
warnings.simplefilter("ignore")
from awm_runtime import binding, clock, environment
environment.prepare_process()
manifest = json.loads((directory / "manifest.json").read_text())
seed = (directory / "seed.db").read_bytes()
env = environment.Environment((directory / "app.py").read_text(), seed, manifest.get("world_time") or "2026-01-01T00:00:00Z")
env.freeze()
binding.bound.slot = slot = env.new_slot()
numbers = itertools.count(1)
async def measured(tool, arguments, count):
    times = []
    for _ in range(count + 20):
        filled = json.loads(json.dumps(arguments).replace("{n}", str(next(numbers))))
        clock.enter(env.start, 0, 1)
        started = now()
        await env.callers[tool](filled)
        times.append(now() - started)
        clock.leave()
        slot.clean()
    return statistics.fmean(times[20:]) * 1000
print(json.dumps({name: asyncio.run(measured(*call, int(sys.argv[3]))) for name, call in asked.items()}))
"""
"""The three calls in a process that serves nobody: arguments validated, the endpoint's function called, its answer made JSON."""


@dataclass(frozen=True)
class Workload:
    """Three calls of an environment: a small read, a list, a write that may be repeated."""

    read: tuple[str, dict[str, Any]]
    list: tuple[str, dict[str, Any]]
    write: tuple[str, dict[str, Any]] | None


def message(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def workload(directory: Path, tools: list[dict[str, Any]]) -> Workload:
    """benchmarks/workloads/ says what to call; else reading tools without required arguments stand for both reads."""
    named = Path(__file__).parent / "workloads" / f"{directory.name}.json"
    if named.is_file():
        given = json.loads(named.read_text())
        calls = [tuple(given[name]) if given.get(name) else None for name in ("read", "list", "write")]
        return Workload(*calls)  # type: ignore[arg-type]
    plain = [tool["name"] for tool in tools if not tool["inputSchema"].get("required")]
    reads = [name for name in plain if name.startswith(("list", "get", "search", "find", "show"))]
    if not reads:
        raise SystemExit(
            f"{directory} has no reading tool without required arguments; add benchmarks/workloads/{directory.name}.json"
        )
    return Workload((reads[0], {}), (reads[-1], {}), None)


def with_tools(directory: Path, count: int) -> Path:
    """The tests' library, with as many more tools as make it `count`."""
    own = LIBRARY_APP.count("operation_id=")
    more = (
        f"\n\n@application.get('/shelves/{{shelf_id}}/{n}', operation_id='show_shelf_{n}')\n"
        f"async def show_shelf_{n}(shelf_id: int, page: int = 1):\n"
        f"    return {{'shelf': shelf_id, 'page': page}}\n"
        for n in range(count - own)
    )
    return write_environment(directory / f"library_{count}", LIBRARY_APP + "".join(more))


def call_bytes(call: tuple[str, dict[str, Any]]) -> bytes:
    return json.dumps(message("tools/call", name=call[0], arguments=call[1])).encode()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(command: list[str], url: str, environment: dict[str, str]) -> Iterator[tuple["subprocess.Popen[bytes]", float]]:
    """The process, and the seconds from its launch to its first answer of tools/list."""
    started = time.perf_counter()
    process = subprocess.Popen(command, env={**os.environ, "PYTHONWARNINGS": "ignore", **environment}, stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                if httpx.post(url, json=message("tools/list"), headers=HEADERS, timeout=30).status_code < 500:
                    break
            except httpx.TransportError:
                if process.poll() is not None:
                    raise SystemExit(f"{command} ended with status {process.returncode}") from None
        yield process, time.perf_counter() - started
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def plain(database: Path, answers: str, what: str) -> Iterator[int]:
    """The port of the least server."""
    port = free_port()
    command = [sys.executable, "-c", _PLAIN_SERVER, str(database), str(port), answers, what]
    with running(command, f"http://127.0.0.1:{port}/mcp", {}):
        yield port


class Raw:
    """The least a client can be: one keep-alive connection, prepared bytes, the reply read to its end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> "Raw":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, method: str, path: str, body: bytes = b"", headers: tuple[str, ...] = ()) -> tuple[dict[str, str], bytes]:
        """`{n}` in a body becomes a number that no earlier one had, for writes that may not say the same twice."""
        body = body.replace(b"{n}", b"%d" % next(_numbers)) if b"{n}" in body else body
        lines = [
            f"{method} {path} HTTP/1.1",
            "Host: x",
            f"Content-Length: {len(body)}",
            *(f"{k}: {v}" for k, v in HEADERS.items()),
        ]
        self.writer.write("\r\n".join([*lines, *headers]).encode() + b"\r\n\r\n" + body)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        answer = await self.reader.readexactly(int(fields.get("content-length", 0)))
        status = int(head[0].split()[1])
        if status >= 400:
            raise SystemExit(f"{method} {path} was answered {status}: {answer[:300]!r}")
        return fields, answer

    async def hello(self, path: str) -> tuple[str, ...]:
        """Begin an MCP session, where the server keeps any."""
        start = message("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "bench", "version": "1"})
        fields, _ = await self.ask("POST", path, json.dumps(start).encode())
        session = (f"Mcp-Session-Id: {fields['mcp-session-id']}",) if "mcp-session-id" in fields else ()
        await self.ask("POST", path, json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode(), session)
        return session


def endpoints_alone(directory: Path, work: Workload, count: int) -> dict[str, float]:
    calls = {name: call for name in ("read", "list", "write") if (call := getattr(work, name)) is not None}
    command = [sys.executable, "-c", _ENDPOINT_ALONE, str(directory), json.dumps(calls), str(count)]
    told = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=False)
    if told.returncode:
        raise SystemExit(f"the endpoints of {directory} can't be called alone: {told.stderr[-600:]}")
    return dict(json.loads(told.stdout))


def family(process: int) -> Iterator[Path]:
    """The folder in /proc of a process and of each of its descendants."""
    waiting = [process]
    while waiting:
        current = Path(f"/proc/{waiting.pop()}")
        try:
            waiting += [int(child) for task in (current / "task").iterdir() for child in (task / "children").read_text().split()]
        except OSError:
            continue
        yield current


def memory(process: int) -> float:
    """MiB that a process and its descendants take: each shared page counted once (proportional set size)."""
    total = 0.0
    for folder in family(process):
        try:
            lines = (folder / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
    return total


def spent(process: int) -> float:
    """Milliseconds of processor time that a process and its living descendants have had."""
    total = 0
    for folder in family(process):
        for task in (folder / "task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e6


@contextmanager
def awm(directory: Path) -> Iterator[tuple["subprocess.Popen[bytes]", float, int]]:
    """AWM's way to serve an environment: its process, the seconds that it took to start, its port."""
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        (folder / "db.sqlite").write_bytes((directory / "seed.db").read_bytes())
        (folder / "server.py").write_text(_AWM_SERVER)
        command = [sys.executable, str(folder / "server.py"), str(directory / "app.py"), str(folder / "db.sqlite"), str(port)]
        with running(command, f"http://127.0.0.1:{port}/mcp", {}) as (process, took):
            yield process, took, port


async def canned(url: str, call: tuple[str, dict[str, Any]]) -> str:
    """What a server that is asked by the official client answers, by method, as JSON."""
    async with httpx.AsyncClient() as client:

        async def result(method: str, **params: Any) -> Any:
            return (await client.post(url, json=message(method, **params), headers=HEADERS)).json()["result"]

        start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        return json.dumps(
            {
                "initialize": await result("initialize", **start),
                "tools/list": await result("tools/list"),
                "tools/call": await result("tools/call", name=call[0], arguments=call[1]),
            }
        )
