"""The official Python SDK, 2.x: the stateless protocol, found by server/discover."""

import asyncio
import sys

from mcp import Client


async def main(url: str, tool: str) -> None:
    async with Client(f"{url}/mcp") as client:
        tools = (await client.list_tools()).tools
        assert tool in [listed.name for listed in tools]
        result = await client.call_tool(tool, {})
        assert not result.is_error, result
        assert client.protocol_version == "2026-07-28", client.protocol_version
        print(f"{client.protocol_version}, {len(tools)} tools")


asyncio.run(main(*sys.argv[1:]))
