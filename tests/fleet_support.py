"""Containers in memory, as the lease service sees them: they answer, restart, die and fall silent when told to."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from awm_factory.client.wire import LeaseRequest
from awm_factory.fleet.lease.containers import Answer, Container, Gone, Plane, Silent
from awm_factory.fleet.lease.metrics import Metrics
from awm_factory.fleet.lease.service import Leases
from awm_factory.fleet.lease.store import Store

TASKS = {0: "Lend Sam the kite book.", 1: "Take the atlas back."}

_numbers = itertools.count(1)


@dataclass
class Fake:
    """A container: its episodes by id, with the calls made in each."""

    env_id: str
    address: str
    capacity: int = 4
    boot: str = field(default_factory=lambda: f"boot{next(_numbers)}")
    state: str = "well"
    episodes: dict[str, list[str]] = field(default_factory=dict)
    fullest: int = 0
    held_up: asyncio.Event | None = None
    """While it is there and not set, requests to episodes get no answer."""
    making: asyncio.Event | None = None
    """While it is there and not set, requests for new episodes get no answer."""
    before_answer: Callable[[str, str], None] = lambda method, path: None
    """Called within each request, with its method and path."""

    def die(self) -> None:
        self.state = "dead"
        self.episodes = {}

    def start(self) -> None:
        self.state, self.boot, self.episodes = "well", f"boot{next(_numbers)}", {}

    def restart(self) -> None:
        self.die()
        self.start()


class FakeContainers:
    def __init__(self, *fakes: Fake) -> None:
        self.fakes = list(fakes)
        self.listed: dict[str, list[str]] | None = None
        """What the name server answers, where it is not simply all."""

    def at(self, address: str) -> Fake:
        found = next((fake for fake in self.fakes if fake.address == address), None)
        if found is None or found.state == "dead":
            raise Gone("connection refused")
        if found.state == "silent":
            raise Silent("no answer")
        return found

    async def resolve(self, service: str) -> list[str] | None:
        if self.listed is not None:
            return self.listed.get(service, [])
        return [fake.address for fake in self.fakes if fake.env_id.replace("_", "-") == service and fake.state != "dead"]

    async def probe(self, address: str) -> str:
        await asyncio.sleep(0)
        return self.at(address).boot

    async def meet(self, address: str) -> Container:
        fake = self.at(address)
        return Container(fake.env_id, address, f"host-{address}", fake.boot, fake.capacity)

    async def ask(
        self,
        address: str,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        plane: Plane = "control",
    ) -> Answer:
        await asyncio.sleep(0)
        fake = self.at(address)
        fake.before_answer(method, path)
        fake = self.at(address)
        parts = path.strip("/").split("/")
        if parts == ["episodes"]:
            if method == "GET":
                return answer(200, [{"episode_id": episode_id} for episode_id in fake.episodes])
            if fake.making is not None:
                await fake.making.wait()
            return self._create(fake, json.loads(body))
        episode_id, rest = parts[1], "/".join(parts[2:])
        if fake.held_up is not None and rest:
            await fake.held_up.wait()
        if episode_id not in fake.episodes:
            return answer(404, {"error": f"there is no episode {episode_id!r}"})
        if method == "DELETE":
            del fake.episodes[episode_id]
            return Answer(204, b"", {})
        if rest == "fork":
            return self._create(fake, {"task_id": 0}, fake.episodes[episode_id])
        if rest == "reset":
            fake.episodes[episode_id] = []
            asked = json.loads(body or b"{}").get("task_id", 0)
            return answer(200, {"episode_id": episode_id, "task_id": asked, "instruction": TASKS[asked]})
        if rest == "mcp":
            fake.episodes[episode_id].append(body.decode())
        return answer(200, {"plane": plane, "calls": fake.episodes[episode_id]})

    def _create(self, fake: Fake, asked: dict[str, Any], calls: list[str] | None = None) -> Answer:
        task_id = asked.get("task_id")
        if task_id is not None and task_id not in TASKS:
            return answer(404, {"error": f"there is no task {task_id}"})
        if len(fake.episodes) >= fake.capacity:
            return answer(429, {"error": "all episodes are in use"})
        episode_id = f"{next(_numbers):032x}"
        fake.episodes[episode_id] = list(calls or [])
        fake.fullest = max(fake.fullest, len(fake.episodes))
        instruction = None if task_id is None else TASKS[task_id]
        return answer(
            201, {"episode_id": episode_id, "task_id": task_id, "instruction": instruction, "seed": asked.get("seed", 0)}
        )


def answer(status: int, body: object) -> Answer:
    return Answer(status, json.dumps(body).encode(), {"content-type": "application/json"})


@dataclass
class Clock:
    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class House:
    """A lease service over fakes."""

    leases: Leases
    containers: FakeContainers
    clock: Clock

    async def settled(self) -> None:
        """Until every container was looked at once more."""
        for env_id, name in self.leases.services.items():
            for address in await self.containers.resolve(name) or []:
                await self.leases._look(env_id, address)
        await until(lambda: not self.leases._looking)


async def until(holds: Callable[[], bool], limit: float = 60.0) -> None:
    async with asyncio.timeout(limit):
        while not holds():
            await asyncio.sleep(0.001)


@asynccontextmanager
async def house(*fakes: Fake, store: Path | None = None, queue: int = 100, clock: Clock | None = None) -> AsyncIterator[House]:
    containers, clock = FakeContainers(*fakes), clock or Clock()
    services = {fake.env_id: fake.env_id.replace("_", "-") for fake in fakes}
    kept = Store(store)
    try:
        async with Leases(services, containers, kept, Metrics(), queue=queue, clock=clock) as leases:
            found = House(leases, containers, clock)
            well = {fake.address for fake in fakes if fake.state == "well"}
            await until(lambda: well <= set(leases.known))
            yield found
    finally:
        kept.close()


def ask(env_id: str = "toy_library", task_id: int | None = 0, *, ttl: float = 600, wait: float = 5) -> LeaseRequest:
    return LeaseRequest(env_id=env_id, task_id=task_id, ttl=ttl, wait=wait)
