"""Policies that remember token ids: one that batches the turns of many episodes for a model in this process, one at an endpoint.

Both show a turn to the model by `rendered`, and the trainer learns from the very ids that it gave.
"""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from awm_factory.llm.protocol import Message, ModelReply, ToolSpec, ToolUse, Usage
from awm_factory.rollout import Chosen, Policy, Turn

_CALL: Final = re.compile(r"\s*<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)


class Tokenizer(Protocol):
    """What is used of one of transformers'."""

    eos_token_id: int

    def apply_chat_template(self, conversation: list[dict[str, Any]], **options: Any) -> Any: ...

    def decode(self, token_ids: list[int], *, skip_special_tokens: bool) -> str: ...


@dataclass(frozen=True)
class Row:
    """One turn: what the model was shown, and what it said."""

    prompt_ids: list[int]
    completion_ids: list[int]
    logprobs: list[float] | None = None


@dataclass(frozen=True)
class Generated:
    ids: list[int]
    logprobs: list[float] | None = None


Generate = Callable[[list[list[int]]], list[Generated]]
"""Completions of prompts, each up to its end token, or cut at the limit."""


def rendered(
    tokenizer: Tokenizer, messages: Sequence[Message], tools: Sequence[ToolSpec], template: dict[str, Any] | None = None
) -> list[int]:
    """Ids of a prompt. `template`: options of the chat template, such as enable_thinking."""
    shown = [{"type": "function", "function": tool.model_dump(mode="json")} for tool in tools]
    return list(
        tokenizer.apply_chat_template(
            [_dict(message) for message in messages],
            tools=shown or None,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=False,
            **(template or {}),
        )
    )


def parsed(text: str, model: str, usage: Usage, *, whole: bool, native: bool) -> ModelReply:
    """A completion as the rollout reads it. What can't be read as a call stays in the text, where it is a format error."""
    calls: list[ToolUse] = []

    def take(match: re.Match[str]) -> str:
        try:
            call = json.loads(match[1])
            name, arguments = call["name"], call.get("arguments", {})
        except (ValueError, LookupError, TypeError):
            return match[0]
        spelled = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        calls.append(ToolUse(id=f"call_{len(calls)}", name=str(name), arguments=spelled))
        return ""

    raw = _CALL.sub(take, text).strip() if native and whole else text
    outcome = "ok" if whole and (raw or calls) else "truncated" if not whole else "empty"
    return ModelReply(model=model, outcome=outcome, raw=raw, tool_calls=tuple(calls), usage=usage)


@dataclass
class _Rows:
    """Turns by episode."""

    of: dict[tuple[str, int | None, int], list[Row]] = field(default_factory=dict)

    def add(self, turn: Turn, row: Row) -> None:
        self.of.setdefault((turn.env_id, turn.task_id, turn.sample), []).append(row)

    def take(self, chosen: Chosen) -> list[Row]:
        return self.of.pop((chosen.env_id, chosen.task_id, chosen.sample), [])


class BatchedPolicy:
    """Waits until all episodes under way have asked for their next turn, or a batch is full, and generates them at once."""

    name = "in-process"

    def __init__(
        self, generate: Generate, tokenizer: Tokenizer, *, batch: int = 64, template: dict[str, Any] | None = None
    ) -> None:
        self._generate, self._tokenizer, self._batch, self._template = generate, tokenizer, batch, template
        self._waiting: list[tuple[Turn, list[int], asyncio.Future[Generated]]] = []
        self._playing = 0
        self._busy = False
        self._rows = _Rows()

    def begin(self) -> None:
        """Another episode is under way."""
        self._playing += 1

    def end(self, chosen: Chosen) -> list[Row]:
        """One is over; returns its turns."""
        self._playing -= 1
        self._look()
        return self._rows.take(chosen)

    async def act(self, turn: Turn) -> ModelReply:
        tokenizer = self._tokenizer
        prompt = rendered(tokenizer, turn.messages, turn.tools if turn.native else (), self._template)
        future: asyncio.Future[Generated] = asyncio.get_running_loop().create_future()
        self._waiting.append((turn, prompt, future))
        self._look()
        made = await future
        self._rows.add(turn, Row(prompt, made.ids, made.logprobs))
        whole = made.ids[-1:] == [tokenizer.eos_token_id]
        text = tokenizer.decode(made.ids[: len(made.ids) - whole], skip_special_tokens=True)
        usage = Usage(prompt=len(prompt), completion=len(made.ids))
        return parsed(text, self.name, usage, whole=whole, native=turn.native)

    def _look(self) -> None:
        if not self._busy and self._waiting and len(self._waiting) >= min(self._playing, self._batch):
            self._busy = True
            asyncio.ensure_future(self._run())  # noqa: RUF006 -- whoever waits for its futures keeps the loop going

    async def _run(self) -> None:
        batch, self._waiting = self._waiting[: self._batch], self._waiting[self._batch :]
        # By the same order whoever was first, the same seed samples the same.
        batch.sort(key=lambda waiting: (waiting[0].env_id, waiting[0].task_id or 0, waiting[0].sample))
        try:
            made = await asyncio.to_thread(self._generate, [prompt for _, prompt, _ in batch])
            for (_, _, future), one in zip(batch, made, strict=True):
                future.set_result(one)
        except BaseException as error:  # whoever waits must be told, whatever it is
            for _, _, future in batch:
                if not future.done():
                    future.set_exception(error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._busy = False
            self._look()


class EndpointPolicy:
    """Any policy, such as `ModelPolicy` at vLLM, whose turns are turned into ids here: an endpoint answers in text.

    Whoever trains by it sees to it that the endpoint has the weights of the step.
    """

    def __init__(self, inner: Policy, tokenizer: Tokenizer, *, template: dict[str, Any] | None = None) -> None:
        self._inner, self._tokenizer, self._template = inner, tokenizer, template
        self._rows = _Rows()

    @property
    def name(self) -> str:
        return self._inner.name

    def begin(self) -> None:
        """The endpoint batches by itself."""

    def end(self, chosen: Chosen) -> list[Row]:
        return self._rows.take(chosen)

    async def act(self, turn: Turn) -> ModelReply:
        reply = await self._inner.act(turn)
        tools = turn.tools if turn.native else ()
        prompt = rendered(self._tokenizer, turn.messages, tools, self._template)
        self._rows.add(turn, Row(prompt, spoken(self._tokenizer, reply)))
        return reply


def spoken(tokenizer: Tokenizer, reply: ModelReply) -> list[int]:
    """Ids of a reply as the model would have said it: its text, its calls, its end."""
    calls = [f'<tool_call>\n{{"name": "{call.name}", "arguments": {call.arguments}}}\n</tool_call>' for call in reply.tool_calls]
    text = "\n".join([*([reply.raw] if reply.raw else []), *calls])
    ids = list(tokenizer(text, add_special_tokens=False)["input_ids"])  # type: ignore[operator]
    return ids if reply.outcome == "truncated" else [*ids, tokenizer.eos_token_id]


def _dict(message: Message) -> dict[str, Any]:
    shown: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        shown["tool_calls"] = [
            {"type": "function", "id": call.id, "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        shown["tool_call_id"] = message.tool_call_id
    return shown
