"""An environment as a trainer plays it: one episode after the other."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Self

from awm_factory.client import mcp
from awm_factory.client.answers import good, read
from awm_factory.client.connections import Reply, encoded
from awm_factory.client.owning import taken, to_its_end
from awm_factory.client.places import ContainerPlace, Held, Place
from awm_factory.client.results import CallResult, Tool, Verdict
from awm_factory.errors import AwmError, EpisodeLost, UsageError
from awm_runtime.contract import Episode, StateDiff, VerifierMode

CALL_LIMIT: Final = 60.0
"""Seconds a request may take; AWM's limit for a call. The runtime's own for the environment's code, AWM_CALL_TIMEOUT, is 10."""
GOODBYE: Final = 10.0
"""Seconds for ending episodes; what is not ended by then, its container or lease ends later."""


class AwmEnv:
    """An environment to play episodes in, one at a time. Open as many as there are rollouts, also on one container.

        async with AwmEnv.from_image("awm/playhouse_box_office") as env:
            instruction = await env.reset(task_id=0)
            tools = await env.tools()
            result = await env.call("search_shows", {})
            verdict = await env.submit("done")

    `async with` ends whatever it began: the episode, its forks, the lease, the container of `from_image`. What goes wrong is an
    AwmError; a Fault among them says by `fault` whose it is, and by `masked` whether a trainer must leave the episode out.
    """

    def __init__(
        self,
        place: Place,
        *,
        asked: tuple[int | None, int | None] = (None, None),
        at_once: bool = False,
        root: "AwmEnv | None" = None,
        held: Held | None = None,
    ) -> None:
        """Use `from_image`, `connect` or `Fleet.lease`."""
        self._place, self._root, self._held = place, root, held
        self._asked = asked
        """Task and seed of the last reset, or of the one to come."""
        self._at_once = at_once
        """Whether the first episode begins with `async with`."""
        self._others: set[AwmEnv] = set()
        """What ends with this one."""
        self._started, self._closed = root is not None, False
        self._tools: list[Tool] | None = root._tools if root else None

    @classmethod
    def connect(cls, url: str, *, token: str | None = None, timeout: float = CALL_LIMIT) -> "AwmEnv":
        """On a container that runs, by the address of its port 8000. `token` is its AWM_TOKEN, `timeout` seconds for an answer.

        Connections are shared by all that speak to one address from the same event loop.
        """
        return cls(ContainerPlace(url, token, timeout))

    @classmethod
    def from_image(cls, image: str, *, ttl: float = 600.0, timeout: float = CALL_LIMIT, memory: str = "2g") -> "AwmEnv":
        """On a throwaway container of its own, which `async with` starts and removes. Needs `awm-factory[docker]`.

        It runs without any rights, listens on loopback only and asks for a token. Should this process die without a word, it ends
        and is removed by itself after `ttl` seconds. The engine must have the image already.
        """
        try:
            from awm_factory.client.container import ThrowawayPlace
        except ModuleNotFoundError as error:
            raise UsageError(
                f"from_image needs Docker's SDK ({error.name} is missing); pip install 'awm-factory[docker]'"
            ) from error
        return cls(ThrowawayPlace(image, ttl=ttl, timeout=timeout, memory=memory))

    def beside(self) -> "AwmEnv":
        """Another environment on the same container, with episodes of its own. It ends with this one, or when it is closed."""
        if not isinstance(self._place, ContainerPlace):
            raise UsageError("a lease holds one episode; ask the fleet for another lease, or fork this one")
        return self._relative(None)

    async def __aenter__(self) -> Self:
        await self._start()
        if self._at_once:
            try:
                await self.reset()
            except BaseException:
                await self.close()
                raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """End what was begun. Called more than once without harm; what is gone already is fine."""
        await to_its_end(self._close())

    async def reset(self, task_id: int | None = None, seed: int | None = None) -> str | None:
        """A fresh episode on the seeded database; returns the task's instruction. What is left out stays as it was.

        After an EpisodeLost this is how to go on: it begins an episode on the restarted container, or under a new lease.
        """
        await self._start()
        task_id, seed = (new if new is not None else old for new, old in zip((task_id, seed), self._asked, strict=True))
        if self._held is not None:
            with contextlib.suppress(EpisodeLost):
                episode = read(await self._control("POST", "/reset", {"task_id": task_id, "seed": seed}), Episode)
                self._held = replace(self._held, task_id=episode.task_id, instruction=episode.instruction)
                self._asked = task_id, seed
                return self.instruction
            await self._drop()
        held: Held = await taken(self._place.take(task_id, seed), self._place.drop)
        self._held = held
        self._asked = task_id, seed
        return self.instruction

    @property
    def instruction(self) -> str | None:
        return self._here.instruction

    @property
    def task_id(self) -> int | None:
        return self._here.task_id

    @property
    def episode_id(self) -> str:
        return self._here.episode_id

    @property
    def agent_url(self) -> str:
        """The episode's MCP endpoint. After `connect` it is on port 8000, which asks for its token; else it takes none."""
        return self._here.agent_url

    async def tools(self) -> list[Tool]:
        """The environment's tools; asked for once, as they never change."""
        if self._tools is None:
            async with self._explained():
                self._tools = await mcp.list_tools(self._place.connections, self._here)
        return self._tools

    async def openai_tools(self) -> list[dict[str, Any]]:
        """The same, as `tools` of a request for chat completions."""
        return [tool.openai() for tool in await self.tools()]

    async def call(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> CallResult:
        """Call a tool, with arguments as values or as the JSON text that a model wrote.

        A call that fails, by the policy's mistake or by the environment's, is a result: its text is for the policy to read.
        Raises MalformedCall for an unknown tool and for arguments that are no JSON object, and InfrastructureFault where there is
        no answer. No call is sent twice.
        """
        async with self._explained():
            return await mcp.call_tool(self._place.connections, self._here, name, arguments)

    async def submit(self, answer: str | None = None, mode: VerifierMode | None = None) -> Verdict:
        """The verdict on the episode as it stands. A verifier that fails gives reward null and `error`, never 0."""
        return read(await self._control("POST", "/verify", {"final_answer": answer, "mode": mode}), Verdict)

    async def fork(self) -> "AwmEnv":
        """A twin of the episode with all that happened so far. It ends with this environment, or when it is closed."""
        async with self._explained():
            held: Held = await taken(self._place.fork(self._here), self._place.drop)
        twin = self._relative(held)
        twin._asked, twin._tools = self._asked, self._tools
        return twin

    async def diff(self) -> StateDiff:
        """Rows added, removed and changed against the seed, by table."""
        return read(await self._control("GET", "/diff"), StateDiff)

    async def database(self) -> bytes:
        """The episode's database, as a SQLite file."""
        return (await self._control("GET", "/db")).body

    @property
    def _here(self) -> Held:
        if self._held is None:
            raise UsageError("this environment was closed" if self._closed else "no episode has begun; call reset(task_id) first")
        return self._held

    def _relative(self, held: Held | None) -> "AwmEnv":
        root = self._root or self
        other = AwmEnv(self._place, root=root, held=held)
        root._others.add(other)
        return other

    async def _start(self) -> None:
        if self._closed:
            raise UsageError("this environment was closed; open another")
        if not self._started:
            self._started = True
            try:
                await self._place.start()
            except BaseException:
                await to_its_end(self._place.stop())
                raise

    async def _close(self) -> None:
        self._closed = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE):
                for other in [*self._others, self]:
                    other._closed = True
                    await other._drop()
        self._others.clear()
        if self._root is not None:
            self._root._others.discard(self)
        elif self._started:
            await self._place.stop()

    async def _drop(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            with contextlib.suppress(AwmError):
                await self._place.drop(held)

    async def _control(self, method: str, path: str, body: dict[str, Any] | None = None) -> Reply:
        async with self._explained():
            url, sent = self._here.control_url + path, None if body is None else encoded(body)
            return good(await self._place.connections.ask(method, url, sent, token=self._place.token))

    @contextlib.asynccontextmanager
    async def _explained(self) -> AsyncIterator[None]:
        try:
            yield
        except EpisodeLost as error:
            raise await self._place.explain(self._here, error) from error.__cause__
