"""Which lane of a sandbox a check gets: the one that has its environment imported, where that is worth waiting for."""

import threading

from awm_factory.sandbox.pool import Places

ONE, OTHER, THIRD = 1, 2, 3


def held_by(places: Places, *kept: int) -> list[int]:
    """The lanes that checks of these environments get, one after the other."""
    found = []
    for key in kept:
        found.append(places.take(key))
        places.give(found[-1])
    return found


def test_a_check_goes_where_its_environment_is() -> None:
    places = Places(2)
    one, other, again, still = held_by(places, ONE, OTHER, ONE, OTHER)
    assert one != other
    assert (again, still) == (one, other)


def test_an_environment_alone_spreads_over_all_lanes() -> None:
    places = Places(2)
    assert {places.take(ONE), places.take(ONE)} == {0, 1}


def test_where_others_are_under_way_a_check_waits_for_the_lane_of_its_environment() -> None:
    places = Places(2)
    held_by(places, ONE, OTHER)
    first = places.take(ONE)
    got: list[int] = []
    asked = threading.Event()

    def ask() -> None:
        asked.set()
        got.append(places.take(ONE))

    waiting = threading.Thread(target=ask)
    waiting.start()
    asked.wait()
    places.give(first)
    waiting.join()
    assert got == [first]


def test_a_check_that_leaves_nothing_imported_takes_any_lane() -> None:
    places = Places(2)
    (one,) = held_by(places, ONE)
    held_by(places, OTHER)
    places.take(ONE)
    assert places.take(None) != one


def test_a_lane_that_was_replaced_holds_nothing() -> None:
    places = Places(2)
    one, _ = held_by(places, ONE, OTHER)
    places.forget(one)
    taken = places.take(OTHER)
    assert places.take(ONE) != taken  # at once: there is nothing to wait for


def test_the_lane_that_holds_least_gets_a_new_environment() -> None:
    places = Places(2)
    held_by(places, ONE, OTHER)
    one = places.take(ONE)
    other = places.take(THIRD)
    places.give(one)
    places.give(other)
    assert held_by(places, 4) == [one]
