"""The runtime against AWM's way to serve the same app: `FastApiMCP(app).mount_http()` under uvicorn, one process, one file.

    python benchmarks/bench_runtime.py [ENV_DIR …] [--calls N] [--json]

Prints a table of figures and ratios, then one summary line; exit status 1 where a ratio falls short of its target. Absolute times
are printed, not judged: they belong to the machine. Without ENV_DIR it measures the environments in registry/.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
from runtime_bench import (
    HEADERS,
    Raw,
    Workload,
    awm,
    call_bytes,
    canned,
    endpoints_alone,
    free_port,
    memory,
    message,
    plain,
    running,
    spent,
    with_tools,
    workload,
)

TARGETS: Final = {
    "read": 3.0, "list": 3.0, "write": 3.0, "calls a second": 4.0, "memory an episode": 60.0,
    "new episode": 100.0, "reset": 100.0, "fork": 100.0,
}  # fmt: skip
"""How many times better than AWM's way each figure must be."""

OFFICIAL: Final = 1.2
"""Milliseconds that a small read by the official client may take beyond its own floor, a canned answer."""

CROWDED: Final = 1.5
"""How many times as long a read may take among 1,024 episodes, or beside 300 tools, as alone or beside 30."""

SERVE: Final = [sys.executable, "-m", "awm_runtime.main", "serve"]
_CONNECTIONS: Final = 32
_EPISODES: Final = 1024


@dataclass
class Figures:
    ours: dict[str, float] = field(default_factory=dict)
    awm: dict[str, float] = field(default_factory=dict)
    floor: float = 0.0
    """Milliseconds of the official client against a canned answer."""
    alone: dict[str, float] = field(default_factory=dict)
    """Milliseconds of processor time of read, list and write where nothing serves them: what any server has to pay for."""
    limit: float = 0.0
    """Calls a second of one row read by plain sqlite3 behind a bare ASGI app, one process."""


async def median(action: Callable[[], Awaitable[Any]], count: int) -> float:
    """Milliseconds."""
    times = []
    for _ in range(count):
        started = time.perf_counter()
        await action()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000


async def latencies(port: int, path: str, work: Workload, process: int, count: int) -> dict[str, float]:
    """Milliseconds of each call, and of processor time that it took the server, which a busy machine changes least."""
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
            before = spent(process)
            found[name] = await median(lambda body=body: client.ask("POST", path, body, session), count)  # type: ignore[misc]
            found[f"{name}, processor"] = (spent(process) - before) / count
            found[f"{name}, bytes"] = len(answer)
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


def measure(directory: Path, calls: int) -> Figures:
    figures = Figures()
    with ExitStack() as stack:
        port, agent = free_port(), free_port()
        settings = {"AWM_ENV_DIR": str(directory), "PORT": str(port), "AGENT_PORT": str(agent), "AWM_MAX_EPISODES": "8192"}
        process, figures.ours["start"] = stack.enter_context(running(SERVE, f"http://127.0.0.1:{port}/mcp", settings))
        tools = httpx.post(f"http://127.0.0.1:{port}/mcp", json=message("tools/list"), headers=HEADERS).json()["result"]["tools"]
        work = workload(directory, tools)

        async def all_of_it() -> str:
            figures.ours |= await latencies(port, "/mcp", work, process.pid, calls)
            figures.ours |= await episodes(port, work, max(50, calls // 4))
            client = await Raw.open(port)
            paths = [json.loads((await client.ask("POST", "/episodes", b"{}"))[1])["mcp_path"] for _ in range(_CONNECTIONS)]
            figures.ours["calls a second"] = await throughput(port, paths, work, calls * 4)
            figures.ours |= await crowd(port, work, process.pid, calls)
            url = f"http://127.0.0.1:{port}/mcp"
            figures.ours["official client"] = await official(url, work.read, calls)
            return await canned(url, work.read)

        answers = asyncio.run(all_of_it())
    figures.alone = endpoints_alone(directory, work, calls)
    with plain(directory / "seed.db", answers, "canned") as port:
        figures.floor = asyncio.run(official(f"http://127.0.0.1:{port}/mcp", work.read, calls))
    with plain(directory / "seed.db", answers, "limit") as port:
        figures.limit = asyncio.run(throughput(port, ["/mcp"], work, calls * 8))
    with awm(directory) as (process, figures.awm["start"], port):

        async def theirs() -> None:
            figures.awm |= await latencies(port, "/mcp", work, process.pid, calls)
            figures.awm["calls a second"] = await throughput(port, ["/mcp"], work, calls)
            figures.awm["official client"] = await official(f"http://127.0.0.1:{port}/mcp", work.read, calls)

        asyncio.run(theirs())
        figures.awm["memory an episode"] = memory(process.pid)
        # AWM resets by starting the server anew.
        figures.awm |= dict.fromkeys(("new episode", "reset", "fork"), figures.awm["start"] * 1000)
    return figures


def among_tools(calls: int) -> float:
    """How many times as long a read takes beside 300 tools as beside 30; both are asked in turns."""
    work = Workload(("list_loans", {}), ("list_loans", {}), None)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ports = []
        for count in (30, 300):
            port, agent = free_port(), free_port()
            settings = {"AWM_ENV_DIR": str(with_tools(folder, count)), "PORT": str(port), "AGENT_PORT": str(agent)}
            process, _ = stack.enter_context(running(SERVE, f"http://127.0.0.1:{port}/mcp", settings))
            ports.append((port, process.pid))

        async def both() -> list[float]:
            spans = [[(await latencies(port, "/mcp", work, pid, calls // 10))["read"] for port, pid in ports] for _ in range(10)]
            return [statistics.median(column) for column in zip(*spans, strict=True)]

        few, many = asyncio.run(both())
    return many / few


def report(name: str, figures: Figures) -> list[str]:
    """Prints one environment's rows; returns the figures that fall short."""
    units = {"calls a second": "1/s", "memory an episode": "MiB", "start": "s"}
    short = []
    print(f"\n{name}")
    print(f"  {'figure':<20} {'ours':>10} {'AWM':>10} {'ratio':>7} {'target':>7}")
    for key, ours in figures.ours.items():
        if key.endswith(", bytes"):
            if abs(ours - figures.awm[key]) > ours / 10:
                print(f"  {key}: {ours:.0f} here and {figures.awm[key]:.0f} there, so that ratio tells nothing")
            continue
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
    for key, alone in figures.alone.items():
        share, most = alone / figures.ours[f"{key}, processor"], figures.awm[f"{key}, processor"] / alone
        own = f"{alone:.2f} ms of processor time are the endpoint's own, {share:.0%} of ours"
        print(f"  {key}: {own}; no server can be more than {most:.1f} times faster than AWM's")
    crowded = figures.ours["read of 1,024"] / figures.ours["read"]
    print(f"  a read among 1,024 episodes takes {crowded:.2f} times one alone (target {CROWDED})")
    above = figures.ours["official client"] - figures.floor
    print(f"  the official client takes {above:.2f} ms more than its {figures.floor:.2f} for a canned answer (target {OFFICIAL})")
    share = figures.ours["calls a second"] / figures.limit
    print(
        f"  plain sqlite3 behind a bare ASGI app: {figures.limit:.0f} calls a second in one process; we reach {share:.0%} of it"
    )
    short += [f"{name} crowd"] if crowded > CROWDED else []
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
    found, failed = {}, []
    for directory in directories:
        try:
            found[directory.name] = measure(directory, arguments.calls)
        except SystemExit as fault:  # one environment's fault is a line, not the end of the others
            failed.append(f"{directory.name} not measured: {fault}")
    if arguments.json:
        print(json.dumps({name: vars(figures) for name, figures in found.items()}, indent=1))
        sys.exit("\n".join(failed) or 0)
    short = [line for name, figures in found.items() for line in report(name, figures)]
    beside = among_tools(arguments.calls)
    print(f"\na read beside 300 tools takes {beside:.2f} times one beside 30 (target {CROWDED})")
    short += ["300 tools"] if beside > CROWDED else []
    print("\n" + "\n".join(failed) if failed else "", end="\n" if failed else "")
    print(
        f"\n{len(found)} environments; "
        + (f"short of their target: {', '.join(short)}" if short else "every ratio reaches its target")
    )
    sys.exit(1 if short or failed else 0)


if __name__ == "__main__":
    main()
