"""Homes: processes that have an environment imported, and fork the children that play it."""

import base64
import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from awm_runtime import batches
from awm_runtime.batches import Note, Piece
from awm_runtime.children import ChildFailed
from awm_runtime.contract import EnvironmentSource
from awm_runtime.homes import Homes
from awm_runtime.watched import Watched

APP = """
import os
from fastapi import FastAPI
app = FastAPI()

@app.get("/number", operation_id="get_number")
def get_number() -> int:
    return os.getpid()
"""


def job(env: Watched, order: bytes, note: Note) -> Piece:
    def piece(index: int) -> bytes:
        note(f"piece {index}".encode())
        match order.decode(), index:
            case "exit", 1:
                os._exit(9)
            case "raise", 1:
                raise ValueError("no such thing")
            case "hang", 1:
                while True:
                    time.sleep(1)
            case "own", _:
                return str(os.getpid()).encode()
            case "exit first", _:
                return str(os.getpid()).encode() if index else os._exit(9)
            case "fork", _:
                return str(os.fork()).encode()
        return f"{len(env.derived.tools)} {os.getppid()}".encode()

    return piece


def source(code: str = APP) -> EnvironmentSource:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    return EnvironmentSource(
        env_id="numbers", app_code=code, db=base64.b64encode(connection.serialize()).decode(), world_time="2026-01-01T00:00:00Z"
    )


@pytest.fixture(scope="module")
def homes() -> Iterator[Homes]:
    kept = Homes({"job": job}, 1 << 30)
    yield kept
    kept.close()


def done(homes: Homes, order: str, count: int = 3, limit: float = 10.0) -> batches.Done:
    home = homes.of(source())
    assert home is not None
    return batches.each(count, home.forks("job", order.encode()), limit)


def test_pieces_are_done_in_children_of_one_process_that_has_imported_the_environment(homes: Homes) -> None:
    first, second = done(homes, "plain"), done(homes, "plain")
    home = homes.of(source())
    assert home is not None
    assert first.pieces == second.pieces == [f"1 {home.process}".encode()] * 3


@pytest.mark.parametrize(
    ("how", "says"), [("exit", "exit status 9"), ("raise", "ValueError: no such thing"), ("hang", "was stopped")]
)
def test_a_piece_that_ends_its_process_costs_only_itself_and_tells_what_it_was_about(homes: Homes, how: str, says: str) -> None:
    found = done(homes, how, limit=0.5)
    assert [isinstance(one, ChildFailed) for one in found.pieces] == [False, True, False]
    assert says in str(found.pieces[1])
    assert found.last == b"piece 1"


def test_a_child_of_a_home_may_not_fork(homes: Homes) -> None:
    (found,) = done(homes, "fork", count=1).pieces
    assert "PermissionError" in str(found)


def test_code_that_can_not_be_imported_has_no_home(homes: Homes) -> None:
    assert homes.of(source("raise ValueError(1)")) is None


FORKS = "import os\nif os.fork() == 0:\n    while True:\n        pass\n"
FORKS_AND_WAITS = "import os\nif os.fork() == 0:\n    os._exit(0)\nos.wait()\n"


@pytest.mark.parametrize("code", [FORKS, FORKS_AND_WAITS], ids=["lives on", "has ended"])
def test_code_that_forks_while_it_is_imported_has_no_home_and_leaves_no_process(homes: Homes, code: str) -> None:
    def mine() -> str:
        me = os.getpid()
        return Path(f"/proc/{me}/task/{me}/children").read_text()

    before = mine()
    assert homes.of(source(code + APP)) is None
    assert mine() == before


def test_a_home_that_is_gone_is_a_failed_child_and_the_next_one_is_another(homes: Homes) -> None:
    home = homes.of(source())
    assert home is not None
    os.kill(home.process, signal.SIGKILL)
    with pytest.raises(ChildFailed, match="is gone"):
        batches.each(1, home.forks("job", b""), 5)
    homes.drop(home)
    again = homes.of(source())
    assert again is not None
    assert again.process != home.process


def test_parts_are_done_in_processes_of_their_own(homes: Homes) -> None:
    home = homes.of(source())
    assert home is not None
    found = batches.each(5, home.forks("job", b"own"), 10.0, parts=[2, 1]).pieces
    assert [found.index(one) for one in found] == [0, 0, 2, 3, 3]


def test_a_piece_that_ends_its_process_leaves_the_other_parts_theirs(homes: Homes) -> None:
    home = homes.of(source())
    assert home is not None
    lost, *rest = batches.each(4, home.forks("job", b"exit first"), 10.0, parts=[2, 2]).pieces
    assert isinstance(lost, ChildFailed)
    assert len(set(rest)) == 2
    assert rest[1] == rest[2]
