"""The supervisor's side of the environment: the zygote that imported it, and the workers it forks.

A worker runs one call at a time. One that takes too long is killed; one that dies ends its own call only. While calls wait for
workers that long ones hold up, more are forked, so that hostile calls make nobody wait; these end when they are idle again.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from awm_runtime import frames
from awm_runtime.frames import Buffer, Frame
from awm_runtime.fresh import Fresh
from awm_runtime.links import Link, WorkerGone, connect, hand_over
from awm_runtime.wire import Tool

_LOOK: Final = 0.04
"""Seconds between two looks; with PATIENCE and a fork, what a call waits at most because of hostile ones."""
MOST_EXTRA: Final = 32
_START_LIMIT: Final = 120.0


class EnvironmentBroken(Exception):
    """The environment does not start; the container can serve nothing."""


@dataclass(frozen=True)
class Order:
    """What the zygote is told of the environment it imports."""

    code: str
    seed: bytes
    world_time: str
    module_state: list[str]
    """Why episodes can't share a process, as found when the environment was checked."""
    memory: int
    max_result: int
    warm_memory: int
    """Bytes that one worker may keep databases ready in."""

    def frame(self) -> Frame:
        header = {name: value for name, value in vars(self).items() if name != "seed"}
        return Frame(header, self.seed)


@dataclass(frozen=True)
class Ready:
    """What the zygote tells once the environment is imported."""

    tools: list[Tool]
    confinement: dict[str, Any]
    seed: bytes


@dataclass
class Pool:
    """Workers for all episodes that can share a process."""

    size: int
    zygote: Fresh
    idle: list[Link] = field(default_factory=list)
    all: set[Link] = field(default_factory=set)
    waiting: deque[asyncio.Future[Link]] = field(default_factory=deque)
    module_state: list[str] | None = None
    """Why episodes need processes of their own; None until the zygote is done with its warm-up, and workers are forked."""
    broken: bool = False
    """The zygote is gone, so no worker can be replaced."""
    _closing: bool = False
    _watching: asyncio.TimerHandle | None = None
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    def begin(self, order: Order) -> None:
        """The zygote imports the environment while the supervisor does what else there is to do."""
        frames.send(self.zygote.link, order.frame())

    def finish(self) -> Ready:
        """Blocking: before there is a loop. Raises EnvironmentBroken."""
        self.zygote.link.settimeout(_START_LIMIT)
        try:
            message = frames.receive(self.zygote.link)
        except TimeoutError:
            message = None
        if message is None:
            raise EnvironmentBroken("the process that imports the environment died or hangs; its output is above")
        frame = message[0]
        if "failed" in frame.header:
            raise EnvironmentBroken(str(frame.header["failed"]))
        return Ready(
            tools=[Tool.model_validate(tool) for tool in frame.header["tools"]],
            confinement=frame.header["confinement"],
            seed=frame.blob,
        )

    async def open(self) -> None:
        """Returns at once; calls wait for the first workers."""
        self.zygote.link.setblocking(False)
        self._forking = asyncio.Lock()
        self._replies = Buffer()
        self._settled = asyncio.Event()
        self._begin_task(self._settle())

    async def _settle(self) -> None:
        try:
            self.module_state = (await self._zygote_says()).header["module_state"]
            for _ in range(0 if self.module_state else self.size):
                self._put(await self._fork())
        except (WorkerGone, OSError):
            self.broken = True
            for turn in self.waiting:
                if not turn.done():
                    turn.set_exception(WorkerGone(timeout=False))
        self._settled.set()

    async def settled(self) -> list[str]:
        """`module_state`, once it is known. Raises WorkerGone."""
        if self.module_state is None:
            await self._settled.wait()
        if self.module_state is None:
            raise WorkerGone(timeout=False)
        return self.module_state

    async def solo(self) -> Link:
        """A process for one episode alone. The caller ends it. Raises WorkerGone."""
        link = await self._fork()
        self.all.discard(link)
        return link

    async def _fork(self) -> Link:
        """A new worker. Raises WorkerGone where the zygote is gone."""
        async with self._forking:
            ours = hand_over(self.zygote.link, Frame({"fork": True}))
            try:
                answer = await self._zygote_says()
            except OSError as error:
                ours.close()
                raise WorkerGone(timeout=False) from error
        link = await connect(ours)
        link.pid = answer.header["pid"]
        self.all.add(link)
        return link

    async def _zygote_says(self) -> Frame:
        loop = asyncio.get_running_loop()
        while True:
            data = await loop.sock_recv(self.zygote.link, 1 << 20)
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
        if self._watching is None and self._settled.is_set():
            self._look()

    def _look(self) -> None:
        self._watching = None
        if not self.waiting or self._closing:
            return
        loop = asyncio.get_running_loop()
        for link in self.all:
            link.look(loop.time())
        held_up = sum(link.held_up for link in self.all)
        missing = self.size - (len(self.all) - held_up)
        # Where none moves, the calls that wait may be as bad: twice as many each time, or each such round would cost a look more.
        for _ in range((held_up if missing == self.size else missing) - len(self._tasks)):
            self._grow()
        self._watching = loop.call_later(_LOOK, self._look)

    def _grow(self) -> None:
        if len(self.all) + len(self._tasks) < self.size + MOST_EXTRA:
            self._begin_task(self._add())

    def _begin_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
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
        if self._closing or (len(self.all) > self.size and len(self.all) - self._held_up(link) > self.size):
            self._retire(link)
        else:
            self.idle.append(link)

    def _held_up(self, done: Link) -> int:
        """Workers in a long call; while there are any, those forked in their place stay."""
        return sum(link.held_up for link in self.all if link is not done)

    def _lose(self, link: Link) -> None:
        """A dead worker: bury it, and fork another in its place."""
        self._retire(link)
        if len(self.all) < self.size and not self._closing:
            self._grow()

    def _retire(self, link: Link) -> None:
        self.all.discard(link)
        link.close()
        link.kill()

    def close(self) -> None:
        self._closing = True
        for link in self.all:
            link.kill()
