"""The judge: a model that classifies a finished episode, by evidence or without.

Given a `MeteredModel`, its costs are in the ledger and its results are kept by content: an episode judged again costs nothing.
"""

import asyncio
from collections import Counter
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from awm_factory.errors import Filtered, Malformed, ModelError, Refused, UsageError
from awm_factory.llm.answers import json_answer
from awm_factory.llm.protocol import Message, Model, ModelRequest, Purpose
from awm_factory.reward.case import Case
from awm_factory.reward.judgement import Judgement, Mode, Vote

MAX_TOKENS: Final = 16_384
"""Room for a model that thinks before it answers; the answer itself takes about 200."""
_TRIES: Final = 3
"""Of one vote, where the answer can't be used."""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    reason: str
    classification: Literal["complete", "incomplete", "agent_error", "server_error"]


class Judge:
    def __init__(self, model: Model, votes: int = 1) -> None:
        """More than half of the `votes` asked for must agree, so an even number only makes that harder."""
        if votes < 1:
            raise UsageError("--judge-votes must be at least 1")
        self._model = model
        self._votes = votes

    async def judge(self, case: Case, mode: Mode = "sql") -> Judgement:
        """What goes wrong in judging one case is a judgement without reward, and no exception. BudgetSpent passes through."""
        if mode == "code":
            raise UsageError("code mode needs no judge; see from_code_verifier")
        if mode == "sql" and case.evidence_error is not None:
            return Judgement.failed(mode, f"no reward, the verifier failed: {case.evidence_error}")
        try:
            messages = case.messages(mode)
        except ValueError as error:
            return Judgement.failed(mode, f"no reward: {error}")
        votes = tuple(await asyncio.gather(*(self._vote(case, messages, number) for number in range(self._votes))))
        return self._count(mode, votes)

    async def _vote(self, case: Case, messages: tuple[Message, ...], number: int) -> Vote:
        cause = ""
        for attempt in range(1, _TRIES + 1):
            task = "" if case.task_id is None else str(case.task_id)
            request = ModelRequest(
                messages=messages,
                max_tokens=MAX_TOKENS,
                # One opinion is asked for as steadily as may be; several are worth something only where they may differ.
                temperature=0.0 if self._votes == 1 else 1.0,
                sample=number + self._votes * (attempt - 1),
                purpose=Purpose(env_id=case.env_id, stage="judge", item=task, attempt=attempt),
            )
            try:
                answer = _Answer.model_validate(json_answer((await self._model.complete(request)).text))
                return Vote(classification=answer.classification, reason=answer.reason)
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                cause = str(Malformed(f"the judge's answer does not fit: {first['loc']}: {first['msg']}"))
            except ModelError as error:
                cause = str(error)
                if error.retry == "never" or (isinstance(error, Filtered | Refused) and attempt > 1):
                    break
        return Vote(classification=None, reason=cause)

    def _count(self, mode: Mode, votes: tuple[Vote, ...]) -> Judgement:
        counts = Counter(vote.classification for vote in votes if vote.classification is not None)
        if not counts:
            return Judgement.failed(mode, f"no reward, the judge failed: {votes[0].reason}", votes)
        classification, agreeing = counts.most_common(1)[0]
        if agreeing * 2 <= self._votes:
            said = ", ".join(vote.classification or "no answer" for vote in votes)
            return Judgement.failed(mode, f"no reward: the judge is undecided ({said})", votes)
        reason = next(vote.reason for vote in votes if vote.classification == classification)
        return Judgement.of(mode, classification, reason, votes)
