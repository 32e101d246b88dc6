"""Ways through a task besides its solution: what each is, and how its calls are cut down to those that write."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import JsonValue

from awm_factory.bundle import Solution, Task
from awm_runtime.contract import Tool, ToolCall, Trial, TrialRun

Role = Literal["near_miss", "equivalent", "alternative", "control", "reads"]

_REFERENCE: Final = re.compile(r"\{\{\s*calls\[(\d+)\]")


@dataclass(frozen=True)
class Attempt:
    """One way through a task that a gate wants to see the end of."""

    task_id: int
    role: Role
    kind: str
    """`sibling row`, `wrong answer`, `extra reads` …"""
    what: str
    """What differs from the solution: `call 2 (take_payment): amount_cents 2201 for 2200`."""
    calls: tuple[ToolCall, ...]
    answer: str | None
    choice: bool = False
    """Differs in a row that the instruction does not name, so that it may be nothing but another choice."""
    same_state: bool = False
    """Counts only where its canonical end state is the solution's."""

    def trial(self, seed: int) -> Trial:
        return Trial(calls=list(self.calls), final_answer=self.answer, task_id=self.task_id, seed=seed)


@dataclass(frozen=True)
class Tried:
    attempt: Attempt
    run: TrialRun

    @property
    def complete(self) -> bool:
        return any(verdict.classification == "complete" for verdict in self.run.verdicts)


@dataclass(frozen=True)
class Path:
    """A solution that was played: its calls as given and as filled in, and which of them wrote."""

    task: Task
    solution: Solution
    run: TrialRun
    core: tuple[ToolCall, ...]
    """The writing calls alone; what they took from reads is filled in, what they took from each other still refers to it."""

    @property
    def writes(self) -> bool:
        return bool(self.core)


def path_of(task: Task, solution: Solution, run: TrialRun) -> Path:
    writing = [index for index, wrote in enumerate(run.wrote) if wrote]
    place = {index: number for number, index in enumerate(writing)}
    core = []
    for index in writing:
        call = solution.calls[index]
        filled: Any = run.arguments[index]
        core.append(ToolCall(tool=call.tool, arguments=_kept(call.arguments, filled, place)))
    return Path(task, solution, run, tuple(core))


def _kept(given: Any, filled: Any, place: dict[int, int]) -> Any:
    """`filled`, but for references to calls that stay, which are renumbered."""
    if isinstance(given, dict) and isinstance(filled, dict):
        return {key: _kept(value, filled.get(key), place) for key, value in given.items()}
    if isinstance(given, list) and isinstance(filled, list):
        return [_kept(one, other, place) for one, other in zip(given, filled, strict=False)]
    if isinstance(given, str) and (refers := references(given)):
        if refers <= place.keys():
            return renumbered(given, place)
        return filled
    return given


def references(value: Any) -> set[int]:
    """Numbers of the calls that arguments refer to."""
    if isinstance(value, dict):
        return set().union(*map(references, value.values())) if value else set()
    if isinstance(value, list):
        return set().union(*map(references, value)) if value else set()
    return {int(number) for number in _REFERENCE.findall(value)} if isinstance(value, str) else set()


def renumbered(value: Any, place: dict[int, int]) -> Any:
    if isinstance(value, dict):
        return {key: renumbered(item, place) for key, item in value.items()}
    if isinstance(value, list):
        return [renumbered(item, place) for item in value]
    if isinstance(value, str):
        return _REFERENCE.sub(lambda match: "{{calls[" + str(place.get(int(match[1]), match[1])) + "]", value)
    return value


def without(calls: Sequence[ToolCall], dropped: int) -> tuple[ToolCall, ...]:
    """The calls less one, and less those that need its result."""
    gone = {dropped}
    for index, call in enumerate(calls):
        if references(call.arguments) & gone:
            gone.add(index)
    return picked(calls, [index for index in range(len(calls)) if index not in gone])


def picked(calls: Sequence[ToolCall], order: Iterable[int]) -> tuple[ToolCall, ...]:
    """Calls by their old numbers in a new order, references following them."""
    chosen = list(order)
    place = {old: new for new, old in reversed(list(enumerate(chosen)))}
    return tuple(ToolCall(tool=calls[old].tool, arguments=renumbered(calls[old].arguments, place)) for old in chosen)


def replaced(calls: Sequence[ToolCall], index: int, where: Sequence[str | int], value: JsonValue) -> tuple[ToolCall, ...]:
    """The calls with one argument of one of them changed."""
    changed = list(calls)
    changed[index] = ToolCall(tool=calls[index].tool, arguments=_with(calls[index].arguments, where, value))
    return tuple(changed)


def _with(holder: Any, where: Sequence[str | int], value: JsonValue) -> Any:
    if not where:
        return value
    head, rest = where[0], where[1:]
    if isinstance(holder, list):
        return [_with(item, rest, value) if place == head else item for place, item in enumerate(holder)]
    return {key: _with(item, rest, value) if key == head else item for key, item in holder.items()}


@dataclass(frozen=True)
class Leaf:
    """One scalar among the arguments of a call."""

    where: tuple[str | int, ...]
    name: str
    """The key it stands under; for an item of a list, the list's."""
    value: Any
    """As given; may be a reference."""


def leaves(value: Any, where: tuple[str | int, ...] = (), name: str = "") -> Iterable[Leaf]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*where, key), key)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from leaves(item, (*where, place), name)
    else:
        yield Leaf(where, name, value)


def property_of(tool: Tool | None, where: Sequence[str | int]) -> dict[str, Any]:
    """The JSON Schema of an argument; empty where the tool's own does not tell."""
    schema: Any = tool.input_schema if tool is not None else {}
    for step in where:
        options = [schema, *(schema.get("anyOf") or ()), *(schema.get("oneOf") or ()), *(schema.get("allOf") or ())]
        key = "items" if isinstance(step, int) else "properties"
        found = [option[key] if isinstance(step, int) else option[key].get(step) for option in options if key in option]
        schema = next((one for one in found if one), {})
    return schema if isinstance(schema, dict) else {}
