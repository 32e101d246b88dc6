"""The environments' containers as the lease service reaches them: found by DNS, asked over HTTP on kept connections."""

import asyncio
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol, Self
from urllib.parse import quote

import aiohttp
from yarl import URL

from awm_factory.client.wire import LeaseRequest

CONTROL, AGENT = 8000, 8001
Plane = Literal["control", "agent"]

KEEP: Final = 4.0
"""Seconds an idle connection is kept; older images drop one after 5, and what was on its way then would be lost."""
LIMIT: Final = 120.0
"""Seconds for any answer: a call may take 10 and a verdict 30, and both may have to wait for the container's turn."""
PROBE_LIMIT: Final = 5.0
SOLO: Final = 64
"""Episodes of an environment that keeps state in its modules; the runtime gives each a process, and no more than these."""

_INITIALIZE: Final = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "awm-lease", "version": "1"}},
    }
).encode()
_JSON: Final = {"content-type": "application/json"}
_PASSED: Final = ("mcp-session-id", "allow", "content-type")


class Gone(Exception):
    """Nothing answers at the address, or what did hung up."""


class Silent(Exception):
    """The container takes longer than we wait."""


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: Mapping[str, str]
    """Those that a caller needs."""

    def json(self) -> dict[str, object]:
        """The object in the body; empty where there is none."""
        found = self._parsed()
        return found if isinstance(found, dict) else {}

    def list(self) -> list[dict[str, object]]:
        found = self._parsed()
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []

    def _parsed(self) -> object:
        try:
            return json.loads(self.body)
        except ValueError:
            return None


@dataclass(frozen=True)
class Container:
    """One start of a container."""

    env_id: str
    address: str
    host: str
    """A name that resolves on agents' network as well."""
    boot: str
    """Differs from start to start."""
    capacity: int


class Containers(Protocol):
    async def resolve(self, service: str) -> list[str] | None:
        """Addresses of its replicas; None where the name server can't be asked just now."""

    async def probe(self, address: str) -> str:
        """Its boot. Raises Gone, Silent."""

    async def meet(self, address: str) -> Container:
        """Who answers at an address. Raises Gone, Silent."""

    async def ask(
        self,
        address: str,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        plane: Plane = "control",
    ) -> Answer:
        """Raises Gone, Silent."""


class HttpContainers:
    """Use within `async with`."""

    def __init__(self, token: str) -> None:
        """`token`: the containers' AWM_TOKEN."""
        self._token = {"authorization": f"Bearer {token}"}

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP, use_dns_cache=False)
        # Its own would be 30 s for a machine that is gone, and 5 minutes for the rest.
        limits = aiohttp.ClientTimeout(total=None, sock_connect=PROBE_LIMIT)
        self._http = aiohttp.ClientSession(
            timeout=limits, connector=connector, auto_decompress=False, skip_auto_headers=["user-agent", "accept"]
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    async def resolve(self, service: str) -> list[str] | None:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(service, None, family=socket.AF_INET, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            return None if error.errno == socket.EAI_AGAIN else []
        return sorted({str(info[4][0]) for info in found})

    async def probe(self, address: str) -> str:
        answer = await self.ask(address, "POST", "/mcp", _INITIALIZE, plane="agent", limit=PROBE_LIMIT)
        return answer.headers.get("mcp-session-id", "")

    async def meet(self, address: str) -> Container:
        boot = await self.probe(address)
        health = (await self.ask(address, "GET", "/health", limit=PROBE_LIMIT)).json()
        try:
            capacity, env_id = int(str(health["capacity"])), str(health["env_id"])
        except (LookupError, ValueError) as error:
            raise Gone(f"what answers is no environment: {error}") from error
        return Container(
            env_id=env_id,
            address=address,
            host=await self._host(address),
            boot=boot,
            capacity=min(capacity, SOLO) if health.get("module_state") else capacity,
        )

    async def _host(self, address: str) -> str:
        """The engine's name server knows `<container>.<network>`, and the first part on every network the container is on."""
        try:
            name, _ = await asyncio.get_running_loop().getnameinfo((address, 0), socket.NI_NAMEREQD)
        except socket.gaierror:
            return address
        return name.rpartition(".")[0] or name

    async def ask(
        self,
        address: str,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        plane: Plane = "control",
        limit: float = LIMIT,
    ) -> Answer:
        sent = {**(_JSON if body else {}), **(headers or {}), **(self._token if plane == "control" else {})}
        # Bytes of a path reach the container as they came; it compares them so.
        url = URL(f"http://{address}:{self.port(plane)}{path}", encoded=True)
        try:
            async with asyncio.timeout(limit):
                return await self._once_more(method, url, body, sent)
        except TimeoutError as error:
            raise Silent(f"no answer within {limit:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise Gone(str(error) or type(error).__name__) from error

    def port(self, plane: Plane) -> int:
        return CONTROL if plane == "control" else AGENT

    async def _once_more(self, method: str, url: URL, body: bytes, headers: dict[str, str]) -> Answer:
        """A kept connection that breaks before a byte came back was idle too long, and the request was never read."""
        try:
            return await self._once(method, url, body, headers)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            return await self._once(method, url, body, headers)

    async def _once(self, method: str, url: URL, body: bytes, headers: dict[str, str]) -> Answer:
        async with self._http.request(method, url, data=body or None, headers=headers, allow_redirects=False) as reply:
            content = await reply.read()
            kept = {name: value for name in _PASSED if (value := reply.headers.get(name)) is not None}
            return Answer(reply.status, content, kept)


def new_episode(request: LeaseRequest) -> bytes:
    asked = {name: value for name, value in (("task_id", request.task_id), ("seed", request.seed)) if value is not None}
    return json.dumps(asked).encode()


def episode_path(episode_id: str, rest: str = "") -> str:
    return f"/episodes/{quote(episode_id, safe='')}{rest}"
