"""The runtime against AWM's way to serve the same app: `FastApiMCP(app).mount_http()` under uvicorn, one process, one file.

    python benchmarks/bench_runtime.py [ENV_DIR …] [--calls N] [--json]

Prints a table of figures and ratios, then one summary line; exit status 1 where a ratio falls short of its target. Absolute times
are printed, not judged: they belong to the machine. Without ENV_DIR it measures the environments in registry/.
"""

import argparse
import asyncio
import itertools
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

TARGETS: Final = {
    "read": 3.0, "list": 3.0, "write": 3.0, "calls a second": 4.0, "memory an episode": 60.0,
    "new episode": 100.0, "reset": 100.0, "fork": 100.0,
}  # fmt: skip
"""How many times better than AWM's way each figure must be."""

OFFICIAL: Final = 1.2
"""Milliseconds that a small read by the official client may take beyond its own floor, a canned answer."""

_CONNECTIONS: Final = 32
_numbers = itertools.count(1)
_EPISODES: Final = 1024

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


@dataclass(frozen=True)
class Workload:
    """Three calls of an environment: a small read, a list, a write that may be repeated."""

    read: tuple[str, dict[str, Any]]
    list: tuple[str, dict[str, Any]]
    write: tuple[str, dict[str, Any]] | None


@dataclass
class Figures:
    ours: dict[str, float] = field(default_factory=dict)
    awm: dict[str, float] = field(default_factory=dict)
    floor: float = 0.0
    """Milliseconds of the official client against a canned answer."""
    limit: float = 0.0
    """Calls a second of one row read by plain sqlite3 behind a bare ASGI app, one process."""


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


HEADERS: Final = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def message(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


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


def call_bytes(call: tuple[str, dict[str, Any]]) -> bytes:
    return json.dumps(message("tools/call", name=call[0], arguments=call[1])).encode()


async def median(action: Callable[[], Awaitable[Any]], count: int) -> float:
    """Milliseconds."""
    times = []
    for _ in range(count):
        started = time.perf_counter()
        await action()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000


async def latencies(port: int, path: str, work: Workload, count: int) -> dict[str, float]:
    client = await Raw.open(port)
    session = await client.hello(path)
    found = {}
    for name in ("read", "list", "write"):
        if (call := getattr(work, name)) is not None:
            body = call_bytes(call)
            for _ in range(20):
                _, answer = await client.ask("POST", path, body, session)
            if json.loads(answer)["result"]["isError"]:
                raise SystemExit(f"{call[0]} fails, so its time means nothing: {answer.decode()[:600]}")
            found[name] = await median(lambda body=body: client.ask("POST", path, body, session), count)  # type: ignore[misc]
    return found


async def throughput(port: int, paths: list[str], work: Workload, count: int) -> float:
    """Calls a second of the small read over 32 connections."""
    body, done = call_bytes(work.read), 0

    async def one(path: str) -> None:
        nonlocal done
        client = await Raw.open(port)
        session = await client.hello(path)
        while done < count:
            done += 1
            await client.ask("POST", path, body, session)

    started = time.perf_counter()
    await asyncio.gather(*(one(paths[number % len(paths)]) for number in range(_CONNECTIONS)))
    return done / (time.perf_counter() - started)


async def official(url: str, call: tuple[str, dict[str, Any]], count: int) -> float:
    """Median milliseconds of the official client's call."""
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(url) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        await session.list_tools()
        for _ in range(20):
            await session.call_tool(*call)
        return await median(lambda: session.call_tool(*call), count)


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


@contextmanager
def plain(database: Path, answers: str, what: str) -> Iterator[int]:
    """The port of the least server."""
    port = free_port()
    command = [sys.executable, "-c", _PLAIN_SERVER, str(database), str(port), answers, what]
    with running(command, f"http://127.0.0.1:{port}/mcp", {}):
        yield port


def memory(process: int) -> float:
    """MiB that a process and its descendants take: each shared page counted once (proportional set size)."""
    total, waiting = 0.0, [process]
    while waiting:
        current = waiting.pop()
        try:
            lines = Path(f"/proc/{current}/smaps_rollup").read_text().splitlines()
            waiting += [
                int(child)
                for task in Path(f"/proc/{current}/task").iterdir()
                for child in (task / "children").read_text().split()
            ]
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
    return total


async def episodes(port: int, work: Workload, count: int) -> dict[str, float]:
    client = await Raw.open(port)

    async def create() -> dict[str, Any]:
        return dict(json.loads((await client.ask("POST", "/episodes", b"{}"))[1]))

    one = await create()
    path = f"/episodes/{one['episode_id']}"
    await client.ask("POST", one["mcp_path"], call_bytes(work.write or work.read))
    found = {
        "new episode": await median(create, count),
        "reset": await median(lambda: client.ask("POST", f"{path}/reset", b"{}"), count),
    }
    found["fork"] = await median(lambda: client.ask("POST", f"{path}/fork", b"{}"), count)
    tasks = json.loads((await client.ask("GET", "/tasks"))[1])
    judged = [task["task_id"] for task in tasks if "code" in task["verifiers"]]
    if judged:
        await client.ask("POST", f"{path}/reset", json.dumps({"task_id": judged[0]}).encode())
        found["verify"] = await median(lambda: client.ask("POST", f"{path}/verify", b"{}"), max(10, count // 10))
    for listed in json.loads((await client.ask("GET", "/episodes"))[1]):
        await client.ask("DELETE", f"/episodes/{listed['episode_id']}")
    return found


async def crowd(port: int, work: Workload, process: int, count: int) -> dict[str, float]:
    """A thousand live episodes, each with a change of its own."""
    client = await Raw.open(port)
    paths = [json.loads((await client.ask("POST", "/episodes", b"{}"))[1])["mcp_path"] for _ in range(_EPISODES)]
    change = call_bytes(work.write or work.read)
    for path in paths:
        await client.ask("POST", path, change)
    body, turn = call_bytes(work.read), iter(paths * (count // _EPISODES + 1))
    found = {"read of 1,024": await median(lambda: client.ask("POST", next(turn), body), count)}
    found["memory an episode"] = memory(process) / _EPISODES
    return found


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


def measure(directory: Path, calls: int) -> Figures:
    figures = Figures()
    with ExitStack() as stack:
        port, agent = free_port(), free_port()
        settings = {"AWM_ENV_DIR": str(directory), "PORT": str(port), "AGENT_PORT": str(agent), "AWM_MAX_EPISODES": "8192"}
        command = [sys.executable, "-m", "awm_runtime.main", "serve"]
        process, figures.ours["start"] = stack.enter_context(running(command, f"http://127.0.0.1:{port}/mcp", settings))
        tools = httpx.post(f"http://127.0.0.1:{port}/mcp", json=message("tools/list"), headers=HEADERS).json()["result"]["tools"]
        work = workload(directory, tools)

        async def all_of_it() -> str:
            figures.ours |= await latencies(port, "/mcp", work, calls)
            figures.ours |= await episodes(port, work, max(50, calls // 4))
            client = await Raw.open(port)
            paths = [json.loads((await client.ask("POST", "/episodes", b"{}"))[1])["mcp_path"] for _ in range(_CONNECTIONS)]
            figures.ours["calls a second"] = await throughput(port, paths, work, calls * 4)
            figures.ours |= await crowd(port, work, process.pid, calls)
            url = f"http://127.0.0.1:{port}/mcp"
            figures.ours["official client"] = await official(url, work.read, calls)
            return await canned(url, work.read)

        answers = asyncio.run(all_of_it())
    with plain(directory / "seed.db", answers, "canned") as port:
        figures.floor = asyncio.run(official(f"http://127.0.0.1:{port}/mcp", work.read, calls))
    with plain(directory / "seed.db", answers, "limit") as port:
        figures.limit = asyncio.run(throughput(port, ["/mcp"], work, calls * 8))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "db.sqlite").write_bytes((directory / "seed.db").read_bytes())
        (folder / "server.py").write_text(_AWM_SERVER)
        port = free_port()
        command = [sys.executable, str(folder / "server.py"), str(directory / "app.py"), str(folder / "db.sqlite"), str(port)]
        process, figures.awm["start"] = stack.enter_context(running(command, f"http://127.0.0.1:{port}/mcp", {}))

        async def theirs() -> None:
            figures.awm |= await latencies(port, "/mcp", work, calls)
            figures.awm["calls a second"] = await throughput(port, ["/mcp"], work, calls)
            figures.awm["official client"] = await official(f"http://127.0.0.1:{port}/mcp", work.read, calls)

        asyncio.run(theirs())
        figures.awm["memory an episode"] = memory(process.pid)
        # AWM resets by starting the server anew.
        figures.awm |= dict.fromkeys(("new episode", "reset", "fork"), figures.awm["start"] * 1000)
    return figures


def report(name: str, figures: Figures) -> list[str]:
    """Prints one environment's rows; returns the figures that fall short."""
    units = {"calls a second": "1/s", "memory an episode": "MiB", "start": "s"}
    short = []
    print(f"\n{name}")
    print(f"  {'figure':<20} {'ours':>10} {'AWM':>10} {'ratio':>7} {'target':>7}")
    for key, ours in figures.ours.items():
        awm, target = figures.awm.get(key), TARGETS.get(key)
        ratio = None if awm is None else ours / awm if key == "calls a second" else awm / ours
        falls_short = target is not None and ratio is not None and ratio < target
        if falls_short:
            short.append(f"{name} {key}")
        cells = [
            f"{ours:.2f}",
            "" if awm is None else f"{awm:.2f}",
            "" if ratio is None else f"{ratio:.1f}",
            "" if target is None else f"{target:g}",
        ]
        print(
            f"  {key:<20} {cells[0]:>10} {cells[1]:>10} {cells[2]:>7} {cells[3]:>7} "
            f"{units.get(key, 'ms')}{'  short' if falls_short else ''}"
        )
    crowded = figures.ours["read of 1,024"] / figures.ours["read"]
    print(f"  a read among 1,024 episodes takes {crowded:.2f} times one alone (target 1.5)")
    above = figures.ours["official client"] - figures.floor
    print(f"  the official client takes {above:.2f} ms more than its {figures.floor:.2f} for a canned answer (target {OFFICIAL})")
    share = figures.ours["calls a second"] / figures.limit
    print(
        f"  plain sqlite3 behind a bare ASGI app: {figures.limit:.0f} calls a second in one process; we reach {share:.0%} of it"
    )
    short += [f"{name} crowd"] if crowded > 1.5 else []
    return short + ([f"{name} official client"] if above > OFFICIAL else [])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="*", type=Path, metavar="ENV_DIR", help="bundles with a seed.db")
    parser.add_argument("--calls", type=int, default=1000, help="calls a figure is the median of (default 1000)")
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object instead")
    arguments = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    directories = arguments.directories or [path.parent for path in sorted((root / "registry").glob("*/seed.db"))]
    if not directories:
        sys.exit("no environment to measure: name bundles that have a seed.db, or run make build-envs first")
    found = {directory.name: measure(directory, arguments.calls) for directory in directories}
    if arguments.json:
        print(json.dumps({name: vars(figures) for name, figures in found.items()}, indent=1))
        return
    short = [line for name, figures in found.items() for line in report(name, figures)]
    print(
        f"\n{len(found)} environments; "
        + (f"short of their target: {', '.join(short)}" if short else "every ratio reaches its target")
    )
    sys.exit(1 if short else 0)


if __name__ == "__main__":
    main()
