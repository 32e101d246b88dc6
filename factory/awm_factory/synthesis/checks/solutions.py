"""Solutions: nothing in them may be known that neither the task says nor a tool has shown."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import JsonValue

from awm_factory.problems import Problem
from awm_factory.synthesis.checks.finding import error, excerpt
from awm_runtime.contract import ToolCall, ToolResult

GATE: Final = "solutions"
CURRENT_USER: Final = 1
_ME: Final = re.compile(r"\b(?:with|to|by|as) (?:me|myself)\b|\bmyself\b", re.I)
"""A task that names its user as a party to what is done, and not only as whoever is told of it."""
_ID: Final = re.compile(r"(^|_)ids?\Z")
_SHOWN = 600
"""Characters of one result in a transcript."""


def check(task_id: int, task: str, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> Iterator[Problem]:
    shown: set[str] = set()
    words = set(re.findall(r"[\w.-]+", task))
    for number, (call, result) in enumerate(zip(calls, results, strict=False)):
        for name, value in _ids(call.arguments):
            known = str(value) in shown or str(value) in words or str(value) in task
            if not known and not (value == CURRENT_USER and ("user" in name or _ME.search(task))):
                yield error(
                    GATE,
                    f"task {task_id}, call {number}",
                    f"{call.tool} is given {name} = {value!r}, which neither the task says nor an earlier call showed.",
                    "Find it out by a call first; where no tool shows it, blame the spec.",
                    task_id,
                )
        shown |= set(_leaves(result.content))


def _ids(arguments: JsonValue, name: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Identifiers among arguments, as written; a reference to an earlier result is shown by being one."""
    if isinstance(arguments, dict):
        for key, value in arguments.items():
            yield from _ids(value, key)
    elif isinstance(arguments, list):
        for value in arguments:
            yield from _ids(value, name)
    elif _ID.search(name) and arguments is not None and not (isinstance(arguments, str) and "{{" in arguments):
        yield name, arguments


def _leaves(value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    elif value is not None:
        yield str(value)


def transcript(calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> str:
    """What was called and what came back, for the model to argue from."""
    lines = []
    for number, (call, result) in enumerate(zip(calls, results, strict=False)):
        answer = excerpt(json.dumps(result.content, ensure_ascii=False), _SHOWN)
        said = json.dumps(call.arguments, ensure_ascii=False)
        lines.append(f"call {number}: {call.tool}({said}) -> {result.kind} {result.status or ''} {answer}")
    return "; ".join(lines) or "no call was made"
