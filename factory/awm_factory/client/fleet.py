"""A fleet as a trainer sees it: a lease service that hands out episodes and wants to hear from their holders."""

import asyncio
import random
import secrets
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urljoin

from awm_factory.client.answers import good, read
from awm_factory.client.connections import Connections, Reply, encoded
from awm_factory.client.env import CALL_LIMIT, AwmEnv
from awm_factory.client.places import Held
from awm_factory.client.wire import LEASE_TTL, WAIT, Lease, LeaseRequest, Seat
from awm_factory.errors import AwmError, EpisodeLost, InfrastructureFault

PATIENCE: Final = 15.0
"""Seconds in which a lease service may be restarted without anybody noticing."""
BEATS: Final = 3
"""Heartbeats in a lease's time to live."""


class Fleet:
    """Episodes of many environments from one address.

        fleet = Fleet.connect("http://127.0.0.1:8700", token)
        async with fleet.lease("playhouse_box_office", task_id=0) as env:
            ...

    It holds nothing itself, so it need not be closed; each lease ends with its `async with`.
    """

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        """Use `connect`."""
        self.url, self.token, self.timeout = url.rstrip("/") + "/", token, timeout
        self.name = secrets.token_hex(8)
        """Whom the service serves in turn with others."""

    @classmethod
    def connect(cls, url: str, token: str | None = None, *, timeout: float = CALL_LIMIT) -> "Fleet":
        """By the address of the lease service and the fleet's token. `timeout`: seconds for an answer, queueing aside."""
        return cls(url, token, timeout)

    def lease(
        self, env_id: str, task_id: int | None = None, *, seed: int | None = None, ttl: float = LEASE_TTL, wait: float = WAIT
    ) -> AwmEnv:
        """An environment whose episode has begun once `async with` is entered; `instruction` is there then.

        `wait`: seconds to queue where the fleet is full. Should this process die, the episode is free again after `ttl` seconds.
        """
        return AwmEnv(LeasePlace(self, env_id, ttl, wait), asked=(task_id, seed), at_once=True)

    async def status(self) -> dict[str, Any]:
        """Containers, scenarios, leases and queue, as the service tells them."""
        connections = Connections(self.timeout, PATIENCE, patient_with=self.url)
        try:
            answer: dict[str, Any] = good(await connections.ask("GET", f"{self.url}status", token=self.token, again=True)).json()
            return answer
        finally:
            await connections.close()


class LeasePlace:
    """Episodes under leases, one at a time, each kept alive by heartbeats for as long as it is held."""

    def __init__(self, fleet: Fleet, env_id: str, ttl: float, wait: float) -> None:
        self.fleet, self.env_id, self.ttl, self.wait = fleet, env_id, ttl, wait
        self.token = fleet.token
        self.connections = Connections(fleet.timeout, PATIENCE, patient_with=fleet.url)
        self._beats: dict[str, asyncio.Task[None]] = {}

    async def start(self) -> None:
        """There is nothing to prepare."""

    async def stop(self) -> None:
        for lease_id in list(self._beats):
            self._be_silent(lease_id)
        await self.connections.close()

    async def take(self, task_id: int | None, seed: int | None) -> Held:
        """Raises InfrastructureFault where the fleet stays full, UsageError for an environment that it does not serve."""
        now = asyncio.get_running_loop().time
        give_up = now() + self.wait
        while True:
            left = max(0.0, give_up - now())
            asked = LeaseRequest(env_id=self.env_id, task_id=task_id, seed=seed, ttl=self.ttl, wait=left)
            reply = await self._ask("POST", "leases", asked.model_dump(), longer=left)
            pause = _seconds(reply.headers.get("Retry-After"))
            if reply.status not in (429, 503) or now() + pause > give_up:
                break
            await asyncio.sleep(pause)
        lease = read(reply, Lease)
        self._beats[lease.lease_id] = asyncio.create_task(self._beat(lease.lease_id, lease.ttl))
        return self._held(lease, lease.lease_id)

    async def fork(self, held: Held) -> Held:
        reply = await self.connections.ask("POST", f"{held.control_url}/fork", token=self.token)
        return replace(self._held(read(reply, Seat), held.lease_id), twin=True)

    async def drop(self, held: Held) -> None:
        if held.twin:
            reply = await self.connections.ask("DELETE", held.control_url, token=self.token)
        else:
            self._be_silent(held.lease_id)
            reply = await self._ask("DELETE", f"leases/{held.lease_id}")
        if reply.status not in (404, 410):
            good(reply)

    async def explain(self, held: Held, error: EpisodeLost) -> EpisodeLost:
        """An episode that is gone may have been its container's end, or its lease's."""
        try:
            good(await self._ask("GET", f"leases/{held.lease_id}"))
        except EpisodeLost as reason:
            self._be_silent(held.lease_id)
            return reason
        except AwmError:
            return error
        return error

    async def _beat(self, lease_id: str, ttl: float) -> None:
        while True:
            await asyncio.sleep(ttl / BEATS * random.uniform(0.8, 1.0))
            try:
                good(await self._ask("POST", f"leases/{lease_id}/heartbeat", {"ttl": ttl}))
            except InfrastructureFault as error:
                if isinstance(error, EpisodeLost):
                    return

    def _be_silent(self, lease_id: str | None) -> None:
        if lease_id is not None and (beat := self._beats.pop(lease_id, None)) is not None:
            beat.cancel()

    def _held(self, seat: Seat, lease_id: str | None) -> Held:
        return Held(
            episode_id=seat.episode_id,
            task_id=seat.task_id,
            instruction=seat.instruction,
            agent_url=urljoin(self.fleet.url, seat.agent_url),
            agent_token=None,
            control_url=urljoin(self.fleet.url, seat.control_url).rstrip("/"),
            lease_id=lease_id,
        )

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None = None, *, longer: float = 0.0) -> Reply:
        """Of the service itself. A lease whose asker is gone is given back, so asking for one twice does no harm either."""
        sent = None if body is None else encoded(body)
        return await self.connections.ask(
            method, self.fleet.url + path, sent, token=self.token, longer=longer, client=self.fleet.name, again=True
        )


def _seconds(retry_after: str | None) -> float:
    """Of a Retry-After header; a service that gives none, or a date, is asked again after a second."""
    try:
        return max(0.05, float(retry_after or 1.0))
    except ValueError:
        return 1.0
