"""OpenEnv's unmodified clients, and its validator: on a URL, on a folder, and starting the image themselves."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient


async def main(url: str, tool: str, image: str = "", folder: str = "") -> None:
    async with GenericEnvClient(base_url=url) as env:
        await play(env, tool)
    for production in (False, True):
        client = MCPToolClient(base_url=url)
        client.use_production_mode = production
        async with client as tools:
            names = [listed.name for listed in await tools.list_tools()]
            assert tool in names
            assert "submit" not in names
            assert await tools.call_tool(tool) is not None
    validate("--url", url)
    if image:
        # Later versions would go on to build the folder's image once more, and ask for solutions, which no folder of ours has.
        validate(*(("--level", "static", "--skip-build") if has_levels() else ()), folder)
        slowest = await from_image(image, tool)
        print(f"{len(names)} tools, validated, ended {slowest:.1f} s after docker stop at most")
    else:
        print(f"{len(names)} tools, validated")


async def play(env: Any, tool: str) -> None:
    first = await env.reset(task_id=None, seed=3)
    assert first.done is False
    step = await env.step({"type": "call_tool", "tool_name": tool, "arguments": {}})
    assert step.observation["error"] is None, step
    assert step.reward is None
    end = await env.step({"type": "call_tool", "tool_name": "submit", "arguments": {"answer": "nothing"}})
    assert end.done is True, end
    assert end.reward == 0.0, end


async def from_image(image: str, tool: str) -> float:
    """Seconds that the slower one took to end. Each client starts a container, waits 30 s for its health, and stops it."""
    slowest = 0.0
    for kind in (GenericEnvClient, MCPToolClient):
        env = await kind.from_docker_image(image)
        try:
            if kind is MCPToolClient:
                assert tool in [listed.name for listed in await env.list_tools()]
            else:
                await play(env, tool)
        finally:
            started = time.monotonic()
            await env.close()
            slowest = max(slowest, time.monotonic() - started)
    assert slowest < 10, slowest
    return slowest


def has_levels() -> bool:
    command = [str(Path(sys.executable).parent / "openenv"), "validate", "--help"]
    return "--level" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def validate(*target: str) -> None:
    command = [str(Path(sys.executable).parent / "openenv"), "validate", *target]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


asyncio.run(main(*sys.argv[1:]))
