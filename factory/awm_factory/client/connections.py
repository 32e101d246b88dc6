"""Keep-alive connections to servers, shared by all that speak to one from the same event loop.

The runtime's MCP is stateless JSON, so a tool call is one POST over a connection that is open already: no handshake, no session.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

import aiohttp

from awm_factory.errors import InfrastructureFault, UsageError

AT_ONCE: Final = 128
"""Requests to one server; more wait their turn here, where waiting costs nothing."""
KEEP: Final = 4.0
"""Seconds an idle connection is kept. Older images drop one after 5, and what is on its way then would be lost."""
CONNECT: Final = 10.0
"""Seconds for a connection to be made."""
PAUSE: Final = 0.1
"""Seconds between two attempts to reach a server that is not there."""


@dataclass(frozen=True)
class Reply:
    """An answer with whatever status."""

    request: str
    """`POST http://…`, for messages."""
    status: int
    headers: Mapping[str, str]
    """Names in any case."""
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")

    def json(self) -> Any:
        """Raises ValueError."""
        return json.loads(self.body)


class _Origin:
    def __init__(self) -> None:
        self.users = 0
        # Proxies of the environment are for the internet, not for containers and fleets: aiohttp asks for none by itself.
        self.http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=AT_ONCE, keepalive_timeout=KEEP), cookie_jar=aiohttp.DummyCookieJar()
        )


_origins: "WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Origin]]" = WeakKeyDictionary()


class Connections:
    """What one user holds of them, until `close`."""

    def __init__(self, timeout: float, patience: float = 0.0, *, patient_with: str = "") -> None:
        """`timeout`: seconds for an answer. `patience`: seconds in which the server of the URL `patient_with` may be away; a
        request that could not even be sent is tried again.
        """
        self.timeout, self.patience = timeout, patience
        self._patient_with = address(patient_with)
        self._held: dict[str, _Origin] = {}

    async def ask(
        self,
        method: str,
        url: str,
        body: bytes | None = None,
        *,
        token: str | None = None,
        longer: float = 0.0,
        client: str | None = None,
        again: bool = False,
    ) -> Reply:
        """One request, whatever the status of its answer. One that was sent is never sent again, as it may have been carried out,
        unless `again` says that this does no harm.

        `longer`: seconds to wait beyond the usual. `client`: who asks, so that a lease service is fair to all. Raises
        InfrastructureFault, UsageError.
        """
        headers = {"authorization": f"Bearer {token}"} if token else {}
        if client is not None:
            headers["awm-client"] = client
        if body is not None:
            headers["content-type"] = "application/json"
        limit = self.timeout + longer
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT, sock_read=limit)
        now = asyncio.get_running_loop().time
        patience = self.patience if address(url) == self._patient_with else 0.0
        give_up: float | None = None  # counted from when it is away, which may be after a long wait in its queue
        while True:
            try:
                asked = self._to(url).http.request(
                    method, url, data=body, headers=headers, timeout=timeout, allow_redirects=False
                )
                async with asked as reply:
                    return Reply(f"{method} {url}", reply.status, reply.headers, await reply.read())
            except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
                give_up = give_up or now() + patience
                if now() + PAUSE > give_up:
                    raise InfrastructureFault(
                        f"nothing answers at {address(url)}: {_cause(error)}; is it still running, and is the port right?",
                        "unreachable",
                    ) from error
                await asyncio.sleep(PAUSE)
            except TimeoutError as error:
                raise InfrastructureFault(
                    f"no answer to {method} {url} within {limit:g} s; mask this episode", "no_answer"
                ) from error
            except (aiohttp.InvalidURL, ValueError) as error:
                raise UsageError(f"{url} is no address of a server: {error}; one looks like http://host:port") from error
            except (aiohttp.ClientError, OSError) as error:
                # So also where an engine's proxy holds a published port whose container is just being started again.
                give_up = give_up or now() + patience
                if not again or now() + PAUSE > give_up:
                    raise InfrastructureFault(
                        f"{address(url)} hung up before it answered: {_cause(error)}; mask this episode", "hung_up"
                    ) from error
                await asyncio.sleep(PAUSE)

    async def close(self) -> None:
        origins = _origins.get(asyncio.get_running_loop(), {})
        while self._held:
            name, origin = self._held.popitem()
            origin.users -= 1
            if origin.users == 0:
                origins.pop(name, None)
                await origin.http.close()

    def _to(self, url: str) -> _Origin:
        name = address(url)
        if name not in self._held:
            origins = _origins.setdefault(asyncio.get_running_loop(), {})
            origin = self._held[name] = origins.get(name) or origins.setdefault(name, _Origin())
            origin.users += 1
        return self._held[name]


def address(url: str) -> str:
    """`http://host:port` of a URL."""
    return "/".join(url.split("/", 3)[:3])


def encoded(body: Mapping[str, Any]) -> bytes:
    """Raises ValueError or TypeError for what is no JSON, such as NaN."""
    return json.dumps(body, allow_nan=False).encode()


def _cause(error: BaseException) -> str:
    return str(error) or type(error).__name__
