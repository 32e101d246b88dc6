"""OpenEnv's unmodified clients, and its validator."""

import asyncio
import subprocess
import sys
from pathlib import Path

from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient


async def main(url: str, tool: str) -> None:
    async with GenericEnvClient(base_url=url) as env:
        first = await env.reset(task_id=None, seed=3)
        assert first.done is False
        step = await env.step({"type": "call_tool", "tool_name": tool, "arguments": {}})
        assert step.observation["error"] is None, step
        assert step.reward is None
        end = await env.step({"type": "call_tool", "tool_name": "submit", "arguments": {"answer": "nothing"}})
        assert end.done is True, end
        assert end.reward == 0.0, end
    for production in (False, True):
        client = MCPToolClient(base_url=url)
        client.use_production_mode = production
        async with client as tools:
            names = [listed.name for listed in await tools.list_tools()]
            assert tool in names
            assert "submit" not in names
            assert await tools.call_tool(tool) is not None
    command = [str(Path(sys.executable).parent / "openenv"), "validate", "--url", url]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    print(f"{len(names)} tools, validated")


asyncio.run(main(*sys.argv[1:]))
