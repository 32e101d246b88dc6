import asyncio
import sys

from fastmcp import Client


async def main(url: str, tool: str) -> None:
    async with Client(f"{url}/mcp/") as client:
        tools = await client.list_tools()
        assert tool in [listed.name for listed in tools]
        result = await client.call_tool(tool, {})
        assert not result.is_error, result
        print(f"{len(tools)} tools")


asyncio.run(main(*sys.argv[1:]))
