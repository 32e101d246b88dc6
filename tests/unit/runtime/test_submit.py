"""One answer ends an episode, whoever else answers meanwhile."""

import asyncio
from typing import Any, cast

import pytest

from awm_runtime.episode import Refused, Running
from awm_runtime.episodes import Episodes
from awm_runtime.openenv import SUBMIT, CallToolAction, Session
from awm_runtime.wire import Verdict

ANSWER = CallToolAction(type="call_tool", tool_name=SUBMIT, arguments={"answer": "42"})


class Judged:
    """Of the episodes, what a session asks when it is answered; the verdict comes when the test says so."""

    def __init__(self, refused: bool = False) -> None:
        self.may_judge = asyncio.Event()
        self.refused = refused

    async def verify(self, _episode: Running, _answer: str | None, _mode: Any) -> Verdict:
        await self.may_judge.wait()
        if self.refused:
            raise Refused(409, "the episode has no task")
        return Verdict(mode="code", classification="complete", reward=1.0)


def test_two_answers_at_once_are_rewarded_once() -> None:
    async def play() -> list[Any]:
        judged = Judged()
        session = Session(cast(Episodes, judged), Running("0" * 32, 0, 0))
        answers = [asyncio.create_task(session.step(ANSWER)) for _ in range(2)]
        await asyncio.sleep(0)
        judged.may_judge.set()
        return await asyncio.gather(*answers, return_exceptions=True)

    first, second = asyncio.run(play())
    assert (first.reward, first.done) == (1.0, True)
    assert isinstance(second, Refused)


def test_an_answer_that_can_not_be_judged_ends_nothing() -> None:
    async def play() -> bool:
        judged = Judged(refused=True)
        judged.may_judge.set()
        session = Session(cast(Episodes, judged), Running("0" * 32, None, 0))
        with pytest.raises(Refused):
            await session.step(ANSWER)
        return session.episode.ended

    assert asyncio.run(play()) is False
