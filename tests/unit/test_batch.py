"""run_batch and LanePool: one environment's failure is a row, one lane's death is a new lane."""

import queue
import threading

import pytest

from awm_factory.build.pipeline import Clock, run_batch
from awm_factory.build.report import Row, Silent
from awm_factory.bundle import table_of
from awm_factory.certify.statements import numbered
from awm_factory.errors import BuildError, SandboxError
from awm_factory.sandbox.pool import LanePool
from awm_runtime.contract import CheckFailed, LoadRequest, ReplyEnvelope


def test_rows_come_back_in_the_order_asked_for_and_one_failure_stops_no_other() -> None:
    def one(env_id: str, clock: Clock) -> Row:
        with clock.stage("build"):
            if env_id == "b":
                raise BuildError("no such package; name another")
            if env_id == "c":
                raise ValueError("a fault of our own")
        return Row(env_id, "built", seconds=clock.seconds)

    report = run_batch(["a", "b", "c", "d"], one, 3, Silent())
    assert [(row.env_id, row.outcome) for row in report.rows] == [
        ("a", "built"),
        ("b", "failed"),
        ("c", "failed"),
        ("d", "built"),
    ]
    assert not report.ok and "no such package" in (report.rows[1].error or "") and "ValueError" in (report.rows[2].error or "")
    assert "build" in report.rows[0].seconds


def test_an_interrupt_ends_what_runs_begins_nothing_new_and_goes_on() -> None:
    running, ended, begun = threading.Event(), threading.Event(), []

    def one(env_id: str, clock: Clock) -> Row:
        begun.append(env_id)
        with clock.stage("smoke"):
            if env_id == "a":
                raise KeyboardInterrupt
            running.set()
            assert ended.wait(10)
        with clock.stage("tag"):
            begun.append("tagged")
        return Row(env_id, "built")

    with pytest.raises(KeyboardInterrupt):
        run_batch(["a", "b", "c", "d"], one, 2, Silent(), on_interrupt=ended.set)
    assert "tagged" not in begun and "d" not in begun


class FakeLane:
    """Answers once, then is gone; or never answers."""

    def __init__(self, answers: int) -> None:
        self.lines: queue.Queue[bytes | None] = queue.Queue()
        self.closed = 0
        self._left = answers

    def write(self, line: bytes) -> None:
        if self._left == 0:
            self.lines.put(None)
            return
        self._left -= 1
        number = int(line.split(b'"id":')[1].split(b",")[0])
        reply = CheckFailed(reason="timeout", message="…")
        self.lines.put(ReplyEnvelope(id=number, reply=reply).model_dump_json().encode())

    def last_words(self) -> str:
        return "Killed"

    def close(self) -> None:
        self.closed += 1


REQUEST = LoadRequest(world_time="2026-01-01T00:00:00Z", statements_schema=[], statements_data=[])


def test_a_lane_that_died_is_closed_and_replaced_without_the_caller_noticing() -> None:
    lanes = [FakeLane(1), FakeLane(5)]
    opened = iter(lanes)
    pool = LanePool("process", lambda: next(opened), 1)
    for _ in range(3):
        assert isinstance(pool.check(REQUEST, 1.0), CheckFailed)
    assert (lanes[0].closed, lanes[1].closed) == (1, 0)
    pool.close()
    assert lanes[1].closed == 1


def test_a_sandbox_that_dies_twice_says_its_last_words() -> None:
    lanes: list[FakeLane] = []

    def open_lane() -> FakeLane:
        lanes.append(FakeLane(0))
        return lanes[-1]

    pool = LanePool("process", open_lane, 1)
    with pytest.raises(SandboxError, match="Killed"):
        pool.check(REQUEST, 1.0)
    assert [lane.closed for lane in lanes] == [1, 1]


def test_a_closed_sandbox_refuses_work() -> None:
    pool = LanePool("process", lambda: FakeLane(9), 1)
    pool.close()
    with pytest.raises(SandboxError, match="closed"):
        pool.check(REQUEST, 1.0)


@pytest.mark.parametrize(
    ("sql", "table"),
    [
        ("CREATE TABLE IF NOT EXISTS loans (id INTEGER)", "loans"),
        ('create table main."odd name" (id)', "odd name"),
        ("-- who\nCREATE UNIQUE INDEX i ON loans(id)", "loans"),
        ("CREATE TRIGGER t AFTER INSERT ON loans BEGIN SELECT 1; END", "loans"),
        ("/* x */ INSERT OR REPLACE INTO `loans` VALUES (1)", "loans"),
        ("UPDATE loans SET id = 2", "loans"),
        ("PRAGMA foreign_keys = ON", ""),
        ("CREATE VIRTUAL TABLE docs USING fts5(body)", "docs"),
    ],
)
def test_the_table_of_a_statement_is_read_from_its_head(sql: str, table: str) -> None:
    assert table_of(sql) == table


def test_statements_are_numbered_by_table() -> None:
    found = numbered(["INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)", "INSERT INTO a VALUES (2)"])
    assert [(s.table, s.index) for s in found] == [("a", 0), ("b", 0), ("a", 1)]
