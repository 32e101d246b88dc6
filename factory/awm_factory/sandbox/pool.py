"""The sandbox seam: requests in, replies out, each executed in a forked child of a lane.

A *lane* is one running `python -m awm_runtime.checks`, in a container or as a child process. Lanes are opened when
first needed, reused for as long as they answer, and replaced when they don't; so a check costs a fork, not a start. A lane
keeps the environments that it has imported lately, so a check goes where its environment is.
"""

import queue
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self, TypeVar

from pydantic import ValidationError

from awm_factory.errors import SandboxError
from awm_runtime.contract import (
    HOMES,
    AppReply,
    AppRequest,
    CallsReply,
    CallsRequest,
    CheckEnvelope,
    CheckFailed,
    ExploreReply,
    ExploreRequest,
    InspectReply,
    InspectRequest,
    LoadReply,
    LoadRequest,
    ParseReply,
    ParseRequest,
    ReplyEnvelope,
    TrialsReply,
    TrialsRequest,
    VerifyReply,
    VerifyRequest,
)
from awm_runtime.patience import patient

Request = LoadRequest | AppRequest | VerifyRequest | CallsRequest | TrialsRequest | InspectRequest | ExploreRequest | ParseRequest
Reply = LoadReply | AppReply | VerifyReply | CallsReply | TrialsReply | InspectReply | ExploreReply | ParseReply | CheckFailed
R = TypeVar("R", LoadReply, AppReply, VerifyReply, CallsReply, TrialsReply, InspectReply, ExploreReply, ParseReply)

GRACE = 15.0
"""Seconds a lane may take past a check's own limit, to start up or to report that it killed the child."""


class Lane(Protocol):
    """One checks process and its two pipes. `lines` ends with None when the process is gone."""

    lines: "queue.Queue[bytes | None]"

    @abstractmethod
    def write(self, line: bytes) -> None: ...

    @abstractmethod
    def last_words(self) -> str:
        """What it printed on stderr at the end, for an error message."""

    @abstractmethod
    def close(self) -> None:
        """End the process and give back what it holds; called more than once without harm."""


class Sandbox(Protocol):
    """Runs checks. Thread-safe: as many at once as it has lanes."""

    base: str
    """Tag of the base image the checks run in, or `process`."""

    @abstractmethod
    def check(self, request: Request, time_limit: float = 60.0) -> Reply:
        """Execute one check, in `time_limit` seconds at most, more on a busy machine.

        Whatever generated code does comes back as a reply (CheckFailed at worst). Raises SandboxError only where the
        sandbox itself can't be used.
        """

    @abstractmethod
    def close(self) -> None:
        """Give back what it holds; checks under way end with SandboxError. Called more than once without harm."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Places:
    """Which lane a check gets, by number: one that holds its environment where there is one, else the one that holds least.

    A check waits for the lane of its environment only while others are under way: one alone may spread over all lanes.
    """

    def __init__(self, size: int) -> None:
        self._free = list(range(size))
        self._held: list[deque[int]] = [deque(maxlen=HOMES) for _ in range(size)]
        self._lately: deque[int] = deque(maxlen=4 * size)
        self._turn = threading.Condition()

    def take(self, kept: int | None) -> int:
        """`kept`: which environment the lane will hold, if any. Waits for a lane that is free."""
        with self._turn:
            if kept is not None:
                self._lately.append(kept)
            while (place := self._choice(kept)) is None:
                self._turn.wait()
            self._free.remove(place)
            if kept is not None:
                if kept in self._held[place]:
                    self._held[place].remove(kept)
                self._held[place].append(kept)
            return place

    def _choice(self, kept: int | None) -> int | None:
        if not self._free:
            return None
        holders = [place for place, held in enumerate(self._held) if kept in held]
        if (own := next((place for place in holders if place in self._free), None)) is not None:
            return own
        if holders and len(set(self._lately)) >= len(self._held):
            return None
        return min(reversed(self._free), key=lambda place: len(self._held[place])) if kept is not None else self._free[-1]

    def give(self, place: int) -> None:
        with self._turn:
            self._free.append(place)
            self._turn.notify_all()

    def forget(self, place: int) -> None:
        """What the lane held is gone."""
        with self._turn:
            self._held[place].clear()


def _kept(request: Request) -> int | None:
    """Stands for the environment that the check leaves imported; None where it leaves none."""
    if not isinstance(request, AppRequest | TrialsRequest | ExploreRequest) or not request.reuse:
        return None
    return hash((request.source.app_code, request.source.db, request.source.world_time))


class LanePool(Sandbox):
    """What both kinds of sandbox share: lanes, their reuse and their replacement."""

    def __init__(self, base: str, open_lane: Callable[[], Lane], size: int) -> None:
        self.base = base
        self._open = open_lane
        self._places = Places(size)
        self._lanes: list[Lane | None] = [None] * size
        self._all: set[Lane] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._ids = iter(range(1, 2**63))

    def check(self, request: Request, time_limit: float = 60.0) -> Reply:
        time_limit = patient(time_limit)
        with self._lock:
            number = next(self._ids)
        line = CheckEnvelope(id=number, time_limit=time_limit, request=request).model_dump_json().encode() + b"\n"
        place = self._places.take(_kept(request))
        lane = self._lanes[place]
        try:
            for attempt in (1, 2):
                if lane is None:
                    lane = self._add()
                try:
                    lane.write(line)
                    answer = lane.lines.get(timeout=time_limit + GRACE)
                except (OSError, queue.Empty):
                    answer = None
                if answer is not None:
                    return self._parse(answer, number)
                words = lane.last_words()
                self._drop(lane)
                lane = None
                self._places.forget(place)
                if attempt == 2 or self._closed:
                    raise SandboxError(
                        f"the sandbox stopped answering twice; its last words: {words or 'none'}. Check the engine's health, "
                        "or free memory, then run the command again"
                    )
            raise AssertionError
        except BaseException:
            if lane is not None:
                self._drop(lane)
                lane = None
            raise
        finally:
            self._lanes[place] = lane
            self._places.give(place)

    def _parse(self, answer: bytes, number: int) -> Reply:
        try:
            envelope = ReplyEnvelope.model_validate_json(answer)
        except ValidationError as error:
            raise SandboxError(
                f"the sandbox answered something else than the checks protocol: {error}; rebuild the base image"
            ) from error
        if envelope.id != number:
            raise SandboxError(f"the sandbox answered check {envelope.id} when asked for {number}; rebuild the base image")
        return envelope.reply

    def _add(self) -> Lane:
        if self._closed:
            raise SandboxError("the sandbox is closed; open a new one")
        lane = self._open()
        with self._lock:
            self._all.add(lane)
        return lane

    def _drop(self, lane: Lane) -> None:
        with self._lock:
            self._all.discard(lane)
        lane.close()

    def close(self) -> None:
        self._closed = True
        with self._lock:
            lanes = list(self._all)
            self._all.clear()
        for lane in lanes:
            lane.close()


def expect(kind: type[R], reply: Reply) -> R | CheckFailed:
    """The reply as the kind its request asks for, or the check's failure."""
    if isinstance(reply, kind | CheckFailed):
        return reply
    raise SandboxError(f"the sandbox answered {reply.op!r} to another check; rebuild the base image")
