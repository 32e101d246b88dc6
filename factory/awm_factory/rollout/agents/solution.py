"""Replays the reference solution of the task that it is given."""

import re
from collections.abc import Mapping
from typing import Any, Final

from awm_factory.bundle import Bundle, Solution
from awm_factory.rollout.agents.protocol import Move, Say, Scene, Step
from awm_runtime.contract import ToolCall

_REFERENCE: Final = re.compile(r"\{\{\s*calls\[(\d+)\]\s*(.*?)\s*\}\}")
_STEP: Final = re.compile(r"\.(\w+)|\[(\d+)\]|\[\?\((.*?)\)\]")
_TEST: Final = re.compile(r"@\.(\w+) == ('(?:[^'\\]|\\.)*'|[^&\s]+)")


class SolutionAgent:
    name = "solution"

    def __init__(self, solutions: Mapping[str, Solution]) -> None:
        """By the task's instruction."""
        self._solutions = solutions

    @classmethod
    def of(cls, bundle: Bundle) -> "SolutionAgent":
        tasks = {task.task_id: task.instruction for task in bundle.tasks}
        return cls({tasks[task_id]: solution for task_id, solution in bundle.solutions.items() if task_id in tasks})

    def move(self, scene: Scene) -> Move:
        solution = self._solutions.get(scene.instruction)
        if solution is None:
            return Say("I do not know this task.")
        if len(scene.steps) < len(solution.calls):
            call = solution.calls[len(scene.steps)]
            return ToolCall(tool=call.tool, arguments=_filled(call.arguments, scene.steps))
        return Say(solution.final_answer or "Done.")


def _filled(value: Any, steps: tuple[Step, ...]) -> Any:
    """References of the solution's format replaced, as far as the JSONPath of solutions goes: keys, places and equal values."""
    if isinstance(value, dict):
        return {key: _filled(item, steps) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, steps) for item in value]
    if isinstance(value, str) and (match := _REFERENCE.fullmatch(value)):
        return found(steps[int(match[1])].content, match[2])
    return value


def found(content: Any, path: str) -> Any:
    """What a path such as `.items[?(@.name == 'Blue Room')].id` leads to; None where it leads nowhere."""
    for key, place, test in _STEP.findall(path):
        if content is None:
            return None
        if key:
            content = content.get(key) if isinstance(content, dict) else None
        elif place:
            content = content[int(place)] if isinstance(content, list) and int(place) < len(content) else None
        else:
            wanted = {name: _value(text) for name, text in _TEST.findall(test)}
            rows = content if isinstance(content, list) else []
            content = next((row for row in rows if all(row.get(name) == value for name, value in wanted.items())), None)
    return content


def _value(text: str) -> Any:
    if text.startswith("'"):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return {"true": True, "false": False, "null": None}.get(text, int(text) if re.fullmatch(r"-?\d+", text) else text)
