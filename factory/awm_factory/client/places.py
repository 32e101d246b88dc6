"""Where episodes come from: a container that is addressed directly, or a fleet's lease service (`fleet.py`)."""

from dataclasses import dataclass
from typing import Any, Protocol

from awm_factory.client.answers import good, read
from awm_factory.client.connections import Connections, Reply, encoded
from awm_factory.errors import EpisodeLost
from awm_runtime.contract import Episode


@dataclass(frozen=True)
class Held:
    """An episode as its holder reaches it. URLs are absolute."""

    episode_id: str
    task_id: int | None
    instruction: str | None
    agent_url: str
    agent_token: str | None
    """None where the URL alone is enough, so that it may be handed to an agent."""
    control_url: str
    lease_id: str | None = None
    twin: bool = False
    """Whether it was forked under that lease."""


class Place(Protocol):
    connections: Connections
    token: str | None
    """What control URLs ask for."""

    async def start(self) -> None:
        """Called once, before anything else. Raises AwmError."""

    async def stop(self) -> None:
        """Give back what `start` took, also half of it. Called more than once without harm."""

    async def take(self, task_id: int | None, seed: int | None) -> Held:
        """A fresh episode. Raises AwmError."""

    async def fork(self, held: Held) -> Held:
        """Its twin. Raises AwmError."""

    async def drop(self, held: Held) -> None:
        """End an episode; one that is gone already is fine. Raises AwmError."""

    async def explain(self, held: Held, error: EpisodeLost) -> EpisodeLost:
        """The error, with what the place knows of its cause."""


class ContainerPlace:
    """A container by the address of its port 8000; with `agent_base`, the address of its 8001, calls go there."""

    def __init__(self, base: str, token: str | None, timeout: float, agent_base: str | None = None) -> None:
        self.base, self.token, self.agent_base = base.rstrip("/"), token, agent_base
        self.connections = Connections(timeout)

    async def start(self) -> None:
        """There is nothing to prepare."""

    async def stop(self) -> None:
        await self.connections.close()

    async def take(self, task_id: int | None, seed: int | None) -> Held:
        asked = {name: value for name, value in (("task_id", task_id), ("seed", seed)) if value is not None}
        return self._held(read(await self.ask("POST", f"{self.base}/episodes", asked), Episode))

    async def fork(self, held: Held) -> Held:
        return self._held(read(await self.ask("POST", f"{held.control_url}/fork"), Episode))

    async def drop(self, held: Held) -> None:
        reply = await self.ask("DELETE", held.control_url)
        if reply.status != 404:
            good(reply)

    async def explain(self, held: Held, error: EpisodeLost) -> EpisodeLost:
        return error

    async def ask(self, method: str, url: str, body: dict[str, Any] | None = None) -> Reply:
        return await self.connections.ask(method, url, None if body is None else encoded(body), token=self.token)

    def _held(self, episode: Episode) -> Held:
        return Held(
            episode_id=episode.episode_id,
            task_id=episode.task_id,
            instruction=episode.instruction,
            agent_url=(self.agent_base or self.base) + episode.mcp_path,
            agent_token=None if self.agent_base else self.token,
            control_url=f"{self.base}/episodes/{episode.episode_id}",
        )
