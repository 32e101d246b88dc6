"""MCP's streamable HTTP, stateless: one JSON-RPC message in, one JSON reply out, nothing kept between two requests.

The session id that `initialize` hands out only names this start of the server, so that a client of an earlier start gets the 404
that the protocol wants and does not go on, unknowing, with a fresh database.
"""

import json
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

import pydantic_core

from awm_runtime.episode import Refused, Running
from awm_runtime.episodes import Episodes
from awm_runtime.wire import Tool

PROTOCOLS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")

STATELESS: Final = "2026-07-28"
"""Since this version there is no handshake: each request says in `_meta` what it speaks, and `server/discover` lists ours."""

_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
_COMPLETE: Final = b'{"resultType":"complete",'
_CACHED: Final = {"ttlMs": 3_600_000, "cacheScope": "private"}

_PARSE_ERROR, _INVALID_REQUEST, _NO_METHOD, _INVALID_PARAMS, _REFUSED = -32700, -32600, -32601, -32602, -32000


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes = b""
    session: bool = False
    """Whether to name this start of the server in a header."""


class McpServer:
    def __init__(self, episodes: Episodes, *, sessions: bool = False) -> None:
        """`sessions` adds OpenEnv's: its clients make an episode by `openenv/session/create`. Never on the agent's port."""
        self.episodes, self.sessions = episodes, sessions
        self.tools = b'{"tools":' + pydantic_core.to_json([described(tool) for tool in episodes.ready.tools]) + b"}"
        self.stateless_tools = _COMPLETE + json.dumps(_CACHED)[1:-1].encode() + b"," + self.tools[1:]
        manifest = episodes.files.manifest
        self.info: dict[str, Any] = {
            "protocolVersion": PROTOCOLS[0],
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": episodes.files.env_id, "title": manifest.get("scenario", ""), "version": _version()},
            "instructions": manifest.get("description", ""),
        }

        discovered = {
            "supportedVersions": [STATELESS, *PROTOCOLS],
            "capabilities": self.info["capabilities"],
            "instructions": self.info["instructions"],
            "_meta": {"io.modelcontextprotocol/serverInfo": self.info["serverInfo"]},
            **_CACHED,
        }
        self.discovered = _COMPLETE + pydantic_core.to_json(discovered)[1:]

    async def handle(self, episode: Running, body: bytes, session: str | None) -> Reply:
        if session is not None and session != self.episodes.boot:
            return Reply(404, error(None, _REFUSED, "the environment was restarted and its episodes are lost; initialize anew"))
        try:
            message = pydantic_core.from_json(body)
        except ValueError as wrong:
            return Reply(400, error(None, _PARSE_ERROR, f"this is no JSON: {wrong}"))
        if isinstance(message, list):
            replies = [reply.body for item in message if (reply := await self._one(episode, item)).body]
            return Reply(200, b"[" + b",".join(replies) + b"]") if replies else Reply(202)
        return await self._one(episode, message)

    async def _one(self, episode: Running, message: Any) -> Reply:
        if not isinstance(message, dict) or message == {}:
            # An empty object is how OpenEnv's clients ask whether MCP is spoken here; they want an answer, not an HTTP error.
            return Reply(200, error(None, _INVALID_REQUEST, "this is no JSON-RPC request"))
        method, key = message.get("method"), message.get("id")
        if not isinstance(method, str):
            return (
                Reply(202)
                if "result" in message or "error" in message
                else Reply(200, error(key, _INVALID_REQUEST, "no method is named"))
            )
        if "id" not in message:
            return Reply(202)
        params = message.get("params") or {}
        if not isinstance(params, dict):
            return Reply(200, error(key, _INVALID_PARAMS, "params is no object"))
        return await self._request(episode, method, key, params)

    async def _request(self, episode: Running, method: str, key: Any, params: dict[str, Any]) -> Reply:
        if self.sessions and ("session_id" in params or method.startswith("openenv/session/")):
            try:
                return await self._in_session(method, key, params)
            except Refused as refused:
                return Reply(200, error(key, _REFUSED, str(refused)))
        stateless = _speaks_stateless(params)
        match method:
            case "tools/call":
                return Reply(200, await self.call(episode, key, params, stateless=stateless))
            case "tools/list":
                return Reply(200, result(key, self.stateless_tools if stateless else self.tools))
            case "server/discover":
                return Reply(200, result(key, self.discovered))
            case "initialize":
                asked = params.get("protocolVersion")
                chosen = asked if asked in PROTOCOLS else PROTOCOLS[0]
                return Reply(200, result(key, pydantic_core.to_json(self.info | {"protocolVersion": chosen})), session=True)
            case "ping":
                return Reply(200, result(key, b"{}"))
        return Reply(200, error(key, _NO_METHOD, f"this server has no method {method[:100]!r}"))

    async def _in_session(self, method: str, key: Any, params: dict[str, Any]) -> Reply:
        """Raises Refused."""
        if method == "openenv/session/create":
            made = self.episodes.create(None)
            return Reply(200, result(key, json.dumps({"session_id": made.id}).encode()))
        episode = self.episodes.find(str(params.get("session_id")))
        if method == "openenv/session/close":
            self.episodes.delete(episode)
            return Reply(200, result(key, json.dumps({"session_id": episode.id, "closed": True}).encode()))
        rest = {name: value for name, value in params.items() if name != "session_id"}
        return await self._request(episode, method, key, rest)

    async def call(self, episode: Running, key: Any, params: dict[str, Any], *, stateless: bool) -> bytes:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or name not in self.episodes.tools:
            return error(key, _INVALID_PARAMS, f"unknown tool: {str(name)[:100]}")
        arguments = {} if arguments is None else arguments
        if not isinstance(arguments, dict):
            return error(key, _INVALID_PARAMS, "the arguments of a tool are a JSON object")
        try:
            outcome = await self.episodes.call(episode, name, arguments, mcp=True)
        except Refused as refused:
            return error(key, _REFUSED, str(refused))
        return result(key, _COMPLETE + outcome.body[1:] if stateless else outcome.body)


def _speaks_stateless(params: dict[str, Any]) -> bool:
    meta = params.get("_meta")
    return isinstance(meta, dict) and meta.get(_VERSION_KEY) == STATELESS


def described(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}


def result(key: Any, body: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":' + json.dumps(key).encode() + b',"result":' + body + b"}"


def error(key: Any, code: int, message: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": message}}).encode()


def _version() -> str:
    try:
        return version("awm-factory")
    except ModuleNotFoundError:
        return "0"
