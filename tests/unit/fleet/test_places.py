"""Free places and the queue before them, by hand and by a machine that plays with them."""

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from awm_factory.fleet.lease.places import Places, QueueFull, Ticket


def ask(places: Places, client: str = "a", env_id: str = "e") -> Ticket:
    return places.ask(env_id, client, lambda: None)


def address(ticket: Ticket) -> str:
    assert ticket.place is not None
    return ticket.place.address


def test_episodes_are_spread_by_load_and_not_by_turns() -> None:
    places = Places(10)
    places.open("e", "small", 4)
    places.open("e", "large", 12)
    assert Counter(address(ask(places)) for _ in range(8)) == {"large": 6, "small": 2}


def test_clients_take_turns_so_one_that_asks_for_many_does_not_keep_another_waiting() -> None:
    places, served = Places(100), []
    places.open("e", "x", 1)
    first = ask(places, "greedy")
    for client in ["greedy"] * 5 + ["modest"] * 2:
        places.ask("e", client, lambda client=client: served.append(client))
    assert first.place is not None
    for _ in range(7):
        room = next(iter(places._rooms.values()))
        assert room.used == 1
        places.free(first.place)
        first.place = type(first.place)(first.place.address, first.place._opening)
    assert served == ["greedy", "modest", "greedy", "modest", "greedy", "greedy", "greedy"]


def test_past_the_bound_nobody_waits() -> None:
    places = Places(1)
    ask(places)
    with pytest.raises(QueueFull):
        ask(places)


def test_a_place_of_an_earlier_opening_is_not_freed_into_a_later_one() -> None:
    places = Places(10)
    places.open("e", "x", 2)
    old = ask(places)
    places.close("x")
    places.open("e", "x", 2)
    new = [ask(places), ask(places)]
    assert old.place is not None
    places.free(old.place)
    assert places.used("x") == 2
    assert ask(places).place is None
    assert all(ticket.place for ticket in new)


def test_a_suspended_container_gets_nothing_new_and_keeps_what_it_has() -> None:
    places = Places(10)
    places.open("e", "x", 3)
    held = ask(places)
    places.suspend("x")
    waiting = ask(places)
    assert waiting.place is None and places.used("x") == 1 and places.take_in("x") is None
    places.resume("x")
    assert address(waiting) == address(held) == "x"


class Playing(RuleBasedStateMachine):
    """Whatever happens: no place is given twice, nobody waits while there is room, and a client's requests keep their order."""

    tickets: Bundle[Ticket] = Bundle("tickets")

    def __init__(self) -> None:
        super().__init__()
        self.places = Places(5)
        self.granted: list[Ticket] = []
        self.asked: list[Ticket] = []
        self.openings: Counter[str] = Counter()

    @rule(name=st.sampled_from("xyz"), env=st.sampled_from("de"), capacity=st.integers(1, 3))
    def open(self, name: str, env: str, capacity: int) -> None:
        self.places.close(env + name)
        self._lose(env + name)
        self.places.open(env, env + name, capacity)

    @rule(name=st.sampled_from("xyz"), env=st.sampled_from("de"))
    def close(self, name: str, env: str) -> None:
        self.places.close(env + name)
        self._lose(env + name)

    @rule(name=st.sampled_from("xyz"), env=st.sampled_from("de"), accept=st.booleans())
    def suspend_or_resume(self, name: str, env: str, accept: bool) -> None:
        (self.places.resume if accept else self.places.suspend)(env + name)

    @rule(target=tickets, env=st.sampled_from("de"), client=st.sampled_from("ab"))
    def ask(self, env: str, client: str) -> Ticket | None:
        found: list[Ticket] = []
        waiting = self.places.waiting(env)
        try:
            ticket = self.places.ask(env, client, lambda: self._grant(found[0]))
        except QueueFull:
            assert waiting == 5
            return None
        found.append(ticket)
        self.asked.append(ticket)
        if ticket.place is not None:
            assert waiting == 0, "somebody was passed over"
            self.granted.append(ticket)
        return ticket

    @rule(ticket=consumes(tickets))
    def give_up_or_free(self, ticket: Ticket | None) -> None:
        if ticket is None:
            return
        if ticket in self.granted:
            self.granted.remove(ticket)
        self.places.cancel(ticket)
        self.places.cancel(ticket) if ticket.place is not None else None
        if ticket in self.asked:
            self.asked.remove(ticket)

    def _grant(self, ticket: Ticket) -> None:
        before = self.asked[: self.asked.index(ticket)]
        earlier = [one for one in before if (one.env_id, one.client) == (ticket.env_id, ticket.client) and one.place is None]
        assert earlier == [], "a later request of the same client was served first"
        self.granted.append(ticket)

    def _lose(self, name: str) -> None:
        self.granted = [ticket for ticket in self.granted if ticket.place is not None and ticket.place.address != name]

    @invariant()
    def no_place_is_given_twice(self) -> None:
        held = Counter(address(ticket) for ticket in self.granted)
        for name, room in self.places._rooms.items():
            assert room.used == held[name] <= room.capacity

    @invariant()
    def nobody_waits_while_there_is_room(self) -> None:
        for env in "de":
            room = any(one.env_id == env and one.accepting and one.used < one.capacity for one in self.places._rooms.values())
            assert not (room and self.places.waiting(env))


TestPlaying = Playing.TestCase
TestPlaying.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
