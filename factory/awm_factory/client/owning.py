"""Giving back what was taken, also when a task is cancelled: in the middle of taking, in the middle of giving back, or twice."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

R = TypeVar("R")

_under_way: set[asyncio.Task[Any]] = set()


async def to_its_end(work: Coroutine[Any, Any, R]) -> R:
    """Wait for work that goes on even if the one who waits is cancelled."""
    return await asyncio.shield(_start(work))


async def taken(taking: Coroutine[Any, Any, R], give_back: Callable[[R], Coroutine[Any, Any, None]]) -> R:
    """What `taking` gives. Cancelled, whatever it still comes to give is given back: a request that is broken off may have been
    carried out.
    """
    task = _start(taking)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(lambda done: _give_back(done, give_back))
        raise


def _give_back(done: asyncio.Task[R], give_back: Callable[[R], Coroutine[Any, Any, None]]) -> None:
    if not done.cancelled() and done.exception() is None:
        _start(give_back(done.result()))


def _start(work: Coroutine[Any, Any, R]) -> asyncio.Task[R]:
    task = asyncio.get_running_loop().create_task(work)
    _under_way.add(task)
    task.add_done_callback(_under_way.discard)
    return task
