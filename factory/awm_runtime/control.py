"""The control plane: what a trainer may do with episodes, over HTTP on port 8000."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from awm_runtime import http
from awm_runtime.episode import Refused
from awm_runtime.episodes import Episodes
from awm_runtime.wire import Health, NewEpisode, VerifyEpisode

SQLITE: Final = "application/vnd.sqlite3"

Body = TypeVar("Body", bound=BaseModel)
Endpoint = Callable[[Request], Awaitable[Response]]


class ResetEpisode(BaseModel):
    """Body of `POST /episodes/{id}/reset`; what is left out stays as it was."""

    model_config = ConfigDict(extra="forbid")

    task_id: int | None = None
    seed: int | None = None


class RestoreEpisode(BaseModel):
    """Body of `POST /episodes/{id}/restore`."""

    model_config = ConfigDict(extra="forbid")

    snapshot_id: str


class Control:
    def __init__(self, episodes: Episodes, max_body: int) -> None:
        self.episodes, self.max_body = episodes, max_body

    def app(self, more: list[BaseRoute]) -> Starlette:
        one = "/episodes/{episode_id}"
        routes = [
            Route("/health", self.health),
            Route("/tasks", self.tasks),
            Route("/episodes", self.create, methods=["POST"]),
            Route("/episodes", self.listing, methods=["GET"]),
            Route(one, self.show, methods=["GET"]),
            Route(one, self.delete, methods=["DELETE"]),
            Route(f"{one}/reset", self.reset, methods=["POST"]),
            Route(f"{one}/verify", self.verify, methods=["POST"]),
            Route(f"{one}/fork", self.fork, methods=["POST"]),
            Route(f"{one}/snapshot", self.snapshot, methods=["POST"]),
            Route(f"{one}/restore", self.restore, methods=["POST"]),
            Route(f"{one}/diff", self.diff),
            Route(f"{one}/db", self.database),
            *more,
        ]
        return Starlette(routes=routes, exception_handlers={Refused: _refused})

    async def health(self, _request: Request) -> Response:
        episodes = self.episodes
        health = Health(
            status="healthy",
            env_id=episodes.files.env_id,
            episodes=len(episodes.running) - 1,
            capacity=episodes.settings.max_episodes,
            tasks=len(episodes.files.tasks),
            tools=len(episodes.tools),
            confinement=episodes.ready.confinement,
            module_state=await episodes.pool.settled(),
        )
        return _json(health.model_dump_json().encode())

    async def tasks(self, _request: Request) -> Response:
        modes = self.episodes.files.verifiers
        found = [
            {"task_id": task_id, "instruction": text, "verifiers": [mode for mode in ("code", "sql") if (task_id, mode) in modes]}
            for task_id, text in self.episodes.files.tasks.items()
        ]
        return JSONResponse(found)

    async def listing(self, _request: Request) -> Response:
        described = [
            self.episodes.describe(e).model_dump(mode="json")
            for e in self.episodes.running.values()
            if e is not self.episodes.default
        ]
        return JSONResponse(described)

    async def create(self, request: Request) -> Response:
        asked = await self._body(request, NewEpisode)
        episode = self.episodes.create(asked.task_id, asked.seed, asked.episode_id)
        return _json(self.episodes.describe(episode).model_dump_json().encode(), 201)

    async def show(self, request: Request) -> Response:
        return _json(self.episodes.describe(self.episodes.find(_id(request))).model_dump_json().encode())

    async def delete(self, request: Request) -> Response:
        self.episodes.delete(self.episodes.find(_id(request)))
        return Response(status_code=204)

    async def reset(self, request: Request) -> Response:
        episode, asked = self.episodes.find(_id(request)), await self._body(request, ResetEpisode)
        await self.episodes.reset(episode, asked.task_id, asked.seed)
        return _json(self.episodes.describe(episode).model_dump_json().encode())

    async def verify(self, request: Request) -> Response:
        episode, asked = self.episodes.find(_id(request)), await self._body(request, VerifyEpisode)
        verdict = await self.episodes.verify(episode, asked.final_answer, asked.mode)
        return _json(verdict.model_dump_json().encode())

    async def fork(self, request: Request) -> Response:
        twin = await self.episodes.fork(self.episodes.find(_id(request)))
        return _json(self.episodes.describe(twin).model_dump_json().encode(), 201)

    async def snapshot(self, request: Request) -> Response:
        name = await self.episodes.snapshot(self.episodes.find(_id(request)))
        return JSONResponse({"snapshot_id": name}, 201)

    async def restore(self, request: Request) -> Response:
        episode, asked = self.episodes.find(_id(request)), await self._body(request, RestoreEpisode)
        await self.episodes.restore(episode, asked.snapshot_id)
        return _json(self.episodes.describe(episode).model_dump_json().encode())

    async def diff(self, request: Request) -> Response:
        return _json(await self.episodes.diff(self.episodes.find(_id(request))))

    async def database(self, request: Request) -> Response:
        return Response(self.episodes.database(self.episodes.find(_id(request))), media_type=SQLITE)

    async def _body(self, request: Request, model: type[Body]) -> Body:
        body = await http.read_body(request.receive, self.max_body)
        try:
            return model.model_validate_json(body or b"{}")
        except ValidationError as error:
            first = error.errors()[0]
            raise Refused(422, f"{'.'.join(map(str, first['loc'])) or 'the body'}: {first['msg']}") from error


def _id(request: Request) -> str:
    return str(request.path_params["episode_id"])


def _json(body: bytes, status: int = 200) -> Response:
    return Response(body, status, media_type="application/json")


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return JSONResponse({"error": str(error)}, error.status)
