"""Commands about environments: bring them in, check, build, look at them, write them out."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from awm_factory.cli import settings
from awm_factory.cli.output import StderrProgress, fail_unless_ok, jobs_option, json_option, print_json, print_report, table
from awm_factory.cli.parameters import world_time as parsed_world_time
from awm_factory.errors import SmokeError

if TYPE_CHECKING:
    from awm_factory.build import BatchReport, Knobs

envs_argument = click.argument("envs", nargs=-1, metavar="[ENV]...")
run_directory = click.Path(exists=True, file_okay=False, path_type=Path)
world_time_option = click.option(
    "--world-time",
    callback=parsed_world_time,
    metavar="INSTANT",
    help="Start of time in imported environments, such as 2026-01-01T00:00:00Z. Not given: the run's own, else that.",
)
tolerance_option = click.option(
    "--max-failed-statements",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="Share of the schema or data statements that may fail; AWM tolerates 0.1.",
)
force_option = click.option("--force", is_flag=True, help="Do it again even where nothing changed.")


@click.command("import", short_help="Read an AWM run into the workspace.")
@click.argument("run_dir", type=run_directory)
@envs_argument
@world_time_option
@jobs_option
@json_option
@click.pass_obj
def import_(
    workspace: Path | None, run_dir: Path, envs: tuple[str, ...], world_time: str | None, jobs: int | None, as_json: bool
) -> None:
    """Read the AWM run in RUN_DIR into the workspace: all its environments, or those named."""
    from awm_factory.build import import_run, open_sandbox
    from awm_factory.catalog import Catalog

    config = settings.load(workspace, jobs=jobs)
    with StderrProgress() as progress, open_sandbox(config, progress.say) as sandbox:
        report = import_run(run_dir, Catalog(config.workspace), sandbox, progress, _ids(envs) or None, world_time)
    _finish(report, as_json=as_json)


@click.command(short_help="Write environments as an AWM run.")
@click.argument("out_dir", type=click.Path(file_okay=False, path_type=Path))
@envs_argument
@json_option
@click.pass_obj
def export(workspace: Path | None, out_dir: Path, envs: tuple[str, ...], as_json: bool) -> None:
    """Write environments into OUT_DIR as an AWM run: all there are, or those named."""
    from awm_factory.build import export_run
    from awm_factory.catalog import Catalog

    catalog = Catalog(settings.load(workspace).workspace)
    with StderrProgress() as progress:
        rows = export_run(settings.chosen(envs, catalog), catalog, out_dir, progress)
    if as_json:
        print_json(rows)
    else:
        cells = [[row.env_id, ", ".join(row.derived), ", ".join(row.lost)] for row in rows]
        table(["environment", "made from the bundle", "no place for it in AWM's format"], cells)


@click.command(short_help="Execute and certify environments.")
@envs_argument
@click.option("--all", "every", is_flag=True, help="All environments of the workspace, as where none is named.")
@tolerance_option
@jobs_option
@force_option
@json_option
@click.pass_obj
def check(
    workspace: Path | None,
    envs: tuple[str, ...],
    every: bool,
    max_failed_statements: float,
    jobs: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Execute and certify environments without building images, several at once."""
    from awm_factory.build import check_envs, open_sandbox
    from awm_factory.catalog import Catalog

    config = settings.load(workspace, jobs=jobs)
    catalog = Catalog(config.workspace)
    ids = settings.chosen(() if every else envs, catalog)
    knobs = _knobs(config.jobs, max_failed_statements, force=force)
    with StderrProgress() as progress, open_sandbox(config, progress.say) as sandbox:
        report = check_envs(ids, catalog, sandbox, knobs, progress)
    _finish(report, as_json=as_json)


@click.command(short_help="Make verified images of environments.")
@envs_argument
@click.option("--source", type=run_directory, metavar="RUN_DIR", help="Import this AWM run first, and build what is in it.")
@click.option("--allow-problems", is_flag=True, help="Build all that starts; certificate and labels say what is wrong.")
@tolerance_option
@world_time_option
@jobs_option
@force_option
@json_option
@click.pass_obj
def build(
    workspace: Path | None,
    envs: tuple[str, ...],
    source: Path | None,
    allow_problems: bool,
    max_failed_statements: float,
    world_time: str | None,
    jobs: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Make verified images: check, certify, render, build, smoke-test and tag environments, all or those named.

    An environment that fails is a row and an exit code of 1 at the end; the others are built.
    """
    from awm_factory.build import BatchReport, build_envs, import_run, open_workshop

    config = settings.load(workspace, jobs=jobs)
    knobs = _knobs(config.jobs, max_failed_statements, force=force, allow_problems=allow_problems)
    with StderrProgress() as progress, open_workshop(config, progress) as shop:
        imported = BatchReport([])
        if source is not None:
            imported = import_run(source, shop.catalog, shop.sandbox, progress, _ids(envs) or None, world_time)
            ids = [row.env_id for row in imported.rows if row.ok]
        else:
            ids = settings.chosen(envs, shop.catalog)
        built = build_envs(ids, shop, knobs, progress)
    _finish(_joined(imported, built), as_json=as_json)


@click.command("list", short_help="Show environments and what became of them.")
@json_option
@click.pass_obj
def list_(workspace: Path | None, as_json: bool) -> None:
    """Show the environments of the workspace, their certificates, images and pushed references."""
    from awm_factory.catalog import Catalog

    rows = list(Catalog(settings.load(workspace).workspace).rows())
    if as_json:
        print_json(rows)
        return
    table(
        ["environment", "scenario", "origin", "tools", "tasks", "certificate", "image", "pushed"],
        [
            [
                row.env_id,
                row.scenario if row.error is None else "(can't be read)",
                row.origin or "",
                str(row.tools or ""),
                f"{row.shipped_tasks} of {row.tasks}" if row.shipped_tasks is not None else str(row.tasks or ""),
                row.certificate,
                row.image + ("" if row.current or not row.image else " (of an earlier bundle)"),
                "\n".join(pushed.reference for pushed in row.pushed),
            ]
            for row in rows
        ],
    )
    for row in rows:
        if row.error is not None:
            click.echo(row.error, err=True)


@click.command(short_help="Write build contexts into images/.")
@envs_argument
@json_option
@click.pass_obj
def render(workspace: Path | None, envs: tuple[str, ...], as_json: bool) -> None:
    """Write the build contexts of certified environments into images/, without building them."""
    from awm_factory.catalog import Catalog
    from awm_factory.images.base import ensure_base
    from awm_factory.images.engine import ensure_engine
    from awm_factory.images.render import render as rendered

    config = settings.load(workspace)
    catalog = Catalog(config.workspace)
    ids = settings.chosen(envs, catalog)
    with StderrProgress() as progress:
        base = ensure_base(ensure_engine(config, progress.say), config, progress.say)
        contexts = []
        for env_id in ids:
            with catalog.lock(env_id):
                contexts.append(rendered(catalog.read(env_id), base, config.workspace / "images"))
    if as_json:
        print_json([{"env_id": one.env_id, "directory": str(one.directory), "reference": one.reference} for one in contexts])
    else:
        table(["environment", "context", "reference"], [[one.env_id, str(one.directory), one.reference] for one in contexts])


@click.command(short_help="Start built images and check them again.")
@envs_argument
@json_option
@click.pass_obj
def smoke(workspace: Path | None, envs: tuple[str, ...], as_json: bool) -> None:
    """Start built images again as a cautious trainer would, and check that they behave as their manifests say."""
    from awm_factory.catalog import Catalog
    from awm_factory.images.base import ensure_base
    from awm_factory.images.build import find
    from awm_factory.images.docker_client import session_id
    from awm_factory.images.engine import ensure_engine
    from awm_factory.images.render import render as rendered
    from awm_factory.images.smoke import smoke as tested

    config = settings.load(workspace)
    catalog = Catalog(config.workspace)
    reports: list[Any] = []
    failures: list[SmokeError] = []
    with StderrProgress() as progress:
        engine = ensure_engine(config, progress.say)
        base = ensure_base(engine, config, progress.say)
        for env_id in settings.chosen(envs, catalog):
            progress.stage(env_id, "smoke")
            bundle = catalog.read(env_id)
            built = find(engine.client, rendered(bundle, base, config.workspace / "images"))
            try:
                if built is None:
                    raise SmokeError(
                        f"{env_id} has no image of its present bundle and base image; run `awm-factory build {env_id}`"
                    )
                reports.append(tested(engine.client, built.image_id, bundle, base.image_id, session_id()))
            except SmokeError as error:
                progress.say(str(error))
                failures.append(error)
    if as_json:
        print_json(reports)
    else:
        for report in reports:
            cells = [[name, seen] for name, seen in report.checks.items()]
            table([f"{report.env_id}, first tools/list after {report.start_seconds:.2f} s", "seen"], cells)
    if failures:
        raise SmokeError(f"{len(failures)} of {len(failures) + len(reports)} environments failed their smoke test")


def _ids(names: Sequence[str]) -> list[str]:
    from awm_factory.ids import env_id, is_env_id

    return [name if is_env_id(name) else env_id(name) for name in names]


def _knobs(jobs: int, max_failed_statements: float, *, force: bool, allow_problems: bool = False) -> "Knobs":
    from awm_factory.build import Knobs
    from awm_factory.certify import Options

    return Knobs(
        jobs=jobs, certify=Options(max_failed_statements=max_failed_statements), allow_problems=allow_problems, force=force
    )


def _joined(imported: "BatchReport", built: "BatchReport") -> "BatchReport":
    """One row an environment: what import noted stands before what the gates found."""
    from awm_factory.build import BatchReport

    notes = {row.env_id: row.problems for row in imported.rows}
    rows = [replace(row, problems=[*notes.get(row.env_id, []), *row.problems]) for row in built.rows]
    return BatchReport([row for row in imported.rows if not row.ok] + rows)


def _finish(report: "BatchReport", *, as_json: bool) -> None:
    print_report(report, as_json=as_json)
    fail_unless_ok(report)
