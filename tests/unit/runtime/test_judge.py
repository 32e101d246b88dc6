"""The judge has a confined child ready before it is asked, and is none the worse where that child is gone."""

import json
import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from awm_runtime import frames
from awm_runtime.contract import WORLD_TIME
from awm_runtime.frames import Frame
from awm_runtime.fresh import Fresh
from awm_runtime.links import hand_over
from runtime_support import COMPLETE_IF_LENT, LIBRARY_SQL, database


@pytest.fixture
def judge() -> Iterator[Fresh]:
    with Fresh.start("awm_runtime.judge") as process:
        frames.send(process.link, Frame({}, database(LIBRARY_SQL)))
        yield process


def asked(judge: Fresh, **ask: Any) -> Any:
    with hand_over(judge.link, Frame({"final_answer": None, "world_time": WORLD_TIME, "step": 0, **ask})) as ours:
        answered = frames.receive(ours)
    assert answered is not None
    return json.loads(answered[0].blob)


def verdict(judge: Fresh, code: str = COMPLETE_IF_LENT) -> Any:
    return asked(judge, op="verify", task_id=0, mode="code", code=code)


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def test_one_judge_gives_any_number_of_verdicts_and_diffs(judge: Fresh) -> None:
    told = [verdict(judge)["classification"], asked(judge, op="diff"), verdict(judge, "raise ValueError('no')")["error"]]
    assert told == ["others", {"tables": {}}, "the verifier failed: ValueError: no"]
    assert verdict(judge)["reward"] == 0.0


def test_a_child_that_is_gone_before_it_is_asked_is_replaced(judge: Fresh) -> None:
    assert verdict(judge)["classification"] == "others"
    for child in children(judge.process.pid):
        gone = os.pidfd_open(child)
        os.kill(child, signal.SIGKILL)
        select.select([gone], [], [])
        os.close(gone)
    assert verdict(judge)["classification"] == "others"


def test_the_child_that_waits_ends_with_the_judge(judge: Fresh) -> None:
    assert verdict(judge)["classification"] == "others"
    waiting = [os.pidfd_open(child) for child in children(judge.process.pid)]
    judge.process.kill()
    for descriptor in waiting:
        assert select.select([descriptor], [], [], 60)[0], "it lives on"
        os.close(descriptor)
