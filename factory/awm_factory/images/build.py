"""A rendered context as an image: built without a tag, and tagged only once it has passed its smoke test.

So a tag `awm/<env_id>:<digest>` always means a verified image, whatever was interrupted on the way, and what exists can
be skipped without looking further.
"""

import io
import json
import re
import traceback
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import docker
from docker.errors import APIError, DockerException, ImageNotFound
from requests.exceptions import RequestException
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from awm_factory.errors import BuildError, EngineError
from awm_factory.images.context import Context, tar
from awm_factory.images.stream import Log, follow, masks

TIMEOUT: Final = 600
"""Seconds the engine may stay silent within one build."""
UNDO_LIMIT: Final = 5.0


@dataclass(frozen=True)
class BuiltImage:
    context: Context
    image_id: str
    """`sha256:…`; what a local run starts, as a name could be pulled from a hub where it isn't ours."""

    @property
    def reference(self) -> str:
        return self.context.reference


def find(client: docker.DockerClient, context: Context) -> BuiltImage | None:
    """The verified image of exactly this context, where this engine has it."""
    image_id = image_id_of(client, context.reference)
    return None if image_id is None else BuiltImage(context, image_id)


def build(client: docker.DockerClient, context: Context, base: str, log_dir: Path, platform: str | None = None) -> BuiltImage:
    """Build without tagging.

    `base` is what the Dockerfile is FROM; it must be here, or the engine would look for it on a hub. Raises BuildError
    with the engine's last lines; the whole log is then in log_dir.
    """
    if image_id_of(client, base) is None:
        raise BuildError(f"{context.env_id} is built on {base}, which this engine does not have; run `awm-factory base` first")
    log = log_dir / f"{context.env_id}-{context.tag}.log"
    return BuiltImage(context, run_build(client, tar(context.directory), log, what=context.reference, platform=platform))


def tag_verified(client: docker.DockerClient, built: BuiltImage) -> None:
    """Name an image that passed its smoke test: `latest` first, as the digest's tag is what says "done". Idempotent."""
    for tag in ("latest", built.context.tag):
        try:
            client.api.tag(built.image_id, built.context.repository, tag, force=True)
        except DockerException as error:
            raise EngineError(
                f"the engine would not tag {built.image_id} as {built.context.repository}:{tag}: {error}"
            ) from error


def discard(client: docker.DockerClient, image_id: str) -> bool:
    """Remove an image that bears no tag. False where it stays because something uses it: a tag, a child, a container."""
    try:
        if client.images.get(image_id).tags:
            return False
        client.api.remove_image(image_id)
    except APIError as error:
        if error.status_code == 409:
            return False
        if error.status_code != 404:
            raise EngineError(f"the engine would not remove the image {image_id}: {error}; see `docker images --all`") from error
    return True


def image_id_of(client: docker.DockerClient, reference: str) -> str | None:
    try:
        return client.images.get(reference).id
    except ImageNotFound:
        return None
    except (DockerException, RequestException) as error:
        raise EngineError(f"the engine can't say whether it has {reference}: {error}; see `docker info`") from error


def run_build(
    client: docker.DockerClient,
    archive: bytes,
    log_path: Path,
    *,
    what: str,
    build_args: Mapping[str, str] | None = None,
    platform: str | None = None,
) -> str:
    """Build a tar'd context on the classic builder and return the image's ID. Not given, the platform is the engine's own.

    The log file goes when the build succeeds. On failure or interruption its last image, which no tag names, is removed.
    """
    arguments = dict(build_args or {})
    log = Log(log_path, masks(arguments))
    steps = _Steps()
    stream: Generator[Any, None, None] | None = None
    try:
        stream = client.api.build(
            fileobj=io.BytesIO(archive),
            custom_context=True,
            decode=True,
            rm=True,
            forcerm=True,
            pull=False,
            buildargs=arguments,
            platform=platform,
            timeout=TIMEOUT,
        )
        outcome = follow(steps.watch(stream), log)
    except (DockerException, RequestException, json.JSONDecodeError) as error:
        log.write(str(error))
        _undo(client, steps)
        raise BuildError(_failure(what, "the engine broke the build off", log)) from error
    except BaseException as error:
        if stream is not None:
            stream.close()
        # Frames that the interrupt passed through hold the connection; the engine stops building when it is closed.
        traceback.clear_frames(error.__traceback__)
        _undo(client, steps)
        log_path.unlink(missing_ok=True)
        raise
    finally:
        log.close()
    image_id = (outcome.aux or {}).get("ID")
    if outcome.error is not None or not isinstance(image_id, str):
        _undo(client, steps)
        raise BuildError(_failure(what, "it failed" if outcome.error else "it ended without an image", log))
    log_path.unlink(missing_ok=True)
    return image_id


def _failure(what: str, how: str, log: Log) -> str:
    return f"building {what}: {how}. The engine's last lines:\n{log.tail()}\nThe whole log is in {log.path}"


class _Steps:
    """Which image the latest step of a classic build made, cached ones aside."""

    _MADE = re.compile(r"^ ---> ([0-9a-f]{12})$", re.MULTILINE)

    def __init__(self) -> None:
        self.made: str | None = None
        self._cached = False

    def watch(self, stream: Iterable[Any]) -> Iterator[Any]:
        for entry in stream:
            text = entry.get("stream", "") if isinstance(entry, dict) else ""
            if text.startswith("Step "):
                self._cached = text.split(" : ", 1)[-1].startswith("FROM")
            elif "Using cache" in text:
                self._cached = True
            elif (found := self._MADE.search(text)) and not self._cached:
                self.made = found.group(1)
            yield entry


def _undo(client: docker.DockerClient, steps: _Steps) -> None:
    """The engine may be busy with the image still, for as long as it needs to see that nobody listens any more."""
    if (made := steps.made) is not None:
        Retrying(
            stop=stop_after_delay(UNDO_LIMIT),
            wait=wait_fixed(0.1),
            retry=retry_if_result(lambda gone: not gone),
            retry_error_callback=lambda _: None,
        )(discard, client, made)
