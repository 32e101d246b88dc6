import os
import signal
import time
from pathlib import Path

import pytest

from awm_runtime import children
from awm_runtime.children import ChildFailed


def test_what_a_child_returns_comes_back_however_long() -> None:
    assert children.run(lambda: b"x" * 3_000_000, 10) == b"x" * 3_000_000


def fail(kind: str) -> bytes:
    if kind == "raise":
        raise ValueError("no")
    if kind == "memory":
        raise MemoryError
    if kind == "exit":
        os._exit(9)
    if kind == "signal":
        os.kill(os.getpid(), signal.SIGKILL)
    while True:
        time.sleep(1)


@pytest.mark.parametrize(
    ("kind", "reason", "says"),
    [
        ("raise", "crashed", "ValueError: no"),
        ("memory", "memory", "memory"),
        ("exit", "crashed", "exit status 9"),
        ("signal", "crashed", "SIGKILL"),
        ("hang", "timeout", "0.3 s"),
    ],
)
def test_every_way_to_end_without_an_answer_has_its_reason(kind: str, reason: str, says: str) -> None:
    with pytest.raises(ChildFailed, match=says) as caught:
        children.run(lambda: fail(kind), 0.3 if kind == "hang" else 10)
    assert caught.value.reason == reason


def test_no_child_and_no_descriptor_is_left() -> None:
    def left() -> tuple[int, str]:
        me = Path("/proc/self")
        return len(list((me / "fd").iterdir())), (me / "task" / str(os.getpid()) / "children").read_text()

    before = left()
    for kind in ("raise", "exit", "hang"):
        with pytest.raises(ChildFailed):
            children.run(lambda kind=kind: fail(kind), 0.2)  # type: ignore[misc]
    assert left() == before


def test_a_grandchild_ends_with_its_parent(tmp_path_factory: pytest.TempPathFactory) -> None:
    reader, writer = os.pipe()

    def with_a_child_of_its_own() -> bytes:
        return children.run(lambda: fail("hang"), 60)

    with pytest.raises(ChildFailed):
        children.run(with_a_child_of_its_own, 0.3)
    os.close(writer)
    assert os.read(reader, 1) == b""  # only when the last holder of the other end is gone
    os.close(reader)
