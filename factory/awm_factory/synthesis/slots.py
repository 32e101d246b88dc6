"""Room for so many requests and so many checks at once, given to the scenarios that have the longest way to go.

A prompt holds schema, data and code of its environment, so it is written only once there is room to send it: a thousand
scenarios of ten tasks would otherwise hold ten thousand prompts. The longest way first keeps the end of a run short. Checks are
taken in the same order: behind one of code wait the requests of ten tasks, behind one of a verifier at most one.
"""

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from awm_factory.synthesis.draft import STAGES

T = TypeVar("T")
ORDER: Final = ("keep", *STAGES, "certify")
"""What lanes are given to first. To keep what is finished takes a moment; no request waits for a proof."""


class Slots:
    def __init__(self, size: int) -> None:
        self._free = size
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._count = 0

    @asynccontextmanager
    async def take(self, rank: int) -> AsyncIterator[None]:
        """Lower ranks first, equal ones in their order."""
        if self._free and not self._waiting:
            self._free -= 1
        else:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._count += 1
            heapq.heappush(self._waiting, (rank, self._count, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._give()
                raise
        try:
            yield
        finally:
            self._give()

    def _give(self) -> None:
        """To the next that still waits, or back to the pile."""
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class Lanes:
    """Threads in which checks wait for the sandbox, as many as it has lanes."""

    def __init__(self, size: int) -> None:
        self._slots = Slots(size)
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="awm-check")

    async def run(self, stage: str, function: Callable[..., T], *arguments: object) -> T:
        """`stage`: what it is done for, one of ORDER."""
        async with self._slots.take(ORDER.index(stage)):
            return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
