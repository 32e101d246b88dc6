"""Processor time that one request costs a trainer, by HTTP library and number of connections: 200 episodes at once.

    python benchmarks/bench_client.py [--json]

docs/decisions/client-connections.md has the figures that decided for aiohttp.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import httpx

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from runtime_support import serve, write_environment  # noqa: E402

EPISODES, CALLS = 200, 5
Ask = Callable[[str, str, Any], Awaitable[bytes]]


async def by_aiohttp(base: str, connections: int) -> float:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=connections)) as session:

        async def ask(method: str, path: str, body: Any) -> bytes:
            async with session.request(method, base + path, json=body) as reply:
                return await reply.read()

        return await spent(ask)


async def by_httpx(base: str, connections: int) -> float:
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    async with httpx.AsyncClient(limits=limits, trust_env=False, timeout=60) as session:

        async def ask(method: str, path: str, body: Any) -> bytes:
            return (await session.request(method, base + path, json=body)).content

        return await spent(ask)


async def spent(ask: Ask) -> float:
    """Milliseconds of this process's CPU time a request."""

    async def play() -> None:
        episode = json.loads(await ask("POST", "/episodes", {"task_id": 0}))
        for number in range(CALLS):
            await ask("POST", episode["mcp_path"], {"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": {}})
        await ask("DELETE", f"/episodes/{episode['episode_id']}", None)

    begin = time.process_time()
    await asyncio.gather(*(play() for _ in range(EPISODES)))
    return (time.process_time() - begin) / (EPISODES * (CALLS + 2)) * 1000


LIBRARIES = {"httpx": by_httpx, "aiohttp": by_aiohttp}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder, serve(write_environment(Path(folder) / "env")) as served:
        base = f"http://127.0.0.1:{served.port}"
        for connections in (8, 32, 128):
            spent = {name: round(asyncio.run(one(base, connections)), 3) for name, one in LIBRARIES.items()}
            rows.append({"connections": connections, "ms a request": spent})
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        print(f"{row['connections']:4} connections:", *(f"{name} {value:.2f} ms" for name, value in row["ms a request"].items()))


if __name__ == "__main__":
    main()
