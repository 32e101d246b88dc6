"""MCP as an episode needs it: tools/list and tools/call, each one POST."""

import itertools
import json
from collections.abc import Mapping
from typing import Any, Final

from awm_factory.client.answers import good
from awm_factory.client.connections import Connections, encoded
from awm_factory.client.places import Held
from awm_factory.client.results import CallResult, Tool
from awm_factory.errors import InfrastructureFault, MalformedCall

_MALFORMED: Final = (-32700, -32602)
"""The request is no JSON; the tool is unknown, or its arguments are no object."""

_ids = itertools.count(1)


async def list_tools(connections: Connections, episode: Held) -> list[Tool]:
    """Raises AwmError."""
    tools: list[Tool] = []
    params: dict[str, Any] = {}
    while True:
        result = await _ask(connections, episode, "tools/list", params)
        tools += [Tool(tool["name"], tool.get("description") or "", tool["inputSchema"]) for tool in result["tools"]]
        if not (cursor := result.get("nextCursor")):
            return tools
        params = {"cursor": cursor}


async def call_tool(connections: Connections, episode: Held, name: str, arguments: Mapping[str, Any] | str | None) -> CallResult:
    """Raises MalformedCall for what AWM calls a format error, InfrastructureFault where there is no answer."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except ValueError as error:
            raise MalformedCall(f"the arguments of {name} are no JSON: {error}", "arguments") from error
    if arguments is not None and not isinstance(arguments, Mapping):
        raise MalformedCall(f"the arguments of {name} are {type(arguments).__name__}, not a JSON object", "arguments")
    result = await _ask(connections, episode, "tools/call", {"name": name, "arguments": dict(arguments or {})})
    text = "".join(block.get("text", "") for block in result["content"])
    is_error = bool(result.get("isError"))
    return CallResult(text, is_error, _kind(text) if is_error else "ok")


async def _ask(connections: Connections, episode: Held, method: str, params: dict[str, Any]) -> Any:
    try:
        body = encoded({"jsonrpc": "2.0", "id": next(_ids), "method": method, "params": params})
    except (ValueError, TypeError) as error:
        raise MalformedCall(f"the arguments are no JSON: {error}", "arguments") from error
    reply = await connections.ask("POST", episode.agent_url, body, token=episode.agent_token)
    if reply.status in (400, 413):
        raise MalformedCall(f"the call was not understood: {reply.text[:300]}", "arguments")
    try:
        message = good(reply).json()
        if "error" not in message:
            return message["result"]
        code, said = message["error"]["code"], str(message["error"]["message"])
    except (ValueError, LookupError, TypeError) as error:
        raise InfrastructureFault(f"{episode.agent_url} does not speak MCP: {reply.text[:300]}; is it ours?") from error
    if method == "tools/call" and code in _MALFORMED:
        raise MalformedCall(said, "unknown_tool" if said.startswith("unknown tool") else "arguments")
    raise InfrastructureFault(f"{method} was refused: {said}; mask this episode", "refused")


def _kind(text: str) -> str:
    try:
        return str(json.loads(text)["error"]["kind"])
    except (ValueError, LookupError, TypeError):
        return "internal"
