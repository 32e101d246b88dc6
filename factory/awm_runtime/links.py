"""The supervisor's ends of connections to processes with environment code or verifiers, any of which may die at any moment."""

import asyncio
import os
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

from awm_runtime import frames
from awm_runtime.frames import Buffer, Frame

PATIENCE: Final = 0.075
"""Seconds that a call may take before its worker counts as held up, where others wait."""


class WorkerGone(Exception):
    """The process ended before it answered; `timeout` tells whether we ended it."""

    def __init__(self, *, timeout: bool) -> None:
        super().__init__("it ran too long" if timeout else "its process died")
        self.timeout = timeout


def hand_over(link: socket.socket, frame: Frame) -> socket.socket:
    """Send a message, and with it one end of a new connection; returns the other. Raises WorkerGone."""
    ours, theirs = socket.socketpair()
    try:
        frames.send(link, frame, theirs.fileno())
    except OSError as error:
        ours.close()
        raise WorkerGone(timeout=False) from error
    finally:
        theirs.close()
    return ours


class Link(asyncio.Protocol):
    """The supervisor's end of one worker."""

    def __init__(self) -> None:
        self.pid = 0
        self.lost = False
        self.timed_out = False
        self.held_up = False
        """Whether its current call has used up PATIENCE, as `look` saw it last."""
        self._seen: tuple[float, float] | None = None
        """When its current call was first looked at, and how long the process had waited for a processor until then."""
        self._buffer = Buffer()
        self._early: Frame | None = None
        self._waiting: asyncio.Future[Frame] | None = None
        self._transport: asyncio.Transport | None = None
        self.socket: socket.socket
        """The connection itself, to pass descriptors; used while nothing is under way."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._buffer.feed(data):
                if "running" in frame.header:
                    self.pid = frame.header["running"]
                elif self._waiting is None:
                    self._early = frame
                elif "died" in frame.header and not self._waiting.done():
                    self._waiting.set_exception(WorkerGone(timeout=self.timed_out))
                elif not self._waiting.done():
                    self._waiting.set_result(frame)
        except ValueError:
            self.close()

    def connection_lost(self, _error: Exception | None) -> None:
        self.lost = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(WorkerGone(timeout=self.timed_out))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
        self.socket.close()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    async def ask(self, frame: Frame, time_limit: float) -> Frame:
        """Raises WorkerGone."""
        if self.lost or self._transport is None:
            raise WorkerGone(timeout=False)
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        self.held_up, self._seen = False, None
        timer = loop.call_later(time_limit, self._out_of_time)
        try:
            self._transport.write(frame.encode())
            return await self._waiting
        finally:
            timer.cancel()
            self._waiting = None
            self.held_up, self._seen = False, None

    def look(self, now: float) -> None:
        """Find out whether its call holds it up. `now`: seconds of a clock that never goes back.

        What counts is the time in which the process ran or slept. While it waits for a processor, a busy machine holds it up, and
        more processes would make that busier yet. A reply that lies there unread is none of its time either.
        """
        if self._answered():
            self.held_up = False
            return
        queued = queued_seconds(self.pid)
        if self._seen is None:
            self._seen = now, queued
        self.held_up = (now - self._seen[0]) - (queued - self._seen[1]) >= PATIENCE

    def _answered(self) -> bool:
        if self._waiting is None or self._waiting.done():
            return True
        try:
            self.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    async def split(self) -> "Link":
        """A copy of the process behind this link, with a link of its own. Raises WorkerGone."""
        return await connect(hand_over(self.socket, Frame({"split": True})))

    def end(self) -> None:
        self.close()
        self.kill()

    async def wait(self, time_limit: float) -> Frame:
        """The one frame that comes without asking. Raises WorkerGone."""
        if self._early is not None:
            return self._early
        if self.lost:
            raise WorkerGone(timeout=False)
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            return await asyncio.wait_for(self._waiting, time_limit)
        except TimeoutError:
            raise WorkerGone(timeout=True) from None

    def _out_of_time(self) -> None:
        self.timed_out = True
        self.kill()


def queued_seconds(process: int) -> float:
    """How long a process has waited for a processor since it began; 0 for one that is gone, or where the kernel does not tell."""
    try:
        # docs.kernel.org/scheduler/sched-stats.html: nanoseconds on a processor, nanoseconds waiting for one, time slices.
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


async def connect(ours: socket.socket) -> Link:
    link = Link()
    link.socket = ours.dup()
    ours.setblocking(False)
    await asyncio.get_running_loop().create_connection(lambda: link, sock=ours)
    return link
