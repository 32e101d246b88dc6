"""The engine as the images package uses it: whose containers are ours, and how they are found again.

Everything we start carries `awm.owner=<host>.<pid>.<random>`, so that a session cleans up what is its own even when it is
interrupted inside a call to the engine, and `awm-factory reap` finds what a killed session left behind.
"""

import os
import secrets
import socket
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import docker
from docker.errors import APIError, DockerException, NotFound

from awm_factory.errors import EngineError

OWNER: Final = "awm.owner"
_SESSION: Final = f"{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(4)}"


def session_id() -> str:
    """Value of the `awm.owner` label on all this process starts."""
    return _SESSION


_reaps: Counter[str] = Counter()


class Owner:
    """Under whose name one piece of work starts what it starts. A reap of the session calls the work off."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._reaps = _reaps[label]

    def go_on(self) -> None:
        """Called after each start. A container that came too late for a reap to see is then taken down by whoever started it."""
        if _reaps[self.label] != self._reaps:
            raise EngineError("the work was called off; run it again")


@dataclass
class Reaped:
    containers: list[str] = field(default_factory=list)
    networks: list[str] = field(default_factory=list)


def reap(client: docker.DockerClient, owner: str | None = None, *, running: bool = False) -> Reaped:
    """Remove containers and networks labelled ours; called more than once without harm.

    With `owner`, one session's; without, those of sessions whose process is gone, and with `running` those of living ones
    too. A session on another host counts as living.
    """

    def doomed(label: str | None) -> bool:
        if label is None:
            return False
        return label == owner if owner is not None else running or not alive(label)

    if owner is not None:
        _reaps[owner] += 1
    reaped = Reaped()
    try:
        for container in client.api.containers(all=True, filters={"label": OWNER}):
            if doomed(container["Labels"].get(OWNER)):
                try:
                    client.api.remove_container(container["Id"], force=True, v=True)
                except NotFound:
                    continue
                except APIError as error:
                    if error.status_code != 409:  # its removal is already under way
                        raise
                reaped.containers.append(container["Names"][0].lstrip("/"))
        for network in client.api.networks(filters={"label": OWNER}):
            if doomed((network["Labels"] or {}).get(OWNER)):
                try:
                    client.api.remove_network(network["Id"])
                except NotFound:
                    continue
                reaped.networks.append(network["Name"])
    except DockerException as error:
        raise EngineError(
            f"the engine refused to remove what is labelled {OWNER}: {error}; see `docker ps --all --filter label={OWNER}`"
        ) from error
    return reaped


def alive(owner: str) -> bool:
    """False only where the session's process is known to be gone."""
    host, pid = [*owner.rsplit(".", 2), ""][:2]
    if host != socket.gethostname() or not pid.isdigit():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
