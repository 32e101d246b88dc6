"""Images of ours that nothing needs any more: old tags of environments, and bases under them."""

import re
from collections.abc import Collection
from typing import Any, Final

import docker
from docker.errors import APIError, DockerException

from awm_factory.errors import EngineError

_OURS: Final = re.compile(r"(awm/[a-z0-9_-]+):([0-9a-f]{16}|latest)")
"""Tags that awm-factory gives; `awm/os`, made from downloads, has others."""
_SHARED: Final = ("awm/base", "awm/lease")
"""Built once for all environments; the newest of each stays."""


def prune(client: docker.DockerClient, named: Collection[str]) -> list[str]:
    """Remove tags `awm/…` that `named`, the catalogue's, does not hold, and returns them. What a container uses stays."""
    try:
        images = client.api.images(filters={"reference": "awm/*"})
        return [tag for tag in superfluous(images, named) if _removed(client, tag)]
    except DockerException as error:
        raise EngineError(f"the engine would not list or remove images: {error}; see `docker images`") from error


def superfluous(images: list[dict[str, Any]], named: Collection[str]) -> list[str]:
    """`images` as the engine lists them."""
    newest_first = sorted(images, key=lambda image: -int(image.get("Created", 0)))
    tags = [(tag, image) for image in newest_first for tag in image.get("RepoTags") or () if _OURS.fullmatch(tag)]
    kept = {tag for tag, image in tags if {tag, *image["RepoTags"]} & set(named)}
    kept |= {(image.get("Labels") or {}).get("awm.base", "") for tag, image in tags if tag in kept}
    for repository in _SHARED:
        kept |= set([tag for tag, _ in tags if tag.startswith(f"{repository}:")][:1])
    return sorted(tag for tag, _ in tags if tag not in kept)


def _removed(client: docker.DockerClient, tag: str) -> bool:
    try:
        client.api.remove_image(tag)
    except APIError as error:
        if error.status_code in (404, 409):  # somebody was faster; a container or another image stands on it
            return False
        raise
    return True
