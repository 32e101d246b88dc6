"""The one layer of retries, and how many requests may be under way at once.

Rate limits are met by sending less (additive increase, multiplicative decrease, as TCP does), everything else by at most three
attempts. While other requests of the same endpoint get through, being rate limited is waiting for one's turn and counts as no
attempt: with 64 requests started at once against a narrow endpoint most would fail for good otherwise.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

import anyio
import tenacity

from awm_factory.errors import ModelError, ProviderError, RateLimited

ATTEMPTS: Final = 3
AT_ONCE: Final = 64
"""Both are AWM's own (`max_retry_num`, `concurrency_limit` in its client)."""
LONGEST_WAIT: Final = 900.0
"""Seconds. An endpoint that asks for more (a daily quota) is reported instead of waited for."""
_TURNS: Final = 100

T = TypeVar("T")


class AdaptiveLimit:
    """At most `most` at once, fewer while the endpoint says that it is too many."""

    def __init__(self, most: int = AT_ONCE) -> None:
        self.most = most
        self.passed = 0
        """Requests that got through so far."""
        self._limit = float(most)
        self._gate = anyio.CapacityLimiter(most)
        self._decreases = 0

    @property
    def limit(self) -> int:
        return int(self._limit)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        async with self._gate:
            decreases = self._decreases
            try:
                yield
            except RateLimited:
                # Requests of one burst are refused together, and say only once that it was too big.
                if decreases == self._decreases:
                    self._decreases += 1
                    self._set(max(1.0, self._limit / 2))
                raise
            self.passed += 1
            self._set(min(float(self.most), self._limit + 1 / self._limit))

    def _set(self, limit: float) -> None:
        self._limit = limit
        self._gate.total_tokens = int(limit)


@dataclass
class Tally:
    """What one call took, over all its attempts."""

    attempts: int = 0
    unmetered: int = 0
    started: float | None = None

    @property
    def seconds(self) -> float:
        return 0.0 if self.started is None else time.monotonic() - self.started


class Patience:
    def __init__(self, limit: AdaptiveLimit, backoff: float = 1.0) -> None:
        """`backoff`: seconds before the second attempt; doubled for the third, plus up to as much again by chance."""
        self.limit = limit
        self._backoff = tenacity.wait_exponential_jitter(multiplier=backoff, max=60 * backoff, jitter=backoff)

    async def call(self, send: Callable[[Tally], Awaitable[T]], again: Callable[[T], bool]) -> tuple[T, Tally]:
        """`send` until its result needs nothing `again`, or attempts run out; then the last result, or the last ModelError."""
        tally = Tally()
        counted = 0
        passed = -1

        async def attempt() -> T:
            nonlocal counted, passed
            try:
                async with self.limit.slot():
                    tally.started = tally.started or time.monotonic()
                    result = await send(tally)
            except RateLimited:
                counted += self.limit.passed == passed or passed < 0
                passed = self.limit.passed
                raise
            except ModelError:
                counted += 1
                raise
            counted += 1
            return result

        def stop(state: tenacity.RetryCallState) -> bool:
            return counted >= ATTEMPTS or state.attempt_number >= _TURNS or (_retry_after(state) or 0) > LONGEST_WAIT

        def wait(state: tenacity.RetryCallState) -> float:
            asked = _retry_after(state)
            return self._backoff(state) if asked is None else asked + self._backoff(state) / 10

        retrying = tenacity.AsyncRetrying(
            stop=stop,
            wait=wait,
            retry=tenacity.retry_if_exception(_worth_repeating) | tenacity.retry_if_result(again),
            retry_error_callback=_last,
        )
        try:
            return await retrying(attempt), tally
        except ModelError as error:
            error.attempts, error.unmetered = tally.attempts, tally.unmetered
            raise


def _worth_repeating(error: BaseException) -> bool:
    if isinstance(error, ProviderError):
        return error.transient
    return isinstance(error, ModelError) and error.retry == "same"


def _retry_after(state: tenacity.RetryCallState) -> float | None:
    error = state.outcome.exception() if state.outcome is not None else None
    return error.retry_after if isinstance(error, RateLimited | ProviderError) else None


def _last(state: tenacity.RetryCallState) -> object:
    assert state.outcome is not None
    return state.outcome.result()
