"""From a bundle to a certified bundle: gather the evidence, let every gate read it, write the certificate."""

import base64
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Final

from awm_factory.bundle import Bundle, Manifest, Mending, Task
from awm_factory.certificate import Certificate, Outcome, Subject, TaskCertificate
from awm_factory.certify import data, interface, null, schema, solvable
from awm_factory.certify.evidence import Evidence, Options, modes_of
from awm_factory.certify.statements import numbered
from awm_factory.errors import SandboxError
from awm_factory.problems import Problem
from awm_factory.sandbox.pool import Sandbox, expect
from awm_runtime.contract import (
    AppReply,
    AppRequest,
    CallsReply,
    CallsRequest,
    CheckFailed,
    EnvironmentSource,
    LoadReply,
    LoadRequest,
    VerifierSource,
    VerifyReply,
    VerifyRequest,
)

ENVIRONMENT_GATES: Final[tuple[ModuleType, ...]] = (schema, data, interface)
TASK_GATES: Final[tuple[ModuleType, ...]] = (null, solvable)
GATES: Final = (*ENVIRONMENT_GATES, *TASK_GATES)

APP_LIMIT = 30.0
"""Seconds an app may take to start and answer; AWM's limit."""


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
    found = {gate.NAME: gate.check(bundle, evidence, options) for gate in GATES}
    problems = [problem for gate in GATES for problem in found[gate.NAME]]
    certificate = Certificate(
        subject=subject(bundle, sandbox.base, options),
        gates={gate.NAME: _outcome([p for p in found[gate.NAME] if p.task_id is None]) for gate in ENVIRONMENT_GATES},
        problems=problems,
        tasks=[_task(bundle, task, evidence, problems) for task in bundle.tasks],
        figures=_figures(evidence),
    )
    return Certified(bundle.with_(certificate=certificate), evidence)


def is_current(bundle: Bundle, base: str, options: Options) -> bool:
    """True where the bundle's certificate speaks of exactly this bundle, base image, gate versions and knobs."""
    return (
        bundle.seed_db is not None
        and bundle.certificate is not None
        and bundle.certificate.subject == subject(bundle, base, options)
    )


def subject(bundle: Bundle, base: str, options: Options) -> Subject:
    budget = asdict(options)
    return Subject(
        bundle_digest=bundle.digest(),
        solutions_digest=bundle.solutions_digest(),
        base=base,
        gates={gate.NAME: gate.VERSION for gate in GATES},
        seed=budget.pop("seed"),
        budget=budget,
    )


def gather(bundle: Bundle, sandbox: Sandbox, options: Options) -> tuple[Bundle, Evidence]:
    """Execute the checks, and fill the bundle with what they make: seed.db, evaluated seed, tool list."""
    world_time = bundle.manifest.world_time
    request = LoadRequest(
        world_time=world_time, statements_schema=numbered(bundle.schema_sql), statements_data=numbered(bundle.seed_sql)
    )
    load = expect(LoadReply, sandbox.check(request))
    if isinstance(load, CheckFailed):
        return bundle, Evidence(load)
    bundle = loaded(bundle, load)
    source = EnvironmentSource(env_id=bundle.env_id, app_code=bundle.app_code, db=load.db, world_time=world_time)
    app = expect(AppReply, sandbox.check(AppRequest(source=source), APP_LIMIT))
    if isinstance(app, AppReply):
        bundle = bundle.with_(manifest=_with_tools(bundle.manifest, app))
    verifiers = [
        VerifierSource(task_id=task.task_id, mode=mode, code=bundle.verifiers[task.task_id, mode])
        for task in bundle.tasks
        for mode in modes_of(bundle, task)
    ]
    verify = VerifyRequest(verifiers=verifiers, initial_db=load.db, final_db=load.db, final_answer="", world_time=world_time)
    verdicts = expect(VerifyReply, sandbox.check(verify, 10.0 + 10.0 * len(verifiers)))
    if isinstance(verdicts, CheckFailed):
        raise SandboxError(f"the verifiers of {bundle.env_id} could not be run: {verdicts.message}; report this with the bundle")
    untouched = {(v.task_id, v.mode): verdict for v, verdict in zip(verifiers, verdicts.verdicts, strict=True)}
    solved: dict[int, CallsReply | CheckFailed] = {}
    if isinstance(app, AppReply) and app.tools:
        for task in bundle.tasks:
            solution = bundle.solutions.get(task.task_id)
            code = [v for v in verifiers if v.task_id == task.task_id and v.mode == "code"]
            if solution is not None and code:
                calls = CallsRequest(
                    source=source,
                    calls=solution.calls,
                    final_answer=solution.final_answer,
                    verifiers=code,
                    repeat=options.solvable_runs,
                    seed=options.seed,
                )
                solved[task.task_id] = expect(CallsReply, sandbox.check(calls, APP_LIMIT * options.solvable_runs))
    return bundle, Evidence(load, app, untouched, solved)


def loaded(bundle: Bundle, load: LoadReply) -> Bundle:
    """The bundle with the database that its statements made, and its SQL with clock and chance evaluated."""
    return bundle.with_(
        schema_sql=load.schema_sql,
        seed_sql=load.seed_sql,
        seed_db=base64.b64decode(load.db),
        manifest=bundle.manifest.model_copy(update={"dump_sha256": load.dump_sha256}),
    )


def _with_tools(manifest: Manifest, app: AppReply) -> Manifest:
    renamed = {tool.name: tool.operation_id for tool in app.tools if tool.name != tool.operation_id}
    omitted = [Mending(tool=finding.omitted, kind="omitted", why=finding.what) for finding in app.findings if finding.omitted]
    return manifest.model_copy(
        update={
            "tools": sorted(tool.name for tool in app.tools),
            "renamed": renamed,
            "mendings": [
                *omitted,
                *(Mending(tool=name, kind="renamed", why=f"operation id {old}") for name, old in renamed.items()),
            ],
        }
    )


def _outcome(problems: list[Problem]) -> Outcome:
    if any(problem.severity == "error" for problem in problems):
        return "failed"
    return "warned" if problems else "passed"


def _task(bundle: Bundle, task: Task, evidence: Evidence, problems: list[Problem]) -> TaskCertificate:
    mine = [problem for problem in problems if problem.task_id == task.task_id]
    fatal = [problem for problem in mine if problem.severity == "error"]
    ran = {null.NAME: bool(modes_of(bundle, task)) and bool(evidence.untouched), solvable.NAME: task.task_id in evidence.solved}
    return TaskCertificate(
        task_id=task.task_id,
        shipped=not fatal,
        reason=fatal[0].what if fatal else None,
        gates={name: _outcome([p for p in mine if p.gate == name]) if ran[name] else "not_run" for name in ran},
    )


def _figures(evidence: Evidence) -> dict[str, object]:
    load, app = evidence.load, evidence.app
    if isinstance(load, CheckFailed):
        return {}
    return {
        "statements": dict(load.statements_total),
        "failed": {phase: sum(f.phase == phase for f in load.failures) for phase in ("schema", "data")},
        "tables": len(load.tables),
        "rows": sum(table.rows for table in load.tables),
        "tools": len(app.tools) if isinstance(app, AppReply) else 0,
    }
