"""As many calls into a container as it has processes for them; more wait here, where waiting costs nothing.

The container itself starts further processes only in the place of those that hostile calls hold up. An older image tells these by
the time they take, so a busy machine would have it start more, and each slows all others down, which starts more. So calls wait
here, but for those that take long and stop counting.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

PATIENCE: Final = 1.0
"""Seconds after which a call no longer keeps others out."""
JUDGING: Final = 10.0
"""The same for a verdict, a process of its own that imports and reads much. On a busy machine a second would let all of them in,
and a thousand verdicts at once are a thousand processes."""


class Gate:
    def __init__(self, width: int, patience: float = PATIENCE) -> None:
        self._room = asyncio.Semaphore(width)
        self._patience = patience

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        await self._room.acquire()
        counting = True

        def leave() -> None:
            nonlocal counting
            if counting:
                counting = False
                self._room.release()

        timer = asyncio.get_running_loop().call_later(self._patience, leave)
        try:
            yield
        finally:
            timer.cancel()
            leave()
