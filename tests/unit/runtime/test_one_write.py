"""A response's head goes out with what follows it, and by itself where nothing does."""

import asyncio
from typing import cast

import pytest

from awm_runtime.one_write import OneWrite

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


class Wire:
    """A transport that remembers what it was given, write by write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.closed_after = -1

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def close(self) -> None:
        self.closed_after = len(self.writes)

    def is_closing(self) -> bool:
        return False


def sent(*steps: bytes | None) -> list[bytes]:
    """The writes that come of these; None is a turn of the loop."""

    async def play() -> list[bytes]:
        wire = Wire()
        transport = OneWrite(cast(asyncio.Transport, wire), asyncio.get_running_loop())
        assert not transport.is_closing()
        for step in steps:
            if step is None:
                await asyncio.sleep(0)
            else:
                transport.write(step)
        await asyncio.sleep(0)
        return wire.writes

    return asyncio.run(play())


@pytest.mark.parametrize(
    ("steps", "writes"),
    [
        ((HEAD, b"{}"), [HEAD + b"{}"]),
        ((HEAD, b""), [HEAD]),
        ((HEAD,), [HEAD]),
        ((HEAD, None, b"{}"), [HEAD, b"{}"]),
        ((HEAD, b"a", b"b"), [HEAD + b"a", b"b"]),
        ((HEAD, HEAD), [HEAD + HEAD]),
        ((b"\x81\x02{}",), [b"\x81\x02{}"]),
    ],
)
def test_a_head_waits_for_the_body_and_for_nothing_else(steps: tuple[bytes | None, ...], writes: list[bytes]) -> None:
    assert sent(*steps) == writes


def test_what_is_held_back_goes_out_before_the_connection_is_closed() -> None:
    async def play() -> Wire:
        wire = Wire()
        transport = OneWrite(cast(asyncio.Transport, wire), asyncio.get_running_loop())
        transport.write(HEAD)
        transport.close()
        return wire

    wire = asyncio.run(play())
    assert wire.writes == [HEAD]
    assert wire.closed_after == 1
