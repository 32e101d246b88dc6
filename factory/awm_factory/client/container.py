"""A throwaway container for one `AwmEnv.from_image`; the only module of the client that needs Docker's SDK.

Nothing of it stays: `async with` removes it, an exit of the interpreter does too, and after a kill the container ends itself by
AWM_TTL, whereupon the engine removes it. `awm-factory reap` finds it by its label before that.
"""

import asyncio
import math
import secrets
import threading
import weakref
from typing import Any, Final, cast

import docker
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from requests.exceptions import RequestException

from awm_factory.client.places import ContainerPlace
from awm_factory.config import Config
from awm_factory.errors import EngineError, InfrastructureFault
from awm_factory.images.docker_client import OWNER, session_id
from awm_factory.images.engine import ensure_engine
from awm_runtime.contract import AGENT_PORT, CONTROL_PORT

LOOPBACK: Final = "127.0.0.1"
USER: Final = "65532:65532"
PIDS: Final = 512
START_LIMIT: Final = 60.0
"""Seconds until it answers; a loaded machine needs ten times what an idle one does."""
LOOK_AGAIN: Final = 0.05
SIGNS_OF_LIFE: Final = 3
"""Requests in a time to live, so that a trainer that computes for long keeps its container."""


class ThrowawayPlace(ContainerPlace):
    def __init__(self, image: str, *, ttl: float, timeout: float, memory: str) -> None:
        super().__init__("", secrets.token_urlsafe(24), timeout)
        self.image, self.ttl = image, math.ceil(ttl)
        self._box = _Box(image, {"AWM_TOKEN": self.token or "", "AWM_TTL": str(self.ttl)}, memory)
        weakref.finalize(self, self._box.remove)
        self._awake: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Raises EngineError, InfrastructureFault."""
        control, agent = await asyncio.to_thread(self._box.start)
        self.base, self.agent_base = (f"http://{LOOPBACK}:{port}" for port in (control, agent))
        await self._healthy()
        self._awake = asyncio.create_task(self._stay_awake())

    async def stop(self) -> None:
        if self._awake is not None:
            self._awake.cancel()
        await super().stop()
        await asyncio.to_thread(self._box.remove)

    async def _healthy(self) -> None:
        now = asyncio.get_running_loop().time
        give_up = now() + START_LIMIT
        said = "nothing"
        while True:
            try:
                reply = await self.ask("GET", f"{self.base}/health")
            except InfrastructureFault as error:
                said = str(error)
            else:
                if reply.status == 200:
                    return
                said = f"{reply.status}: {reply.text[:200]}"
            if not await asyncio.to_thread(self._box.running):
                raise InfrastructureFault(
                    f"the container of {self.image} ended before it answered; `docker run --rm {self.image}` shows why",
                    "no_start",
                )
            if now() > give_up:
                raise InfrastructureFault(f"{self.image} did not start within {START_LIMIT:g} s; it answered {said}", "no_start")
            await asyncio.sleep(LOOK_AGAIN)

    async def _stay_awake(self) -> None:
        while True:
            await asyncio.sleep(self.ttl / SIGNS_OF_LIFE)
            try:
                await self.ask("GET", f"{self.base}/episodes/default")
            except InfrastructureFault:
                continue  # whoever plays in it will be told


class _Box:
    """The container, as threads use it: one that is called off while it starts removes what it has made."""

    def __init__(self, image: str, environment: dict[str, str], memory: str) -> None:
        self._image, self._environment, self._memory = image, environment, memory
        self._client: docker.DockerClient | None = None
        self._id: str | None = None
        self._over = threading.Event()

    def start(self) -> tuple[int, int]:
        """The host's ports for the trainer and the agent. Raises EngineError."""
        # Looking for an engine is enough here; installing one is `make engine`'s.
        self._client = ensure_engine(Config.load(), start=False).client
        try:
            container = self._client.containers.create(
                self._image,
                environment=self._environment,
                # The stubs know addresses with a port only; without one the engine takes a free one.
                ports=cast("Any", {f"{port}/tcp": (LOOPBACK, None) for port in (CONTROL_PORT, AGENT_PORT)}),
                network_mode="bridge",
                read_only=True,
                tmpfs={"/tmp": "size=256m,mode=1777"},
                user=USER,
                cap_drop=["ALL"],
                security_opt=["no-new-privileges"],
                mem_limit=self._memory,
                memswap_limit=self._memory,
                pids_limit=PIDS,
                auto_remove=True,
                labels={OWNER: session_id(), "awm.role": "client"},
            )
            self._id = container.id
            if not self._over.is_set():
                container.start()
                container.reload()
        except ImageNotFound as error:
            raise EngineError(
                f"the engine has no image {self._image}; `awm-factory build` makes those of registry/, `docker pull` fetches one"
            ) from error
        except (DockerException, RequestException) as error:
            self.remove()
            raise EngineError(f"the engine could not start a container of {self._image}: {error}; see `docker info`") from error
        if self._over.is_set():
            self.remove()
            raise EngineError("the container was called off before it had started; open another environment")
        control, agent = (_published(container.ports, port) for port in (CONTROL_PORT, AGENT_PORT))
        return control, agent

    def running(self) -> bool:
        if self._client is None or self._id is None:
            return False
        try:
            return bool(self._client.api.inspect_container(self._id)["State"]["Running"])
        except NotFound:
            return False

    def remove(self) -> None:
        """Called more than once without harm."""
        self._over.set()
        if self._client is None or self._id is None:
            return
        try:
            self._client.api.remove_container(self._id, force=True, v=True)
        except NotFound:
            pass
        except APIError as error:
            if error.status_code != 409:  # the engine is removing it already
                raise EngineError(f"a container could not be removed: {error}; `awm-factory reap --running` does it") from error


def _published(ports: dict[str, Any], port: int) -> int:
    bindings = ports.get(f"{port}/tcp") or []
    if not bindings:
        raise EngineError(f"port {port} of the container is not published; it has ended, `docker logs` may say why")
    return int(bindings[0]["HostPort"])
