"""OpenEnv's wire on port 8000: reset, step and state over HTTP and WebSocket, and its session methods on `/mcp`.

Only the shapes are OpenEnv's; nothing of it is imported. An episode ends by the action that calls the tool `submit`, which no
list of tools shows: its answer carries the reward, once, and no reward can be read before.
"""

import json
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from awm_runtime.episode import Refused, Running
from awm_runtime.episodes import Episodes
from awm_runtime.mcp import McpServer
from awm_runtime.wire import Tool

SUBMIT: Final = "submit"
FORMAT_ERROR_REWARD: Final = -1.0
"""AWM's reward for a call of an unknown tool or with arguments that are no object (arXiv 2602.10090)."""

_ERROR_TYPES: Final = {
    "format_error": "tool_not_found",
    "invalid_arguments": "invalid_args",
    "timeout": "timeout",
    "crashed": "transport_error",
}


Model = TypeVar("Model", bound=BaseModel)


class CallToolAction(BaseModel):
    """What an agent may do: call a tool, or `submit` its final answer; `list_tools` needs no name."""

    model_config = ConfigDict(title="CallToolAction", extra="forbid")

    type: str = Field(default="call_tool", description="call_tool or list_tools")
    tool_name: str = ""
    arguments: JsonValue = {}
    metadata: dict[str, JsonValue] = {}


class CallToolObservation(BaseModel):
    tool_name: str
    result: JsonValue = None
    error: dict[str, str] | None = None
    metadata: dict[str, JsonValue] = {}


class ResetObservation(BaseModel):
    instruction: str | None
    task_id: int | None
    metadata: dict[str, JsonValue] = {}


class EpisodeState(BaseModel):
    episode_id: str | None
    step_count: int


class ResetBody(BaseModel):
    model_config = ConfigDict(extra="allow")

    task_id: int | None = None
    seed: int | None = Field(default=None, ge=0)
    episode_id: str | None = Field(default=None, max_length=255)


@dataclass(frozen=True)
class Observed:
    """One answer to reset or step."""

    observation: dict[str, Any]
    reward: float | None = None
    done: bool = False

    def data(self) -> dict[str, Any]:
        return {"observation": self.observation, "reward": self.reward, "done": self.done}


class Session:
    """One episode as OpenEnv drives it."""

    def __init__(self, episodes: Episodes, episode: Running) -> None:
        self.episodes, self.episode = episodes, episode
        self.name: str | None = None
        """What the client calls the episode; its own id is no secret from a trainer, but a client may choose."""

    async def reset(self, asked: ResetBody) -> Observed:
        """Raises Refused."""
        chosen = (asked.task_id, self.episode.task_id, min(self.episodes.files.tasks, default=None))
        task_id = next((task for task in chosen if task is not None), None)
        await self.episodes.reset(self.episode, task_id, asked.seed or 0)
        self.name = asked.episode_id
        described = self.episodes.describe(self.episode)
        metadata: dict[str, JsonValue] = {"episode_id": self.id, "seed": described.seed, "world_time": described.world_time}
        observation = ResetObservation(instruction=described.instruction, task_id=described.task_id, metadata=metadata)
        return Observed(observation.model_dump())

    @property
    def id(self) -> str:
        return self.name or self.episode.alias or self.episode.id

    def state(self) -> dict[str, Any]:
        state = self.episode.state
        return EpisodeState(episode_id=self.id, step_count=state.steps + state.beside).model_dump()

    async def step(self, action: CallToolAction) -> Observed:
        """Raises Refused for an episode that has ended."""
        before = self.episode.state.steps
        observed = await self._acted(action)
        if (state := self.episode.state).steps == before:
            self.episode.state = replace(state, beside=state.beside + 1)
        return observed

    async def _acted(self, action: CallToolAction) -> Observed:
        if action.type == "list_tools":
            tools = [shown(tool) for tool in self.episodes.ready.tools]
            return Observed({"tools": tools, "metadata": {}})
        if action.type != "call_tool":
            raise Refused(422, f"an action is of type call_tool or list_tools, not {action.type[:40]!r}")
        if action.tool_name == SUBMIT:
            return await self._submit(action.arguments)
        result = await self.episodes.call(self.episode, action.tool_name, action.arguments, mcp=False)
        content = json.loads(result.body)
        if not result.is_error:
            return Observed(_observation(action.tool_name, content, None))
        error = {"error_type": _ERROR_TYPES.get(result.kind, "execution_error"), "message": content["error"]["message"]}
        ends = result.kind == "format_error" and self.episodes.settings.format_error_ends
        self.episode.ended = self.episode.ended or ends
        return Observed(_observation(action.tool_name, content, error), FORMAT_ERROR_REWARD if ends else None, ends)

    async def _submit(self, arguments: JsonValue) -> Observed:
        if self.episode.ended:
            raise Refused(409, "this episode has ended; reset it or start another")
        answer = arguments.get("answer") if isinstance(arguments, dict) else None
        self.episode.ended = True  # before the verdict is waited for: a second answer meanwhile must not be rewarded too
        try:
            verdict = await self.episodes.verify(self.episode, answer if answer is None else str(answer), None)
        except Refused:
            self.episode.ended = False
            raise
        return Observed(_observation(SUBMIT, verdict.model_dump(mode="json"), None), verdict.reward, True)


def shown(tool: Tool) -> dict[str, Any]:
    """A tool as OpenEnv spells it, which is not quite as MCP does."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}


def _observation(tool: str, result: JsonValue, error: dict[str, str] | None) -> dict[str, Any]:
    return CallToolObservation(tool_name=tool, result=result, error=error).model_dump()


class OpenEnv:
    def __init__(self, episodes: Episodes, server: McpServer) -> None:
        self.episodes, self.server = episodes, server
        self.http = Session(episodes, episodes.default)
        """Plain HTTP has no connection to hang an episode on, so it drives the container's default one."""

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/metadata", self.metadata),
            Route("/schema", self.schema),
            Route("/state", self.state),
            Route("/reset", self.reset, methods=["POST"]),
            Route("/step", self.step, methods=["POST"]),
            Route("/openapi.json", self.openapi),
            WebSocketRoute("/ws", self.websocket),
        ]

    async def metadata(self, _request: Request) -> Response:
        manifest = self.episodes.files.manifest
        description = manifest.get("description") or manifest.get("scenario") or ""
        return JSONResponse({"name": self.episodes.files.env_id, "description": description, "version": "1"})

    async def schema(self, _request: Request) -> Response:
        models: dict[str, type[BaseModel]] = {
            "action": CallToolAction,
            "observation": CallToolObservation,
            "reset_observation": ResetObservation,
            "state": EpisodeState,
        }
        return JSONResponse({name: model.model_json_schema() for name, model in models.items()})

    async def openapi(self, _request: Request) -> Response:
        paths = {path: {method: {"responses": {"200": {"description": "OK"}}}} for path, method in _PATHS.items()}
        info = {"title": self.episodes.files.env_id, "version": "1.0.0"}
        return JSONResponse({"openapi": "3.1.0", "info": info, "paths": paths})

    async def state(self, _request: Request) -> Response:
        return JSONResponse(self.http.state())

    async def reset(self, request: Request) -> Response:
        asked = _parsed(ResetBody, await request.body() or b"{}")
        return JSONResponse((await self.http.reset(asked)).data())

    async def step(self, request: Request) -> Response:
        try:
            action = json.loads(await request.body())["action"]
        except (ValueError, LookupError, TypeError) as error:
            raise Refused(422, 'the body of a step is {"action": {…}}') from error
        return JSONResponse((await self.http.step(_parsed(CallToolAction, json.dumps(action).encode()))).data())

    async def websocket(self, socket: WebSocket) -> None:
        """An episode for each connection, gone with it."""
        await socket.accept()
        try:
            session = Session(self.episodes, self.episodes.create(None))
        except Refused as refused:
            await socket.send_json(_failed("CAPACITY_REACHED", str(refused)))
            await socket.close()
            return
        try:
            while (answer := await self._frame(session, await socket.receive_text())) is not None:
                await socket.send_text(json.dumps(answer))
            await socket.close()
        except WebSocketDisconnect:
            return
        finally:
            self.episodes.delete(session.episode)

    async def _frame(self, session: Session, text: str) -> dict[str, Any] | None:
        """The answer to one frame; None ends the connection."""
        try:
            frame = json.loads(text)
        except ValueError as error:
            return _failed("INVALID_JSON", f"this is no JSON: {error}")
        if not isinstance(frame, dict):
            return _failed("VALIDATION_ERROR", "a frame is an object with a type")
        kind, data = frame.get("type"), json.dumps(frame.get("data") or {}).encode()
        try:
            match kind:
                case "reset":
                    return {"type": "observation", "data": (await session.reset(_parsed(ResetBody, data))).data()}
                case "step":
                    return {"type": "observation", "data": (await session.step(_parsed(CallToolAction, data))).data()}
                case "state":
                    return {"type": "state", "data": session.state()}
                case "mcp":
                    reply = await self.server.handle(session.episode, data, None)
                    return {"type": "mcp", "data": json.loads(reply.body or b"{}")}
                case "close":
                    return None
        except Refused as refused:
            return _failed("VALIDATION_ERROR" if refused.status == 422 else "EXECUTION_ERROR", str(refused))
        return _failed("UNKNOWN_TYPE", f"there is no frame of type {str(kind)[:40]!r}")


_PATHS: Final = {
    "/health": "get", "/metadata": "get", "/schema": "get", "/state": "get", "/reset": "post", "/step": "post", "/mcp": "post",
    "/tasks": "get", "/episodes": "post", "/episodes/{episode_id}/verify": "post", "/episodes/{episode_id}/reset": "post",
}  # fmt: skip


def _failed(code: str, message: str) -> dict[str, Any]:
    return {"type": "error", "data": {"message": message, "code": code}}


def _parsed(model: "type[Model]", data: bytes) -> "Model":
    """Raises Refused."""
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise Refused(422, f"{'.'.join(map(str, first['loc'])) or 'the body'}: {first['msg']}") from error
