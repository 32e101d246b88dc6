"""When a worker counts as held up, and what the pool does about it: by the time its process had, not by the clock on the wall."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from awm_runtime import links
from awm_runtime.frames import Frame
from awm_runtime.fresh import Fresh
from awm_runtime.links import PATIENCE, Link, connect
from awm_runtime.pool import MOST_EXTRA, Pool
from awm_runtime.serve import server
from awm_runtime.settings import Settings


@asynccontextmanager
async def in_a_call() -> AsyncIterator[tuple[Link, socket.socket, "asyncio.Task[Frame]"]]:
    """A link whose process, at the other end of the socket, answers when the test does."""
    ours, theirs = socket.socketpair()
    with theirs:
        link = await connect(ours)
        asking = asyncio.create_task(link.ask(Frame({"tool": "t"}), 60))
        await asyncio.sleep(0)
        yield link, theirs, asking
        asking.cancel()
        link.close()


@pytest.mark.parametrize(("queued", "held_up"), [(0.0, True), (0.9, True), (0.95, False), (1.0, False)])
def test_time_spent_waiting_for_a_processor_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch, queued: float, held_up: bool
) -> None:
    waited = iter([7.0, 7.0 + queued])
    monkeypatch.setattr(links, "queued_seconds", lambda _process: next(waited))

    async def looked() -> bool:
        async with in_a_call() as (link, _, _):
            link.look(100.0)
            assert not link.held_up
            link.look(101.0)
            return link.held_up

    assert asyncio.run(looked()) is held_up


def test_a_reply_that_waits_to_be_read_is_none_of_the_workers_time() -> None:
    async def looked() -> tuple[bool, bool, bool]:
        async with in_a_call() as (link, worker, asking):
            link.look(0.0)
            link.look(PATIENCE)
            before = link.held_up
            worker.sendall(Frame({"kind": "ok"}).encode())
            link.look(60.0)
            unread = link.held_up
            await asking
            link.look(120.0)
            return before, unread, link.held_up

    assert asyncio.run(looked()) == (True, False, False)


def test_each_call_is_looked_at_anew() -> None:
    async def looked() -> bool:
        async with in_a_call() as (link, worker, asking):
            link.look(0.0)
            worker.sendall(Frame({"kind": "ok"}).encode())
            await asking
            again = asyncio.create_task(link.ask(Frame({"tool": "t"}), 60))
            await asyncio.sleep(0)
            link.look(50.0)
            again.cancel()
            return link.held_up

    assert asyncio.run(looked()) is False


def test_the_kernel_tells_how_long_a_process_has_waited() -> None:
    assert links.queued_seconds(1 << 30) == 0.0


class Worker:
    """What the pool knows of a link."""

    def __init__(self, held_up: bool) -> None:
        self.held_up = held_up

    def look(self, _now: float) -> None:
        return


@pytest.mark.parametrize(
    ("workers", "added"),
    [
        ((False, False), 0),  # busy, which is no reason for more
        ((True, False), 1),
        ((True, True), 2),
        ((True, True, True, True), 4),  # those forked in their place are held up too
        ((True, True, False), 1),
        ((True,) * (MOST_EXTRA + 1), 1),
    ],
)
def test_workers_are_added_for_those_held_up_and_for_no_others(workers: tuple[bool, ...], added: int) -> None:
    async def grown() -> int:
        pool = Pool(2, cast(Fresh, None))
        pool.all = cast(set[Link], {Worker(held_up) for held_up in workers})
        pool.waiting.append(asyncio.get_running_loop().create_future())
        begun: list[Any] = []

        async def add() -> None:
            begun.append(1)

        pool._add = add  # type: ignore[method-assign]
        pool._settled = asyncio.Event()
        pool._settled.set()
        pool._watch_stuck()
        await asyncio.gather(*pool._tasks)
        return len(begun)

    assert asyncio.run(grown()) == added


def test_an_idle_connection_lives_as_long_as_an_idle_episode() -> None:
    async def app(*_: Any) -> None:
        raise AssertionError

    assert server(app, Settings(), 0).config.timeout_keep_alive == Settings().idle_ttl == 3600
