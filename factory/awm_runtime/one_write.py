"""Responses in one piece: uvicorn sends a response's head and its body by two system calls, which wake up twice whoever waits."""

import asyncio
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_HEAD: Final = b"HTTP/1.1 "
_END: Final = b"\r\n\r\n"


class OneWrite:
    """A transport that keeps a head back until the write after it, but never beyond the turn of the loop it came in."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head + data)
        elif data.startswith(_HEAD) and data.endswith(_END):
            self._head = data
            self._loop.call_soon(self._flush)
        else:
            self._transport.write(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head:
            self.write(b"")


class OneWriteProtocol(HttpToolsProtocol):
    """uvicorn's protocol on such a transport."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, OneWrite(transport, self.loop)))
