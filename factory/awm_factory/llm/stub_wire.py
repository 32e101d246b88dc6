"""The OpenAI API's bodies as the stub server reads and writes them."""

import hashlib
import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from fastapi.responses import JSONResponse, Response

from awm_factory.llm.protocol import Message, ModelReply, ModelRequest, Purpose, ToolSpec, ToolUse

CREATED: Final = 1_767_225_600
DIMENSIONS: Final = 3072
_PIECE: Final = 400
"""Characters in one chunk of a stream."""


def count_tokens(text: str) -> int:
    """Four bytes a token: near enough to be paid in play money, and easy to check."""
    return math.ceil(len(text.encode()) / 4)


@dataclass(frozen=True)
class Served:
    """An answer ready to be sent."""

    reply: ModelReply
    text: str
    finish: str
    faults: list[str]
    usage: dict[str, int]
    seconds: float


def embedding(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Words and their trigrams hashed into a unit vector: texts that share words are near each other, without any model."""
    counts: Counter[int] = Counter()
    for word in re.findall(r"\w+", text.lower()):
        for piece in [word, *(f" {word} "[i : i + 3] for i in range(len(word)))]:
            counts[int.from_bytes(hashlib.sha256(piece.encode()).digest()[:6]) % dimensions] += 1
    length = math.sqrt(sum(count * count for count in counts.values())) or 1.0
    return [counts[index] / length for index in range(dimensions)]


def read_request(body: dict[str, Any], header: str | None) -> ModelRequest:
    """The request as the client had it: what the header says wins over what an endpoint's dialect left of it in the body."""
    messages = tuple(
        Message(
            role=message["role"],
            content=message.get("content") or "",
            tool_calls=tuple(
                ToolUse(id=call["id"], name=call["function"]["name"], arguments=call["function"]["arguments"])
                for call in message.get("tool_calls") or []
            ),
            tool_call_id=message.get("tool_call_id"),
        )
        for message in body["messages"]
    )
    tools = tuple(ToolSpec.model_validate(tool["function"]) for tool in body.get("tools") or [])
    said = {
        "max_tokens": body.get("max_completion_tokens") or body.get("max_tokens") or 4096,
        "temperature": body.get("temperature", 1.0),
        "sample": body.get("seed") or 0,
        "purpose": Purpose(stage="unknown"),
    }
    return ModelRequest.model_validate({"messages": messages, "tools": tools} | said | json.loads(header or "{}"))


def completion(body: dict[str, Any], served: Served) -> dict[str, Any]:
    if served.reply.outcome == "no_choices":
        return _envelope(body, "chat.completion", [], served.usage)
    choice = {"index": 0, "finish_reason": served.finish, "message": {"role": "assistant", **_content(served, served.text)}}
    return _envelope(body, "chat.completion", [choice], served.usage)


def chunks(body: dict[str, Any], served: Served) -> list[bytes]:
    pieces = [served.text[start : start + _PIECE] for start in range(0, len(served.text), _PIECE)] or [""]
    deltas: list[dict[str, Any]] = [{"role": "assistant", **_content(served, pieces[0])}]
    deltas += [{"content": piece} for piece in pieces[1:]]
    finishes = [None] * (len(deltas) - 1) + [served.finish]
    choices: list[list[dict[str, Any]]] = [
        [{"index": 0, "delta": delta, "finish_reason": finish}] for delta, finish in zip(deltas, finishes, strict=True)
    ]
    if served.reply.outcome == "no_choices":
        choices = [[]]
    sent = [_envelope(body, "chat.completion.chunk", choice, None) for choice in choices]
    if (body.get("stream_options") or {}).get("include_usage"):
        sent.append(_envelope(body, "chat.completion.chunk", [], served.usage))
    return [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in sent] + [b"data: [DONE]\n\n"]


def _content(served: Served, text: str) -> dict[str, Any]:
    if served.reply.outcome == "refused":
        return {"content": None, "refusal": served.reply.detail}
    content: dict[str, Any] = {"content": text or None}
    if served.reply.tool_calls:
        content["tool_calls"] = [
            {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for index, call in enumerate(served.reply.tool_calls)
        ]
    return content


def _envelope(body: dict[str, Any], kind: str, choices: list[dict[str, Any]], usage: dict[str, int] | None) -> dict[str, Any]:
    return {
        "id": "stub",
        "object": kind,
        "created": CREATED,
        "model": body.get("model"),
        "choices": choices,
        "usage": usage,
    }


def error_response(
    entry: dict[str, Any], status: int, message: str, code: str, headers: dict[str, str] | None = None, fault: str | None = None
) -> Response:
    entry |= {"status": status, "faults": [fault] if fault else [], "usage": None, "delivered": False}
    return JSONResponse({"error": {"message": message, "type": code, "code": code}}, status, headers)
