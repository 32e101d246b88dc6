"""Verified images of a workspace to a registry of the user's, and the digests it gave back into their records."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import docker

from awm_factory.build.report import Progress
from awm_factory.catalog import Catalog, Pushed
from awm_factory.errors import AwmError, CatalogError
from awm_factory.images.push import checked_prefix, push


@dataclass(frozen=True)
class PushRow:
    env_id: str
    reference: str | None = None
    """`<prefix>/<env_id>@sha256:…`, where it was pushed."""
    tags: tuple[str, ...] = ()
    error: str | None = None
    exit_code: int = 0


def push_envs(
    env_ids: Sequence[str],
    catalog: Catalog,
    client: docker.DockerClient,
    prefix: str,
    tag: str | None,
    log_dir: Path,
    progress: Progress,
) -> list[PushRow]:
    """One after another, as the engine already sends an image's layers side by side; one that fails is a row.

    Each image goes under its digest's tag, `latest`, and `tag` where given. Raises UsageError for a prefix no registry takes.
    """
    checked_prefix(prefix)
    progress.total(len(env_ids))
    rows = []
    for env_id in env_ids:
        progress.stage(env_id, "push")
        try:
            with catalog.lock(env_id):
                rows.append(_push_one(env_id, catalog, client, prefix, tag, log_dir))
        except AwmError as error:
            rows.append(PushRow(env_id, error=str(error), exit_code=error.exit_code))
    return rows


def _push_one(env_id: str, catalog: Catalog, client: docker.DockerClient, prefix: str, tag: str | None, log_dir: Path) -> PushRow:
    record = catalog.record(env_id)
    built = next((name for name in record.images if not name.endswith(":latest")), None) if record else None
    if record is None or built is None:
        raise CatalogError(f"{env_id} has no image yet; run `awm-factory build {env_id}`")
    if record.bundle_digest != catalog.read(env_id).digest():
        raise CatalogError(f"the image of {env_id} was made of an earlier bundle; run `awm-factory build {env_id}`")
    tags = tuple(dict.fromkeys([built.rpartition(":")[2], "latest", *([tag] if tag else [])]))
    pushed = push(client, built, prefix, tags, log_dir)
    entry = Pushed(reference=pushed.reference, digest=pushed.digest)
    repository = pushed.reference.partition("@")[0]
    others = [other for other in record.pushed if other.reference.partition("@")[0] != repository]
    catalog.write_record(env_id, record.model_copy(update={"pushed": [*others, entry]}))
    return PushRow(env_id, pushed.reference, pushed.tags)
