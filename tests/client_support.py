"""What tests of the client share."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

TOKEN = "the trainer's"


@dataclass
class Relay:
    """A port that passes bytes on to another, and tells when some went through."""

    target: int
    port: int = 0
    opened: int = 0
    """Connections so far."""
    passed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client's bytes have been handed over; clear it before a request."""


@asynccontextmanager
async def relay(target: int) -> AsyncIterator[Relay]:
    relayed = Relay(target)

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passed: asyncio.Event | None) -> None:
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
                if passed is not None:
                    passed.set()
        except ConnectionError:
            return
        finally:
            writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relayed.opened += 1
        try:
            upstream, downstream = await asyncio.open_connection("127.0.0.1", target)
        except ConnectionError:
            writer.close()
            return
        await asyncio.gather(copy(reader, downstream, relayed.passed), copy(upstream, writer, None))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    relayed.port = server.sockets[0].getsockname()[1]
    async with server:
        yield relayed
