"""Fleets from start to end: `up`, `down`, `status`."""

import contextlib
import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import docker
import httpx
from pydantic import ValidationError
from tenacity import RetryCallState, RetryError, Retrying, retry_if_result, wait_fixed

from awm_factory.errors import EngineError, InfrastructureFault, UsageError
from awm_factory.fleet import orchestrators
from awm_factory.fleet.files import FleetFiles
from awm_factory.fleet.lease.status import Status
from awm_factory.fleet.orchestrators import Orchestrator, Part, Removed
from awm_factory.fleet.render import port_of

Say = Callable[[str], None]

READY_WITHIN: Final = 120.0
"""Seconds without a further container that answers, after which a fleet is given up one of whose containers ended."""
PATIENCE: Final = 900.0
"""The same where all run: they start side by side, and a busy machine takes long for each."""
_PORTS: Final = range(20000, 32768)
"""Below those that Linux gives to outgoing connections, one of which could hold ours when the service is restarted."""


@dataclass(frozen=True)
class Running:
    name: str
    url: str
    token_file: str
    status: Status
    parts: list[Part]
    """Its containers on this machine."""


def up(files: FleetFiles, orchestrator: Orchestrator, client: docker.DockerClient, expected: dict[str, int], say: Say) -> Running:
    """Start what the file says and wait until every container answers. `expected`: containers by env_id.

    A fleet that does not come up, or that is interrupted while it does, is taken down again, unless it was there before.
    Raises EngineError with the last words of the containers that ended.
    """
    label = orchestrator.label(files)
    before = orchestrators.present(client, label)
    try:
        orchestrator.up(files)
        _wait_ready(files, client, label, expected, say)
    except BaseException as error:
        with contextlib.ExitStack() as stack:
            if before.nothing:
                stack.callback(down, files, orchestrator, client)
            if isinstance(error, EngineError) and (words := orchestrators.last_words(client, label)):
                raise EngineError(f"{error}\n{words}") from error
            raise
    return status(files, orchestrator, client)


def down(files: FleetFiles, orchestrator: Orchestrator, client: docker.DockerClient) -> Removed:
    """Remove its containers, networks, volumes and files. Idempotent. Raises EngineError naming what could not be removed."""
    label = orchestrator.label(files)
    before = orchestrators.present(client, label)
    orchestrator.down(files)
    orchestrators.wait_gone(client, label)
    return Removed(before.containers, before.networks, before.volumes, [str(path) for path in files.remove()])


def status(files: FleetFiles, orchestrator: Orchestrator, client: docker.DockerClient) -> Running:
    """Raises UsageError where there is no such fleet, InfrastructureFault where its lease service does not answer."""
    url = address(files)
    try:
        said = _ask(files)
    except (httpx.HTTPError, ValidationError) as error:
        raise InfrastructureFault(f"the fleet's lease service at {url} gives no status: {error}; see `docker ps`") from error
    return Running(files.name, url, str(files.token_file), said, orchestrators.parts(client, orchestrator.label(files)))


def address(files: FleetFiles) -> str:
    """Of the lease service, for callers on this machine. Raises UsageError where there is no such fleet."""
    try:
        port = port_of(files.document.read_text())
    except OSError:
        port = None
    if port is None:
        raise UsageError(f"there is no fleet {files.name} here ({files.document}); `awm-factory fleet up` starts one")
    return f"http://127.0.0.1:{port}"


def free_port(files: FleetFiles) -> int:
    """The port that the fleet has already, or a free one."""
    with contextlib.suppress(UsageError):
        return int(address(files).rpartition(":")[2])
    for port in random.sample(_PORTS, 200):
        with socket.socket() as candidate, contextlib.suppress(OSError):
            candidate.bind(("127.0.0.1", port))
            return port
    raise UsageError(f"none of 200 ports tried between {_PORTS[0]} and {_PORTS[-1]} is free; name one with --port")


def _wait_ready(files: FleetFiles, client: docker.DockerClient, label: str, expected: dict[str, int], say: Say) -> None:
    shown = ""
    most, moved = -1, time.monotonic()

    def look() -> dict[str, int]:
        nonlocal shown, most, moved
        try:
            scenarios = _ask(files).scenarios
        except httpx.HTTPError:
            scenarios = []
        there = {one.env_id: len(one.containers) for one in scenarios}
        if sum(there.values()) > most:
            most, moved = sum(there.values()), time.monotonic()
        text = f"{sum(there.values())} of {sum(expected.values())} containers answer"
        if text != shown:
            say(text)
            shown = text
        return {env_id: count - there.get(env_id, 0) for env_id, count in expected.items() if there.get(env_id, 0) < count}

    def stands(_: RetryCallState) -> bool:
        stood = time.monotonic() - moved
        return stood > PATIENCE or (stood > READY_WITHIN and orchestrators.ended(client, label))

    try:
        Retrying(stop=stands, wait=wait_fixed(0.25), retry=retry_if_result(bool))(look)
    except RetryError as late:
        missing = ", ".join(f"{count} of {env_id}" for env_id, count in late.last_attempt.result().items())
        raise EngineError(
            f"the fleet did not come up: no further container answered within {time.monotonic() - moved:.0f} s, and these do "
            f"not: {missing}"
        ) from None


def _ask(files: FleetFiles) -> Status:
    """Raises httpx.HTTPError."""
    reply = httpx.get(
        f"{address(files)}/status", headers={"authorization": f"Bearer {files.token()}"}, timeout=30, trust_env=False
    )
    return Status.model_validate_json(reply.raise_for_status().content)
