"""The supervisor's side of the judge: verifies and compares, out of reach of environment code."""

import asyncio
from typing import Final

from awm_runtime import frames
from awm_runtime.frames import Frame
from awm_runtime.fresh import Fresh
from awm_runtime.links import connect, hand_over

AT_ONCE: Final = 8
"""Verifiers that run side by side."""


class Judge:
    def __init__(self, fresh: Fresh, seed: bytes) -> None:
        self._link = fresh.link
        frames.send(fresh.link, Frame({}, seed))
        self._sending = asyncio.Lock()
        self._places = asyncio.Semaphore(AT_ONCE)

    async def ask(self, frame: Frame, time_limit: float) -> bytes:
        """Raises WorkerGone."""
        async with self._places:
            async with self._sending:
                ours = await asyncio.get_running_loop().run_in_executor(None, hand_over, self._link, frame)
            link = await connect(ours)
            try:
                return (await link.wait(time_limit)).blob
            finally:
                link.close()
