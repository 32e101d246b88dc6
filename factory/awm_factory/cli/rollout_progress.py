"""How far a rollout is, and how it goes: a bar on a terminal, a line a tenth of the episodes elsewhere."""

from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from awm_factory.cli.output import stderr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from awm_factory.rollout import Rollout


class RolloutProgress:
    def __init__(self, total: int, before: "Sequence[Rollout]") -> None:
        self._total, self._ended, self._rewards = total, 0, 0.0
        self._rewarded = self._failed = 0
        self._console = stderr()
        columns = (
            TextColumn("episodes"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self._bars = Progress(*columns, console=self._console, transient=True, disable=not self._console.is_terminal)
        self._bar = self._bars.add_task("", total=total)
        for rollout in before:
            self._count(rollout)
        if before:
            self._console.print(f"{len(before)} of {total} episodes are there already")

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bars.stop()

    def done(self, rollout: "Rollout") -> None:
        tenths = self._ended * 10 // self._total
        self._count(rollout)
        if not self._console.is_terminal and self._ended * 10 // self._total > tenths:
            self._console.print(f"{self._ended} of {self._total} episodes, {self._line()}", soft_wrap=True)

    def _count(self, rollout: "Rollout") -> None:
        self._ended += 1
        self._failed += rollout.reward is None
        if rollout.reward is not None:
            self._rewarded += 1
            self._rewards += rollout.reward
        self._bars.update(self._bar, completed=self._ended, description=self._line())

    def _line(self) -> str:
        mean = f"mean reward {self._rewards / self._rewarded:.3f}" if self._rewarded else "no reward yet"
        return mean + (f", {self._failed} masked" if self._failed else "")
