"""The supervisor's side of its processes: the zygote and the workers it forks, and the judge.

A worker runs one call at a time. One that takes too long is killed; one that dies ends its own call only. While all are busy for
longer than a moment, more are forked, so that hostile calls can't make others wait; these end when they are idle again.
"""

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, cast

from awm_runtime import frames
from awm_runtime.contract import Tool
from awm_runtime.frames import Buffer, Frame

_log = logging.getLogger(__name__)

PATIENCE: Final = 0.1
"""Seconds that a call waits for a worker before another is forked."""
MOST_EXTRA: Final = 32
AT_ONCE: Final = 8
"""Verifiers that run side by side."""
_START_LIMIT: Final = 120.0


class EnvironmentBroken(Exception):
    """The environment does not start; the container can serve nothing."""


class WorkerGone(Exception):
    """The worker ended within a call; `timeout` tells whether we ended it."""

    def __init__(self, *, timeout: bool) -> None:
        super().__init__("it ran too long" if timeout else "its process died")
        self.timeout = timeout


def _spawn(module: str, first: Frame) -> tuple["subprocess.Popen[bytes]", socket.socket]:
    ours, theirs = socket.socketpair()
    environment = {
        "PATH": os.defpath,
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TZ": "UTC",
        "PYTHONWARNINGS": "ignore",
    }
    command = [sys.executable, "-m", module, str(theirs.fileno())]
    if "PYTHONPATH" in os.environ:
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    theirs.close()
    frames.send(ours, first)
    return process, ours


@dataclass(frozen=True)
class Ready:
    """What the zygote tells once the environment is imported."""

    tools: list[Tool]
    confinement: dict[str, Any]
    module_state: list[str]
    seed: bytes


class Link(asyncio.Protocol):
    """The supervisor's end of one worker."""

    def __init__(self) -> None:
        self.pid = 0
        self.lost = False
        self.timed_out = False
        self.since = 0.0
        """When its current call began, by the loop's clock."""
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
        self.since = loop.time()
        timer = loop.call_later(time_limit, self._out_of_time)
        try:
            self._transport.write(frame.encode())
            return await self._waiting
        finally:
            timer.cancel()
            self._waiting = None

    async def split(self) -> "Link":
        """A copy of the process behind this link, with a link of its own. Raises WorkerGone."""
        ours, theirs = socket.socketpair()
        try:
            frames.send(self.socket, Frame({"split": True}), theirs.fileno())
        except OSError as error:
            ours.close()
            raise WorkerGone(timeout=False) from error
        finally:
            theirs.close()
        return await connect(ours)

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


async def connect(ours: socket.socket) -> Link:
    link = Link()
    link.socket = ours.dup()
    ours.setblocking(False)
    await asyncio.get_running_loop().create_connection(lambda: link, sock=ours)
    return link


@dataclass
class Pool:
    """Workers for all episodes that can share a process."""

    size: int
    time_limit: float
    code: str
    seed: bytes
    world_time: str
    memory: int
    max_result: int
    warm_memory: int
    """Bytes that all workers together may keep databases ready in."""
    idle: list[Link] = field(default_factory=list)
    all: set[Link] = field(default_factory=set)
    waiting: deque[asyncio.Future[Link]] = field(default_factory=deque)
    closing: bool = False
    _watching: asyncio.TimerHandle | None = None
    broken: bool = False
    """The zygote is gone, so no worker can be replaced."""
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    def begin(self) -> None:
        """Let the zygote import the environment while the supervisor does its own imports."""
        order = {
            "code": self.code,
            "world_time": self.world_time,
            "memory": self.memory,
            "max_result": self.max_result,
            "warm_memory": self.warm_memory // self.size,
        }
        self.process, self.link = _spawn("awm_runtime.zygote", Frame(order, self.seed))

    def finish(self) -> Ready:
        """Blocking: before there is a loop. Raises EnvironmentBroken."""
        self.link.settimeout(_START_LIMIT)
        try:
            message = frames.receive(self.link)
        except TimeoutError:
            message = None
        if message is None:
            raise EnvironmentBroken("the process that imports the environment died or hangs; its output is above")
        frame = message[0]
        if "failed" in frame.header:
            raise EnvironmentBroken(str(frame.header["failed"]))
        self.seed = frame.blob
        return Ready(
            tools=[Tool.model_validate(tool) for tool in frame.header["tools"]],
            confinement=frame.header["confinement"],
            module_state=frame.header["module_state"],
            seed=frame.blob,
        )

    async def open(self) -> None:
        self.link.setblocking(False)
        self._forking = asyncio.Lock()
        self._replies = Buffer()
        for _ in range(self.size):
            self.idle.append(await self._fork())

    async def solo(self) -> Link:
        """A process for one episode alone. The caller ends it. Raises WorkerGone."""
        link = await self._fork()
        self.all.discard(link)
        return link

    async def _fork(self) -> Link:
        """A new worker. Raises WorkerGone where the zygote is gone."""
        ours, theirs = socket.socketpair()
        async with self._forking:
            try:
                frames.send(self.link, Frame({"fork": True}), theirs.fileno())
                answer = await self._zygote_says()
            except OSError as error:
                ours.close()
                raise WorkerGone(timeout=False) from error
            finally:
                theirs.close()
        link = await connect(ours)
        link.pid = answer.header["pid"]
        self.all.add(link)
        return link

    async def _zygote_says(self) -> Frame:
        loop = asyncio.get_running_loop()
        while True:
            data = await loop.sock_recv(self.link, 1 << 16)
            if not data:
                raise ConnectionResetError("the zygote is gone")
            if found := self._replies.feed(data):
                return found[0]

    async def acquire(self, preferred: Link | None) -> Link:
        """A worker for one call: the preferred one if it is free. Give it back with `release`."""
        if preferred is not None and preferred in self.idle:
            self.idle.remove(preferred)
            return preferred
        if self.idle:
            return self.idle.pop(0)  # the one that rested longest, so that episodes spread over all
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[Link] = loop.create_future()
        self.waiting.append(turn)
        self._watch_stuck()
        try:
            return await turn
        finally:
            if not turn.done() or turn.cancelled():
                with suppress(ValueError):
                    self.waiting.remove(turn)

    def _watch_stuck(self) -> None:
        """While calls wait, replace workers that are held up by a long call; being merely busy is no reason for more of them."""
        if self._watching is not None or not self.waiting or self.closing:
            return
        self._watching = asyncio.get_running_loop().call_later(PATIENCE, self._look_for_stuck)

    def _look_for_stuck(self) -> None:
        self._watching = None
        now = asyncio.get_running_loop().time()
        moving = sum(now - link.since < PATIENCE for link in self.all)
        for _ in range(self.size - moving - len(self._tasks)):
            self._grow()
        self._watch_stuck()

    def _grow(self) -> None:
        if len(self.all) < self.size + MOST_EXTRA:
            task = asyncio.get_running_loop().create_task(self._add())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _add(self) -> None:
        with suppress(WorkerGone):
            self._put(await self._fork())

    def release(self, link: Link) -> None:
        if link.lost or link.timed_out:
            self._lose(link)
        else:
            self._put(link)

    def _put(self, link: Link) -> None:
        while self.waiting:
            turn = self.waiting.popleft()
            if not turn.done():
                turn.set_result(link)
                return
        if len(self.all) > self.size or self.closing:
            self._retire(link)
        else:
            self.idle.append(link)

    def _lose(self, link: Link) -> None:
        """A dead worker: bury it, and fork another in its place."""
        self._retire(link)
        if len(self.all) < self.size and not self.closing:
            self._grow()

    def _retire(self, link: Link) -> None:
        self.all.discard(link)
        link.close()
        link.kill()

    def close(self) -> None:
        self.closing = True
        for link in self.all:
            link.kill()
        self.process.kill()
        self.link.close()
        self.process.wait()


class Judge:
    """Verifies and compares, out of reach of environment code."""

    def __init__(self, seed: bytes) -> None:
        self.process, self.link = _spawn("awm_runtime.judge", Frame({}, seed))
        self._sending = asyncio.Lock()
        self._places = asyncio.Semaphore(AT_ONCE)

    async def ask(self, frame: Frame, time_limit: float) -> bytes:
        """Raises WorkerGone."""
        loop = asyncio.get_running_loop()
        async with self._places:
            ours, theirs = socket.socketpair()
            try:
                async with self._sending:
                    await loop.run_in_executor(None, frames.send, self.link, frame, theirs.fileno())
            except OSError as error:
                ours.close()
                raise WorkerGone(timeout=False) from error
            finally:
                theirs.close()
            link = await connect(ours)
            try:
                return (await link.wait(time_limit)).blob
            finally:
                link.close()

    def close(self) -> None:
        self.process.kill()
        self.link.close()
        self.process.wait()
