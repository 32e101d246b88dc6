"""Limits in seconds hold for a machine with nothing else to do; a busy one is given as much longer as it takes."""

import os
import time

import pytest

from awm_runtime import batches, patience
from awm_runtime.batches import Note, Piece
from awm_runtime.children import ChildFailed
from awm_runtime.patience import patient


@pytest.mark.parametrize(("load", "factor"), [(0.0, 1.0), (3.9, 1.0), (40.0, 10.0), (4000.0, patience.MOST)])
def test_a_limit_is_stretched_by_the_load_of_each_processor(monkeypatch: pytest.MonkeyPatch, load: float, factor: float) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert patient(2.0) == 2.0 * factor


def prepare(_note: Note) -> Piece:
    def piece(index: int) -> bytes:
        time.sleep(0.5)
        return b"%d" % index

    return piece


def test_what_hangs_on_an_idle_machine_has_its_time_on_a_busy_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(os, "getloadavg", lambda: (1.0, 1.0, 1.0))
    assert [type(piece) for piece in batches.each(2, batches.forked(prepare), 0.1).pieces] == [ChildFailed, ChildFailed]
    monkeypatch.setattr(os, "getloadavg", lambda: (500.0, 500.0, 500.0))
    assert batches.each(2, batches.forked(prepare), 0.3).pieces == [b"0", b"1"]
