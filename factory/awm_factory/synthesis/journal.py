"""What a run remembers of its attempts: every answer asked for, with what was wrong with it."""

from dataclasses import dataclass
from typing import Protocol

from awm_factory.problems import Problem


@dataclass(frozen=True)
class AttemptRecord:
    env_id: str
    stage: str
    item: str
    attempt: int
    """From 1, over all passes of the stage."""
    request: str
    """Content key of the request."""
    problems: list[Problem]
    parsed: bool
    """False where no artifact could be taken out of the answer."""


class Journal(Protocol):
    def attempt(self, record: AttemptRecord) -> None: ...


class MemoryJournal:
    """Keeps the attempts of one process; for tests and for runs nobody wants to look at later."""

    def __init__(self) -> None:
        self.attempts: list[AttemptRecord] = []

    def attempt(self, record: AttemptRecord) -> None:
        self.attempts.append(record)
