"""The list of planted faults keeps up with the environments it is about."""

import pytest

from certify_support import LISTS, Fault, environment, faults

ALL = faults()


def test_there_are_forty_and_more_and_twice_ten_are_held_out() -> None:
    assert len(ALL) >= 40
    for name in LISTS[1:]:
        assert [fault.held_out for fault in ALL if fault.list == name] == [True] * 10
    assert len({fault.id for fault in ALL}) == len(ALL)


@pytest.mark.parametrize("fault", ALL, ids=[fault.id for fault in ALL])
def test_a_fault_changes_the_environment_it_is_planted_in(fault: Fault) -> None:
    sound = environment(fault.env)
    assert fault.planted(sound).files() != sound.files()
