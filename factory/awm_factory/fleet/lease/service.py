"""What trainers ask of the fleet: leases, and requests to the episodes they hold."""

import asyncio
import heapq
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Final, Self

from awm_factory.client.wire import EndReason, LeaseRequest
from awm_factory.fleet.lease.containers import Answer, Containers, Gone, Plane, Silent, episode_path, new_episode
from awm_factory.fleet.lease.gate import JUDGING, Gate
from awm_factory.fleet.lease.metrics import Metrics
from awm_factory.fleet.lease.places import Place, QueueFull
from awm_factory.fleet.lease.refusal import RETRY_AFTER, Refusal, Whose
from awm_factory.fleet.lease.status import ContainerStatus, ScenarioStatus, Status
from awm_factory.fleet.lease.store import Held, Store, task_of, text_of
from awm_factory.fleet.lease.watch import Watch

REMEMBER: Final = 900.0
"""Seconds for which the reason of a lease's end can be asked."""


class Leases(Watch):
    """Use within `async with`; it looks after containers and expiry meanwhile."""

    def __init__(
        self,
        services: Mapping[str, str],
        containers: Containers,
        store: Store,
        metrics: Metrics,
        *,
        queue: int,
        width: int = 16,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`services`: name in the DNS by env_id. `queue`: requests that may wait for one scenario. `width`: calls into one
        container at once, as many verdicts, and as many other requests to its control plane. `clock`: unix seconds.
        """
        super().__init__(services, containers, store, metrics, queue, clock)
        self._gates: dict[tuple[str, Plane], Gate] = defaultdict(lambda: Gate(width))
        self._judging: dict[str, Gate] = defaultdict(lambda: Gate(width, JUDGING))
        """Verdicts by address; what else is asked of a control plane does not wait for them."""
        metrics.watch(self.status)

    async def __aenter__(self) -> Self:
        self._spawn(self._expire())
        return await super().__aenter__()

    async def take(self, request: LeaseRequest, client: str) -> Held:
        """A lease on a fresh episode. Raises Refusal. Cancelled, it leaves nothing behind."""
        if request.env_id not in self.services:
            raise Refusal(
                404, "unknown_env", f"this fleet serves no {request.env_id[:80]!r}; it serves {', '.join(self.services)}"
            )
        now = asyncio.get_running_loop().time
        asked, give_up = now(), now() + request.wait
        while True:
            place = await self._seat(request.env_id, client, give_up)
            begun = asyncio.ensure_future(self._begin(request, place))
            try:
                held = await asyncio.shield(begun)
            except asyncio.CancelledError:
                begun.add_done_callback(self._abandon)
                raise
            if held is not None:
                self.metrics.granted(request.env_id, now() - asked)
                return held
            if now() > give_up:
                raise self._none_answers(request.env_id)

    async def release(self, lease_id: str) -> None:
        """Also of one that has ended, or never was."""
        if lease_id in self.leases:
            await self._end(lease_id, "released")

    async def fork(self, held: Held) -> tuple[Held, Answer]:
        """A twin under the same lease. Raises Refusal."""
        place = self.places.take_in(held.address)
        if place is None:
            message = "the episode's container has no room for a twin; release leases or start the fleet with more --capacity"
            raise Refusal(429, "full", message, "infrastructure", RETRY_AFTER)
        try:
            with self._made_by(held.address):
                answer = await self.forward(held, "control", "POST", "/fork")
        except BaseException:
            self.places.free(place)
            raise
        if answer.status != 201 or held.episode_id not in self.held:
            if answer.status == 201:
                self._strays.add(held.address)
            self.places.free(place)
            return held, answer
        found = answer.json()
        twin = Held(
            episode_id=str(found["episode_id"]),
            lease_id=held.lease_id,
            twin=True,
            env_id=held.env_id,
            task_id=task_of(found),
            instruction=text_of(found.get("instruction")),
            address=held.address,
            host=held.host,
            ttl=held.ttl,
            expires_at=held.expires_at,
        )
        self.store.put(twin)
        self._keep(twin)
        self._place[twin.episode_id] = place
        return twin, answer

    async def drop_twin(self, twin: Held) -> None:
        self.leases[twin.lease_id].remove(twin.episode_id)
        self._forget([twin], "released")
        await self._delete(twin)

    async def forward(
        self, held: Held, plane: Plane, method: str, rest: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """A request to the episode, answered as its container does. Raises Refusal where the container or the episode is gone."""
        try:
            gate = self._judging[held.address] if rest == "/verify" else self._gates[held.address, plane]
            async with self._to(held.address), gate.entered():
                answer = await self.containers.ask(
                    held.address, method, episode_path(held.episode_id, rest), body, headers, plane
                )
        except Gone as gone:
            await self._look(held.env_id, held.address)
            self.episode(held.episode_id)
            raise Refusal(502, "hung_up", f"the container hung up: {gone}; mask this episode", "infrastructure") from gone
        except Silent as silent:
            self._doubt(held.env_id, held.address)
            raise Refusal(504, "no_answer", f"the container gave {silent}; mask this episode", "infrastructure") from silent
        if answer.status == 404 and not await self._exists(held):
            await self._look(held.env_id, held.address)
            if held.episode_id in self.held:
                await self._end(held.lease_id, "service_error")
            self.episode(held.episode_id)
        if rest == "/reset" and answer.status == 200:
            self._changed(held.episode_id, answer.json())
        return answer

    def status(self) -> Status:
        scenarios = [self._scenario(env_id) for env_id in self.services]
        containers = [one for scenario in scenarios for one in scenario.containers]
        return Status(
            leases=len(self.leases),
            waiting=sum(scenario.waiting for scenario in scenarios),
            episodes=sum(one.episodes for one in containers),
            capacity=sum(one.capacity for one in containers),
            scenarios=scenarios,
        )

    def _scenario(self, env_id: str) -> ScenarioStatus:
        containers = [
            ContainerStatus(
                host=one.host,
                address=one.address,
                episodes=self.places.used(one.address),
                capacity=one.capacity,
                accepting=self.places.accepting(one.address),
            )
            for one in sorted(self.known.values(), key=lambda each: each.host)
            if one.env_id == env_id
        ]
        leases = sum(held.env_id == env_id and not held.twin for held in self.held.values())
        return ScenarioStatus(env_id=env_id, leases=leases, waiting=self.places.waiting(env_id), containers=containers)

    async def _seat(self, env_id: str, client: str, give_up: float) -> Place:
        granted = asyncio.Event()
        try:
            ticket = self.places.ask(env_id, client, granted.set)
        except QueueFull:
            message = f"{self.places.bound} requests wait for {env_id} already; ask again after Retry-After seconds"
            raise Refusal(429, "queue_full", message, "infrastructure", RETRY_AFTER) from None
        if ticket.place is None:
            try:
                async with asyncio.timeout_at(give_up):
                    await granted.wait()
            except TimeoutError:
                if ticket.place is None:
                    self.places.cancel(ticket)
                    if not any(one.env_id == env_id for one in self.known.values()):
                        raise self._none_answers(env_id) from None
                    message = f"no episode of {env_id} became free in time; release leases, wait longer, or start more replicas"
                    raise Refusal(429, "full", message, "infrastructure", RETRY_AFTER) from None
            except asyncio.CancelledError:
                self.places.cancel(ticket)
                raise
        assert ticket.place is not None
        return ticket.place

    async def _begin(self, request: LeaseRequest, place: Place) -> Held | None:
        """None where the container can't be had, and another should be tried. Raises Refusal."""
        address = place.address
        container = self.known.get(address)
        try:
            with self._made_by(address):
                async with self._to(address):
                    answer = await self.containers.ask(address, "POST", "/episodes", new_episode(request))
        except (Gone, Silent):
            self.places.free(place)
            self._doubt(request.env_id, address)
            return None
        if answer.status == 429:
            # It holds what we know nothing of, such as an episode that it was too busy to delete; the next look sees to it.
            self.places.free(place)
            self.places.suspend(address)
            return None
        if answer.status != 201:
            self.places.free(place)
            said = str(answer.json().get("error", answer.body[:200]))
            whose: Whose = "usage" if answer.status in (404, 422) else "infrastructure"
            raise Refusal(answer.status, "refused", f"{said}; correct the request", whose)
        found = answer.json()
        episode_id = str(found["episode_id"])
        if container is None or self.known.get(address) is not container:
            self._undeleted[address].append(episode_id)
            return None
        held = Held(
            episode_id=episode_id,
            lease_id=secrets.token_hex(16),
            twin=False,
            env_id=request.env_id,
            task_id=task_of(found),
            instruction=text_of(found.get("instruction")),
            address=address,
            host=container.host,
            ttl=request.ttl,
            expires_at=self.clock() + request.ttl,
        )
        self.store.put(held)
        self._keep(held)
        self._place[episode_id] = place
        return held

    def _abandon(self, begun: "asyncio.Future[Held | None]") -> None:
        """Nobody waits for the lease any more."""
        if not begun.cancelled() and begun.exception() is None and (held := begun.result()) is not None:
            self._spawn(self._end(held.lease_id, "released"))

    async def _end(self, lease_id: str, reason: EndReason) -> None:
        """Ended at once for its holder; its places are free when its episodes are deleted."""
        for held in self._take_out(lease_id, reason):
            await self._delete(held)

    async def _expire(self) -> None:
        while True:
            self._sooner.clear()
            now = self.clock()
            while self._due and self._due[0][0] <= now:
                _, lease_id = heapq.heappop(self._due)
                if lease_id in self.leases and self.lease(lease_id).expires_at <= now:
                    self._spawn(self._end(lease_id, "expired"))
            self.store.forget(now - REMEMBER)
            try:
                async with asyncio.timeout(min(60.0, self._due[0][0] - now) if self._due else 60.0):
                    await self._sooner.wait()
            except TimeoutError:
                continue

    def _none_answers(self, env_id: str) -> Refusal:
        message = f"no container of {env_id} answers; `awm-factory fleet status` shows them, the engine restarts those that ended"
        return Refusal(503, "no_container", message, "infrastructure", RETRY_AFTER)
