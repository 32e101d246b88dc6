"""`python -m awm_runtime.probe URL`: the official MCP client, run from another container against an environment.

Prints one JSON object: the server's name, its tools, and the result of each `--call`. Exit status 1 with the reason in `error`
where the server can't be reached or breaks the protocol.
"""

import argparse
import asyncio
import json
import sys
from typing import Any

from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamablehttp_client

from awm_runtime.console import tell


async def probe(url: str, calls: list[tuple[str, dict[str, Any]]], headers: dict[str, str] | None = None) -> dict[str, Any]:
    async with streamablehttp_client(url, headers=headers) as (read, write, _), ClientSession(read, write) as session:
        hello = await session.initialize()
        listed = await session.list_tools()
        results = [await _call(session, name, arguments) for name, arguments in calls]
    return {
        "server": hello.serverInfo.name,
        "protocol": hello.protocolVersion,
        "tools": [tool.model_dump(mode="json", exclude_none=True) for tool in listed.tools],
        "calls": results,
    }


async def _call(session: ClientSession, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The tool's result, or the protocol's error where the server refuses the call itself."""
    try:
        return (await session.call_tool(name, arguments)).model_dump(mode="json", exclude_none=True)
    except McpError as error:
        return {"error": error.error.model_dump(mode="json", exclude_none=True)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m awm_runtime.probe", description=__doc__)
    parser.add_argument("url", help="http://host:8000/mcp")
    parser.add_argument(
        "--call", nargs=2, action="append", default=[], metavar=("NAME", "JSON"), help="call a tool; may be repeated"
    )
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds for all of it (default 30)")
    arguments = parser.parse_args()
    calls = [(name, json.loads(text)) for name, text in arguments.call]

    async def limited() -> dict[str, Any]:
        async with asyncio.timeout(arguments.timeout):
            return await probe(arguments.url, calls)

    try:
        tell(json.dumps(asyncio.run(limited()), ensure_ascii=False))
    except Exception as error:  # noqa: BLE001 - the boundary to the network and the client library: the caller reads JSON, whatever happens
        cause = _innermost(error)
        tell(json.dumps({"error": f"{type(cause).__name__}: {cause}"}))
        sys.exit(1)


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


if __name__ == "__main__":
    main()
