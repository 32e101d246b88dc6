"""As many calls into a container as it has processes for them; more wait here, where waiting costs nothing.

Past that number a busy container would start further processes, as it must where hostile calls hold up its own. With several
containers on one machine each such process slows all others down, which starts more. So a call that takes long stops counting,
and only what is held up leads to more.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

PATIENCE: Final = 1.0
"""Seconds after which a call no longer keeps others out."""


class Gate:
    def __init__(self, width: int) -> None:
        self._room = asyncio.Semaphore(width)

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        await self._room.acquire()
        counting = True

        def leave() -> None:
            nonlocal counting
            if counting:
                counting = False
                self._room.release()

        timer = asyncio.get_running_loop().call_later(PATIENCE, leave)
        try:
            yield
        finally:
            timer.cancel()
            leave()
