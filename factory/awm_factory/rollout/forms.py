"""The two ways in which a policy calls tools: natively, or in AWM's text form by `list_tools` and `call_tool`.

Whatever looks like a call and is none is a format error. It is never taken for the final answer: a policy would learn to end its
episodes by stuttering.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal, NoReturn, Protocol

from awm_factory import resources
from awm_factory.llm.protocol import Message, ModelReply, ToolSpec, ToolUse

FormName = Literal["native", "text"]

_THINKING: Final = re.compile(r"\A\s*(?:<think>)?.*</think>", re.DOTALL)
_UNFINISHED_THINKING: Final = re.compile(r"\A\s*<think>", re.DOTALL)
_CALL: Final = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_MARK: Final = re.compile(r"</?tool_call>")


@dataclass(frozen=True)
class Call:
    """A call of one of the environment's tools."""

    tool: str
    arguments: dict[str, Any]
    id: str = ""


@dataclass(frozen=True)
class ListTools:
    id: str = ""


@dataclass(frozen=True)
class Ending:
    """The policy's last word. None where it said nothing that could be an answer."""

    text: str | None
    cut: bool = False
    """It reached the limit on tokens, so it is no answer."""


@dataclass(frozen=True)
class FormatError:
    code: Literal["unknown_tool", "arguments", "no_call"]
    why: str
    id: str = ""


Action = Call | ListTools | FormatError


@dataclass(frozen=True)
class Said:
    """A reply, read: either actions in their order, or the end."""

    actions: tuple[Action, ...] = field(default=())
    ending: Ending | None = None


class Form(Protocol):
    native: bool

    def system(self) -> Message: ...

    def read(self, reply: ModelReply, tools: Sequence[ToolSpec]) -> Said: ...

    def said(self, reply: ModelReply) -> Message:
        """The reply as it stands in the history."""
        ...

    def answer(self, action: Action, text: str) -> Message:
        """What came of an action, as the policy reads it."""
        ...


class NativeForm:
    native = True

    def system(self) -> Message:
        return Message(role="system", content=_prompt("rollout_native"))

    def read(self, reply: ModelReply, tools: Sequence[ToolSpec]) -> Said:
        names = {tool.name for tool in tools}
        if reply.tool_calls:
            return Said(tuple(_native(call, names) for call in reply.tool_calls))
        text = _without_thinking(reply.raw or reply.detail)
        if text is not None and _MARK.search(text):
            return Said((FormatError("no_call", "a tool call stands in the text, where no call can be read from it"),))
        return Said(ending=_ending(text, reply))

    def said(self, reply: ModelReply) -> Message:
        return Message(role="assistant", content=reply.raw or reply.detail, tool_calls=reply.tool_calls)

    def answer(self, action: Action, text: str) -> Message:
        if not action.id:
            return Message(role="user", content=text)
        return Message(role="tool", content=text, tool_call_id=action.id)


class TextForm:
    native = False

    def system(self) -> Message:
        return Message(role="system", content=_prompt("rollout_text"))

    def read(self, reply: ModelReply, tools: Sequence[ToolSpec]) -> Said:
        text = _without_thinking(reply.raw or reply.detail)
        if text is None or not _MARK.search(text):
            return Said(ending=_ending(text, reply))
        names = {tool.name for tool in tools}
        actions = [_spelled(body, names) for body in _CALL.findall(text)]
        if _MARK.search(_CALL.sub("", text)):
            actions.append(FormatError("no_call", "a <tool_call> has no end, or an end no beginning"))
        return Said(tuple(actions))

    def said(self, reply: ModelReply) -> Message:
        return Message(role="assistant", content=reply.raw or reply.detail)

    def answer(self, action: Action, text: str) -> Message:
        return Message(role="user", content=f"<tool_response>\n{text}\n</tool_response>")


FORMS: Final[dict[FormName, Form]] = {"native": NativeForm(), "text": TextForm()}


def listing(tools: Sequence[ToolSpec]) -> str:
    """What `list_tools` answers."""
    return json.dumps([tool.model_dump(mode="json") for tool in tools], ensure_ascii=False)


def _native(call: ToolUse, names: set[str]) -> Action:
    try:
        arguments = _json(call.arguments) if call.arguments.strip() else {}
    except ValueError as error:
        return FormatError("arguments", f"the arguments of {call.name} are no JSON: {error}", call.id)
    return _call(call.name, arguments, names, call.id)


def _spelled(body: str, names: set[str]) -> Action:
    """One call between its marks. Arguments of `call_tool` are an object, or its JSON in a string, as AWM's agent writes it."""
    try:
        value = _json(body)
        name, outer = value["name"], value.get("arguments") or {}
        outer = _json(outer) if isinstance(outer, str) else outer
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        return FormatError("arguments", f'a <tool_call> is no JSON object with "name" and "arguments": {error!r}')
    if name == "list_tools":
        return ListTools()
    if name != "call_tool":
        return FormatError("unknown_tool", f"there is no function {name!r}; the two are list_tools and call_tool")
    try:
        tool, arguments = outer["tool_name"], outer.get("arguments") or {}
        arguments = _json(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        return FormatError("arguments", f"call_tool wants tool_name and arguments, a JSON object: {error!r}")
    return _call(tool, arguments, names)


def _call(name: object, arguments: object, names: set[str], call_id: str = "") -> Action:
    if not isinstance(name, str) or name not in names:
        return FormatError("unknown_tool", f"there is no tool {name!r}", call_id)
    if not isinstance(arguments, dict):
        return FormatError("arguments", f"the arguments of {name} are {type(arguments).__name__}, not a JSON object", call_id)
    return Call(name, arguments, call_id)


def _json(text: str) -> Any:
    """Raises ValueError, for NaN and its like, too, which no JSON can hold."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _without_thinking(text: str) -> str | None:
    """None where the thinking never ends: there is no answer behind it."""
    rest = _THINKING.sub("", text, count=1)
    return None if _UNFINISHED_THINKING.match(rest) else rest.strip()


def _ending(text: str | None, reply: ModelReply) -> Ending:
    cut = reply.outcome == "truncated" or text is None
    return Ending(None if cut else text or None, cut)


@cache
def _prompt(name: str) -> str:
    return (resources.templates() / "prompts" / f"{name}.j2").read_text(encoding="utf-8").strip()
