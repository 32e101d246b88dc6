"""One episode: what the supervisor knows of it, and how a call of it or a request about it ends."""

import asyncio
import time
from dataclasses import dataclass, field

import pydantic_core

from awm_runtime.links import Link


class Refused(Exception):
    """A request that can't be carried out, with the HTTP status that says so."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class State:
    """One instant of an episode."""

    changes: bytes | None = None
    """Delta against the seed; None is the seed."""
    version: int = 0
    steps: int = 0
    internal_errors: int = 0
    beside: int = 0
    """Steps that called no tool of the environment: OpenEnv counts them, the world's clock does not."""


@dataclass(eq=False)
class Running:
    """One episode."""

    id: str
    task_id: int | None
    seed: int
    state: State = State()
    alias: str | None = None
    worker: Link | None = None
    """The worker that served it last, and most likely has its database ready."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    used: float = field(default_factory=time.monotonic)
    versions: int = 0
    """Versions given out so far; a reset or restore never takes an old one, which a worker might still hold."""
    snapshots: dict[str, State] = field(default_factory=dict)
    parked: dict[str, Link] = field(default_factory=dict)
    """Processes that belong to snapshots, where module state is part of them."""
    ended: bool = False

    def next_version(self) -> int:
        self.versions += 1
        return self.versions


@dataclass(frozen=True)
class CallResult:
    kind: str
    status: int | None
    body: bytes
    """The endpoint's or the error's JSON; with `mcp`, the result of a tools/call."""

    @property
    def is_error(self) -> bool:
        return self.kind != "ok"


def failure(kind: str, message: str, mcp: bool) -> CallResult:
    """Of a call that no worker answered."""
    error = {"error": {"kind": kind, "message": message}}
    if not mcp:
        return CallResult(kind, None, pydantic_core.to_json(error))
    text = pydantic_core.to_json(error, indent=2).decode()
    return CallResult(kind, None, pydantic_core.to_json({"content": [{"type": "text", "text": text}], "isError": True}))
