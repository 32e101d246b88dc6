"""Solutions from outside: a file of many, such as a hand-made ground truth, or one trajectory of an agent.

A call's argument may refer to an earlier result as bundles do, `{{calls[0].items[2].id}}`, or as `{"$from": [0, "items.2.id"]}`.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from awm_factory.bundle import Solution, Variant
from awm_factory.errors import UsageError
from awm_factory.ids import env_id
from awm_runtime.contract import ToolCall

_NAMES = ("solution", "calls", "steps", "trajectory")


@dataclass(frozen=True)
class Known:
    """What a file says of one task."""

    env_id: str | None
    task_id: int | None
    solution: Solution
    label: str | None = None
    """The file's own word on the task: `sound`, `unsolvable_data` …"""
    accepted: tuple[bool, ...] = ()
    """Whether each near miss was accepted when the file was made."""


def read_solutions(path: Path) -> list[Known]:
    """Raises UsageError for a file that can't be understood."""
    try:
        text = path.read_text(encoding="utf-8")
        entries = (
            json.loads(text)
            if text.lstrip().startswith("[")
            else [json.loads(line) for line in text.splitlines() if line.strip()]
        )
        return [_known(entry) for entry in entries]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ValidationError) as error:
        raise UsageError(
            f"{path} can't be read as solutions: {error}; it must be a JSON list, or lines, of objects with scenario, task, calls"
        ) from error


def read_trajectory(path: Path) -> Known:
    """One object with `calls` (or `steps`) and `final_answer`, and perhaps `env_id` and `task_id`. Raises UsageError."""
    try:
        return _known(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ValidationError) as error:
        raise UsageError(
            f"{path} can't be read as a trajectory: {error}; it must be an object with calls and final_answer"
        ) from error


def _known(entry: dict[str, Any]) -> Known:
    named = next((entry[name] for name in ("env_id", "scenario") if entry.get(name) is not None), None)
    task = next((entry[name] for name in ("task_id", "task_idx", "task") if entry.get(name) is not None), None)
    near = entry.get("near_misses") or []
    variants = list(entry.get("alternatives") or [])
    return Known(
        env_id=env_id(named) if named is not None else None,
        task_id=int(task) if task is not None else None,
        solution=Solution(
            calls=list(_calls(entry)),
            final_answer=entry.get("final_answer"),
            near_misses=[_variant(one) for one in near],
            alternatives=[_variant(one) for one in variants],
        ),
        label=entry.get("label"),
        accepted=tuple(one.get("verdict") == "complete" for one in near),
    )


def _variant(entry: dict[str, Any]) -> Variant:
    why = " ".join(str(entry[name]) for name in ("kind", "what", "why") if entry.get(name))
    return Variant(why=why or "not said", calls=list(_calls(entry)), final_answer=entry.get("final_answer"))


def _calls(entry: dict[str, Any]) -> Iterator[ToolCall]:
    listed = [entry[name] for name in _NAMES if isinstance(entry.get(name), list)]
    if not listed:
        raise ValueError(f"an entry has none of {', '.join(_NAMES)}")
    for call in listed[0]:
        if "tool" in call or "name" in call:
            yield ToolCall(tool=call.get("tool") or call["name"], arguments=_references(call.get("arguments") or {}))


def _references(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"$from"}:
            index, path = value["$from"]
            steps = "".join(f"[{step}]" if step.isdigit() else f".{step}" for step in str(path).split(".") if step)
            return f"{{{{calls[{index}]{steps}}}}}"
        return {key: _references(item) for key, item in value.items()}
    return [_references(item) for item in value] if isinstance(value, list) else value
