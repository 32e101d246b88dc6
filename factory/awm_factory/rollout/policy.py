"""What plays an episode: asked turn by turn, it answers as a language model does.

Any `Model` of `llm/` is one by way of `ModelPolicy`; scripted agents and a trainer's batched model implement `Policy` themselves.
"""

from dataclasses import dataclass
from typing import Protocol

from awm_factory.llm.protocol import Message, Model, ModelReply, ModelRequest, Purpose, ToolSpec
from awm_factory.rollout.record import PlayedCall


@dataclass(frozen=True)
class Turn:
    """One turn of one episode."""

    env_id: str
    task_id: int | None
    sample: int
    number: int
    """From 0."""
    messages: tuple[Message, ...]
    """What a language model is shown: the context of `window.context`."""
    history: tuple[Message, ...]
    """Everything that was said since the episode began, system message and task included."""
    tools: tuple[ToolSpec, ...]
    """The environment's, in both forms of asking."""
    native: bool
    """Whether the tools go to the model beside the messages, and its calls come back beside its text."""
    temperature: float = 1.0
    max_tokens: int = 2048
    calls: tuple[PlayedCall, ...] = ()
    """Those made so far, with what they answered."""


class Policy(Protocol):
    @property
    def name(self) -> str: ...

    async def act(self, turn: Turn) -> ModelReply:
        """Raises ModelError where no answer can be had: the episode is then nobody's to learn from."""
        ...


class ModelPolicy:
    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    async def act(self, turn: Turn) -> ModelReply:
        request = ModelRequest(
            messages=turn.messages,
            max_tokens=turn.max_tokens,
            temperature=turn.temperature,
            tools=turn.tools if turn.native else (),
            sample=turn.sample,
            purpose=Purpose(env_id=turn.env_id, stage="rollout", item=f"{turn.task_id}/{turn.sample}/{turn.number}"),
        )
        return await self._model.complete(request)

    async def close(self) -> None:
        """Give back the model's connections, where it has any."""
        if hasattr(self._model, "close"):
            await self._model.close()
