"""Small pieces of HTTP that both ports share: reading a body within a limit, answering bytes, telling browsers off."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

JSON: Final = b"application/json"


class TooLarge(Exception):
    """The request's body is over the limit."""


def header(scope: Scope, name: bytes) -> str | None:
    for key, value in scope["headers"]:
        if key == name:
            return str(value.decode("latin-1"))
    return None


async def read_body(receive: Receive, limit: int) -> bytes:
    """Raises TooLarge."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ConnectionResetError("the client went away")
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise TooLarge
        parts.append(part)
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


async def answer(
    send: Send, status: int, body: bytes = b"", *, headers: tuple[tuple[bytes, bytes], ...] = (), kind: bytes = JSON
) -> None:
    fields = [(b"content-length", str(len(body)).encode()), *headers]
    if body:
        fields.append((b"content-type", kind))
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})


def foreign_origin(scope: Scope) -> bool:
    """True for a request that a page of another site makes in somebody's browser. Programs send no Origin."""
    origin = header(scope, b"origin")
    if origin is None:
        return False
    host = header(scope, b"host") or ""
    return origin.partition("://")[2] != host
