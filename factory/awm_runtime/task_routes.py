"""Routes that list tasks in the shape of the Open Reward Standard, which OpenEnv took over. One environment, one split."""

import json
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from awm_runtime.episode import Refused
from awm_runtime.episodes import Episodes
from awm_runtime.openenv import shown

SPLIT: Final = "train"


class TaskRoutes:
    def __init__(self, episodes: Episodes) -> None:
        self.episodes = episodes
        self.tasks = [{"task_id": task_id, "instruction": text} for task_id, text in sorted(episodes.files.tasks.items())]

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/list_environments", self.environments),
            Route("/{env}/splits", self.splits),
            Route("/{env}/tools", self.tools),
            Route("/{env}/tasks", self.listing, methods=["POST"]),
            Route("/{env}/num_tasks", self.count, methods=["POST"]),
            Route("/{env}/task", self.one, methods=["POST"]),
            Route("/{env}/task_range", self.several, methods=["POST"]),
        ]

    async def environments(self, _request: Request) -> Response:
        return JSONResponse([self.episodes.files.env_id])

    async def splits(self, request: Request) -> Response:
        self._known(request)
        return JSONResponse([{"name": SPLIT, "type": SPLIT}])

    async def tools(self, request: Request) -> Response:
        self._known(request)
        tools = [shown(tool) for tool in self.episodes.ready.tools]
        return JSONResponse({"tools": tools})

    async def listing(self, request: Request) -> Response:
        await self._asked(request)
        return JSONResponse({"tasks": self.tasks, "env_name": self.episodes.files.env_id})

    async def count(self, request: Request) -> Response:
        await self._asked(request)
        return JSONResponse({"num_tasks": len(self.tasks)})

    async def one(self, request: Request) -> Response:
        index = (await self._asked(request)).get("index")
        if not isinstance(index, int) or not -len(self.tasks) <= index < len(self.tasks):
            raise Refused(400, f"index is a whole number below {len(self.tasks)}")
        return JSONResponse({"task": self.tasks[index]})

    async def several(self, request: Request) -> Response:
        asked = await self._asked(request)
        start, stop = asked.get("start"), asked.get("stop")
        if not all(bound is None or isinstance(bound, int) for bound in (start, stop)):
            raise Refused(400, "start and stop are whole numbers or null")
        return JSONResponse({"tasks": self.tasks[start:stop]})

    def _known(self, request: Request) -> None:
        env = request.path_params["env"]
        if env != self.episodes.files.env_id:
            raise Refused(404, f"this container serves {self.episodes.files.env_id}, not {env[:80]!r}")

    async def _asked(self, request: Request) -> dict[str, Any]:
        """The body, of a known environment and split. Raises Refused."""
        self._known(request)
        try:
            asked = json.loads(await request.body() or b"{}")
        except ValueError as error:
            raise Refused(400, f"this is no JSON: {error}") from error
        if not isinstance(asked, dict) or asked.get("split", SPLIT) != SPLIT:
            raise Refused(400, f"there is one split, {SPLIT!r}")
        return asked
