"""A lease service over one runtime on this machine; only the name server is left out."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from awm_factory.client import Fleet
from awm_factory.fleet.lease.app import LeaseApp
from awm_factory.fleet.lease.containers import HttpContainers, Plane
from awm_factory.fleet.lease.metrics import Metrics
from awm_factory.fleet.lease.service import Leases
from awm_factory.fleet.lease.store import Store
from client_support import TOKEN
from fleet_support import Clock, until
from runtime_support import Served, free_port

ENV = "library"
FLEET = "the fleet's"


class Local(HttpContainers):
    """One container, on ports of this machine."""

    def __init__(self, served: Served) -> None:
        super().__init__(TOKEN)
        self.served = served

    async def resolve(self, service: str) -> list[str] | None:
        return ["127.0.0.1"]

    def port(self, plane: Plane) -> int:
        return self.served.port if plane == "control" else self.served.agent_port


@dataclass
class Service:
    leases: Leases
    clock: Clock
    fleet: Fleet

    async def pass_by(self, seconds: float) -> None:
        self.clock.now += seconds
        self.leases._sooner.set()


@asynccontextmanager
async def service(
    container: Served,
    clock: Callable[[], float] | None = None,
    port: int | None = None,
    store: Path | None = None,
    queue: int = 100,
) -> AsyncIterator[Service]:
    own, port, kept = Clock(), port or free_port(), Store(store)
    async with (
        Local(container) as containers,
        Leases({ENV: ENV}, containers, kept, Metrics(), queue=queue, clock=clock or own) as leases,
    ):
        await until(lambda: bool(leases.known))
        config = uvicorn.Config(LeaseApp(leases, FLEET, direct=False), port=port, lifespan="off", log_level="warning")
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server._serve())
        await until(lambda: server.started)
        try:
            yield Service(leases, own, Fleet.connect(f"http://127.0.0.1:{port}", FLEET))
        finally:
            server.should_exit = True
            await serving
    kept.close()
