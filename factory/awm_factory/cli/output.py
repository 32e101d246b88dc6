"""What commands print: tables and JSON on stdout, progress on stderr."""

import sys
import threading
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click
from pydantic import TypeAdapter
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table

from awm_factory.errors import BatchFailed

if TYPE_CHECKING:
    from awm_factory.build import BatchReport, Row

UNBOUNDED = 100_000
"""Columns of a table that no terminal bounds: what reads it cuts lines itself, where it wants them cut."""
SHOWN = 5
"""Problems of one environment and kind that a table spells out; `--json` has all."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
jobs_option = click.option(
    "--jobs", type=click.IntRange(1, 64), help="Environments worked on side by side; the number of CPUs, up to 8, if not given."
)

STYLES = {"built": "green", "checked": "green", "imported": "green", "unchanged": "dim", "refused": "yellow", "failed": "red"}


def stdout() -> Console:
    """Of the terminal's width, or else without bounds."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    # With a width alone, rich still takes 80 columns where TERM is `dumb` and FORCE_COLOR or TTY_COMPATIBLE is set, as on CI.
    return Console(width=UNBOUNDED, height=25, highlight=False)


def stderr() -> Console:
    """For progress: bars on a terminal, lines elsewhere. FORCE_COLOR asks for colours, not for bars in a log."""
    return Console(stderr=True, highlight=False, force_terminal=sys.stderr.isatty())


def print_json(value: Any) -> None:
    click.echo(TypeAdapter(type(value)).dump_json(value, indent=2).decode())


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], styles: Sequence[str] = ()) -> None:
    grid = Table(pad_edge=False, show_edge=False, box=SIMPLE_HEAD)
    for column in columns:
        grid.add_column(column, overflow="fold")
    for index, cells in enumerate(rows):
        grid.add_row(*map(escape, cells), style=styles[index] if styles else None)
    stdout().print(grid)


def fail_unless_ok(report: "BatchReport") -> None:
    """The end of a command on a batch: exit code 1 where any environment failed, once the others are done and shown."""
    failed = [row.env_id for row in report.rows if not row.ok]
    if failed:
        raise BatchFailed(
            f"{len(failed)} of {len(report.rows)} environments failed: {', '.join(failed)}; correct what is listed, then repeat"
        )


def print_report(report: "BatchReport", *, as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    columns = ["environment", "outcome", "tasks", "schema", "data", "tools", "errors", "warnings", "seconds", "image"]
    table(columns, map(_cells, report.rows), [STYLES.get(row.outcome, "") for row in report.rows])
    console = stdout()
    for row in report.rows:
        lines = list(_findings(row))
        if lines:
            console.print(
                f"\n[bold]{escape(row.env_id)}[/bold]", *(escape(f"  {line}") for line in lines), sep="\n", soft_wrap=True
            )


def _cells(row: "Row") -> list[str]:
    errors = len(row.errors)
    return [
        row.env_id,
        row.outcome,
        f"{len(row.tasks_shipped)} of {row.tasks_total}" if row.tasks_total else "",
        _failed(row, "schema"),
        _failed(row, "data"),
        str(row.figures.get("tools", "")),
        str(errors or ""),
        str(len(row.problems) - errors or ""),
        f"{sum(row.seconds.values()):.1f}",
        row.reference or "",
    ]


def _failed(row: "Row", phase: str) -> str:
    """`3 of 66 failed`, or how many statements there are."""
    failed, total = (_figure(row.figures.get(name), phase) for name in ("failed", "statements"))
    return f"{failed} of {total} failed" if failed else str(total or "")


def _figure(figures: object, phase: str) -> int:
    return figures.get(phase, 0) if isinstance(figures, dict) else 0


def _findings(row: "Row") -> Iterable[str]:
    if row.error:
        yield from row.error.splitlines()
    by_kind: dict[tuple[str, str], list[str]] = {}
    for problem in row.problems:
        by_kind.setdefault((problem.severity, problem.gate), []).append(f"{problem.where}: {problem.what} {problem.fix}")
    for (severity, gate), texts in sorted(by_kind.items(), key=lambda entry: entry[0][0]):
        for text in texts[:SHOWN]:
            yield f"{severity} ({gate}) {text}"
        if len(texts) > SHOWN:
            yield f"… and {len(texts) - SHOWN} more of this kind; --json lists them all"


class StderrProgress:
    """Told what goes on from any thread: bars on a terminal, a line a stage elsewhere."""

    def __init__(self) -> None:
        self._console = stderr()
        self._lock = threading.Lock()
        self._bars: Bars | None = None
        self._all: Any = None
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bars = Bars(*columns, console=self._console, transient=True)
            self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bars is not None:
            self._bars.stop()

    def total(self, count: int | None) -> None:
        if self._bars is not None:
            with self._lock:
                if self._all is None:
                    self._all = self._bars.add_task("environments", total=count)
                else:
                    self._bars.update(self._all, total=count)

    def stage(self, env_id: str, stage: str) -> None:
        if self._bars is None:
            self.say(f"{env_id}: {stage}")
            return
        with self._lock:
            text = f"{escape(env_id)}: {stage}"
            if env_id in self._tasks:
                self._bars.update(self._tasks[env_id], description=text)
            else:
                self._tasks[env_id] = self._bars.add_task(text, total=1)

    def done(self, row: "Row") -> None:
        if self._bars is None:
            self.say(f"{row.env_id}: {row.outcome} after {sum(row.seconds.values()):.1f} s")
            return
        with self._lock:
            if env_id_task := self._tasks.pop(row.env_id, None):
                self._bars.remove_task(env_id_task)
            if self._all is not None:
                self._bars.advance(self._all)

    def say(self, message: str) -> None:
        self._console.print(escape(message), soft_wrap=True)
