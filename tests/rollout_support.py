"""A kiosk that sells newspapers, without a container, and policies that say what a test wants them to."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from awm_factory.client import CallResult, Tool, Verdict
from awm_factory.errors import AwmError, UsageError
from awm_factory.llm.protocol import ModelReply, ToolUse, Usage
from awm_factory.rollout import Chosen, Turn
from awm_runtime.contract import Classification, StateDiff, VerifierMode

NUMBER = {"type": "object", "properties": {"copies": {"type": "integer"}}, "required": ["copies"]}
TOOLS = [Tool("sell", "Sell copies.", NUMBER), Tool("count", "Copies left.", {"type": "object", "properties": {}})]


class Kiosk:
    """Task n is to sell n copies; complete when just so many are gone and the answer is not empty."""

    def __init__(self) -> None:
        self.copies = 10
        self.task_id: int | None = None
        self.seed: int | None = None
        self.internal_errors = 0
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.fails: dict[str, AwmError | CallResult] = {}
        """By tool, or `submit`."""

    async def reset(self, task_id: int | None = None, seed: int | None = None) -> str | None:
        self.copies, self.task_id, self.seed, self.internal_errors = 10, task_id, seed, 0
        return f"Sell {task_id} copies."

    async def tools(self) -> list[Tool]:
        return TOOLS

    async def call(self, name: str, arguments: dict[str, Any]) -> CallResult:
        self.calls.append((name, arguments))
        failure = self.fails.get(name)
        if isinstance(failure, AwmError):
            raise failure
        if failure is not None:
            self.internal_errors += failure.fault == "environment"
            return failure
        if name == "sell":
            self.copies -= arguments["copies"]
        return CallResult(json.dumps({"copies": self.copies}))

    async def submit(self, answer: str | None = None, mode: VerifierMode | None = None) -> Verdict:
        failure = self.fails.get("submit")
        if isinstance(failure, AwmError):
            raise failure
        if mode == "sql":
            raise UsageError("this task has no sql verifier")
        if failure is not None:
            return Verdict(mode="code", error=failure.text)
        done = bool(answer) and self.copies == 10 - (self.task_id or 0)
        word: Classification = "complete" if done else "others"
        return Verdict(mode="code", classification=word, reward=float(done), internal_errors=self.internal_errors)

    async def diff(self) -> StateDiff:
        return StateDiff(tables={})


class Street:
    """Kiosks without end; keeps those it opened."""

    def __init__(self, closed: Sequence[str] = ()) -> None:
        self.kiosks: list[Kiosk] = []
        self.closed = closed
        self.open_now = self.most_open = 0

    @asynccontextmanager
    async def open(self, env_id: str) -> AsyncIterator["Street"]:
        if env_id in self.closed:
            raise UsageError(f"there is no image awm/{env_id}")
        yield self

    @asynccontextmanager
    async def seat(self, chosen: Chosen) -> AsyncIterator[Kiosk]:
        self.open_now += 1
        self.most_open = max(self.most_open, self.open_now)
        self.kiosks.append(kiosk := Kiosk())
        try:
            yield kiosk
        finally:
            self.open_now -= 1


def call(tool: str, arguments: str = "{}", call_id: str = "c1") -> ModelReply:
    use = ToolUse(id=call_id, name=tool, arguments=arguments)
    return ModelReply(model="fake", tool_calls=(use,), usage=Usage(prompt=10, completion=2))


def says(text: str, **fields: Any) -> ModelReply:
    return ModelReply(model="fake", raw=text, usage=Usage(prompt=10, completion=2), **fields)


class Says:
    """Replies in their order, or what a function makes of the turn; keeps the turns it was asked."""

    def __init__(self, *replies: ModelReply | Exception, by: Callable[[Turn], ModelReply] | None = None) -> None:
        self._replies, self._by = list(replies), by
        self.turns: list[Turn] = []

    @property
    def name(self) -> str:
        return "says"

    async def act(self, turn: Turn) -> ModelReply:
        self.turns.append(turn)
        reply = self._by(turn) if self._by else self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


def seller() -> Says:
    """Sells what its task wants, then says so."""

    def reply(turn: Turn) -> ModelReply:
        return call("sell", json.dumps({"copies": turn.task_id})) if turn.number == 0 else says("Sold.")

    return Says(by=reply)
