"""What an agent is shown and what it may do: the same that a language model has in a rollout."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import JsonValue

from awm_factory.llm.protocol import ToolSpec
from awm_runtime.contract import ToolCall


@dataclass(frozen=True)
class Step:
    """A call that was made, and what came back."""

    call: ToolCall
    content: JsonValue
    is_error: bool


@dataclass(frozen=True)
class Scene:
    instruction: str
    tools: tuple[ToolSpec, ...]
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Say:
    """The end of an episode."""

    answer: str


Move = ToolCall | Say
Script = Generator[ToolCall, Step, str]
"""Yields calls, is sent what came back, and returns the answer."""


class Agent(Protocol):
    @property
    def name(self) -> str: ...

    def move(self, scene: Scene) -> Move:
        """The next move; the same for the same scene."""
        ...


def played(script: Script, steps: tuple[Step, ...]) -> Move:
    """Where a script stands after these steps: it is played again from its beginning, for agents keep nothing in mind."""
    try:
        call = next(script)
        for step in steps:
            call = script.send(step)
    except StopIteration as end:
        return Say(str(end.value))
    return call


def rows_of(content: JsonValue) -> list[dict[str, Any]]:
    """Objects that a result lists, be it a page, a table or a bare list; the result itself where it is one object."""
    if isinstance(content, list):
        return [row for row in content if isinstance(row, dict)]
    if isinstance(content, dict):
        for key in ("items", "rows", "results", "data"):
            if isinstance(content.get(key), list):
                return rows_of(content[key])
        return [content]
    return []
