"""Module state seen by trial: an episode played alone must answer as it does between the calls of another.

The source shows most of it (`module_state`); this finds what no reading does: a cache behind a decorator, state in an object's
attributes, in a closure, in a library.
"""

import json
import threading
from dataclasses import dataclass, field
from typing import Any, Final

from awm_runtime import canonical
from awm_runtime.arguments import Maker, Pool, resource_of
from awm_runtime.environment import Environment

_ROUNDS: Final = 2
_Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Seen:
    differing: list[str] = field(default_factory=list)
    """Tools that tell an episode of another one, or of an earlier one."""
    threads: bool = False
    """A call left a thread behind: it goes on with the real time, and may write to an episode that is not its own."""


async def interleaved(environment: Environment) -> Seen:
    """Spoils the process it runs in."""
    differing = [] if environment.holds_connection else await _differing(environment)
    return Seen(differing, threading.active_count() > environment.threads)


async def _differing(environment: Environment) -> list[str]:
    start = canonical.Start(environment.seed, environment.start)
    pool = Pool()
    mine, theirs = Maker(start, pool, environment.start, 1), Maker(start, pool, environment.start, 2)
    alone = _Episode(environment)
    calls: list[_Call] = []
    for _ in range(_ROUNDS):
        for served in environment.derived.tools:
            name, schema = served.tool.name, served.tool.input_schema
            calls.append((name, mine.arguments(schema)))
            body = await alone.call(*calls[-1])
            pool.learn(json.loads(body or b"null"), resource_of(served.tool.path))
    again, other = _Episode(environment), _Episode(environment)
    found: dict[str, None] = {}
    for (name, arguments), expected in zip(calls, alone.answers, strict=True):
        schema = environment.callers[name].tool.input_schema
        await other.call(name, theirs.arguments(schema))
        if await again.call(name, arguments) != expected:
            found[name] = None
    return list(found)


class _Episode:
    def __init__(self, environment: Environment) -> None:
        self.environment, self.slot = environment, environment.new_slot()
        self.content: bytes | None = None
        self.answers: list[bytes] = []

    async def call(self, name: str, arguments: dict[str, Any]) -> bytes:
        played = await self.environment.play(self.slot, self.content, name, arguments, 0, len(self.answers) + 1)
        self.content = self.content if played.content is None else played.content
        self.answers.append(played.outcome.body)
        return played.outcome.body
