"""A process that runs tool calls, one at a time, forked from the zygote. It may die at any moment and nothing is lost.

The supervisor keeps each episode's state as a delta against the seed and sends it where a worker does not have it. A worker
keeps the episodes it served last in slots of their own, so that a call usually finds its database ready.
"""

import asyncio
import os
import signal
import socket
import traceback
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import pydantic_core

from awm_runtime import confine, frames
from awm_runtime.binding import Slot, SlotBroken
from awm_runtime.calling import Outcome, failed
from awm_runtime.environment import Environment, Played
from awm_runtime.faults import Fault
from awm_runtime.frames import Frame

CONNECTION: Final = 320 << 10
"""Bytes that a slot takes besides its database: an engine's connection with the schema parsed and its page cache."""
FEWEST_SLOTS: Final = 8


@dataclass
class _Held:
    slot: Slot
    version: int
    changes: bytes | None
    """What the slot holds, as its delta; None is the seed."""


@dataclass(frozen=True)
class Limits:
    result: int
    """Bytes of one result."""
    warm_memory: int
    """Bytes for databases kept ready; an episode whose slot was taken is slower by a copy and a parse of its schema."""


class Worker:
    def __init__(self, environment: Environment, link: socket.socket, limits: Limits) -> None:
        self.environment, self.link, self.max_result = environment, link, limits.result
        self.most_slots = max(FEWEST_SLOTS, limits.warm_memory // (len(environment.seed) + CONNECTION))
        self.held: OrderedDict[str, _Held] = OrderedDict()
        environment.keeps_deltas = True

    def serve(self) -> NoReturn:
        asyncio.run(self._serve())
        os._exit(0)

    async def _serve(self) -> None:
        # Reading blocks the loop on purpose: between calls nothing of the environment may run.
        incoming = frames.Incoming(self.link)
        while (frame := incoming.next()) is not None:
            frames.send(self.link, await self._answer(frame))

    async def _answer(self, frame: Frame) -> Frame:
        ask = frame.header
        held = self.held.get(ask["episode"])
        if held is None or held.version != ask["version"]:
            if not ask["sent"]:
                return Frame({"state_needed": True})
            held = self._fill_slot(ask["episode"], ask["version"], frame.blob or None)
        self.held.move_to_end(ask["episode"])
        try:
            played = await self.environment.play(held.slot, held.changes, ask["tool"], ask["arguments"], ask["seed"], ask["step"])
        except SlotBroken:
            # The call's outcome is lost with its slot; the episode goes on from its last good state.
            self._drop(ask["episode"])
            played = Played(failed(Fault("internal", "the call left a statement running; it was undone")), None, True)
        return self._reply(ask, held, played)

    def _reply(self, ask: dict[str, Any], held: _Held, played: Played) -> Frame:
        outcome = self._limited(played.outcome)
        changes = b""
        if played.content is not None and not outcome.is_error:
            held.changes, held.version = played.content, ask["next"]
            changes = played.content
        elif played.content is not None:
            self._drop(ask["episode"])
        body = mcp_result(outcome) if ask["mcp"] else outcome.body
        header = {
            "kind": outcome.kind,
            "status": outcome.status,
            "changed": bool(changes),
            "size": len(body),
            "leaked": played.leaked,
        }
        return Frame(header, body + changes)

    def _limited(self, outcome: Outcome) -> Outcome:
        if len(outcome.body) <= self.max_result:
            return outcome
        message = f"the result has {len(outcome.body)} bytes, more than {self.max_result}; ask for less at a time"
        return failed(Fault("refused", message))

    def _fill_slot(self, episode: str, version: int, changes: bytes | None) -> _Held:
        old = self.held.get(episode)
        slot = old.slot if old is not None else self._free_slot()
        try:
            self.environment.fill(slot, changes)
        except SlotBroken:
            if self.environment.holds_connection:
                raise
            slot = Slot(self.environment.max_pages)
            self.environment.fill(slot, changes)
        held = _Held(slot, version, changes)
        self.held[episode] = held
        return held

    def _free_slot(self) -> Slot:
        if self.environment.holds_connection:
            return self.environment.slot
        if len(self.held) < self.most_slots:
            return Slot(self.environment.max_pages)
        return self.held.popitem(last=False)[1].slot

    def _drop(self, episode: str) -> None:
        if (held := self.held.pop(episode, None)) is not None:
            held.slot.close()


class SoloWorker(Worker):
    """The process of one episode whose environment keeps state in its modules.

    That state can't be copied, but a process can: each call runs in a fork, which takes this process's place if the call succeeds
    and is dropped if it fails, however it does. So a failed call undoes what it did to module state too.
    """

    def serve(self) -> NoReturn:
        while (message := frames.receive(self.link)) is not None:
            frame, descriptor = message
            if descriptor is not None:
                self._split(descriptor)
            else:
                self._call(frame)
        os._exit(0)

    def _split(self, descriptor: int) -> None:
        """Another episode begins with all that this one has."""
        if os.fork() == 0:
            self.link.close()
            self.link = socket.socket(fileno=descriptor)
            frames.send(self.link, Frame({"running": os.getpid()}))
            return
        os.close(descriptor)

    def _call(self, frame: Frame) -> None:
        """Returns in the process that goes on."""
        kept, keep = os.pipe()
        process = os.fork()
        if process:
            os.close(keep)
            if os.read(kept, 1):
                os._exit(0)
            os.close(kept)
            _, status = os.waitpid(process, 0)
            if status:
                frames.send(self.link, Frame({"died": True}))
            return
        os.close(kept)
        frames.send(self.link, Frame({"running": os.getpid()}))
        reply = asyncio.run(self._answer(frame))
        good = reply.header.get("kind") == "ok"
        if good:
            os.write(keep, b"k")
        frames.send(self.link, reply)
        if not good:
            os._exit(0)
        os.close(keep)


def mcp_result(outcome: Outcome) -> bytes:
    """The `result` of a tools/call: the JSON as indented text, as fastapi-mcp sends it."""
    text = pydantic_core.to_json(pydantic_core.from_json(outcome.body), indent=2).decode()
    return pydantic_core.to_json({"content": [{"type": "text", "text": text}], "isError": outcome.is_error})


def start(environment: Environment, link: socket.socket, limits: Limits, *, solo: bool) -> NoReturn:
    """In the freshly forked process; never returns into the zygote's loop."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if solo:
            SoloWorker(environment, link, limits).serve()
        confine.die_with_parent()
        confine.forbid_fork()
        Worker(environment, link, limits).serve()
    except Exception:  # noqa: BLE001 - the last boundary of a forked process: its fault belongs on the container's log
        traceback.print_exc()
    finally:
        os._exit(1)
