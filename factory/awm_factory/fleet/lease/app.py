"""The lease service over HTTP: its own routes, and the two planes of the episodes behind them.

Agents' paths are compared byte for byte, as the runtime does, so that no encoding leads anywhere else.
"""

import asyncio
import hmac
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from awm_factory.client.wire import Heartbeat, Lease, LeaseRequest, Seat
from awm_factory.fleet.lease.containers import AGENT, Answer
from awm_factory.fleet.lease.refusal import Refusal
from awm_factory.fleet.lease.service import Leases
from awm_factory.fleet.lease.store import Held

MOST: Final = 4 << 20
"""Bytes of a request, as in the runtime."""

_NAME: Final = rb"([0-9a-f]{32})"
_AGENT: Final = re.compile(rb"/agent/" + _NAME + rb"/mcp/?\Z")
_LEASE: Final = re.compile(rb"/leases/" + _NAME + rb"(/heartbeat)?\Z")
_CONTROL: Final = re.compile(
    rb"/leases/" + _NAME + rb"(?:/twins/" + _NAME + rb")?/control(/(?:verify|reset|fork|snapshot|restore|diff|db|mcp))?\Z"
)
_HOST: Final = re.compile(r"[A-Za-z0-9_.\-]+(?::\d+)?\Z|\[[0-9A-Fa-f:]+\](?::\d+)?\Z")
_KEPT: Final = ("content-type", "mcp-session-id", "mcp-protocol-version")

B = TypeVar("B", bound=BaseModel)


@dataclass(frozen=True)
class LeaseApp:
    """One port of the service. `direct`: its callers are on the trainers' network, so agents' URLs lead to the containers."""

    leases: Leases
    token: str
    direct: bool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        request = Request(scope, receive)
        try:
            response = await self._answer(request, scope.get("raw_path") or scope["path"].encode())
        except Refusal as refusal:
            response = Response(refusal.body(), refusal.status, refusal.headers(), media_type="application/json")
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _answer(self, request: Request, path: bytes) -> Response:
        if (origin := request.headers.get("origin")) and origin.partition("://")[2] != request.headers.get("host"):
            raise Refusal(403, "foreign_origin", "requests from a web page of another site are refused")
        if match := _AGENT.match(path):
            held = self.leases.episode(match[1].decode())
            return await self._pass(request, held, "agent", "/mcp", await _body(request))
        if path == b"/health":
            return _json(b'{"status":"healthy"}')
        given = request.headers.get("authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
            raise Refusal(401, "token", "the fleet asks for its token: send it as Authorization: Bearer <token>")
        if match := _CONTROL.match(path):
            lease_id, twin, rest = ("" if part is None else part.decode() for part in match.groups())
            return await self._control(request, lease_id, twin, rest)
        if match := _LEASE.match(path):
            return await self._lease(request, match[1].decode(), heartbeat=match[2] is not None)
        routes: dict[tuple[str, bytes], Callable[[Request], Awaitable[Response]]] = {
            ("POST", b"/leases"): self._take,
            ("GET", b"/status"): self._status,
            ("GET", b"/metrics"): self._metrics,
        }
        if route := routes.get((request.method, path)):
            return await route(request)
        raise Refusal(
            404, "no_route", "this is a lease service: POST /leases, GET /status, GET /metrics; docs/fleets.md has them all"
        )

    async def _take(self, request: Request) -> Response:
        asked, address = await _read(request, LeaseRequest), _address(request)
        client = request.headers.get("awm-client") or (request.client.host if request.client else "")
        taking = asyncio.ensure_future(self.leases.take(asked, client))
        leaving = asyncio.ensure_future(_left(request))
        try:
            await asyncio.wait([taking, leaving], return_when=asyncio.FIRST_COMPLETED)
            if not taking.done():
                raise ClientDisconnect
            held = await taking
            if leaving.done():
                await self.leases.release(held.lease_id)
                raise ClientDisconnect
        finally:
            taking.cancel()
            leaving.cancel()
        return _json(self._shown(address, held).model_dump_json().encode(), 201)

    async def _lease(self, request: Request, lease_id: str, *, heartbeat: bool) -> Response:
        if request.method == "POST" and heartbeat:
            held = self.leases.prolong(lease_id, (await _read(request, Heartbeat)).ttl)
        elif request.method == "DELETE" and not heartbeat:
            await self.leases.release(lease_id)
            return Response(status_code=204)
        elif request.method == "GET" and not heartbeat:
            held = self.leases.lease(lease_id)
        else:
            raise _no_method(request)
        return _json(self._shown(_address(request), held).model_dump_json().encode())

    async def _control(self, request: Request, lease_id: str, twin: str, rest: str) -> Response:
        held = self.leases.episode(twin, lease_id) if twin else self.leases.lease(lease_id)
        if not rest and request.method == "DELETE":
            if not held.twin:
                raise Refusal(405, "no_method", f"a lease's own episode ends with it: DELETE /leases/{lease_id}")
            await self.leases.drop_twin(held)
            return Response(status_code=204)
        if rest == "/fork" and request.method == "POST":
            address = _address(request)
            made, answer = await self.leases.fork(held)
            return _json(self._seat(address, made).model_dump_json().encode(), 201) if made is not held else _answer(answer)
        return await self._pass(request, held, "agent" if rest == "/mcp" else "control", rest, await _body(request))

    async def _pass(self, request: Request, held: Held, plane: Any, rest: str, body: bytes) -> Response:
        begin = time.perf_counter()
        headers = {name: value for name in _KEPT if (value := request.headers.get(name)) is not None}
        status = 502
        try:
            answer = await self.leases.forward(held, plane, request.method, rest, body, headers)
            status = answer.status
        except Refusal as refusal:
            status = refusal.status
            raise
        finally:
            self.leases.metrics.passed(plane, status, time.perf_counter() - begin)
        return _answer(answer)

    async def _status(self, _request: Request) -> Response:
        return _json(self.leases.status().model_dump_json().encode())

    async def _metrics(self, _request: Request) -> Response:
        return Response(self.leases.metrics.text(), media_type="text/plain; version=0.0.4")

    def _shown(self, address: str, held: Held) -> Lease:
        seat = self._seat(address, held).model_dump()
        return Lease(**seat, lease_id=held.lease_id, expires_at=held.expires_at, ttl=held.ttl)

    def _seat(self, address: str, held: Held) -> Seat:
        direct = f"http://{held.host}:{AGENT}/episodes/{held.episode_id}/mcp"
        twin = f"/twins/{held.episode_id}" if held.twin else ""
        return Seat(
            env_id=held.env_id,
            task_id=held.task_id,
            instruction=held.instruction,
            episode_id=held.episode_id,
            agent_url=direct if self.direct else f"{address}/agent/{held.episode_id}/mcp",
            control_url=f"{address}/leases/{held.lease_id}{twin}/control",
        )


def _address(request: Request) -> str:
    """Of this service, as the caller knows it. Raises Refusal."""
    host = request.headers.get("host", "")
    if not _HOST.match(host):
        raise Refusal(400, "host", "the Host header names no host; addresses in answers are made from it")
    return f"http://{host}"


async def _body(request: Request) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MOST:
            raise Refusal(413, "too_large", f"a request may have {MOST} bytes")
        parts.append(part)
    return b"".join(parts)


async def _read(request: Request, kind: type[B]) -> B:
    try:
        return kind.model_validate_json(await _body(request) or b"{}")
    except ValidationError as error:
        first = error.errors()[0]
        raise Refusal(422, "body", f"{'.'.join(map(str, first['loc'])) or 'the body'}: {first['msg']}") from error


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        continue


def _no_method(request: Request) -> Refusal:
    return Refusal(405, "no_method", f"{request.method} is nothing that can be done with {request.url.path}")


def _answer(answer: Answer) -> Response:
    return Response(answer.body, answer.status, dict(answer.headers))


def _json(body: bytes, status: int = 200) -> Response:
    return Response(body, status, media_type="application/json")
