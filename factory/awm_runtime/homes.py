"""A process with one environment imported, from which the children that play it are forked, so that its import is paid for once.

It is confined before the import, as the zygote of an image is, and outlives the check it was made for. A check stays outside of
the confinement, so it can't be the parent: its orders reach the home through a socket, each with a memory file for the results.
"""

import asyncio
import base64
import os
import resource
import select
import signal
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from awm_runtime import confine, environment, frames, module_state
from awm_runtime.batches import SETUP, Fork, Note, Piece, Work
from awm_runtime.children import OUT_OF_MEMORY, RAISED, ChildFailed, failure
from awm_runtime.contract import HOMES, EnvironmentSource
from awm_runtime.frames import Frame
from awm_runtime.watched import Watched

_clock = time.monotonic
"""Bound before `clock.install` exchanges it."""

Job = Callable[[Watched, bytes, Note], Piece]
"""Makes the function that does piece i out of an order's bytes."""


@dataclass(frozen=True)
class Home:
    process: int
    link: socket.socket
    keeps_state: bool
    """Whether its code keeps state in its modules, so that a child of it can serve one episode only."""

    def forks(self, job: str, order: bytes) -> Fork:
        """Children of the home that carry out an order of one kind."""

        def fork(work: Work) -> None:
            header = {"job": job, "start": work.start, "end": work.end, "limit": work.limit}
            try:
                frames.send(self.link, Frame(header, order), work.memory)
                answered = frames.receive(self.link)
                status = self._status(answered[0].header["pid"], work) if answered is not None else None
            except OSError:
                status = None
            if status is None:
                raise ChildFailed("crashed", "the process that holds the environment is gone")
            if (fault := failure(status, _said(work))) is not None:
                raise fault

        return fork

    def _status(self, child: int, work: Work) -> int | None:
        """How the child ended; killed where it does not in time."""
        deadline = _clock() + work.time_limit
        if not select.select([self.link], [], [], max(0.0, deadline - _clock()))[0]:
            if _parent(child) == self.process:
                os.kill(child, signal.SIGKILL)
                frames.receive(self.link)
            raise ChildFailed("timeout", f"it was not done after {work.time_limit:g} s and was stopped")
        answered = frames.receive(self.link)
        return int(answered[0].header["status"]) if answered is not None else None

    def close(self) -> None:
        self.link.close()
        try:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        except (ProcessLookupError, ChildProcessError):
            return


def _forked() -> bool:
    """Whether this process has, or had, a child: it may fork, but what it imports may not."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 0
    return True


def _children(process: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def _parent(process: int) -> int | None:
    """The number of a child comes from a process that generated code may have changed, so it is looked at before it is used."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[1])


def _said(work: Work) -> str:
    """What a child that raised wrote behind its frames."""
    size = os.fstat(work.memory).st_size
    return os.pread(work.memory, 4096, max(0, size - 4096)).rpartition(_RAISED_WITH)[2].decode("utf-8", "replace")


_RAISED_WITH: Final = b"\0raised: "


def keeps_state(code: str) -> bool:
    """True for code whose process can serve one episode only, as far as its source shows."""
    return bool(module_state.written_names(code)) or any(_opens_session(line) for line in code.splitlines())


def _opens_session(line: str) -> bool:
    """A session or connection that the module itself opens and keeps."""
    return not line[:1].isspace() and line.split("#")[0].strip().endswith(("= SessionLocal()", "= Session()", ".connect()"))


class Homes:
    """The homes of one checks process, by what they hold."""

    def __init__(self, jobs: Mapping[str, Job], memory: int) -> None:
        self._jobs, self._memory = jobs, memory
        self._kept: dict[str, Home] = {}

    def of(self, source: EnvironmentSource) -> Home | None:
        """None where it can't be imported; whoever asks then meets the reason by importing it itself."""
        key = source.model_dump_json()
        home = self._kept.pop(key, None) or self._open(source)
        if home is not None:
            self._kept[key] = home
            while len(self._kept) > HOMES:
                self._kept.pop(next(iter(self._kept))).close()
        return home

    def drop(self, home: Home) -> None:
        """For a home whose check was ended before its time: what it still does nobody wants."""
        self._kept = {key: other for key, other in self._kept.items() if other is not home}
        home.close()

    def close(self) -> None:
        while self._kept:
            self._kept.popitem()[1].close()

    def _open(self, source: EnvironmentSource) -> Home | None:
        ours, theirs = socket.socketpair()
        parent = os.getpid()
        process = os.fork()
        if process == 0:
            ours.close()
            self._live(source, theirs, parent)
        theirs.close()
        ready = frames.receive(ours) if select.select([ours], [], [], SETUP)[0] else None
        home = Home(process, ours, ready is not None and bool(ready[0].header["keeps_state"]))
        if ready is None or ready[0].header["forked"]:
            for child in _children(process):
                os.kill(child, signal.SIGKILL)
            home.close()
            return None
        return home

    def _live(self, source: EnvironmentSource, link: socket.socket, parent: int) -> NoReturn:
        """Runs in the home."""
        try:
            confine.die_with_parent()
            if os.getppid() == parent:
                descriptor = link.fileno()
                os.closerange(3, descriptor)
                os.closerange(descriptor + 1, 256)
                os.environ.clear()
                environment.prepare_process()
                confine.confine(confine.python_paths(), confine.Limits(memory=self._memory), may_fork=True)
                confine.adopt_orphans()
                env = Watched(source.app_code, base64.b64decode(source.db), source.world_time)
                asyncio.run(environment.warm_up(env))
                env.freeze()
                frames.send(link, Frame({"keeps_state": keeps_state(source.app_code), "forked": _forked()}))
                while (order := frames.receive(link)) is not None:
                    self._carry_out(env, order[0], order[1], link)
        finally:
            os._exit(RAISED)

    def _carry_out(self, env: Watched, order: Frame, memory: int | None, link: socket.socket) -> None:
        assert memory is not None
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            link.close()
            header = order.header
            work = Work(header["start"], header["end"], header["limit"], memory)
            self._be_child(env, self._jobs[header["job"]], order.blob, work, parent)
        os.close(memory)
        frames.send(link, Frame({"pid": child}))
        frames.send(link, Frame({"status": os.waitpid(child, 0)[1]}))

    @staticmethod
    def _be_child(env: Watched, job: Job, order: bytes, work: Work, parent: int) -> NoReturn:
        code = RAISED
        try:
            confine.die_with_parent()
            if os.getppid() == parent:
                confine.forbid_fork()
                work.do(lambda note: job(env, order, note))
                code = 0
        except MemoryError:
            code = OUT_OF_MEMORY
        except BaseException as error:  # noqa: BLE001 - the boundary of a forked process: nothing may run on into the parent's code
            text = f"{type(error).__name__}: {error}"[:4000].encode("utf-8", "replace")
            os.write(work.memory, _RAISED_WITH + text)
        finally:
            os._exit(code)
