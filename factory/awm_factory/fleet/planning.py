"""From what a user wishes to a fleet that can be started: images found or pushed, limits worked out, a port chosen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import docker

from awm_factory.build.report import Progress
from awm_factory.catalog import Catalog
from awm_factory.config import Config
from awm_factory.errors import EngineError, UsageError
from awm_factory.fleet import choosing, given, operate
from awm_factory.fleet.files import FleetFiles
from awm_factory.fleet.image import ensure_lease_image
from awm_factory.fleet.model import EngineKind, Fleet
from awm_factory.fleet.orchestrators import ORCHESTRATORS, Orchestrator
from awm_factory.fleet.render import rendered
from awm_factory.ids import env_id, is_env_id
from awm_factory.images.compose_plugin import ensure_compose
from awm_factory.images.engine import ensure_engine

BASE_MIB: Final = 384
EPISODE_MIB: Final = 3
"""A container's limit: what it takes at rest and while it judges, and for each episode more than any was seen to take."""

WARM_MIB: Final = 0.6
"""For each episode, of a database kept ready with its connection: as much as one of a quarter megabyte takes."""
LEAST_WARM_MIB: Final = 32
MOST_REPLICAS: Final = 1000


@dataclass(frozen=True)
class Wish:
    envs: Sequence[str]
    """Names, each with `=N` behind it where it is to have N containers instead of `replicas`; all that have an image, if none."""
    name: str
    kind: EngineKind
    replicas: int
    capacity: int
    queue: int
    port: int | None
    memory: int | None
    workers: int | None
    registry: str | None


@dataclass(frozen=True)
class Planned:
    fleet: Fleet
    files: FleetFiles
    orchestrator: Orchestrator
    client: docker.DockerClient

    def write(self) -> None:
        self.files.ensure_secrets()
        self.files.write(rendered(self.fleet, self.orchestrator.kind, self.files.secrets.name))

    def start(self, say: Callable[[str], None]) -> operate.Running:
        """Raises EngineError."""
        self.write()
        expected = {scenario.env_id: scenario.replicas for scenario in self.fleet.scenarios}
        return operate.up(self.files, self.orchestrator, self.client, expected, say)


def plan(wish: Wish, config: Config, progress: Progress) -> Planned:
    """Raises UsageError, CatalogError, EngineError, BuildError, PushError."""
    files = FleetFiles.of(config.workspace, wish.name)
    catalog = Catalog(config.workspace)
    counts = _counts(wish, catalog)
    env_ids = list(counts)
    engine = ensure_engine(config, progress.say)
    info = engine.client.info()
    node = _ready_for(wish, config, info, progress)
    log_dir = config.cache / "logs"
    if wish.registry is not None:
        scenarios = choosing.pushed(env_ids, catalog, engine.client, wish.registry, log_dir, progress)
    else:
        scenarios = choosing.local(env_ids, catalog, engine.client)
    lease = choosing.lease_image(ensure_lease_image(engine, config, progress.say), engine.client, wish.registry, log_dir)
    scenarios = [replace(scenario, replicas=counts[scenario.env_id]) for scenario in scenarios]
    cpus = int(info.get("NCPU") or 1)
    fleet = Fleet(
        name=wish.name,
        lease=lease,
        scenarios=scenarios,
        capacity=wish.capacity,
        queue=wish.queue,
        port=wish.port or operate.free_port(files),
        workers=wish.workers or max(1, cpus // sum(counts.values())),
        memory_mib=wish.memory or BASE_MIB + EPISODE_MIB * wish.capacity,
        warm_mib=max(LEAST_WARM_MIB, round(WARM_MIB * wish.capacity)),
        node=node,
    )
    return Planned(fleet, files, ORCHESTRATORS[wish.kind], engine.client)


def start_given(path: Path, config: Config, say: Callable[[str], None]) -> operate.Running:
    """Start a file that was rendered and edited. Raises UsageError naming what keeps it from running, EngineError."""
    engine = ensure_engine(config, say)
    ensure_compose(config, say)
    expected = given.check(path).expected()
    files = FleetFiles.of(config.workspace, path.stem)
    if path.resolve() != files.document.resolve():
        raise UsageError(f"a fleet's file lies at {files.document}, beside its tokens; move {path} there")
    files.ensure_secrets()
    return operate.up(files, ORCHESTRATORS["compose"], engine.client, expected, say)


def find(name: str, kind: str, config: Config) -> tuple[FleetFiles, Orchestrator, docker.DockerClient]:
    """What `status` and `down` begin with. Raises UsageError, EngineError."""
    engine = ensure_engine(config)
    found = next(one for each, one in ORCHESTRATORS.items() if each == kind)
    return FleetFiles.of(config.workspace, name), found, engine.client


def _counts(wish: Wish, catalog: Catalog) -> dict[str, int]:
    """Containers by env_id. Raises UsageError."""
    counts: dict[str, int] = {}
    for named in wish.envs:
        name, _, count = named.partition("=")
        if "=" in named and not (count.isdecimal() and 1 <= int(count) <= MOST_REPLICAS):
            raise UsageError(f"{named!r}: behind = stands how many containers, from 1 to {MOST_REPLICAS}")
        counts[name if is_env_id(name) else env_id(name)] = int(count) if count else wish.replicas
    if counts:
        return counts
    if found := [row.env_id for row in catalog.rows() if row.image or row.pushed]:
        return dict.fromkeys(found, wish.replicas)
    raise UsageError(f"{catalog.registry} holds no environment with an image; run `awm-factory build` first")


def _ready_for(wish: Wish, config: Config, info: dict[str, Any], progress: Progress) -> str:
    """ID of this node in its swarm, empty for Compose. Raises EngineError, UsageError."""
    if wish.kind == "compose":
        ensure_compose(config, progress.say)
        return ""
    if wish.registry is None:
        raise UsageError("every node of a swarm pulls the images for itself; say from where: --registry ghcr.io/acme")
    swarm = info.get("Swarm") or {}
    if swarm.get("LocalNodeState") != "active" or not swarm.get("ControlAvailable"):
        raise EngineError("this engine manages no swarm; run `docker swarm init` here first, or the command on a manager")
    return str(swarm["NodeID"])
