"""Calls tools at random, with arguments that their schemas allow and ids that were seen."""

import hashlib
import random
from typing import Any, Final

from awm_factory.rollout.agents.protocol import Move, Say, Scene
from awm_factory.rollout.agents.tooling import Property, Tool, understood
from awm_runtime.contract import ToolCall

_CALLS: Final = 8


class RandomAgent:
    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def move(self, scene: Scene) -> Move:
        if len(scene.steps) >= _CALLS or not scene.tools:
            return Say("Done.")
        rng = self._draws(scene)
        tool = rng.choice(understood(scene.tools))
        return ToolCall(tool=tool.name, arguments=_arguments(tool, rng, scene))

    def _draws(self, scene: Scene) -> random.Random:
        digest = hashlib.sha256(f"{self._seed}\0{scene.instruction}\0{len(scene.steps)}".encode()).digest()
        return random.Random(int.from_bytes(digest, "big"))


def _arguments(tool: Tool, rng: random.Random, scene: Scene) -> dict[str, Any]:
    chosen = {}
    for one in tool.properties.values():
        if one.required or rng.random() < 0.2:
            chosen[one.name] = _value(one, rng, scene)
    return chosen


def _value(one: Property, rng: random.Random, scene: Scene) -> Any:
    if one.enum:
        return rng.choice(one.enum)
    if one.kind == "boolean":
        return rng.random() < 0.5
    if one.kind in ("integer", "number"):
        seen = _seen(one.name, scene) if one.is_id else []
        low = int(one.options[0].get("minimum", 0)) if one.options else 0
        return rng.choice(seen) if seen else rng.randint(low, low + 20)
    if one.kind == "array":
        return []
    if one.form == "date":
        return f"2026-01-{rng.randint(1, 28):02}"
    if one.form == "date-time":
        return f"2026-01-{rng.randint(1, 28):02}T{rng.randint(8, 18):02}:00:00"
    words = scene.instruction.split()
    return " ".join(words[: rng.randint(1, min(3, len(words)))])


def _seen(name: str, scene: Scene) -> list[Any]:
    found: list[Any] = []
    for step in scene.steps:
        _collect(step.content, name, found)
    return found


def _collect(content: Any, name: str, found: list[Any]) -> None:
    if isinstance(content, dict):
        for key, value in content.items():
            if key in (name, "id") and isinstance(value, int):
                found.append(value)
            _collect(value, name, found)
    elif isinstance(content, list):
        for item in content:
            _collect(item, name, found)
