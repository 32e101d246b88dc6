"""Talking to one running environment from outside: its control plane over HTTP, its tools over the official MCP client."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Coroutine, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import httpx
import mcp.types
from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamable_http_client
from pydantic import BaseModel, JsonValue, ValidationError

from awm_factory.bundle import Bundle
from awm_factory.images.calls import ToolSpec, candidates, resolved
from awm_runtime.contract import Episode, NewEpisode, ToolCall, Verdict, VerifierMode, VerifyEpisode

CALL_LIMIT: Final = 30.0
"""Seconds one request may take."""

R = TypeVar("R")
M = TypeVar("M", bound=BaseModel)


class TrialError(Exception):
    """The environment answered something else than it should, or not at all."""


class Control:
    """The trainer's side of port 8000. Proxies of the environment are not for loopback, so they are not asked for."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.http = httpx.Client(base_url=base_url, timeout=CALL_LIMIT, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.http.close()

    def open(self, task_id: int | None) -> Episode:
        return self._post("/episodes", NewEpisode(task_id=task_id), Episode)

    def reset(self, episode_id: str) -> Episode:
        return self._post(f"/episodes/{episode_id}/reset", None, Episode)

    def verify(self, episode_id: str, mode: VerifierMode) -> Verdict:
        return self._post(f"/episodes/{episode_id}/verify", VerifyEpisode(final_answer="", mode=mode), Verdict)

    def close(self, episode_id: str) -> None:
        _good(self.http.delete(f"/episodes/{episode_id}"))

    def database(self, episode_id: str) -> bytes:
        return _good(self.http.get(f"/episodes/{episode_id}/db")).content

    def _post(self, path: str, body: BaseModel | None, kind: type[M]) -> M:
        reply = _good(self.http.post(path, json=body.model_dump(mode="json") if body else None))
        try:
            return kind.model_validate_json(reply.content)
        except ValidationError as error:
            raise TrialError(f"POST {path} answered no {kind.__name__}: {error}") from error


def _good(reply: httpx.Response) -> httpx.Response:
    if not reply.is_success:
        raise TrialError(f"{reply.request.method} {reply.request.url.path} answered {reply.status_code}: {reply.text[:300]}")
    return reply


@contextlib.asynccontextmanager
async def session(url: str) -> AsyncIterator[ClientSession]:
    http = httpx.AsyncClient(timeout=CALL_LIMIT, trust_env=False)
    async with (
        http,
        streamable_http_client(url, http_client=http) as (read, write, _),
        ClientSession(read, write, read_timeout_seconds=timedelta(seconds=CALL_LIMIT)) as client,
    ):
        await client.initialize()
        yield client


def run(conversation: Coroutine[Any, Any, R]) -> R:
    """Hold an MCP conversation. The client's task groups wrap what goes wrong; here it comes out as TrialError."""
    try:
        return asyncio.run(conversation)
    except BaseExceptionGroup as group:
        expected, other = group.split((McpError, httpx.HTTPError, TrialError))
        if expected is None or other is not None:
            raise
        raise TrialError("; ".join(str(error) or type(error).__name__ for error in _leaves(expected))) from group
    except (McpError, httpx.HTTPError) as error:
        raise TrialError(str(error) or type(error).__name__) from error


def _leaves(group: BaseExceptionGroup[Any]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


async def list_tools(url: str) -> list[mcp.types.Tool]:
    async with session(url) as client:
        tools: list[mcp.types.Tool] = []
        cursor = None
        while True:
            page = await client.list_tools(params=mcp.types.PaginatedRequestParams(cursor=cursor))
            tools += page.tools
            cursor = page.nextCursor
            if cursor is None:
                return tools


@dataclass
class Tried:
    """Calls made until one had read and one had written."""

    fresh: bytes
    """The episode's database before any call."""
    reading: str | None = None
    """First tool that answered and left the database as it was."""
    writing: str | None = None
    """First tool that answered and changed the database."""
    refused: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """Tools that failed by the environment's own fault, with what they said."""

    @property
    def enough(self) -> bool:
        return self.reading is not None and self.writing is not None


async def try_calls(control: Control, episode: Episode, bundle: Bundle, tools: list[mcp.types.Tool]) -> Tried:
    """Call tools until one has read and one has written, beginning with the episode's task's own solution, where it has one.

    What writes is told by looking at the database, not by believing the method.
    """
    tried = Tried(control.database(episode.episode_id))
    before = tried.fresh
    solution = bundle.solutions.get(episode.task_id) if episode.task_id is not None else None
    made_up = candidates(bundle, [ToolSpec(tool.name, tool.inputSchema) for tool in tools])
    async with session(control.base_url + episode.mcp_path) as client:
        results: list[JsonValue] = []
        for index, call in enumerate([*(solution.calls if solution else []), *made_up]):
            if tried.enough:
                break
            if solution and index < len(solution.calls):
                try:
                    call = resolved(call, results)
                except LookupError as error:
                    raise TrialError(f"call {index} of task {episode.task_id}'s solution can't be made: {error}") from error
            result = await client.call_tool(call.tool, call.arguments)
            after = control.database(episode.episode_id)
            results.append(_json(result))
            _sort(tried, call, result, changed=after != before)
            before = after
    return tried


def _sort(tried: Tried, call: ToolCall, result: mcp.types.CallToolResult, *, changed: bool) -> None:
    if not result.isError:
        if changed:
            tried.writing = tried.writing or call.tool
        else:
            tried.reading = tried.reading or call.tool
    elif _kind(result) in {"internal", "timeout", "crashed"}:
        tried.broken.append(f"{call.tool}: {_text(result)[:200]}")
    else:
        tried.refused.append(call.tool)


def _kind(result: mcp.types.CallToolResult) -> object:
    """ToolResult's `kind`, which the runtime says in the JSON of an error."""
    answer = _json(result)
    error = answer.get("error") if isinstance(answer, dict) else None
    return error.get("kind") if isinstance(error, dict) else None


def _json(result: mcp.types.CallToolResult) -> JsonValue:
    try:
        return json.loads(_text(result))  # type: ignore[no-any-return]
    except ValueError:
        return _text(result)


def _text(result: mcp.types.CallToolResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, mcp.types.TextContent))
