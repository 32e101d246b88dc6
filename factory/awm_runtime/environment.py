"""An environment ready to be played in this process: its code imported once, its tools derived, its seeded database kept.

What the import itself changes in the database (`create_all` of a table that the seed lacks, rows of a start-up handler) belongs
to the seed from then on: every episode starts from `seed`.
"""

import gc
import sqlite3
import sys
import threading
import types
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy
from sqlalchemy import orm

from awm_runtime import binding, calling, clock, dump, faults, loading, pages, pydantic_clock, tools
from awm_runtime.binding import GROWTH, SharedSlot, Slot
from awm_runtime.calling import Caller, Outcome
from awm_runtime.faults import Fault
from awm_runtime.tools import Derived

STEP_SECONDS: Final = 1
"""How far the world's clock moves a call."""

_PAGE: Final = 4096
_YOUNG: Final = 20_000
"""Objects that are made until Python looks for garbage among them: more than a call makes, so that most calls meet no search.
With its own 700, a tenth of the time of a call that lists twenty rows went into it."""


def prepare_process() -> None:
    """Once, before any environment code: its clock, its chance and its databases are ours."""
    sys.setrecursionlimit(3000)
    gc.set_threshold(_YOUNG, 10, 10)
    clock.install()
    pydantic_clock.install()
    binding.install()


@dataclass(frozen=True)
class Played:
    outcome: Outcome
    content: bytes | None
    """The database after the call where it changed something, else None; its delta where the environment keeps deltas."""
    leaked: bool


class Environment:
    def __init__(self, code: str, seed: bytes, world_time: str) -> None:
        """Import and derive. Raises loading.LoadFailed. The process was prepared."""
        self.start = clock.parse_world_time(world_time)
        self.max_pages = (len(seed) + GROWTH) // _PAGE
        slot = Slot(self.max_pages)
        binding.bound.slot = slot
        slot.load_bytes(seed)
        with clock.world(self.start):
            self.loaded = loading.load(code)
            self.derived: Derived = tools.derive(self.loaded.app)
        self.holds_connection = slot.held() or _keeps_session(self.loaded.module)
        slot.keep = self.holds_connection
        slot.clean()
        self.threads = threading.active_count()
        self.seed = slot.content() if slot.version() else seed
        self.seed_connection = dump.open_bytes(self.seed)
        self.callers: dict[str, Caller] = {s.tool.name: Caller(self.loaded.app, s) for s in self.derived.tools}
        self.slot = slot
        self.keeps_deltas = False
        """Databases are given and taken as deltas against the seed, as `pages` makes them."""

    def new_slot(self) -> Slot:
        """A slot that holds the seed. An environment that kept a connection from import on has only the one it is bound to."""
        slot = self.slot if self.holds_connection else Slot(self.max_pages)
        slot.load(self.seed_connection)
        return slot

    def drop_slot(self, slot: Slot) -> None:
        if slot is not self.slot:
            slot.close()

    def freeze(self) -> None:
        """Before forking: what is here now is never collected, so its pages stay shared."""
        gc.collect()
        gc.freeze()

    async def play(self, slot: Slot, before: bytes | None, tool: str, arguments: Any, seed: int, step: int) -> Played:
        """One call in a slot that holds `before` (None: the seed). A call that fails leaves the slot as it was.

        Raises SlotBroken where the slot can't be used again; the episode's last good state is then `before` as ever.
        """
        caller = self.callers.get(tool)
        if caller is None:
            return Played(calling.failed(Fault("format_error", f"unknown tool: {tool}")), None, False)
        if not isinstance(arguments, dict):
            return Played(calling.failed(Fault("format_error", "the arguments are no JSON object")), None, False)
        if (fault := caller.refuse(arguments)) is not None:
            return Played(calling.failed(fault), None, False)
        played = await self._play_in(slot, before, caller, arguments, seed, step)
        if played is None:
            played = await self._play_shared(slot, before, caller, arguments, seed, step)
        return played

    async def _play_shared(
        self, slot: Slot, before: bytes | None, caller: Caller, arguments: Any, seed: int, step: int
    ) -> Played:
        """The call once more, where two of its sessions were in each other's way."""
        shared = SharedSlot(self.max_pages)
        try:
            self._restore(shared, before)
            played = await self._play_in(shared, before, caller, arguments, seed, step)
        finally:
            shared.close()
        assert played is not None, "a shared slot is the last resort"
        if played.content is not None:
            self.fill(slot, played.content)
        return played

    async def _play_in(
        self, slot: Slot, before: bytes | None, caller: Caller, arguments: Any, seed: int, step: int
    ) -> Played | None:
        """None where the call failed because one of its connections held a lock against another; it is undone then."""
        binding.bound.slot = slot
        version = slot.version()
        error: BaseException | None = None
        clock.enter(self.start + step * STEP_SECONDS, seed, step)
        try:
            outcome = await caller(arguments)
        except BaseException as raised:  # noqa: BLE001 - the boundary to environment code: it may raise anything, SystemExit too
            error = raised
        finally:
            clock.leave()
            leaked = slot.clean()
        if error is not None and not slot.keep and not isinstance(slot, SharedSlot) and _is_locked(error):
            self._restore(slot, before)
            return None
        if error is not None:
            outcome = self._explain(slot, before, error, version)
            error = None
        if slot.version() == version:
            slot.check_unlocked()
            return Played(outcome, None, leaked)
        if outcome.is_error:
            self._restore(slot, before)
            return Played(outcome, None, leaked)
        return Played(outcome, slot.delta(self.seed) if self.keeps_deltas else slot.content(), leaked)

    def _explain(self, slot: Slot, before: bytes | None, error: BaseException, version: int) -> Outcome:
        if isinstance(error, KeyboardInterrupt):
            raise error
        if slot.version() != version:
            self._restore(slot, before)
        return calling.failed(faults.from_exception(error, slot.anchor))

    def _restore(self, slot: Slot, before: bytes | None) -> None:
        self.fill(slot, before)

    def fill(self, slot: Slot, content: bytes | None) -> None:
        """None is the seed. Raises SlotBroken."""
        if content is None:
            slot.load(self.seed_connection)
        else:
            slot.load_bytes(pages.apply(self.seed, content) if self.keeps_deltas else content)


async def warm_up(env: Environment) -> None:
    """The first query of an engine and the first call of a tool cost many times the later ones; pay before the fork."""
    slot = env.new_slot()
    for name, caller in env.callers.items():
        required: Any = caller.tool.input_schema.get("required", [])
        arguments = dict.fromkeys(required, 1)
        if caller.tool.method == "GET":
            await env.play(slot, None, name, arguments, 0, 1)
        else:
            caller.refuse(arguments)  # makes its check of arguments, and reaches no code that writes
    env.drop_slot(slot)


def _is_locked(error: BaseException) -> bool:
    """True if a lock is behind it, even where the code raised something else because of it."""
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            return False
        if isinstance(getattr(seen, "orig", seen), sqlite3.OperationalError) and "locked" in str(seen):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _keeps_session(module: types.ModuleType) -> bool:
    """A session or connection at module level, used or not yet."""
    kinds = (orm.Session, orm.scoped_session, sqlalchemy.Connection, sqlite3.Connection, sqlite3.Cursor)
    return any(isinstance(value, kinds) for value in vars(module).values())
