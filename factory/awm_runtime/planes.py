"""The two ports' ASGI apps. They share no router: what the agent's port does not spell out here, it does not have.

An MCP adapter calls endpoints by URL, and a path such as `/mcp/../reset` must never become a control route; so the agent's app
compares the raw path, byte for byte, with the three forms it knows.
"""

import hmac
import re
from typing import Final

from awm_runtime import http, mcp
from awm_runtime.episode import Refused, Running
from awm_runtime.episodes import Episodes
from awm_runtime.http import App, Receive, Scope, Send
from awm_runtime.mcp import McpServer

_EPISODE: Final = re.compile(rb"/episodes/([0-9a-f]{32})/mcp/?\Z")
_DEFAULT: Final = (b"/mcp", b"/mcp/")
_SESSION: Final = b"mcp-session-id"


class McpRoutes:
    """`/mcp` and `/episodes/{id}/mcp`, as both ports serve them."""

    def __init__(self, episodes: Episodes, server: McpServer, max_body: int) -> None:
        self.episodes, self.server, self.max_body = episodes, server, max_body
        self.session = ((_SESSION, episodes.boot.encode()),)

    def episode(self, scope: Scope) -> Running | None:
        """The episode that a path speaks of; None where it is no MCP path. Raises Refused for one that is gone."""
        path: bytes = scope.get("raw_path") or scope["path"].encode()
        if path in _DEFAULT:
            return self.episodes.default
        if match := _EPISODE.match(path):
            running = self.episodes.running.get(match[1].decode())
            if running is None:
                raise Refused(404, "there is no such episode; it was deleted, expired, or the environment was restarted")
            return running
        return None

    async def serve(self, scope: Scope, receive: Receive, send: Send, episode: Running) -> None:
        method = scope["method"]
        if method == "DELETE":
            await http.answer(send, 204)  # a session holds nothing, so ending it is done
        elif method != "POST":
            # No stream of server messages is offered; clients take this answer as exactly that.
            await http.answer(send, 405, headers=((b"allow", b"POST, DELETE"),))
        else:
            body = await http.read_body(receive, self.max_body)
            reply = await self.server.handle(episode, body, http.header(scope, _SESSION))
            await http.answer(send, reply.status, reply.body, headers=self.session if reply.session else ())


class AgentPlane:
    """Port 8001: MCP and nothing else."""

    def __init__(self, routes: McpRoutes) -> None:
        self.routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            return
        try:
            if http.foreign_origin(scope):
                raise Refused(403, "requests from a web page of another site are refused")
            episode = self.routes.episode(scope)
            if episode is None:
                raise Refused(404, "this port serves /mcp and /episodes/{id}/mcp")
            await self.routes.serve(scope, receive, send, episode)
        except Refused as refused:
            await http.answer(send, refused.status, mcp.error(None, -32000, str(refused)))
        except http.TooLarge:
            await http.answer(send, 413, mcp.error(None, -32000, f"a request may have {self.routes.max_body} bytes"))
        except ConnectionResetError:
            return


class ControlPlane:
    """Port 8000: MCP first, everything else by the control app; all but /health behind the token where one is set."""

    def __init__(self, routes: McpRoutes, control: App, token: str | None) -> None:
        self.routes, self.control = routes, control
        self.token = f"Bearer {token}".encode() if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.control(scope, receive, send)
            return
        try:
            if http.foreign_origin(scope):
                raise Refused(403, "requests from a web page of another site are refused")
            if not self._allowed(scope):
                raise Refused(401, "this container asks for its AWM_TOKEN: send it as Authorization: Bearer <token>")
            episode = self.routes.episode(scope) if scope["type"] == "http" else None
            if episode is None:
                await self.control(scope, receive, send)
            else:
                await self.routes.serve(scope, receive, send, episode)
        except Refused as refused:
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008, "reason": str(refused)[:100]})
            else:
                await http.answer(send, refused.status, mcp.error(None, -32000, str(refused)))
        except http.TooLarge:
            await http.answer(send, 413, mcp.error(None, -32000, f"a request may have {self.routes.max_body} bytes"))
        except ConnectionResetError:
            return

    def _allowed(self, scope: Scope) -> bool:
        if self.token is None or (scope["type"] == "http" and scope["path"] == "/health"):
            return True
        given = (http.header(scope, b"authorization") or "").encode()
        return hmac.compare_digest(given, self.token)
