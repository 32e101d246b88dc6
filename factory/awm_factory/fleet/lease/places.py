"""Free places in containers, and who gets the next one. No clock and no network: a property test plays with it.

Within a scenario clients take turns, each with its own requests in their order, so a trainer that asks for a thousand leases does
not keep another from its one. Scenarios share nothing.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count


class QueueFull(Exception):
    """As many as may wait do."""


@dataclass(eq=False)
class Place:
    """Room for one episode in one container, held until it is freed."""

    address: str
    _opening: int
    """Which opening of the container it belongs to; what is freed of an earlier one changes nothing."""
    _freed: bool = False


@dataclass(eq=False)
class Ticket:
    env_id: str
    client: str
    granted: Callable[[], None]
    """Called once the ticket has its place; never within `ask`."""
    place: Place | None = None


@dataclass
class _Room:
    env_id: str
    capacity: int
    used: int
    opening: int
    accepting: bool = True


@dataclass
class _Queue:
    by_client: OrderedDict[str, deque[Ticket]] = field(default_factory=OrderedDict)

    def __len__(self) -> int:
        return sum(map(len, self.by_client.values()))

    def add(self, ticket: Ticket) -> None:
        self.by_client.setdefault(ticket.client, deque()).append(ticket)

    def pop(self) -> Ticket:
        client, tickets = next(iter(self.by_client.items()))
        ticket = tickets.popleft()
        if tickets:
            self.by_client.move_to_end(client)
        else:
            del self.by_client[client]
        return ticket

    def remove(self, ticket: Ticket) -> None:
        tickets = self.by_client.get(ticket.client)
        if tickets is not None and ticket in tickets:
            tickets.remove(ticket)
            if not tickets:
                del self.by_client[ticket.client]


class Places:
    def __init__(self, bound: int) -> None:
        """`bound`: how many may wait for one scenario."""
        self.bound = bound
        self._rooms: dict[str, _Room] = {}
        self._queues: dict[str, _Queue] = {}
        self._openings = count()

    def open(self, env_id: str, address: str, capacity: int, used: int = 0) -> list[Place]:
        """A container takes episodes from now on; `used` places are taken already, and returned."""
        opening = next(self._openings)
        self._rooms[address] = _Room(env_id, capacity, used, opening)
        self._serve(env_id)
        return [Place(address, opening) for _ in range(used)]

    def close(self, address: str) -> None:
        """It takes none any more. What was held there needs no freeing."""
        self._rooms.pop(address, None)

    def suspend(self, address: str) -> None:
        """It gets no new episodes for now, and keeps those it has."""
        if room := self._rooms.get(address):
            room.accepting = False

    def resume(self, address: str) -> None:
        if room := self._rooms.get(address):
            room.accepting = True
            self._serve(room.env_id)

    def accepting(self, address: str) -> bool:
        room = self._rooms.get(address)
        return room is not None and room.accepting

    def ask(self, env_id: str, client: str, granted: Callable[[], None]) -> Ticket:
        """A ticket, with its place at once where there is room and nobody waits. Raises QueueFull."""
        queue = self._queues.setdefault(env_id, _Queue())
        ticket = Ticket(env_id, client, granted)
        if not queue:
            ticket.place = self._take(env_id)
        if ticket.place is None:
            if len(queue) >= self.bound:
                raise QueueFull
            queue.add(ticket)
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """Waits no longer; a place that it has got is freed."""
        if ticket.place is None:
            self._queues[ticket.env_id].remove(ticket)
        else:
            self.free(ticket.place)

    def take_in(self, address: str) -> Place | None:
        """A place in this very container, for a twin of an episode there; those who wait elsewhere come first."""
        room = self._rooms.get(address)
        if room is None or not room.accepting or room.used >= room.capacity or self.waiting(room.env_id):
            return None
        room.used += 1
        return Place(address, room.opening)

    def free(self, place: Place) -> None:
        room = self._rooms.get(place.address)
        if room is None or room.opening != place._opening or place._freed:
            return
        place._freed = True
        room.used -= 1
        self._serve(room.env_id)

    def waiting(self, env_id: str) -> int:
        return len(self._queues.get(env_id, ()))

    def used(self, address: str) -> int:
        room = self._rooms.get(address)
        return 0 if room is None else room.used

    def _take(self, env_id: str) -> Place | None:
        free = [
            (room.used / room.capacity, address)
            for address, room in self._rooms.items()
            if room.env_id == env_id and room.accepting and room.used < room.capacity
        ]
        if not free:
            return None
        address = min(free)[1]
        room = self._rooms[address]
        room.used += 1
        return Place(address, room.opening)

    def _serve(self, env_id: str) -> None:
        queue = self._queues.get(env_id)
        while queue and (place := self._take(env_id)) is not None:
            ticket = queue.pop()
            ticket.place = place
            ticket.granted()
