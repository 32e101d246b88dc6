"""Which call an exploration makes next: the beginning of a script, its last call varied or taken to an edge, or one at random."""

import random
from collections.abc import Iterator, Mapping
from typing import Any, Final

from awm_runtime.arguments import Maker
from awm_runtime.contract import Tool, ToolCall, ToolResult, ToolUse
from awm_runtime.references import filled_in

_SCRIPTED: Final = 0.4
"""Share of runs that begin with a part of a script."""
_VARIED: Final = 0.6
"""Share of scripts whose last call has an argument of chance's."""
_EDGES: Final = 40
"""Calls with a number one higher or lower than a script has it."""

Path = tuple[str | int, ...]


class Errands:
    def __init__(self, tools: list[Tool], scripts: list[list[ToolCall]], uses: Mapping[str, ToolUse]) -> None:
        """`uses` grows while the exploration goes on."""
        self._tools, self._scripts, self._uses = tools, scripts, uses
        self._by_name = {tool.name: tool for tool in tools}

    def script(self, chance: random.Random) -> list[ToolCall]:
        """The beginning of a script, for some runs; rather one that ends with a tool which has not worked yet."""
        if not self._scripts or chance.random() > _SCRIPTED:
            return []
        unseen = [
            script[: place + 1]
            for script in self._scripts
            for place, call in enumerate(script)
            if self._writes(call.tool) and not self._uses.get(call.tool, ToolUse()).ok
        ]
        if unseen and chance.random() < _VARIED:
            return chance.choice(unseen)
        script = chance.choice(self._scripts)
        return script[: chance.randint(1, len(script))] if script else []

    def scripted(self, script: list[ToolCall], results: list[ToolResult], maker: Maker) -> ToolCall | None:
        """The script's next call; the last one with one argument of chance's. None behind its end, or where it can't go on."""
        place = len(results)
        if place >= len(script) or script[place].tool not in self._by_name:
            return None
        try:
            arguments = filled_in(script[place].arguments, results)
        except LookupError:
            return None
        if place == len(script) - 1 and arguments and maker.random.random() < _VARIED:
            schema: Any = self._by_name[script[place].tool].input_schema
            name = maker.random.choice(sorted(arguments))
            value, other = arguments[name], maker.value(schema.get("properties", {}).get(name, {}), name)
            if isinstance(value, int) and not isinstance(value, bool):
                other = maker.random.choice([value + 1, value - 1, value * 2, other])  # the edges of what is allowed
            arguments = {**arguments, name: other}
        return ToolCall(tool=script[place].tool, arguments=arguments)

    def at_random(self, maker: Maker) -> ToolCall:
        """Tools that have worked least come most."""
        weights = []
        for tool in self._tools:
            use = self._uses.get(tool.name, ToolUse())
            weights.append((3.0 if tool.method != "GET" else 1.0) / (1 + use.ok * 2 + use.calls / 3))
        tool = maker.random.choices(self._tools, weights)[0]
        return ToolCall(tool=tool.name, arguments=maker.arguments(tool.input_schema))

    def edges(self) -> list[tuple[list[ToolCall], Path, int]]:
        """Beginnings of scripts that end with a writing call, a number in it that is no id, and by how much to move that."""
        found: dict[tuple[str, Path, int], tuple[list[ToolCall], Path, int]] = {}
        for script in self._scripts:
            for place, call in enumerate(script):
                if self._writes(call.tool):
                    for path in numbers(call.arguments):
                        for step in (1, -1):
                            found.setdefault((call.tool, path, step), (script[: place + 1], path, step))
        return list(found.values())[:_EDGES]

    def _writes(self, name: str) -> bool:
        tool = self._by_name.get(name)
        return tool is not None and tool.method != "GET"


def numbers(value: Any, path: Path = ()) -> Iterator[Path]:
    """Where numbers stand that are no ids; a reference to an earlier result may turn out to be one."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not key.lower().endswith(("id", "ids")):
                yield from numbers(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value[:2]):
            yield from numbers(inner, (*path, place))
    elif (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, str) and value.startswith("{{")):
        yield path


def moved(value: Any, path: Path, step: int) -> Any:
    """`value` with the number at `path` moved; None where there is none."""
    if not path:
        return value + step if isinstance(value, int) and not isinstance(value, bool) else None
    head, rest = path[0], path[1:]
    try:
        inner = moved(value[head], rest, step)
    except (LookupError, TypeError):
        return None
    if inner is None:
        return None
    if isinstance(value, list):
        return [inner if place == head else one for place, one in enumerate(value)]
    return {**value, head: inner}
