"""Between the stages and an endpoint: the store's replies, the ledger and the budget.

A reply that was paid for is committed, with its cost, before anyone sees it, so a killed run that is started again sends only
what it had not finished. The same request under way twice is sent once.
"""

import asyncio
import weakref
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from awm_factory.errors import BudgetSpent, ModelError
from awm_factory.llm.estimate import PLAN
from awm_factory.llm.prices import Prices
from awm_factory.llm.protocol import (
    Embedder,
    EmbeddingReply,
    EmbeddingRequest,
    Model,
    ModelReply,
    ModelRequest,
    Purpose,
    Usage,
)

_CHARACTERS_PER_TOKEN: Final = 3.5
_PASSING: Final = {"empty", "no_choices"}
"""Outcomes that are paid for and worth another try of the very same request, so they are counted and not kept."""

ReplyT = TypeVar("ReplyT", ModelReply, EmbeddingReply)


_What = ModelReply | EmbeddingReply | ModelError


class Calls(Protocol):
    """Where replies and figures are kept; `store.RunCalls` is one."""

    def reply(self, key: str) -> str | None: ...

    def add_call(self, key: str, reply: str | None, figures: Mapping[str, Any]) -> None:
        """Both in one transaction."""
        ...

    def spent(self) -> float:
        """USD so far."""
        ...


class Budget:
    """Lets a call begin only while what is spent, and what it and those under way are expected to cost, stays within `usd`.

    What an answer costs is known afterwards only. A call is expected to cost what the calls of its stage cost on average; before
    any has come back, as much as it could at most. So one call may be dearer than thought, never a whole burst of them.
    """

    def __init__(self, usd: float | None = None, spent: float = 0.0) -> None:
        self.usd = usd
        self.spent = spent
        self._under_way: list[float] = []
        self._settled = asyncio.Condition()

    @asynccontextmanager
    async def admit(self, cost: Callable[[], "Expected"]) -> AsyncIterator[None]:
        """Waits for calls under way to settle where it is tight. Raises BudgetSpent where none of them could make room."""
        if self.usd is None:
            yield
            return
        async with self._settled:
            while self.spent + sum(self._under_way) + cost().careful > self.usd:
                if self._under_way:
                    await self._settled.wait()
                elif self.spent + cost().likely <= self.usd:
                    break
                else:
                    raise BudgetSpent(
                        f"${self.spent:.2f} of the budget of ${self.usd:.2f} is spent and another call may cost "
                        f"${cost().likely:.2f}; what is finished is kept: run the same command with a larger --budget to go on"
                    )
            reserved = cost().careful
            self._under_way.append(reserved)
        try:
            yield
        finally:
            self._under_way.remove(reserved)
            async with self._settled:
                self._settled.notify_all()


@dataclass(frozen=True)
class Expected:
    """USD. Both 0 where the price is unknown, since then no budget can be set."""

    likely: float
    careful: float


class Ledger:
    """What Metered models of one run share."""

    def __init__(self, calls: Calls, prices: Prices, budget: Budget | None = None) -> None:
        self.calls = calls
        self.prices = prices
        self.budget = budget or Budget()
        self._locks: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()
        self._answers: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])

    @classmethod
    async def open(cls, calls: Calls, prices: Prices, models: list[str], budget: float | None = None) -> "Ledger":
        """Counts what the run spent before. Raises ConfigError where a budget is set and a model's price is unknown."""
        if budget is not None:
            for model in models:
                prices.require(model)
        return cls(calls, prices, Budget(budget, await asyncio.to_thread(calls.spent)))

    async def answer(
        self,
        key: str,
        purpose: Purpose,
        cost: Callable[[], Expected],
        kind: type[ReplyT],
        model: str,
        ask: Callable[[], Awaitable[ReplyT]],
    ) -> ReplyT:
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            kept = await asyncio.to_thread(self.calls.reply, key)
            if kept is not None:
                reply = kind.model_validate_json(kept).model_copy(update={"cached": True})
                await self._enter(key, None, purpose, model, reply)
                return reply
            async with self.budget.admit(cost):
                try:
                    reply = await ask()
                except ModelError as error:
                    await self._enter(key, None, purpose, model, error)
                    raise
                keep = None if getattr(reply, "outcome", "ok") in _PASSING else reply.model_dump_json()
                # Shielded: an answer that is there must reach the store even when its asker is cancelled.
                await asyncio.shield(self._enter(key, keep, purpose, model, reply))
            return reply

    def expected(self, model: str, request: ModelRequest) -> Expected:
        prompt = round(sum(len(message.content) for message in request.messages) / _CHARACTERS_PER_TOKEN)

        def usd(completion: float) -> float:
            return self.prices.usd(model, Usage(prompt=prompt, completion=round(completion))) or 0.0

        answers, tokens = self._answers[request.purpose.stage]
        if answers:
            return Expected(usd(tokens / answers), usd(tokens / answers))
        planned = next((plan.completion for plan in PLAN if plan.stage == request.purpose.stage), 2_000)
        return Expected(usd(min(planned, request.max_tokens)), usd(request.max_tokens))

    async def _enter(self, key: str, keep: str | None, purpose: Purpose, model: str, what: _What) -> None:
        failed = isinstance(what, ModelError)
        hit = not isinstance(what, ModelError) and what.cached
        usage = what.usage if not isinstance(what, ModelError) and not hit else Usage()
        usd = self.prices.usd(model, usage) if usage != Usage() else 0.0
        figures = purpose.model_dump() | {
            "model": model,
            "outcome": type(what).__name__ if failed else getattr(what, "outcome", "ok"),
            "failed": failed,
            "hit": hit,
            "requests": 0 if hit else what.attempts,
            "unmetered": 0 if hit else what.unmetered,
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "cached_tokens": usage.cached,
            "usd": usd,
            "seconds": 0.0 if hit or isinstance(what, ModelError) else what.latency,
        }
        self.budget.spent += usd or 0.0
        if usage.completion:
            self._answers[purpose.stage][0] += 1
            self._answers[purpose.stage][1] += usage.completion
        await asyncio.to_thread(self.calls.add_call, key, keep, figures)


class MeteredModel:
    def __init__(self, inner: Model, ledger: Ledger) -> None:
        self._inner = inner
        self._ledger = ledger

    @property
    def name(self) -> str:
        return self._inner.name

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Raises BudgetSpent beside ModelError."""
        cost = partial(self._ledger.expected, self.name, request)
        ask = partial(self._inner.complete, request)
        return await self._ledger.answer(request.key(self.name), request.purpose, cost, ModelReply, self.name, ask)


class MeteredEmbedder:
    def __init__(self, inner: Embedder, ledger: Ledger) -> None:
        self._inner = inner
        self._ledger = ledger

    @property
    def name(self) -> str:
        return self._inner.name

    async def embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        """Raises BudgetSpent beside ModelError."""
        prompt = Usage(prompt=round(sum(map(len, request.texts)) / _CHARACTERS_PER_TOKEN))
        usd = self._ledger.prices.usd(self.name, prompt) or 0.0
        ask = partial(self._inner.embed, request)
        cost = partial(Expected, usd, usd)
        return await self._ledger.answer(request.key(self.name), request.purpose, cost, EmbeddingReply, self.name, ask)
