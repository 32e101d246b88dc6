"""What the sandbox saw of a bundle. Gathered once, in a few checks; the gates only read it."""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from awm_factory import syntax
from awm_factory.bundle import MODES, Bundle, Origin, Task
from awm_factory.certify.trying import Path, Tried
from awm_factory.problems import Problem, Severity
from awm_runtime.contract import (
    AppReply,
    CallsReply,
    CheckFailed,
    ExploreReply,
    LoadReply,
    Observation,
    Verdict,
    VerifierMode,
)


@dataclass(frozen=True)
class Options:
    """Knobs that bear on the outcome; named in the certificate."""

    max_failed_statements: float = 0.0
    """Share of the statements of a phase that may fail, 0 to 1; AWM tolerates 0.1."""
    solvable_runs: int = 3
    """Times a solution is played; each must be complete and end in the same state."""
    calls: int = 600
    """Calls that the exploration of an environment may make; 0 leaves it out."""
    mutants: int = 40
    """Near misses of a task that are made and tried, besides those its author names; 0 leaves out all trials but the solution."""
    seed: int = 0
    gates: tuple[str, ...] = ()
    """The only gates that run, where not all do; a certificate of some is partial, and passes for no whole one."""

    def wants(self, *names: str) -> bool:
        """Whether one of these gates is to run."""
        return not self.gates or not set(names).isdisjoint(self.gates)


@dataclass(frozen=True)
class Evidence:
    load: LoadReply | CheckFailed
    app: AppReply | CheckFailed | None = None
    """None where the database did not load at all."""
    untouched: dict[tuple[int, VerifierMode], Verdict] = field(default_factory=dict)
    """Each verifier's word on a database nobody touched, with an empty answer."""
    solved: dict[int, CallsReply | CheckFailed] = field(default_factory=dict)
    """Playthroughs of the tasks that have a solution."""
    explored: ExploreReply | CheckFailed | None = None
    """None where it was not asked for, or the app offers no tool."""
    observed: dict[tuple[int, VerifierMode], Observation] = field(default_factory=dict)
    """What each verifier did while it was watched."""
    parse: Callable[[str], ast.Module] = syntax.module
    """By the grammar of the sandbox. Trees are fifty times as large as their code, so none is kept."""
    paths: dict[int, Path] = field(default_factory=dict)
    """Solutions that were played to their end."""
    tried: dict[int, list[Tried]] = field(default_factory=dict)
    """Near misses, equivalents and alternatives of the solutions that are complete."""
    untried: CheckFailed | None = None
    """Why trials could not be carried out."""


def severity(origin: Origin, *, lenient: Severity = "warning") -> Severity:
    """`lenient` for imports, which are served wherever that is honest; an error for what is written here."""
    return lenient if origin == "imported" else "error"


def modes_of(bundle: Bundle, task: Task) -> list[VerifierMode]:
    return [mode for mode in MODES if (task.task_id, mode) in bundle.verifiers]


def could_not_run(gate: str, what: str, failed: CheckFailed, task_id: int | None = None) -> Problem:
    return Problem(
        gate=gate,
        severity="error",
        where=f"task {task_id}" if task_id is not None else "environment",
        what=f"{what} could not be carried out ({failed.reason}): {failed.message}.",
        fix="Look for an endless loop, endless recursion or huge data in what was executed.",
        task_id=task_id,
    )


def excerpt(sql: str, limit: int = 160) -> str:
    line = " ".join(sql.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
