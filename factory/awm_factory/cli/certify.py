"""Commands about evidence: certify environments of the workspace, and audit anybody's AWM run."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from awm_factory.cli import settings
from awm_factory.cli.environments import envs_argument, force_option, run_directory, tolerance_option, world_time_option
from awm_factory.cli.output import StderrProgress, fail_unless_ok, jobs_option, json_option, print_json, table
from awm_factory.errors import UsageError

if TYPE_CHECKING:
    from awm_factory.catalog import Catalog
    from awm_factory.certify.audit import Audited
    from awm_factory.certify.trajectory import Judged
    from awm_factory.reward import Case, Judgement

file_path = click.Path(exists=True, dir_okay=False, path_type=Path)
report_option = click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where the report goes, one HTML page; not given: into the cache.",
)


@click.command(short_help="Prove environments and tell the figures.")
@envs_argument
@click.option(
    "--from-trajectory", type=file_path, metavar="FILE", help="Keep this trajectory as a task's solution if it is complete."
)
@click.option("--judge-model", metavar="NAME", help="Let this model judge a trajectory that the code verifier does not accept.")
@click.option("--task", type=click.IntRange(min=0), help="Task of the trajectory, where the file does not say it.")
@click.option(
    "--gates",
    metavar="NAMES",
    help="Run only these gates, by commas; quick stands for schema, data, interface, null, solvable and hygiene.",
)
@report_option
@tolerance_option
@jobs_option
@force_option
@json_option
@click.pass_obj
def certify(
    workspace: Path | None,
    envs: tuple[str, ...],
    from_trajectory: Path | None,
    judge_model: str | None,
    task: int | None,
    gates: str | None,
    report: Path | None,
    max_failed_statements: float,
    jobs: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Run every gate on environments, all or those named, write their certificates, and show what was tried and what came out.

    With --gates the certificate is partial: it says which gates were left out, and no environment is built on it.
    """
    from awm_factory.build import Knobs, check_envs, open_sandbox
    from awm_factory.catalog import Catalog
    from awm_factory.certify import Options

    config = settings.load(workspace, jobs=jobs)
    catalog = Catalog(config.workspace)
    options = Options(max_failed_statements=max_failed_statements, gates=_gates(gates))
    with StderrProgress() as progress, open_sandbox(config, progress.say) as sandbox:
        if from_trajectory is not None:
            from awm_factory.certify.trajectory import keep

            judge = _judge(judge_model) if judge_model is not None else None
            envs = (keep(from_trajectory, catalog, sandbox, options, envs, task, judge),)
        ids = settings.chosen(envs, catalog)
        batch = check_envs(ids, catalog, sandbox, Knobs(jobs=config.jobs, certify=options, force=force), progress)
    found = [one for row in batch.rows if (one := _of(catalog, row.env_id)) is not None]
    _show("Certificates", found, report or config.cache / "certificates.html", as_json=as_json)
    fail_unless_ok(batch)


def _judge(model: str) -> "Judged":
    """One case, judged by its evidence; it costs what one judgement costs, and is kept nowhere but in what comes of it."""

    async def ask(case: "Case") -> "Judgement":
        from awm_factory.config import ModelConfig
        from awm_factory.llm.connect import connect_model
        from awm_factory.llm.prices import Prices
        from awm_factory.reward import Judge

        models = ModelConfig.load(model=model)
        connected = connect_model(models, Prices.load(models.prices))
        try:
            return await Judge(connected).judge(case, "sql")
        finally:
            await connected.close()

    return lambda case: asyncio.run(ask(case))


def _gates(text: str | None) -> tuple[str, ...]:
    from awm_factory.certify.run import GATES, QUICK

    if text is None:
        return ()
    known = [gate.NAME for gate in GATES]
    named = [name.strip().replace("-", "_").replace(" ", "_") for name in text.split(",") if name.strip()]
    wanted = {gate for name in named for gate in (QUICK if name == "quick" else (name,))}
    if not wanted or wanted - set(known):
        raise UsageError(f"{text!r} names no gates; name some of quick, {', '.join(known)}, separated by commas")
    return tuple(name for name in known if name in wanted)


def _of(catalog: "Catalog", env_id: str) -> "Audited | None":
    from awm_factory.certify.report import of_certificate

    bundle = catalog.read(env_id)
    if bundle.certificate is None:
        return None
    instructions = {task.task_id: task.instruction for task in bundle.tasks}
    return of_certificate(env_id, bundle.manifest.scenario, instructions, bundle.certificate)


@click.command(short_help="Run all gates on anybody's AWM run.")
@click.argument("run_dir", type=run_directory)
@envs_argument
@click.option("--solutions", type=file_path, metavar="FILE", help="Solutions to try, by scenario and task; with labels, compare.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where certificates and report.html go; not given: into the cache.",
)
@tolerance_option
@world_time_option
@jobs_option
@json_option
@click.pass_obj
def audit(
    workspace: Path | None,
    run_dir: Path,
    envs: tuple[str, ...],
    solutions: Path | None,
    out: Path | None,
    max_failed_statements: float,
    world_time: str | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Run all gates on the AWM run in RUN_DIR, all its environments or those named, without taking it into the workspace."""
    from awm_factory.build import open_sandbox
    from awm_factory.certify import Options
    from awm_factory.certify.audit import audit_run
    from awm_factory.certify.solutions_file import read_solutions
    from awm_factory.ids import env_id, is_env_id

    known = read_solutions(solutions) if solutions is not None else []
    options = Options(max_failed_statements=max_failed_statements)
    only = [name if is_env_id(name) else env_id(name) for name in envs] or None
    config = settings.load(workspace, jobs=jobs)
    out = out or config.cache / "audit" / run_dir.resolve().name
    with StderrProgress() as progress, open_sandbox(config, progress.say) as sandbox:
        found = audit_run(run_dir, sandbox, options, known, world_time, only, progress.stage)
    if not found:
        raise UsageError(f"{run_dir} holds no environment; name one that gen_scenario.jsonl lists")
    for one in found:
        if one.certificate is not None:
            folder = out / one.env_id
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "certificate.json").write_text(one.certificate.model_dump_json(indent=1) + "\n", encoding="utf-8")
    _show(f"Audit of {run_dir.resolve().name}", found, out / "report.html", as_json=as_json)


def _show(title: str, found: "list[Audited]", report: Path, *, as_json: bool) -> None:
    from awm_factory.certify.report import html, rates, summary, totals

    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(html(title, found), encoding="utf-8")
    click.echo(f"report: {report}", err=True)
    if as_json:
        print_json(found)
        return
    table(
        ["environment", "gates that did not pass", "tasks", "near misses", "equivalents", "errors", "warnings"],
        [
            [
                one.env_id,
                one.error or ", ".join(f"{gate} {how}" for gate, how in _outcomes(one) if how != "passed"),
                f"{sum(task.certificate.shipped for task in one.tasks)} of {len(one.tasks)}",
                totals(one, "killed", "near_misses"),
                totals(one, "accepted", "equivalents"),
                str(sum(problem.severity == "error" for problem in one.problems) or ""),
                str(sum(problem.severity == "warning" for problem in one.problems) or ""),
            ]
            for one in found
        ],
    )
    labelled = any(task.label for one in found for task in one.tasks)
    table(
        ["environment", "task", "ships", "gates that did not pass", "rates", *(["solutions say", "agrees"] if labelled else [])],
        [
            [
                one.env_id,
                str(task.task_id),
                "yes" if task.certificate.shipped else "no",
                ", ".join(
                    f"{gate} {how}".replace("_", " ")
                    for gate, how in task.certificate.gates.items()
                    if how not in ("passed", "not_run")
                ),
                rates(task),
                *([task.label or "", {None: "", True: "yes", False: "NO"}[task.agrees]] if labelled else []),
            ]
            for one in found
            for task in one.tasks
        ],
    )
    click.echo(summary(found))


def _outcomes(one: "Audited") -> list[tuple[str, str]]:
    return list(one.certificate.gates.items()) if one.certificate is not None else []
