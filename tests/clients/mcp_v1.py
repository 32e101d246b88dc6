"""The official Python SDK, 1.x."""

import asyncio
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def main(url: str, tool: str) -> None:
    async with streamablehttp_client(f"{url}/mcp") as (read, write, _), ClientSession(read, write) as session:
        hello = await session.initialize()
        tools = (await session.list_tools()).tools
        assert tool in [listed.name for listed in tools]
        result = await session.call_tool(tool, {})
        assert not result.isError, result
        await session.send_ping()
        print(f"{hello.protocolVersion}, {len(tools)} tools")


asyncio.run(main(*sys.argv[1:]))
