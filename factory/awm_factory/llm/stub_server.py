"""A server that speaks the OpenAI API on loopback and answers from recordings, or from any `Model`: rehearse a run for nothing.

It counts tokens, takes as long as a real service and fails as one, all seeded, and `GET /log` tells every request it saw.
"""

import asyncio
import base64
import hashlib
import json
import socket
import threading
from array import array
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from awm_factory.errors import ModelError, RecordingMissing
from awm_factory.llm.openai_model import REQUEST_HEADER
from awm_factory.llm.protocol import Model, ModelReply, ModelRequest
from awm_factory.llm.stub_faults import Dice, Faults, Latency, spoil
from awm_factory.llm.stub_wire import (
    CREATED,
    DIMENSIONS,
    Served,
    chunks,
    completion,
    count_tokens,
    embedding,
    error_response,
    read_request,
)

_ANSWER_FAULTS: Final = (
    "bad_sql",
    "broken_code",
    "lenient_verifier",
    "invalid_json",
    "fence",
    "thinking",
    "truncate_silently",
    "truncate",
    "empty",
)
"""In the order they are applied: what is wrong in an artifact comes before what is wrong around it."""


class _Disconnect(Exception):  # noqa: N818  (it is no error of this program)
    """Breaks the connection: uvicorn closes it when a body ends by an exception."""


class Stub:
    def __init__(
        self,
        model: Model,
        *,
        seed: int = 0,
        faults: Faults | None = None,
        latency: Latency | None = None,
        capacity: int | None = None,
        retry_after: float = 1.0,
    ) -> None:
        """`capacity`: requests served at once, others get status 429. `retry_after`: seconds, where a fault names any."""
        self._model = model
        self._dice = Dice(seed, faults or Faults(), latency or Latency())
        self._capacity = capacity
        self._retry_after = retry_after
        self.busy = 0
        self._seen: Counter[str] = Counter()
        self.log: list[dict[str, Any]] = []

    def app(self) -> FastAPI:
        app = FastAPI(title="awm-factory stub-llm", docs_url=None, redoc_url=None)
        for prefix in ("/v1", "", "/openai/deployments/{deployment}"):
            app.add_api_route(f"{prefix}/chat/completions", self.chat, methods=["POST"])
            app.add_api_route(f"{prefix}/embeddings", self.embeddings, methods=["POST"])
        app.add_api_route("/v1/models", self.models, methods=["GET"])
        app.add_api_route("/log", self.show_log, methods=["GET"])
        return app

    async def show_log(self) -> list[dict[str, Any]]:
        return self.log

    async def models(self) -> dict[str, Any]:
        model = {"id": self._model.name, "object": "model", "created": CREATED, "owned_by": "awm-factory"}
        return {"object": "list", "data": [model]}

    async def chat(self, http: Request) -> Response:
        body = await http.json()
        request = read_request(body, http.headers.get(REQUEST_HEADER))
        key = request.key()
        nth = self._seen[key]
        self._seen[key] += 1
        entry = self._log(http, body, key, purpose=request.purpose.model_dump())
        if refusal := self._refusal(key, nth, entry):
            return refusal
        try:
            reply = await self._model.complete(request)
        except RecordingMissing as error:
            return error_response(entry, 404, str(error), "recording_missing")
        except ModelError as error:
            return error_response(entry, 502, str(error), type(error).__name__)
        served = self._serve(request, reply, key, nth)
        entry |= {"faults": served.faults, "usage": served.usage, "seconds": served.seconds}
        broken = self._dice.hits("disconnect", key, nth)
        if broken:
            entry["faults"].append("disconnect")
        if body.get("stream"):
            parts = chunks(body, served)
            return _Answer(self, self._send(parts, served.seconds, broken, entry), media_type="text/event-stream")
        whole = json.dumps(completion(body, served)).encode()
        halves = [whole[: len(whole) // 2], whole[len(whole) // 2 :]]
        sent = self._send(halves, served.seconds, broken, entry)
        return _Answer(self, sent, media_type="application/json", headers={"content-length": str(len(whole))})

    async def embeddings(self, http: Request) -> Response:
        body = await http.json()
        texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
        usage = {"prompt_tokens": sum(map(count_tokens, texts)), "total_tokens": sum(map(count_tokens, texts))}
        key = hashlib.sha256(json.dumps([texts, body.get("dimensions")]).encode()).hexdigest()
        nth = self._seen[key]
        self._seen[key] += 1
        entry = self._log(http, body, key, usage=usage, delivered=True)
        if refusal := self._refusal(key, nth, entry):
            return refusal
        await asyncio.sleep(self._dice.seconds(key, nth))
        data = []
        for index, text in enumerate(texts):
            vector = embedding(text, body.get("dimensions") or DIMENSIONS)
            packed = base64.b64encode(array("f", vector).tobytes()).decode()
            sent = packed if body.get("encoding_format") == "base64" else vector
            data.append({"object": "embedding", "index": index, "embedding": sent})
        return JSONResponse({"object": "list", "model": body.get("model", self._model.name), "data": data, "usage": usage})

    def _log(self, http: Request, body: dict[str, Any], key: str, **more: Any) -> dict[str, Any]:
        entry = {"path": http.url.path, "params": sorted(body), "key": key, "purpose": None, "status": 200, "faults": []}
        self.log.append(entry | {"usage": None, "delivered": False, "seconds": 0.0} | more)
        return self.log[-1]

    def _refusal(self, key: str, nth: int, entry: dict[str, Any]) -> Response | None:
        if self._capacity is not None and self.busy >= self._capacity:
            return error_response(entry, 429, f"more than {self._capacity} requests at once", "rate_limit_exceeded")
        if self._dice.hits("rate_limit", key, nth):
            return error_response(entry, 429, "slow down", "rate_limit_exceeded", fault="rate_limit")
        if self._dice.hits("rate_limit_after", key, nth):
            headers = {"retry-after": f"{self._retry_after:g}"}
            return error_response(entry, 429, "slow down", "rate_limit_exceeded", headers, fault="rate_limit_after")
        if self._dice.hits("server_error", key, nth):
            return error_response(entry, 500, "the server is having a bad moment", "server_error", fault="server_error")
        return None

    def _serve(self, request: ModelRequest, reply: ModelReply, key: str, nth: int) -> Served:
        text, hit = reply.raw, []
        for fault in _ANSWER_FAULTS if reply.outcome == "ok" and not reply.tool_calls else ():
            spoilt = spoil(text, fault) if self._dice.hits(fault, key, nth) else text
            if spoilt != text:
                text = spoilt
                hit.append(fault)
        finishes = {"truncated": "length", "filtered": "content_filter"}
        finish = "length" if "truncate" in hit else finishes.get(reply.outcome, "tool_calls" if reply.tool_calls else "stop")
        if count_tokens(text) > request.max_tokens:
            text, finish = text.encode()[: 4 * request.max_tokens].decode(errors="ignore"), "length"
        prompt = sum(
            count_tokens(message.content + "".join(c.arguments for c in message.tool_calls)) for message in request.messages
        )
        completion = count_tokens(text + "".join(call.arguments for call in reply.tool_calls))
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        return Served(reply, text, finish, hit, usage, self._dice.seconds(key, nth))

    async def _send(self, parts: list[bytes], seconds: float, broken: bool, entry: dict[str, Any]) -> AsyncIterator[bytes]:
        await asyncio.sleep(seconds)
        for index, part in enumerate(parts):
            if broken and index >= len(parts) // 2:
                raise _Disconnect
            entry["delivered"] = index == len(parts) - 1
            yield part


class _Answer(StreamingResponse):
    """Counts as under way until the last byte, however it ends."""

    def __init__(self, stub: Stub, parts: AsyncIterator[bytes], **more: Any) -> None:
        super().__init__(parts, **more)
        self._stub = stub

    async def __call__(self, *connection: Any) -> None:
        self._stub.busy += 1
        try:
            await super().__call__(*connection)
        finally:
            self._stub.busy -= 1


def serve_stub(stub: Stub, host: str = "127.0.0.1", port: int = 9700) -> None:
    """Serve until interrupted."""
    _server(stub.app(), host, port).run()


@contextmanager
def running_stub(stub: Stub) -> Iterator[str]:
    """The stub on a free loopback port; gives its base URL."""
    with on_loopback(stub.app()) as url:
        yield f"{url}/v1"


@contextmanager
def on_loopback(app: FastAPI) -> Iterator[str]:
    """Serve in a thread. The socket listens before the server runs, so that nobody has to wait for it."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listening:
        server = _server(app, "127.0.0.1", 0)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = server.force_exit = True
            thread.join()


def _server(app: FastAPI, host: str, port: int) -> uvicorn.Server:
    config = uvicorn.Config(app, host=host, port=port, log_level="critical", access_log=False, lifespan="off")
    return uvicorn.Server(config)
