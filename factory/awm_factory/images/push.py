"""Images to a user's registry, believed only when the registry itself says what it holds.

A push answers 200 and tells its failure on the stream, or tells nothing and just ends; both are errors here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import docker
from docker.errors import APIError, DockerException
from requests.exceptions import RequestException

from awm_factory.errors import PushError, UsageError
from awm_factory.images.build import image_id_of
from awm_factory.images.stream import Log, follow

_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST: Final = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?"
_PREFIX: Final = re.compile(rf"(?P<host>{_HOST})(?P<path>(?:/{_PART})*)\Z")
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}\Z")
MAX_NAME: Final = 255
"""Longest repository name of the distribution specification's grammar."""


@dataclass(frozen=True)
class PushedImage:
    reference: str
    """`<prefix>/<env_id>@sha256:…`: what a fleet pulls, whatever becomes of the tags."""
    digest: str
    tags: tuple[str, ...]


def checked_prefix(prefix: str) -> str:
    """`ghcr.io/acme` or `127.0.0.1:5000/awm`, without a trailing slash. Raises UsageError for what no registry takes."""
    name = prefix.rstrip("/")
    found = _PREFIX.match(name)
    host = found["host"] if found else ""
    if not found or not (host == "localhost" or re.search(r"[.:]", host)):
        raise UsageError(
            f"{prefix!r} is no registry prefix; give a host and a path, without a scheme: ghcr.io/acme, 127.0.0.1:5000/awm, "
            "docker.io/acme"
        )
    return name


def push(client: docker.DockerClient, source: str, registry_prefix: str, tags: Sequence[str], log_dir: Path) -> PushedImage:
    """Push `awm/<name>:<tag>` as `<prefix>/<name>:<each tag>`.

    Raises PushError naming image and cause. Names given on the way are taken back where the push fails.
    """
    repository = f"{checked_prefix(registry_prefix)}/{source.split('/', 1)[1].partition(':')[0]}"
    for tag in tags:
        if not _TAG.match(tag):
            raise UsageError(f"{tag!r} is no image tag: at most 128 of A-Z a-z 0-9 _ . - and not starting with . or -")
    if len(repository) > MAX_NAME:
        raise UsageError(f"{repository} is longer than the {MAX_NAME} characters a registry takes; choose a shorter prefix")
    image_id = image_id_of(client, source)
    if image_id is None:
        raise PushError(f"{source} is not on this engine; run `awm-factory build` first")
    named = {tag: image_id_of(client, f"{repository}:{tag}") for tag in tags}
    digests = set()
    try:
        for tag in tags:
            client.api.tag(image_id, repository, tag, force=True)
            digests.add(_push_one(client, repository, tag, log_dir))
    except BaseException as error:
        for tag, before in named.items():
            _restore(client, repository, tag, before)
        if isinstance(error, DockerException | RequestException):
            raise PushError(f"pushing {repository}: {error}; is the registry reachable from the engine?") from error
        raise
    if len(digests) != 1:
        raise PushError(
            f"{repository} got {len(digests)} different digests for one image ({', '.join(sorted(digests))}); push it again"
        )
    digest = digests.pop()
    return PushedImage(f"{repository}@{digest}", digest, tuple(tags))


def _push_one(client: docker.DockerClient, repository: str, tag: str, log_dir: Path) -> str:
    name = f"{repository}:{tag}"
    log = Log(log_dir / f"push-{re.sub(r'[^A-Za-z0-9.-]+', '_', name)}.log")
    try:
        outcome = follow(client.api.push(repository, tag, stream=True, decode=True), log)
    finally:
        log.close()
    digest = (outcome.aux or {}).get("Digest")
    if outcome.error is not None:
        raise PushError(
            f"{name} was not pushed: {outcome.error}. {_advice(outcome.error, name)} The engine's log is in {log.path}"
        )
    if not isinstance(digest, str):
        raise PushError(
            f"{name} was not pushed: the push ended without a digest; push it again. The engine's log is in {log.path}"
        )
    held = _held(client, name)
    if held != digest:
        raise PushError(
            f"{name} was pushed as {digest}, and the registry now holds {held}; did somebody else push it? Push it again"
        )
    log.path.unlink(missing_ok=True)
    return digest


def _held(client: docker.DockerClient, name: str) -> str:
    try:
        return str(client.images.get_registry_data(name).id)
    except (DockerException, RequestException, KeyError) as error:
        raise PushError(
            f"{name} was pushed, but can't be read back from the registry: {error}; check it, then push again"
        ) from error


def _advice(error: str, name: str) -> str:
    if re.search(r"unauthori[sz]ed|denied|authentication|no basic auth", error, re.IGNORECASE):
        host = name.split("/", 1)[0]
        return f"Log in with `docker login {host}`, as a user who may write there."
    if "server gave HTTP response to HTTPS client" in error:
        return "Name the registry in the engine's `insecure-registries`, or reach it by 127.0.0.1."
    return "Correct that, then push again."


def _restore(client: docker.DockerClient, repository: str, tag: str, before: str | None) -> None:
    try:
        if before is None:
            client.api.remove_image(f"{repository}:{tag}", noprune=True)
        else:
            client.api.tag(before, repository, tag, force=True)
    except APIError as error:
        if error.status_code != 404:
            raise
