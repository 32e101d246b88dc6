"""Which images a fleet stands on, pinned: this engine's own by ID, a registry's by digest."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import docker

from awm_factory.build.pushing import push_envs
from awm_factory.build.report import Progress
from awm_factory.catalog import Catalog
from awm_factory.errors import CatalogError, PushError, UsageError
from awm_factory.fleet.model import LEASE, Image, Scenario
from awm_factory.ids import host_name
from awm_factory.images.build import image_id_of
from awm_factory.images.push import push

_LATEST: Final = ":latest"


def local(env_ids: Sequence[str], catalog: Catalog, client: docker.DockerClient) -> list[Scenario]:
    """The images built here; one that only a registry has, where it was pushed to, is pulled by its digest.

    Raises CatalogError naming every environment without an image.
    """
    found = {env_id: _image(env_id, catalog, client) for env_id in env_ids}
    if missing := [env_id for env_id, image in found.items() if image is None]:
        raise CatalogError(f"no image of {', '.join(missing)}; run `awm-factory build {' '.join(missing)}`")
    return [_scenario(env_id, image) for env_id, image in found.items() if image is not None]


def pushed(
    env_ids: Sequence[str], catalog: Catalog, client: docker.DockerClient, registry: str, log_dir: Path, progress: Progress
) -> list[Scenario]:
    """The images built here, pushed where they are not yet, so that any machine can pull exactly these. Raises PushError."""
    rows = push_envs(env_ids, catalog, client, registry, None, log_dir, progress)
    if failed := [row for row in rows if row.reference is None]:
        raise PushError("\n".join(["not every image could be pushed.", *(str(row.error) for row in failed)]))
    return [_scenario(row.env_id, Image(row.reference, pulled=True)) for row in rows if row.reference is not None]


def lease_image(reference: str, client: docker.DockerClient, registry: str | None, log_dir: Path) -> Image:
    """The lease service's, found or pushed likewise."""
    if registry is not None:
        return Image(
            push(client, reference, registry.rstrip("/"), [reference.rpartition(":")[2]], log_dir).reference, pulled=True
        )
    image_id = image_id_of(client, reference)
    if image_id is None:
        raise CatalogError(f"{reference} is gone from the engine; run the command again")
    return Image(image_id, pulled=False)


def _scenario(env_id: str, image: Image) -> Scenario:
    service = host_name(env_id)
    if service == LEASE:
        raise UsageError(f"the name {LEASE} is the lease service's own in a fleet; leave the environment {env_id} out")
    return Scenario(env_id, service, image)


def _image(env_id: str, catalog: Catalog, client: docker.DockerClient) -> Image | None:
    record = catalog.record(env_id)
    if record is None:
        return None
    for tag, image_id in record.images.items():
        if not tag.endswith(_LATEST) and image_id_of(client, image_id) is not None:
            return Image(image_id, pulled=False)
    return Image(record.pushed[-1].reference, pulled=True) if record.pushed else None
