"""The fleet's containers as they come, fall silent, die and come back, and what that means for the leases on them.

An episode exists in its container's memory only. So a container that is gone, or started anew, has lost all of its episodes, and
their leases end as the fleet's fault; what a container has and nobody holds is deleted.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from typing import Any, Final, Self

from awm_factory.fleet.lease.containers import Container, Containers, Gone, Silent, episode_path
from awm_factory.fleet.lease.metrics import Metrics
from awm_factory.fleet.lease.register import Register
from awm_factory.fleet.lease.store import Held, Store

INTERVAL: Final = 1.0
"""Seconds between two looks at the containers of a scenario; a failed request brings the next one forward."""
SILENCE: Final = 30.0
"""Seconds without an answer after which a container counts as gone. A busy one may take several for an answer."""
GRACE: Final = 30.0
"""Seconds after the service's own start in which the containers of its old leases must show up."""

_log = logging.getLogger("awm_factory.fleet")


class Watch(Register):
    """Use within `async with`; it looks after the containers meanwhile."""

    def __init__(
        self,
        services: Mapping[str, str],
        containers: Containers,
        store: Store,
        metrics: Metrics,
        queue: int,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(store, metrics, queue, clock)
        self.services, self.containers = services, containers
        self.known: dict[str, Container] = {}
        """By address: containers that were met and not lost since."""
        self._look_again = {env_id: asyncio.Event() for env_id in services}
        self._looking: dict[str, asyncio.Task[None]] = {}
        self._silent_since: dict[str, float] = {}
        self._undeleted: dict[str, list[str]] = defaultdict(list)
        """Episodes that a container would not delete when asked, by address."""
        self._strays: set[str] = set()
        """Containers that may have made an episode whose id never reached us."""
        self._under_way: dict[str, set[asyncio.Timeout]] = defaultdict(set)
        """Requests for and to episodes, by address; of a container that is lost they end at once, not when their time is up."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        for env_id, service in self.services.items():
            self._spawn(self._watch(env_id, service))
        self._spawn(self._end_strangers())
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

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
        for request in self._under_way[container.address]:
            request.reschedule(0)
        self.metrics.lost(container.env_id)
        message = "%s: container %s at %s is gone, and %d leases with it"
        _log.warning(message, container.env_id, container.host, container.address, len(lost))

    async def _end_strangers(self) -> None:
        """Leases of an earlier start of the service whose containers did not show up."""
        await asyncio.sleep(GRACE)
        self._end_all({held.lease_id for held in self.held.values() if held.address not in self.known})

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

    async def _delete_left(self, address: str) -> None:
        """Raises Gone, Silent."""
        left = self._undeleted.get(address, [])
        while left:
            await self.containers.ask(address, "DELETE", episode_path(left[-1]))
            left.pop()
        self._undeleted.pop(address, None)

    async def _delete_strays(self, address: str) -> set[str]:
        """All that the container had when it was asked; what nobody holds is gone now. Raises Gone, Silent."""
        self._strays.discard(address)
        answer = await self.containers.ask(address, "GET", "/episodes")
        there = {str(one["episode_id"]) for one in answer.list()}
        for episode_id in there - self.at[address]:
            await self.containers.ask(address, "DELETE", episode_path(episode_id))
        return there

    @contextlib.asynccontextmanager
    async def _to(self, address: str) -> AsyncIterator[None]:
        """Around a request to an episode. Raises Gone where the container is lost meanwhile."""
        try:
            async with asyncio.timeout(None) as request:
                self._under_way[address].add(request)
                try:
                    yield
                finally:
                    self._under_way[address].discard(request)
        except TimeoutError as error:
            raise Gone("it is gone") from error

    @contextlib.contextmanager
    def _made_by(self, address: str) -> Iterator[None]:
        """Around a request that makes an episode. Where no answer comes, the container may have made it all the same."""
        try:
            yield
        except BaseException:
            self._strays.add(address)
            raise

    async def _exists(self, held: Held) -> bool:
        try:
            return (await self.containers.ask(held.address, "GET", episode_path(held.episode_id))).status != 404
        except (Gone, Silent):
            return False

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a task of the lease service failed", exc_info=error)
