"""A fleet's file that a user wrote or edited: what would keep its services from running is told before they start."""

import json
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, Field, ValidationError

from awm_factory.errors import EngineError, UsageError
from awm_factory.fleet.model import LEASE
from awm_factory.images import daemon

ENV_ID: Final = "awm.env_id"
"""Label that says which environment a service runs."""


class _Port(BaseModel):
    published: str = ""
    """One port, or a range; empty where the engine chooses."""
    host_ip: str = ""


class _Deploy(BaseModel):
    replicas: int | None = None


class _Service(BaseModel):
    scale: int | None = None
    deploy: _Deploy | None = None
    container_name: str | None = None
    ports: list[_Port] = []
    labels: dict[str, str] = {}

    @property
    def replicas(self) -> int:
        found = self.scale if self.scale is not None else self.deploy.replicas if self.deploy else None
        return 1 if found is None else found


class Document(BaseModel):
    """What Compose makes of a file, as far as it matters here."""

    services: dict[str, _Service] = Field(default_factory=dict)

    def expected(self) -> dict[str, int]:
        """Containers by env_id. Raises UsageError where it is no fleet's file."""
        found = {one.labels[ENV_ID]: one.replicas for one in self.services.values() if ENV_ID in one.labels}
        if not found or LEASE not in self.services:
            raise UsageError(
                f"the file has no service {LEASE}, or none with the label {ENV_ID}; begin with what `awm-factory fleet render` "
                "writes"
            )
        return found


def read(path: Path) -> Document:
    """By Docker Compose itself, its own complaints about what belongs together aside. Raises UsageError, EngineError."""
    docker = daemon.program("docker")
    if docker is None:
        raise EngineError("the docker command is missing; install Docker's CLI with its Compose plugin")
    command = [docker, "compose", "--file", str(path), "config", "--format", "json", "--no-consistency"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise UsageError(f"Docker Compose can't read {path}: {done.stderr.strip()}; correct the file")
    try:
        found: Any = json.loads(done.stdout)
        return Document.model_validate(found)
    except (ValueError, ValidationError) as error:
        raise UsageError(
            f"{path} is no Compose file of ours: {error}; begin with what `awm-factory fleet render` writes"
        ) from error


def check(path: Path) -> Document:
    """Raises UsageError naming every clash."""
    document = read(path)
    if found := clashes(document):
        raise UsageError("\n".join([f"{path} can't run as it is:", *(f"  {one}" for one in found)]))
    return document


def clashes(document: Document) -> list[str]:
    """What two containers of it would both want to have."""
    found: list[str] = []
    publishers: dict[str, list[str]] = defaultdict(list)
    for name, service in document.services.items():
        many = service.replicas > 1
        if service.container_name and many:
            found.append(
                f"{name}: {service.replicas} containers can't all be called {service.container_name}; remove container_name"
            )
        for port in service.ports:
            if not port.published or "-" in port.published:
                continue
            publishers[port.published].append(name)
            if many:
                found.append(
                    f"{name}: {service.replicas} containers can't all have the host's port {port.published}; publish none, the "
                    "lease service reaches them by the network"
                )
    for published, names in publishers.items():
        if len(names) > 1:
            found.append(f"{' and '.join(names)}: both publish the host's port {published}; leave one out")
    return found
