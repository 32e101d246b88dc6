"""What one endpoint takes for one model, learned from its refusals and remembered, so that a refusal is paid for once.

OpenAI's newer models refuse `max_tokens` and any temperature but 1, older servers refuse `max_completion_tokens`, proxies refuse
`stream`, and each model has a limit of its own. A refused parameter is swapped or dropped, a limit is kept to; a request that was
refused is never sent again as it was.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from awm_factory.llm.protocol import Message, ModelRequest

_TOKEN_NAMES: Final = ("max_tokens", "max_completion_tokens")
_OPTIONAL: Final = (*_TOKEN_NAMES, "temperature", "stream_options", "stream")
_N: Final = r"(\d[\d,_]*)"
_CONTEXT: Final = re.compile(rf"context (?:length|window)\D{{0,20}}{_N}", re.IGNORECASE)
_INPUT: Final = re.compile(
    rf"{_N} (?:input tokens|tokens? (?:from|in) (?:the )?(?:input|prompt|messages)|in the messages)", re.IGNORECASE
)
_MOST: Final = re.compile(
    rf"(?:at most|up to|maximum\D{{0,40}}|less than or equal to|<=|must be (?:under|below|in)\D{{0,12}})\s*{_N}", re.IGNORECASE
)
_ROOM = 64
"""Tokens left free in a context, for what the server adds around the messages."""


@dataclass
class Dialect:
    most_tokens: int | None = None
    """Longest answer of the model, from the table of models or from a refusal."""
    context: int | None = None
    token_name: str | None = "max_tokens"
    """The older name first: servers that don't know a name ignore it, and then an answer is cut after 16 tokens or has no limit,
    while those that want the new name say so."""
    dropped: set[str] = field(default_factory=set)
    characters_per_token: float = 4.0
    proven: set[str] = field(default_factory=set)
    proven_tokens: int = 0
    probing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while something unproven is tried, so that of 64 requests at once one is refused and not 64."""

    def params(self, model: str, request: ModelRequest) -> dict[str, Any]:
        """Body of the HTTP request."""
        params: dict[str, Any] = {"model": model, "messages": [_message(message) for message in request.messages]}
        if self.token_name is not None:
            params[self.token_name] = self._tokens(request)
        if request.tools:
            params["tools"] = [{"type": "function", "function": tool.model_dump(mode="json")} for tool in request.tools]
        optional = {"temperature": request.temperature, "stream": True, "stream_options": {"include_usage": True}}
        return params | {name: value for name, value in optional.items() if name not in self.dropped}

    def is_proven(self, params: Mapping[str, Any]) -> bool:
        return _features(params) <= self.proven and _asked(params) <= self.proven_tokens

    def prove(self, params: Mapping[str, Any]) -> None:
        """The endpoint took them."""
        self.proven |= _features(params)
        self.proven_tokens = max(self.proven_tokens, _asked(params))

    def learn(self, fault: "Fault", params: Mapping[str, Any]) -> bool:
        """Adapt to a refusal of `params`. False where there is nothing to change, so that asking again would be in vain."""
        if self._learn_limit(fault.message, params):
            return True
        candidates = [name for name in _OPTIONAL if name in params]
        named = [name for name in candidates if name == fault.param] or [
            name for name in candidates if re.search(rf"\b{name}\b", fault.message)
        ]
        if not named:
            return False
        if named[0] in _TOKEN_NAMES:
            self.dropped.add(named[0])
            self.token_name = next((name for name in _TOKEN_NAMES if name not in self.dropped), None)
        elif named[0] == "temperature":
            self.dropped.add("temperature")
        else:
            self.without_stream()
        return True

    def without_stream(self) -> None:
        """A stream that can't tell its tokens is given up altogether, since the ledger is to be exact."""
        self.dropped |= {"stream", "stream_options"}

    def _tokens(self, request: ModelRequest) -> int:
        tokens = min(request.max_tokens, self.most_tokens or request.max_tokens)
        if self.context is not None:
            tokens = max(1, min(tokens, self._room(_characters(request))))
        return tokens

    def _room(self, characters: int) -> int:
        """Tokens that a prompt of so many characters leaves for the answer."""
        return (self.context or 0) - int(characters / self.characters_per_token) - _ROOM

    def _learn_limit(self, message: str, params: Mapping[str, Any]) -> bool:
        asked = _asked(params)
        context = _CONTEXT.search(message)
        if context is not None:
            self.context = _number(context[1])
            prompt = _INPUT.search(message)
            characters = sum(len(str(message.get("content", ""))) for message in params["messages"])
            if prompt is not None:
                self.characters_per_token = min(self.characters_per_token, characters / max(_number(prompt[1]), 1))
            return 0 < self._room(characters) < asked
        most = _MOST.search(message)
        if most is not None and any(name in message for name in (*_TOKEN_NAMES, "completion tokens", "output tokens")):
            limit = _number(most[1])
            if 0 < limit < asked:
                self.most_tokens = limit
                return True
        return False


@dataclass(frozen=True)
class Fault:
    """An error as an endpoint words it."""

    message: str
    param: str | None = None
    code: str | None = None

    @classmethod
    def read(cls, body: object) -> "Fault":
        """From the body of an HTTP error: OpenAI's form, what the SDK leaves of it, FastAPI's form, or anything else as text."""
        if not isinstance(body, Mapping):
            return cls(str(body or "no message"))
        inner = body.get("error", body)
        if isinstance(inner, Mapping) and ("message" in inner or "code" in inner):
            param, code = inner.get("param"), inner.get("code") or inner.get("type")
            return cls(str(inner.get("message") or "no message"), str(param) if param else None, str(code) if code else None)
        detail = body.get("detail")
        if isinstance(detail, list) and detail and isinstance(detail[0], Mapping):
            where = detail[0].get("loc") or [""]
            return cls(f"{where[-1]}: {detail[0].get('msg', '')}", param=str(where[-1]))
        return cls(str(detail or inner))


def _message(message: Message) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        wire["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    return wire


def _features(params: Mapping[str, Any]) -> set[str]:
    return {f"{name}={params[name]}" if name == "temperature" else name for name in params}


def _asked(params: Mapping[str, Any]) -> int:
    return max((int(params[name]) for name in _TOKEN_NAMES if name in params), default=0)


def _characters(request: ModelRequest) -> int:
    return sum(len(message.content) for message in request.messages)


def _number(digits: str) -> int:
    return int(re.sub(r"[,_]", "", digits))
