"""An AWM run into the workspace, and the workspace into an AWM run; one environment in memory at a time."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from awm_factory.awm_format import AwmRecordSet, BrokenScenario, ExportRow, came_from, draft_bundle, read_run, write_run
from awm_factory.build.report import BatchReport, Progress, Row
from awm_factory.bundle import Bundle
from awm_factory.catalog import Catalog
from awm_factory.errors import BundleError, CatalogError
from awm_factory.problems import Problem
from awm_factory.sandbox import Sandbox
from awm_factory.sandbox.pool import expect
from awm_runtime.contract import WORLD_TIME, CheckFailed, LoadReply


def import_run(
    run_dir: Path, catalog: Catalog, sandbox: Sandbox, progress: Progress, only: Collection[str] | None, world_time: str | None
) -> BatchReport:
    """Every environment of the run, or those named, as a bundle in the workspace.

    Its data are loaded in the sandbox at the world time: the user's, the run's, or the default. An environment whose records
    are those imported before is left as it is, with its certificate. Raises FormatError if the folder holds no AWM run.
    """
    rows: list[Row] = []
    count: int | None = None

    def counted(done: int, total: int | None) -> None:
        nonlocal count
        if total != count:
            count = total
            progress.total(total)

    for found in read_run(run_dir, only, counted):
        if isinstance(found, BrokenScenario):
            rows.append(Row(found.env_id or "(unnamed)", "failed", problems=found.problems))
        else:
            progress.stage(found.env_id, "import")
            rows.append(_guarded(found, catalog, sandbox, world_time or found.world_time or WORLD_TIME))
        progress.done(rows[-1])
    return BatchReport(rows)


def _guarded(records: AwmRecordSet, catalog: Catalog, sandbox: Sandbox, world_time: str) -> Row:
    """One environment that can't be written, or that another process works on, ends no batch."""
    try:
        with catalog.lock(records.env_id):
            return _import_one(records, catalog, sandbox, world_time)
    except CatalogError as error:
        return Row(records.env_id, "failed", problems=records.notes, error=str(error))


def _import_one(records: AwmRecordSet, catalog: Catalog, sandbox: Sandbox, world_time: str) -> Row:
    known = _known(catalog, records.env_id)
    if known is not None and known.manifest.origin != "imported":
        reason = f"registry/{records.env_id} holds a {known.manifest.origin} environment of this name; rename one of the two"
        return Row(records.env_id, "failed", problems=records.notes, error=reason)
    if known is not None and known.manifest.world_time == world_time and came_from(known, records):
        return Row(records.env_id, "unchanged", problems=records.notes, tasks_total=len(records.tasks))
    reply = expect(LoadReply, sandbox.check(records.load_request(world_time)))
    if isinstance(reply, CheckFailed):
        problem = Problem(
            gate="import",
            severity="error",
            where=records.env_id,
            what=f"Its schema and data could not be loaded ({reply.reason}): {reply.message}.",
            fix="Look for a statement that never ends or makes huge data.",
        )
        return Row(records.env_id, "failed", problems=[*records.notes, problem])
    catalog.write(draft_bundle(records, reply, world_time))
    return Row(records.env_id, "imported", problems=records.notes, tasks_total=len(records.tasks))


def _known(catalog: Catalog, env_id: str) -> Bundle | None:
    try:
        return catalog.read(env_id)
    except (BundleError, CatalogError):
        return None


def export_run(env_ids: Sequence[str], catalog: Catalog, out_dir: Path, progress: Progress) -> list[ExportRow]:
    """Write the environments named as an AWM run. Raises BundleError for one whose database was never made."""

    def bundles() -> Iterator[Bundle]:
        for env_id in env_ids:
            progress.stage(env_id, "export")
            bundle = catalog.read(env_id)
            if bundle.seed_db is None:
                raise BundleError(f"{env_id} has no seed.db yet; run `awm-factory check {env_id}`, then export")
            yield bundle
            progress.done(Row(env_id, "exported"))

    progress.total(len(env_ids))
    return write_run(bundles(), out_dir)
