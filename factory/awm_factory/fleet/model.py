"""A fleet as both engines start it: which scenarios, of which images, how many of each, within which limits."""

from dataclasses import dataclass
from typing import Final, Literal

EngineKind = Literal["compose", "swarm"]

LEASE: Final = "lease"
"""The lease service's name among the services; an environment of that name can't be in a fleet."""

PIDS: Final = 512


@dataclass(frozen=True)
class Image:
    reference: str
    """An image's ID where only this engine has it, `<registry>/…@sha256:…` where a registry does; never a name alone."""
    pulled: bool
    """Whether the engine may ask a registry for it."""


@dataclass(frozen=True)
class Scenario:
    env_id: str
    service: str
    """Its name in the networks' DNS, which answers with all replicas."""
    image: Image
    replicas: int = 1


@dataclass(frozen=True)
class Fleet:
    name: str
    lease: Image
    scenarios: list[Scenario]
    capacity: int
    """Episodes of one container."""
    queue: int
    """Requests that may wait for one scenario."""
    port: int
    """Of the lease service on this machine. It is fixed, as it must stay the same when the service is restarted."""
    workers: int
    """Processes for tool calls in one container."""
    memory_mib: int
    """Of one container."""
    warm_mib: int
    """Of it for databases kept ready for the next call; an episode whose database is not is as right, and a little slower."""
    pids: int = PIDS
    node: str = ""
    """ID of the swarm's node that the lease service stays on."""

    @property
    def project(self) -> str:
        """Name of the Compose project, or of the stack."""
        return f"awm-{self.name}"
