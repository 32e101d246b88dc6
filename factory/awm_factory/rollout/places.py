"""Where the episodes of a rollout take place: throwaway containers, one that runs already, or a fleet's leases."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from awm_factory.client import AwmEnv, Fleet
from awm_factory.rollout.play import Chosen, Environment


class Room(Protocol):
    """One environment, open for episodes side by side."""

    def seat(self, chosen: Chosen) -> AbstractAsyncContextManager[Environment]:
        """Raises AwmError on entering, where no episode can be had."""
        ...


class Places(Protocol):
    def open(self, env_id: str) -> AbstractAsyncContextManager[Room]:
        """Raises AwmError on entering, where the environment can't be had."""
        ...


class Containers:
    """A throwaway container an environment, of the image `awm/<env_id>`."""

    def __init__(self, call_timeout: float, ttl: float) -> None:
        """`ttl`: seconds after which a container ends by itself, should nobody remove it."""
        self._call_timeout, self._ttl = call_timeout, ttl

    @asynccontextmanager
    async def open(self, env_id: str) -> AsyncIterator[Room]:
        async with AwmEnv.from_image(f"awm/{env_id}", ttl=self._ttl, timeout=self._call_timeout) as env:
            yield _Shared(env)


class Running:
    """One container that somebody else started."""

    def __init__(self, url: str, token: str | None, call_timeout: float) -> None:
        self._url, self._token, self._call_timeout = url, token, call_timeout

    @asynccontextmanager
    async def open(self, env_id: str) -> AsyncIterator[Room]:
        async with AwmEnv.connect(self._url, token=self._token, timeout=self._call_timeout) as env:
            yield _Shared(env)


class Leases:
    def __init__(self, fleet: Fleet, wait: float) -> None:
        """`wait`: seconds to queue for an episode."""
        self._fleet, self._wait = fleet, wait

    @asynccontextmanager
    async def open(self, env_id: str) -> AsyncIterator[Room]:
        yield _Leased(self._fleet, self._wait)


class _Shared:
    def __init__(self, env: AwmEnv) -> None:
        self._env = env

    def seat(self, chosen: Chosen) -> AbstractAsyncContextManager[Environment]:
        return self._env.beside()


class _Leased:
    def __init__(self, fleet: Fleet, wait: float) -> None:
        self._fleet, self._wait = fleet, wait

    def seat(self, chosen: Chosen) -> AbstractAsyncContextManager[Environment]:
        return self._fleet.lease(chosen.env_id, chosen.task_id, wait=self._wait)
