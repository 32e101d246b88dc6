"""The client without async: the same names, each a call into one event loop that runs in a thread of its own.

    from awm_factory.client.sync import AwmEnv

    with AwmEnv.connect("http://127.0.0.1:8000") as env:
        env.reset(task_id=0)

Any thread may call; heartbeats go on while the caller computes. A process that forks opens its environments afterwards.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Mapping
from functools import cache
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from awm_factory import client
from awm_factory.client.env import CALL_LIMIT
from awm_factory.client.results import CallResult, Tool, Verdict
from awm_factory.client.wire import LEASE_TTL, WAIT
from awm_runtime.contract import StateDiff, VerifierMode

R = TypeVar("R")

_one: Final = threading.Lock()


class AwmEnv:
    """See `awm_factory.client.AwmEnv`."""

    def __init__(self, env: client.AwmEnv) -> None:
        """Use `from_image`, `connect` or `Fleet.lease`."""
        self._env = env

    @classmethod
    def connect(cls, url: str, *, token: str | None = None, timeout: float = CALL_LIMIT) -> "AwmEnv":
        return cls(client.AwmEnv.connect(url, token=token, timeout=timeout))

    @classmethod
    def from_image(cls, image: str, *, ttl: float = 600.0, timeout: float = CALL_LIMIT, memory: str = "2g") -> "AwmEnv":
        return cls(client.AwmEnv.from_image(image, ttl=ttl, timeout=timeout, memory=memory))

    def beside(self) -> "AwmEnv":
        return AwmEnv(self._env.beside())

    def __enter__(self) -> Self:
        _wait(self._env.__aenter__)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        _wait(self._env.close)

    def reset(self, task_id: int | None = None, seed: int | None = None) -> str | None:
        return _wait(self._env.reset, task_id, seed)

    @property
    def instruction(self) -> str | None:
        return self._env.instruction

    @property
    def task_id(self) -> int | None:
        return self._env.task_id

    @property
    def episode_id(self) -> str:
        return self._env.episode_id

    @property
    def agent_url(self) -> str:
        return self._env.agent_url

    def tools(self) -> list[Tool]:
        return _wait(self._env.tools)

    def openai_tools(self) -> list[dict[str, Any]]:
        return _wait(self._env.openai_tools)

    def call(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> CallResult:
        return _wait(self._env.call, name, arguments)

    def submit(self, answer: str | None = None, mode: VerifierMode | None = None) -> Verdict:
        return _wait(self._env.submit, answer, mode)

    def fork(self) -> "AwmEnv":
        return AwmEnv(_wait(self._env.fork))

    def diff(self) -> StateDiff:
        return _wait(self._env.diff)

    def database(self) -> bytes:
        return _wait(self._env.database)


class Fleet:
    """See `awm_factory.client.Fleet`."""

    def __init__(self, fleet: client.Fleet) -> None:
        """Use `connect`."""
        self._fleet = fleet

    @classmethod
    def connect(cls, url: str, token: str | None = None, *, timeout: float = CALL_LIMIT) -> "Fleet":
        return cls(client.Fleet.connect(url, token, timeout=timeout))

    def lease(
        self, env_id: str, task_id: int | None = None, *, seed: int | None = None, ttl: float = LEASE_TTL, wait: float = WAIT
    ) -> AwmEnv:
        return AwmEnv(self._fleet.lease(env_id, task_id, seed=seed, ttl=ttl, wait=wait))

    def status(self) -> dict[str, Any]:
        return _wait(self._fleet.status)


def _wait(work: Callable[..., Coroutine[Any, Any, R]], *arguments: Any) -> R:
    """Interrupted while waiting, the work is called off too."""
    with _one:
        loop = _loop()
    future = asyncio.run_coroutine_threadsafe(work(*arguments), loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """One for all environments of this process. Its thread ends with the process, so nobody has to end it."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="awm-client", daemon=True).start()
    return loop


os.register_at_fork(after_in_child=_loop.cache_clear)
