"""mcp-agent, which AWM's own rollouts use; without a model."""

import asyncio
import sys

from mcp_agent.agents.agent import Agent
from mcp_agent.app import MCPApp
from mcp_agent.config import LoggerSettings, MCPServerSettings, MCPSettings, Settings


async def main(url: str, tool: str) -> None:
    server = MCPServerSettings(transport="streamable_http", url=f"{url}/mcp")
    settings = Settings(execution_engine="asyncio", logger=LoggerSettings(type="none"), mcp=MCPSettings(servers={"env": server}))
    async with MCPApp(name="clients", settings=settings).run():
        agent = Agent(name="reader", instruction="", server_names=["env"])
        async with agent:
            names = [listed.name for listed in (await agent.list_tools()).tools]
            assert any(name.endswith(tool) for name in names), names
            result = await agent.call_tool(next(name for name in names if name.endswith(tool)), {})
            assert not result.isError, result
            print(f"{len(names)} tools")


asyncio.run(main(*sys.argv[1:]))
