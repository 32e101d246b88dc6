"""What starts and ends a fleet's containers: Docker Compose on this machine, or Docker Swarm on several."""

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import docker
from docker.errors import APIError, DockerException, NotFound
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from awm_factory.errors import EngineError
from awm_factory.fleet.files import FleetFiles
from awm_factory.fleet.model import EngineKind
from awm_factory.images import daemon

GONE_WITHIN: Final = 300.0
"""Seconds for an engine to take a fleet down; a swarm's nodes do it by themselves, one task after another."""
_LINES: Final = 15


@dataclass(frozen=True)
class Part:
    """One container of a fleet on this machine, as the engine sees it."""

    name: str
    service: str
    state: str
    health: str
    restarts: int


@dataclass
class Removed:
    containers: list[str] = field(default_factory=list)
    networks: list[str] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        return not (self.containers or self.networks or self.volumes or self.files)


class Orchestrator(Protocol):
    kind: EngineKind

    def up(self, files: FleetFiles) -> None:
        """Start it, or bring what runs into line with its file. Raises EngineError."""

    def down(self, files: FleetFiles) -> None:
        """Ask for its end; `wait_gone` waits for it. Raises EngineError."""

    def label(self, files: FleetFiles) -> str:
        """What its containers, networks and volumes on this machine carry."""


class Compose:
    kind: EngineKind = "compose"

    def up(self, files: FleetFiles) -> None:
        _docker(["compose", "--project-name", files.project, "--file", str(files.document), "up", "--detach", "--remove-orphans"])

    def down(self, files: FleetFiles) -> None:
        with tempfile.TemporaryDirectory() as nowhere:
            # By its name alone, so that it works without the file too, and takes no other file for it.
            command = ["compose", "--project-name", files.project, "down", "--volumes", "--remove-orphans", "--timeout", "3"]
            _docker(command, cwd=Path(nowhere))

    def label(self, files: FleetFiles) -> str:
        return f"com.docker.compose.project={files.project}"


class Swarm:
    kind: EngineKind = "swarm"

    def up(self, files: FleetFiles) -> None:
        command = ["stack", "deploy", "--compose-file", str(files.document), "--with-registry-auth", "--prune", files.project]
        _docker(command, cwd=files.folder)

    def down(self, files: FleetFiles) -> None:
        _docker(["stack", "rm", files.project])

    def label(self, files: FleetFiles) -> str:
        return f"com.docker.stack.namespace={files.project}"


ORCHESTRATORS: Final[dict[EngineKind, Orchestrator]] = {"compose": Compose(), "swarm": Swarm()}


def parts(client: docker.DockerClient, label: str) -> list[Part]:
    """Containers of a fleet on this machine, those of a swarm that ended already left out. Raises EngineError."""
    try:
        found = [client.api.inspect_container(one["Id"]) for one in client.api.containers(all=True, filters={"label": label})]
    except NotFound:
        return parts(client, label)
    except DockerException as error:
        raise EngineError(f"the engine would not list the fleet's containers: {error}; see `docker ps --all`") from error
    made = [
        Part(
            name=one["Name"].lstrip("/"),
            service=_service(one["Config"]["Labels"]),
            state=one["State"]["Status"],
            health=(one["State"].get("Health") or {}).get("Status", ""),
            restarts=one["RestartCount"],
        )
        for one in found
    ]
    return sorted(made, key=lambda part: (part.service, part.name))


def last_words(client: docker.DockerClient, label: str) -> str:
    """Of every container of a fleet that does not run."""
    lines = []
    for one in client.containers.list(all=True, filters={"label": label}):
        if one.status not in ("running", "created"):
            said = b"".join(one.logs(stream=True, follow=False, tail=_LINES)).decode(errors="replace").rstrip()
            lines.append(f"{one.name} is {one.status}; its last lines:\n{said or '(none)'}")
    return "\n".join(lines)


def wait_gone(client: docker.DockerClient, label: str) -> None:
    """Until none of a fleet's containers and networks is left; its volumes go last. Raises EngineError naming what stays."""
    retrying = Retrying(stop=stop_after_delay(GONE_WITHIN), wait=wait_fixed(0.2), retry=retry_if_result(bool))
    try:
        retrying(lambda: _present(client, label))
    except RetryError as late:
        raise EngineError(
            f"the engine still has {', '.join(late.last_attempt.result())} after {GONE_WITHIN:g} s; is another container on one "
            "of the networks? `docker network inspect` names it; remove it and run the command again"
        ) from None
    for volume in client.volumes.list(filters={"label": label}):
        try:
            volume.remove()
        except APIError as error:
            raise EngineError(f"the volume {volume.name} can't be removed: {error}; `docker volume rm {volume.name}`") from error


def ended(client: docker.DockerClient, label: str) -> bool:
    """Whether any container of the fleet on this machine has ended, be it that it was started again. Raises EngineError."""
    return any(part.state in ("exited", "dead", "restarting") or part.restarts for part in parts(client, label))


def present(client: docker.DockerClient, label: str) -> Removed:
    """What this engine has of a fleet."""
    return Removed(
        containers=_containers(client, label),
        networks=_networks(client, label),
        volumes=[str(volume.name) for volume in client.volumes.list(filters={"label": label})],
    )


def _present(client: docker.DockerClient, label: str) -> list[str]:
    return [*_containers(client, label), *_networks(client, label)]


def _containers(client: docker.DockerClient, label: str) -> list[str]:
    return [one["Names"][0].lstrip("/") for one in client.api.containers(all=True, filters={"label": label})]


def _networks(client: docker.DockerClient, label: str) -> list[str]:
    return [one["Name"] for one in client.api.networks(filters={"label": label})]


def _service(labels: dict[str, str]) -> str:
    name = labels.get("com.docker.compose.service")
    if name is not None:
        return name
    return labels.get("com.docker.swarm.service.name", "").removeprefix(labels.get("com.docker.stack.namespace", "") + "_")


def _docker(arguments: Sequence[str], cwd: Path | None = None) -> None:
    """The docker command, for what its SDK can't do."""
    program = daemon.program("docker")
    if program is None:
        raise EngineError("the docker command is missing; install Docker's CLI with its Compose plugin")
    done = subprocess.run([program, *arguments], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-_LINES:])
        raise EngineError(f"`docker {' '.join(arguments[:2])} …` failed:\n{tail}\nCorrect that and run the command again.")
