"""Who holds which episode until when: in memory, and in the store at once. Nothing here waits for anything."""

import asyncio
import heapq
from collections import defaultdict
from collections.abc import Callable

from awm_factory.client.wire import EndReason
from awm_factory.fleet.lease.metrics import Metrics
from awm_factory.fleet.lease.places import Place, Places
from awm_factory.fleet.lease.refusal import Refusal, ended
from awm_factory.fleet.lease.store import Ended, Held, Store, task_of, text_of


class Register:
    def __init__(self, store: Store, metrics: Metrics, queue: int, clock: Callable[[], float]) -> None:
        self.store, self.metrics, self.clock = store, metrics, clock
        self.places = Places(queue)
        self.held: dict[str, Held] = {}
        """By episode."""
        self.leases: dict[str, list[str]] = {}
        """Episodes by lease, its own first, then twins."""
        self.at: dict[str, set[str]] = defaultdict(set)
        """Episodes by address."""
        self._place: dict[str, Place] = {}
        self._due: list[tuple[float, str]] = []
        """When leases end unless they are prolonged, soonest first; what is out of date is passed over."""
        self._sooner = asyncio.Event()
        """Set when the soonest changes."""
        for held in store.held():
            self._keep(held)

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

    def prolong(self, lease_id: str, ttl: float | None) -> Held:
        """Raises Refusal."""
        held = self.lease(lease_id)
        ttl = held.ttl if ttl is None else ttl
        held = held.until(self.clock() + ttl, ttl)
        self.held[held.episode_id] = held
        self.store.prolong(held.episode_id, held.expires_at, ttl)
        self._push(held)
        return held

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
            values = {**vars(held), "task_id": task_of(found), "instruction": text_of(found.get("instruction"))}
            self.held[episode_id] = changed = Held(**values)
            self.store.put(changed)

    def _take_out(self, lease_id: str, reason: EndReason) -> list[Held]:
        """The episodes of a lease that ends; none where it has ended already."""
        gone = [self.held[episode_id] for episode_id in self.leases.pop(lease_id, ())]
        if gone:
            self._forget(gone, reason)
            self.metrics.ended(gone[0].env_id, reason)
        return gone

    def _forget(self, gone: list[Held], reason: EndReason) -> None:
        at = self.clock()
        # A twin that is dropped leaves its lease alone, which must not be found under those that ended.
        self.store.end(
            [Ended(one.lease_id if one.lease_id not in self.leases else "", one.episode_id, reason, at) for one in gone]
        )
        for held in gone:
            del self.held[held.episode_id]
            self.at[held.address].discard(held.episode_id)

    def _end_all(self, lost: set[str]) -> None:
        """Whose episodes went with their container: there is nothing to delete, and no place to free."""
        for lease_id in lost:
            for held in self._take_out(lease_id, "container_died"):
                self._place.pop(held.episode_id, None)

    def _missing(self, name: str, what: str) -> Refusal:
        if (reason := self.store.reason(name)) is not None:
            return ended(reason)
        return Refusal(404, f"unknown_{what}", f"there is no {what} {name[:64]!r}; POST /leases makes one")
