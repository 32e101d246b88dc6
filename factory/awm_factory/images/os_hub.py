"""The OS image from a registry: what its tag means today, and that very digest pulled."""

import re
from contextlib import closing
from typing import Any, Final

import docker
from docker.errors import APIError, DockerException
from docker.utils import parse_repository_tag
from requests.exceptions import RequestException

from awm_factory.errors import EngineError, HubUnavailable
from awm_factory.images.engine import Engine

RESOLVE_TIMEOUT: Final = 10
"""Seconds the registry may take to say what a tag means; it takes one where it answers at all."""

_LIMITED: Final = re.compile(r"toomanyrequests|too many requests|rate limit|\b429\b", re.IGNORECASE)
_REFUSED: Final = re.compile(r"unauthorized|denied|authentication required", re.IGNORECASE)
_UNKNOWN: Final = re.compile(r"manifest unknown|not found|no such manifest|name unknown|no matching manifest", re.IGNORECASE)


def resolve(engine: Engine, reference: str, pinned: str | None) -> str:
    """Digest that the reference stands for, or the pinned one where the registry still has it; no image is pulled.

    The engine asks, not we: its proxies, mirrors and certificates are what a pull will use. Raises HubUnavailable where
    nothing answers in time or a rate limit is reached, EngineError where the registry says that there is no such image.
    """
    asked = f"{repository(reference)}@{pinned}" if pinned else reference
    with closing(engine.connect(RESOLVE_TIMEOUT)) as client:
        try:
            answer: dict[str, Any] = client.api.inspect_distribution(asked)
        except (DockerException, RequestException) as error:
            raise explain(asked, error) from error
    return str(answer["Descriptor"]["digest"])


def pull(engine: Engine, reference: str, digest: str, local: str) -> None:
    """Pull the digest for the engine's chosen platform and give it the local name."""
    exact = f"{repository(reference)}@{digest}"
    name, _, tag = local.rpartition(":")
    try:
        for entry in engine.client.api.pull(exact, platform=engine.platform, stream=True, decode=True):
            if said := entry.get("error"):
                raise explain(exact, EngineError(str(said)))
        image = engine.client.images.get(exact)
    except (DockerException, RequestException) as error:
        raise explain(exact, error) from error
    found = f"{image.attrs['Os']}/{image.attrs['Architecture']}"
    if found != engine.platform:
        raise EngineError(
            f"{exact} is an image for {found}; name one for {engine.platform} in AWM_OS_IMAGE, or set PLATFORM={found}"
        )
    image.tag(name, tag)


def repository(reference: str) -> str:
    return parse_repository_tag(reference)[0]


def explain(reference: str, error: BaseException) -> EngineError:
    """The engine's words as what happened and what to do next."""
    words = str(error.explanation if isinstance(error, docker.errors.APIError) and error.explanation else error).strip()
    if _LIMITED.search(words):
        return HubUnavailable(
            f"the registry's rate limit stops the pull of {reference} ({words})",
            "Log in (`docker login`) for a higher limit, wait for the limit to pass, name a copy in another registry with "
            "AWM_OS_IMAGE, or make the OS image from Debian with BASE_OS=debian (root on Debian or Ubuntu).",
        )
    unreachable = not isinstance(error, APIError) or not (_REFUSED.search(words) or _UNKNOWN.search(words))
    if unreachable and not isinstance(error, EngineError):
        return HubUnavailable(
            f"the registry of {reference} does not answer ({words})",
            "Check the engine's connection and proxy, name a copy in another registry with AWM_OS_IMAGE, or make the OS image "
            "from Debian with BASE_OS=debian (root on Debian or Ubuntu).",
        )
    if _REFUSED.search(words):
        return EngineError(
            f"the registry refuses {reference}: {words}. Check the name in AWM_OS_IMAGE, or log in with `docker login`."
        )
    return EngineError(f"{reference} can't be pulled: {words}. Check the name in AWM_OS_IMAGE and PLATFORM.")
