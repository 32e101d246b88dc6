"""MCP over stdin and stdout: `docker run -i awm/<env_id> stdio`, one JSON-RPC message a line, on the default episode."""

import asyncio
import os
import sys

from awm_runtime.console import complain
from awm_runtime.episodes import Episodes
from awm_runtime.fresh import Fresh
from awm_runtime.mcp import McpServer
from awm_runtime.pool import EnvironmentBroken, Pool
from awm_runtime.serve import environment
from awm_runtime.settings import Settings


def stdio(settings: Settings, zygote: Fresh) -> int:
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not write into the protocol
    try:
        with environment(settings, zygote) as (pool, episodes):
            asyncio.run(_converse(pool, episodes, output.write, output.flush))
    except EnvironmentBroken as error:
        complain(error)
        return 1
    return 0


async def _converse(pool: Pool, episodes: Episodes, write: "object", flush: "object") -> None:
    assert callable(write) and callable(flush)
    await pool.open()
    server = McpServer(episodes)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.buffer.readline):
        if not line.strip():
            continue
        reply = await server.handle(episodes.default, line, None)
        if reply.body:
            write(reply.body + b"\n")
            flush()
