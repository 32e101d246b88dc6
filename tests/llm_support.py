"""Models, and endpoints that speak to them over real HTTP on loopback."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import openai
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

from awm_factory.llm.openai_model import OpenAIModel
from awm_factory.llm.patience import AdaptiveLimit, Patience
from awm_factory.llm.protocol import ModelReply, ModelRequest, Purpose, conversation

Body = dict[str, Any]


class FunctionModel:
    """A model that is a function from request to text."""

    name = "stub-model"

    def __init__(self, answer: Callable[[ModelRequest], str] | None = None) -> None:
        self._answer = answer or (lambda request: f"You said: {request.messages[-1].content}")
        self.asked: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request)
        return ModelReply(model=self.name, raw=self._answer(request))


def ask(text: str = "hello", **more: Any) -> ModelRequest:
    purpose = more.pop("purpose", Purpose(env_id="kiosk", stage="tasks"))
    return ModelRequest(messages=conversation("be brief", text), purpose=purpose, **({"max_tokens": 1000} | more))


def client(url: str, **more: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0, **more)


@asynccontextmanager
async def connected(url: str, *, backoff: float = 0.01, at_once: int = 64, **more: Any) -> AsyncIterator[OpenAIModel]:
    model = OpenAIModel(client(url), "stub-model", Patience(AdaptiveLimit(at_once), backoff), **more)
    try:
        yield model
    finally:
        await model.close()


class Endpoint:
    """An endpoint of a test's own: `answer` makes the response to the nth request; all bodies are kept."""

    def __init__(self, answer: Callable[[Body, int], Response | Body | Awaitable[Response]]) -> None:
        self.bodies: list[Body] = []
        self._answer = answer

    def app(self) -> FastAPI:
        app = FastAPI()
        app.add_api_route("/{path:path}", self._serve, methods=["POST"])
        return app

    async def _serve(self, request: Request) -> Response:
        body = await request.json()
        self.bodies.append(body)
        answer = self._answer(body, len(self.bodies) - 1)
        if isinstance(answer, Response):
            return answer
        return JSONResponse(answer) if isinstance(answer, dict) else await answer


def completion(text: str | None = "ok", finish: str = "stop", **message: Any) -> Body:
    content = {"role": "assistant", "content": text} | message
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return {"model": "m", "choices": [{"index": 0, "finish_reason": finish, "message": content}], "usage": usage}


def refusal(status: int, message: str, headers: dict[str, str] | None = None, **more: Any) -> Response:
    return JSONResponse({"error": {"message": message, "type": "invalid_request_error", **more}}, status, headers)
