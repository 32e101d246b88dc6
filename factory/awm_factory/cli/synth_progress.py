"""How a synthesis looks while it runs: one live table of stages on a terminal, a line a step elsewhere. All on stderr."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from awm_factory.cli.output import stderr

if TYPE_CHECKING:
    from awm_factory.synthesis.report import Row

_SHOWN = ("tasks", "schema", "data", "spec", "code", "verifiers", "solutions", "certify")


class SynthProgress:
    def __init__(self, expected: int, spent: Callable[[], float] = lambda: 0.0) -> None:
        """`expected`: scenarios in all; `spent`: USD so far."""
        self._console = stderr()
        self._lock = threading.Lock()
        self._expected = expected
        self._spent = spent
        self._at: dict[str, str] = {}
        self._passed: Counter[str] = Counter()
        self._ended: Counter[str] = Counter()
        self._found = 0
        """Of the ended ones those that an earlier run of the command had made."""
        self._started = time.monotonic()
        self._live = Live(get_renderable=self._table, console=self._console, refresh_per_second=2, transient=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def stage(self, env_id: str, stage: str) -> None:
        with self._lock:
            if before := self._at.get(env_id):
                self._passed[before] += 1
            self._at[env_id] = stage
        if not self._console.is_terminal:
            self.say(f"{env_id}: {stage}")

    def done(self, row: "Row") -> None:
        with self._lock:
            if before := self._at.pop(row.env_id, None):
                self._passed[before] += 1
            else:
                self._found += 1
            self._ended[row.outcome] += 1
        if not self._console.is_terminal:
            shipped = f", {row.tasks_shipped} of {row.tasks_total} tasks" if row.tasks_total else ""
            self.say(f"{row.env_id}: {row.outcome}{shipped}{f' ({row.error})' if row.error else ''}; {self._line()}")

    def say(self, message: str) -> None:
        self._console.print(escape(message), soft_wrap=True)

    def _line(self) -> str:
        ended = self._ended.total()
        minutes = (time.monotonic() - self._started) / 60
        rate = (ended - self._found) / minutes if minutes > 0 else 0.0
        left = f", about {(self._expected - ended) / rate:.0f} min left" if rate and self._expected > ended else ""
        return f"{ended} of {self._expected} ended, {rate:.1f} a minute, ${self._spent():.2f}{left}"

    def _table(self) -> Group:
        with self._lock:
            now, passed = Counter(self._at.values()), Counter(self._passed)
            outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self._ended.items()))
        grid = Table(pad_edge=False)
        for column in ("stage", "at work", "passed through"):
            grid.add_column(column)
        for stage in _SHOWN:
            if now[stage] or passed[stage]:
                grid.add_row(stage, str(now[stage] or ""), str(passed[stage] or ""))
        return Group(grid, Text(f"{self._line()}{f' ({outcomes})' if outcomes else ''}"))
