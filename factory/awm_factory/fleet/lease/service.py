"""Leases: who holds which episode, for how long, and what becomes of them when containers come and go.

An episode exists in its container's memory only. So a container that is gone, or started anew, has lost all of its episodes, and
their leases end as the fleet's fault; what a container has and nobody holds is deleted when the service meets it.
"""

import asyncio
import contextlib
import heapq
import logging
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, Final

from awm_factory.client.wire import EndReason, LeaseRequest
from awm_factory.fleet.lease.containers import Answer, Container, Containers, Gone, Plane, Silent, episode_path, new_episode
from awm_factory.fleet.lease.metrics import Metrics
from awm_factory.fleet.lease.places import Place, Places, QueueFull
from awm_factory.fleet.lease.refusal import RETRY_AFTER, Refusal, Whose, ended
from awm_factory.fleet.lease.status import ContainerStatus, ScenarioStatus, Status
from awm_factory.fleet.lease.store import Ended, Held, Store

INTERVAL: Final = 1.0
"""Seconds between two looks at the containers of a scenario; a failed request brings the next one forward."""
SILENCE: Final = 30.0
"""Seconds without an answer after which a container counts as gone. A busy one may take several for an answer."""
GRACE: Final = 30.0
"""Seconds after the service's own start in which the containers of its old leases must show up."""
REMEMBER: Final = 900.0
"""Seconds for which the reason of a lease's end can be asked."""

_log = logging.getLogger("awm_factory.fleet")


class Leases:
    """Use within `async with`; it looks after containers and expiry meanwhile."""

    def __init__(
        self,
        services: Mapping[str, str],
        containers: Containers,
        store: Store,
        metrics: Metrics,
        *,
        queue: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`services`: name in the DNS by env_id. `queue`: requests that may wait for one scenario. `clock`: unix seconds."""
        self.services, self.containers, self.store, self.metrics, self.clock = services, containers, store, metrics, clock
        self.places = Places(queue)
        self.known: dict[str, Container] = {}
        """By address: containers that were met and not lost since."""
        self.held: dict[str, Held] = {}
        """By episode."""
        self.leases: dict[str, list[str]] = {}
        """Episodes by lease, its own first, then twins."""
        self.at: dict[str, set[str]] = defaultdict(set)
        """Episodes by address."""
        self._place: dict[str, Place] = {}
        self._due: list[tuple[float, str]] = []
        self._sooner = asyncio.Event()
        self._look_again = {env_id: asyncio.Event() for env_id in services}
        self._looking: dict[str, asyncio.Task[None]] = {}
        self._silent_since: dict[str, float] = {}
        self._undeleted: dict[str, list[str]] = defaultdict(list)
        """Episodes that a container would not delete when asked, by address."""
        self._strays: set[str] = set()
        """Containers that may have made an episode whose id never reached us."""
        self._tasks: set[asyncio.Task[None]] = set()
        for held in store.held():
            self._keep(held)
        metrics.watch(self.status)

    async def __aenter__(self) -> "Leases":
        for env_id, service in self.services.items():
            self._spawn(self._watch(env_id, service))
        self._spawn(self._expire())
        self._spawn(self._end_strangers())
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- what trainers ask for ----------------------------------------------------------------------------------------

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

    async def prolong(self, lease_id: str, ttl: float | None) -> Held:
        """Raises Refusal."""
        held = self.lease(lease_id)
        ttl = held.ttl if ttl is None else ttl
        held = held.until(self.clock() + ttl, ttl)
        self.held[held.episode_id] = held
        self.store.prolong(held.episode_id, held.expires_at, ttl)
        self._push(held)
        return held

    def lease(self, lease_id: str) -> Held:
        """Its own episode. Raises Refusal where it has ended or never was."""
        if lease_id in self.leases:
            return self.held[self.leases[lease_id][0]]
        raise self._missing(lease_id, "lease")

    def episode(self, episode_id: str, lease_id: str | None = None) -> Held:
        """Raises Refusal."""
        held = self.held.get(episode_id)
        if held is None or lease_id not in (None, held.lease_id):
            raise self._missing(episode_id, "episode")
        return held

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
            task_id=_task(found),
            instruction=_text(found.get("instruction")),
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
            answer = await self.containers.ask(held.address, method, episode_path(held.episode_id, rest), body, headers, plane)
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

    # --- episodes ------------------------------------------------------------------------------------------------------

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
            task_id=_task(found),
            instruction=_text(found.get("instruction")),
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

    def _keep(self, held: Held) -> None:
        self.held[held.episode_id] = held
        self.leases.setdefault(held.lease_id, []).append(held.episode_id)
        self.at[held.address].add(held.episode_id)
        if not held.twin:
            self._push(held)

    def _push(self, held: Held) -> None:
        heapq.heappush(self._due, (held.expires_at, held.lease_id))
        if self._due[0][1] == held.lease_id:
            self._sooner.set()

    def _changed(self, episode_id: str, found: dict[str, object]) -> None:
        if (held := self.held.get(episode_id)) is not None:
            values = {**vars(held), "task_id": _task(found), "instruction": _text(found.get("instruction"))}
            self.held[episode_id] = changed = Held(**values)
            self.store.put(changed)

    async def _end(self, lease_id: str, reason: EndReason) -> None:
        """Ended at once for its holder; its places are free when its episodes are deleted."""
        gone = [self.held[episode_id] for episode_id in self.leases.pop(lease_id)]
        self._forget(gone, reason)
        self.metrics.ended(gone[0].env_id, reason)
        for held in gone:
            await self._delete(held)

    def _forget(self, gone: list[Held], reason: EndReason) -> None:
        at = self.clock()
        # A twin that is dropped leaves its lease alone, which must not be found under those that ended.
        self.store.end(
            [Ended(one.lease_id if one.lease_id not in self.leases else "", one.episode_id, reason, at) for one in gone]
        )
        for held in gone:
            del self.held[held.episode_id]
            self.at[held.address].discard(held.episode_id)

    async def _delete(self, held: Held) -> None:
        place = self._place.pop(held.episode_id, None)
        if held.address in self.known:
            try:
                await self.containers.ask(held.address, "DELETE", episode_path(held.episode_id))
            except (Gone, Silent):
                self._undeleted[held.address].append(held.episode_id)
                self._doubt(held.env_id, held.address)
        if place is not None:
            self.places.free(place)

    async def _exists(self, held: Held) -> bool:
        try:
            return (await self.containers.ask(held.address, "GET", episode_path(held.episode_id))).status != 404
        except (Gone, Silent):
            return False

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

    # --- containers ----------------------------------------------------------------------------------------------------

    async def _watch(self, env_id: str, service: str) -> None:
        again = self._look_again[env_id]
        while True:
            again.clear()
            listed = await self.containers.resolve(service)
            ours = {one.address for one in self.known.values() if one.env_id == env_id}
            for result in await asyncio.gather(
                *(self._look(env_id, one, listed is None or one in listed) for one in {*ours, *(listed or ())}),
                return_exceptions=True,
            ):
                if isinstance(result, Exception):
                    _log.error("a look at %s failed: %r", env_id, result)
            try:
                async with asyncio.timeout(INTERVAL):
                    await again.wait()
            except TimeoutError:
                continue

    def _doubt(self, env_id: str, address: str) -> None:
        """No new episodes for that container until a look finds it well."""
        self.places.suspend(address)
        self._look_again[env_id].set()

    async def _look(self, env_id: str, address: str, listed: bool = True) -> None:
        """One look at a time at each container; who comes meanwhile shares its result."""
        task = self._looking.get(address)
        if task is None:
            task = self._looking[address] = asyncio.create_task(self._look_at(env_id, address, listed))
            task.add_done_callback(lambda _: self._looking.pop(address, None))
        await asyncio.shield(task)

    async def _look_at(self, env_id: str, address: str, listed: bool) -> None:
        known = self.known.get(address)
        try:
            if known is not None and await self.containers.probe(address) == known.boot:
                self._silent_since.pop(address, None)
                await self._delete_left(address)
                if address in self._strays:
                    self.places.suspend(address)
                    # Every request that is about to make an episode there has a place, and while suspended no more are given.
                    if self.places.used(address) == len(self.at[address]):
                        await self._delete_strays(address)
                self.places.resume(address)
                return
            if known is not None:
                self._lose(known)
            met = await self.containers.meet(address)
            if met.env_id == env_id:
                await self._welcome(met)
        except Gone:
            if known is not None:
                self._lose(known)
        except Silent:
            if known is not None:
                self.places.suspend(address)
                now = asyncio.get_running_loop().time()
                since = self._silent_since.setdefault(address, now)
                if not listed or now - since > SILENCE:
                    self._lose(known)

    async def _welcome(self, container: Container) -> None:
        """Raises Gone, Silent."""
        address = container.address
        there = await self._delete_strays(address)
        lost = {self.held[one].lease_id for one in self.at[address] - there}
        self._end_all(lost)
        staying = sorted(self.at[address])
        self.known[address] = container
        self._undeleted.pop(address, None)
        self._silent_since.pop(address, None)
        taken = self.places.open(container.env_id, address, container.capacity, len(staying))
        self._place |= dict(zip(staying, taken, strict=True))
        _log.warning("%s: container %s at %s is there, with %d episodes", container.env_id, container.host, address, len(staying))

    def _lose(self, container: Container) -> None:
        if self.known.get(container.address) is not container:
            return
        del self.known[container.address]
        self.places.close(container.address)
        self._silent_since.pop(container.address, None)
        self._undeleted.pop(container.address, None)
        self._strays.discard(container.address)
        lost = {self.held[one].lease_id for one in self.at[container.address]}
        self._end_all(lost)
        self.metrics.lost(container.env_id)
        message = "%s: container %s at %s is gone, and %d leases with it"
        _log.warning(message, container.env_id, container.host, container.address, len(lost))

    def _end_all(self, lost: set[str]) -> None:
        for lease_id in lost:
            gone = [self.held[episode_id] for episode_id in self.leases.pop(lease_id)]
            self._forget(gone, "container_died")
            self.metrics.ended(gone[0].env_id, "container_died")
            for held in gone:
                self._place.pop(held.episode_id, None)

    @contextlib.contextmanager
    def _made_by(self, address: str) -> Iterator[None]:
        """Around a request that makes an episode. Where no answer comes, the container may have made it all the same."""
        try:
            yield
        except BaseException:
            self._strays.add(address)
            raise

    async def _delete_strays(self, address: str) -> set[str]:
        """All that the container had when it was asked; what nobody holds is gone now. Raises Gone, Silent."""
        self._strays.discard(address)
        answer = await self.containers.ask(address, "GET", "/episodes")
        there = {str(one["episode_id"]) for one in answer.list()}
        for episode_id in there - self.at[address]:
            await self.containers.ask(address, "DELETE", episode_path(episode_id))
        return there

    async def _delete_left(self, address: str) -> None:
        """Raises Gone, Silent."""
        left = self._undeleted.get(address, [])
        while left:
            await self.containers.ask(address, "DELETE", episode_path(left[-1]))
            left.pop()
        self._undeleted.pop(address, None)

    async def _end_strangers(self) -> None:
        """Leases of an earlier start of the service whose containers did not show up."""
        await asyncio.sleep(GRACE)
        self._end_all({held.lease_id for held in self.held.values() if held.address not in self.known})

    # --- words ---------------------------------------------------------------------------------------------------------

    def _missing(self, name: str, what: str) -> Refusal:
        if (reason := self.store.reason(name)) is not None:
            return ended(reason)
        return Refusal(404, f"unknown_{what}", f"there is no {what} {name[:64]!r}; POST /leases makes one")

    def _none_answers(self, env_id: str) -> Refusal:
        message = f"no container of {env_id} answers; `awm-factory fleet status` shows them, the engine restarts those that ended"
        return Refusal(503, "no_container", message, "infrastructure", RETRY_AFTER)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a task of the lease service failed", exc_info=error)


def _task(found: dict[str, object]) -> int | None:
    value = found.get("task_id")
    return value if isinstance(value, int) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
