"""From a bundle to a certified bundle: gather the evidence, let every gate read it, write the certificate."""

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from types import ModuleType
from typing import Final

from awm_factory.bundle import Bundle, Task
from awm_factory.certificate import Certificate, Outcome, Subject, TaskCertificate
from awm_factory.certify import (
    alternatives,
    behaviour,
    data,
    equivalents,
    hygiene,
    interface,
    near_misses,
    null,
    reset,
    schema,
    solvable,
)
from awm_factory.certify.evidence import Evidence, Options, modes_of
from awm_factory.certify.gathering import APP_CHECK, APP_LIMIT, gather
from awm_factory.certify.weighing import weigh
from awm_factory.problems import Problem
from awm_factory.sandbox.pool import Sandbox
from awm_runtime.contract import AppReply, CheckFailed, ExploreReply, LoadReply

__all__ = ["APP_CHECK", "APP_LIMIT", "GATES", "QUICK", "Certified", "certify", "gather", "is_current", "subject"]

ENVIRONMENT_GATES: Final[tuple[ModuleType, ...]] = (schema, data, interface, behaviour, reset)
TASK_GATES: Final[tuple[ModuleType, ...]] = (hygiene, null, solvable, near_misses, equivalents, alternatives)
GATES: Final = (*ENVIRONMENT_GATES, *TASK_GATES)
QUICK: Final = tuple(gate.NAME for gate in (schema, data, interface, null, solvable, hygiene))
"""The gates that take a second or two: all but those which explore the app or try mutants of the solutions."""


@dataclass(frozen=True)
class Certified:
    """A bundle with its database, tool list and certificate filled in by what the sandbox saw."""

    bundle: Bundle
    evidence: Evidence

    @property
    def certificate(self) -> Certificate:
        assert self.bundle.certificate is not None
        return self.bundle.certificate


def certify(bundle: Bundle, sandbox: Sandbox, options: Options) -> Certified:
    """Run every gate. Faults of the bundle are Problems in the certificate; raises SandboxError only for the sandbox's own."""
    bundle, evidence = gather(bundle, sandbox, options)
    found = {gate.NAME: gate.check(bundle, evidence, options) for gate in chosen(options)}
    problems = [problem for problems in found.values() for problem in problems]
    certificate = Certificate(
        subject=subject(bundle, sandbox.base, options),
        gates={
            gate.NAME: _outcome([p for p in found[gate.NAME] if p.task_id is None], ran=_ran(gate.NAME, evidence))
            if gate.NAME in found
            else "not_run"
            for gate in ENVIRONMENT_GATES
        },
        problems=problems,
        tasks=[_task(bundle, task, evidence, problems, found.keys()) for task in bundle.tasks],
        figures=_figures(evidence),
        left_out=[gate.NAME for gate in GATES if gate.NAME not in found],
    )
    return Certified(bundle.with_(certificate=certificate), evidence)


def is_current(bundle: Bundle, base: str, options: Options) -> bool:
    """True where the bundle's certificate speaks of exactly this bundle, base image, gate versions and knobs.

    Where only some gates are wanted, a certificate of all of them does.
    """
    if bundle.seed_db is None or bundle.certificate is None:
        return False
    enough = [options, replace(options, gates=())]
    return any(bundle.certificate.subject == subject(bundle, base, one) for one in enough)


def chosen(options: Options) -> list[ModuleType]:
    return [gate for gate in GATES if options.wants(gate.NAME)]


def subject(bundle: Bundle, base: str, options: Options) -> Subject:
    budget = asdict(options)
    del budget["gates"]
    return Subject(
        bundle_digest=bundle.digest(),
        solutions_digest=bundle.solutions_digest(),
        base=base,
        gates={gate.NAME: gate.VERSION for gate in chosen(options)},
        seed=budget.pop("seed"),
        budget=budget,
    )


def _ran(gate: str, evidence: Evidence) -> bool:
    """Whether there was anything that a gate of the environment could look at: no database, no app, no call leave it nothing."""
    seen: dict[str, object] = {
        data.NAME: isinstance(evidence.load, LoadReply),
        interface.NAME: evidence.app is not None,
        behaviour.NAME: evidence.explored is not None,
        reset.NAME: isinstance(evidence.explored, ExploreReply),
    }
    return bool(seen.get(gate, True))


def _outcome(problems: list[Problem], *, ran: bool = True) -> Outcome:
    if any(problem.severity == "error" for problem in problems):
        return "failed"
    return "warned" if problems else "passed" if ran else "not_run"


def _task(bundle: Bundle, task: Task, evidence: Evidence, problems: list[Problem], gates: Collection[str]) -> TaskCertificate:
    mine = [problem for problem in problems if problem.task_id == task.task_id]
    fatal = [problem for problem in mine if problem.severity == "error"]
    path, tried = evidence.paths.get(task.task_id), evidence.tried.get(task.task_id, [])
    weighed = weigh(path, tried) if path is not None else None
    judged = bool(modes_of(bundle, task)) and bool(evidence.untouched)
    ran = {
        hygiene.NAME: judged,
        null.NAME: judged,
        solvable.NAME: task.task_id in evidence.solved,
        near_misses.NAME: weighed is not None and bool(weighed.killed or weighed.survivors or weighed.broken),
        equivalents.NAME: weighed is not None and bool(weighed.accepted or weighed.rejected),
        alternatives.NAME: weighed is not None and bool(weighed.alternatives or weighed.searched),
    }
    return TaskCertificate(
        task_id=task.task_id,
        shipped=not fatal,
        reason=fatal[0].what if fatal else None,
        gates={name: _outcome([p for p in mine if p.gate == name]) if ran[name] and name in gates else "not_run" for name in ran},
        rates=weighed.rates() if weighed is not None and tried and near_misses.NAME in gates else {},
    )


def _figures(evidence: Evidence) -> dict[str, object]:
    load, app = evidence.load, evidence.app
    if isinstance(load, CheckFailed):
        return {}
    figures: dict[str, object] = {
        "statements": dict(load.statements_total),
        "failed": {phase: sum(f.phase == phase for f in load.failures) for phase in ("schema", "data")},
        "tables": len(load.tables),
        "rows": sum(table.rows for table in load.tables),
        "tools": len(app.tools) if isinstance(app, AppReply) else 0,
    }
    if isinstance(evidence.explored, ExploreReply):
        uses = evidence.explored.uses.values()
        figures["behaviour"] = {
            "calls": evidence.explored.calls,
            "tools_called": len(uses),
            "tools_ok": sum(use.ok > 0 for use in uses),
            "tools_failing": sum(use.internal > 0 for use in uses),
            "violations": len(evidence.explored.violations),
        }
    return figures
