"""What the factory asks of a language model, and what comes back; every backend of `llm/` speaks these types.

An answer that was paid for is always a `ModelReply`, usable or not, so that it is recorded, counted and cached alike; its
`text` can be read only where the answer is whole. What was not answered at all is a `ModelError` (see `errors.py`).
"""

import base64
import hashlib
import json
from array import array
from typing import Annotated, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PlainSerializer, PlainValidator

from awm_factory.errors import AnswerError, EmptyReply, Filtered, Refused, Truncated


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class ToolUse(_Frozen):
    """A call the model asks for. `arguments` is its JSON as written, which may not parse."""

    id: str
    name: str
    arguments: str


class Message(_Frozen):
    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    tool_calls: tuple[ToolUse, ...] = ()
    tool_call_id: str | None = None


class ToolSpec(_Frozen):
    name: str
    description: str
    parameters: dict[str, JsonValue]


class Purpose(_Frozen):
    """Whom a call is made for. Only the ledger and hand-written recordings look at it; it is no part of the content."""

    env_id: str = ""
    stage: str
    item: str = ""
    """The part of a stage that this call makes, where it makes several: a task's id, a vote's number."""
    attempt: int = 1


class ModelRequest(_Frozen):
    messages: tuple[Message, ...]
    max_tokens: int = Field(gt=0)
    temperature: float = 1.0
    tools: tuple[ToolSpec, ...] = ()
    sample: int = 0
    """Tells apart requests of equal content that want independent answers: votes, and a second try after a refusal."""
    purpose: Purpose

    def key(self, model: str = "") -> str:
        """SHA-256 (hex) of the content. With `model`, replies of different models are told apart; recordings leave it out."""
        content = self.model_dump(mode="json", exclude={"purpose"}) | {"model": model}
        return _digest(content)


class Usage(_Frozen):
    """Tokens as the endpoint counted them; `cached` is part of `prompt`, `reasoning` is part of `completion`."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            prompt=self.prompt + other.prompt,
            completion=self.completion + other.completion,
            cached=self.cached + other.cached,
            reasoning=self.reasoning + other.reasoning,
        )


Outcome = Literal["ok", "truncated", "empty", "no_choices", "filtered", "refused"]


class ModelReply(_Frozen):
    model: str
    """The model's name as the endpoint gave it."""
    outcome: Outcome = "ok"
    raw: str = ""
    """Whatever text came, even where it must not be used."""
    detail: str = ""
    """A refusal's own words, or what the filter said."""
    tool_calls: tuple[ToolUse, ...] = ()
    usage: Usage = Usage()
    """Of all `attempts`, so that ledger and endpoint agree."""
    attempts: int = 1
    unmetered: int = 0
    """Attempts that broke off before the endpoint said how many tokens it counted."""
    latency: float = 0.0
    """Seconds from the first attempt to the last byte, waiting between attempts included."""
    cached: bool = False
    """Answered from the store: nothing was sent, nothing is owed."""

    def error(self) -> AnswerError | None:
        """Why the answer can't be used, or None."""
        match self.outcome:
            case "ok":
                return None
            case "truncated":
                return Truncated(
                    f"the answer stops at the token limit after {self.usage.completion} tokens and is incomplete; "
                    "ask for less in one answer, or allow more tokens"
                )
            case "empty":
                return EmptyReply("the answer is empty: no text and no tool call; ask again")
            case "no_choices":
                return EmptyReply("the endpoint answered without any choices; ask again")
            case "filtered":
                return Filtered(
                    f"a content filter withheld the answer ({self.detail or 'content_filter'}); word the request differently"
                )
            case "refused":
                return Refused(f"the model refused: {self.detail or self.raw}; word the request differently")

    @property
    def text(self) -> str:
        """Raises AnswerError where the answer is not whole: no caller can take half an answer by mistake."""
        error = self.error()
        if error is not None:
            raise error
        return self.raw


class Model(Protocol):
    @property
    def name(self) -> str: ...

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Raises ModelError where no answer came at all."""
        ...


Vector = Annotated[
    tuple[float, ...],
    PlainValidator(lambda value: tuple(array("f", base64.b64decode(value))) if isinstance(value, str) else tuple(value)),
    PlainSerializer(lambda value: base64.b64encode(array("f", value).tobytes()).decode(), when_used="json"),
]
"""32-bit floats; base64 in JSON, as the OpenAI API sends them."""


class EmbeddingRequest(_Frozen):
    texts: tuple[str, ...]
    dimensions: int | None = None
    purpose: Purpose

    def key(self, model: str = "") -> str:
        return _digest({"texts": self.texts, "dimensions": self.dimensions, "model": model})


class EmbeddingReply(_Frozen):
    model: str
    vectors: tuple[Vector, ...]
    """One a text, in the request's order."""
    usage: Usage = Usage()
    attempts: int = 1
    unmetered: int = 0
    latency: float = 0.0
    cached: bool = False


class Embedder(Protocol):
    @property
    def name(self) -> str: ...

    async def embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        """Raises ModelError where no vectors came."""
        ...


def conversation(system: str, user: str) -> tuple[Message, ...]:
    return Message(role="system", content=system), Message(role="user", content=user)


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=True).encode()).hexdigest()
