"""Near misses of a solution: each does almost what the task asks for, and each must be rejected.

They are made of the solution's writing calls alone, for reads change nothing and cost time. Whether a mutant differs at all is
decided by its end: one whose canonical state and answer are the solution's is no near miss.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from awm_factory.certify import answers
from awm_factory.certify.stored import Stored
from awm_factory.certify.trying import Attempt, Leaf, Path, leaves, picked, references, replaced, without
from awm_factory.certify.values import ID, in_other_words, is_free, other_values
from awm_runtime.contract import Tool, ToolCall, WriteSample

_ALL: Final = 5
_COLLATERAL: Final = 4
_WINDOWS: Final = 12
"""Neighbours that a list of rows is moved along to."""
_LOGS: Final = re.compile(r"log|audit|history|activit|event|notification|view|session|search|outbox", re.IGNORECASE)
_UNDO: Final = (
    ("create", "delete"), ("create", "remove"), ("create", "cancel"), ("create", "release"), ("add", "remove"), ("add", "delete"),
    ("assign", "unassign"), ("assign", "clear"), ("join", "leave"), ("book", "cancel"), ("start", "cancel"), ("start", "stop"),
    ("open", "close"), ("open", "cancel"), ("enable", "disable"), ("pause", "resume"), ("lock", "unlock"), ("hold", "release"),
    ("follow", "unfollow"), ("like", "unlike"), ("subscribe", "unsubscribe"), ("publish", "unpublish"), ("archive", "unarchive"),
    ("register", "withdraw"), ("sign_up", "withdraw"), ("enrol", "withdraw"), ("submit", "withdraw"), ("approve", "reject"),
)  # fmt: skip


@dataclass(frozen=True)
class Surroundings:
    """What mutants of any task of one environment are made with."""

    tools: dict[str, Tool]
    stored: Stored
    writes: Sequence[WriteSample]
    """Calls of an exploration that change something, shortest first."""


def near_misses(path: Path, around: Surroundings, most: int) -> list[Attempt]:
    """At most `most`, taken evenly from the kinds there are."""
    kinds: dict[str, list[Attempt]] = {}
    known: set[tuple[object, ...]] = {_signature(path.core, path.solution.final_answer)}
    for attempt in _each(path, around):
        signature = _signature(attempt.calls, attempt.answer)
        if signature not in known:
            known.add(signature)
            kinds.setdefault(attempt.kind, []).append(attempt)
    named = kinds.pop("by its author", [])
    chosen: list[Attempt] = []
    while len(chosen) < most and any(kinds.values()):
        for queue in kinds.values():
            if queue and len(chosen) < most:
                chosen.append(queue.pop(0))
    return named + chosen


def _signature(calls: Sequence[ToolCall], answer: str | None) -> tuple[object, ...]:
    return tuple(call.model_dump_json() for call in calls), answer


def _each(path: Path, around: Surroundings) -> Iterator[Attempt]:
    solution, core, answer = path.solution, path.core, path.solution.final_answer
    task_id = path.task.task_id

    def mutant(kind: str, what: str, calls: Sequence[ToolCall], said: str | None = answer, *, choice: bool = False) -> Attempt:
        return Attempt(task_id, "near_miss", kind, what, tuple(calls), said, choice)

    for variant in solution.near_misses:
        yield mutant("by its author", variant.why, variant.calls, variant.final_answer)
    for index, call in enumerate(core):
        label = f"{call.tool} (write {index + 1} of {len(core)})"
        yield mutant("dropped write", f"{label} is left out", without(core, index))
        tool = around.tools.get(call.tool)
        for leaf in leaves(call.arguments):
            for kind, value in other_values(leaf, tool, around.stored, path):
                shown = f"{label}: {'.'.join(map(str, leaf.where))} is {value!r} instead of {leaf.value!r}"
                free = is_free(kind, leaf, around.stored, path.task.instruction)
                yield mutant(kind, shown, replaced(core, index, leaf.where, value), choice=free)
        twice = [*range(index + 1), index, *range(index + 1, len(core))]
        yield mutant("done twice", f"{label} is done twice", picked(core, twice))
        if (second := in_other_words(call, tool)) is not None:
            yield mutant("done twice", f"{label} is done once more under other names", [*core, second])
        yield from (mutant("done and undone", what, [*core, undo]) for what, undo in _undone(index, path, around))
        others = _same_on_siblings(index, core, tool, around.stored)
        if others:
            yield mutant("collateral", f"{label} is done to another row besides", [*core, others[0]])
        if len(others) > 1:
            yield mutant("all rows", f"{label} is done to {len(others)} other rows besides", [*core, *others])
    for sample in _elsewhere(path, around):
        last = sample.calls[-1]
        yield mutant("collateral", f"besides, {last.tool} changes {', '.join(sample.tables)}", [*core, *sample.calls])
    for first in range(len(core) - 1):
        if _depend(core, first):
            order = [*range(first), first + 1, first, *range(first + 2, len(core))]
            yield mutant("swapped", f"{core[first + 1].tool} comes before {core[first].tool}", picked(core, order))
    if answer and (not core or answers.asks_for_answer(path.task.instruction)):
        for what, text in answers.wrong(answer, path.task.instruction).items():
            yield mutant("wrong answer", f"the right state, but {what}", core, text)
    if core:
        yield mutant("no work", "the right answer, and nothing done", ())


Choice = tuple[str, tuple[ToolCall, ...], str | None]
"""What differs, the calls, and the answer that goes with them."""


def other_choices(path: Path, around: Surroundings) -> Iterator[Choice]:
    """The solution with other rows in place of those that the instruction does not name; each argument in its turn."""
    queues: list[Iterator[Choice]] = []
    for index, call in enumerate(path.core):
        queues += [_moved_lists(index, name, listed, path, around.stored) for name, listed in _lists_of_rows(call).items()]
        queues += [_other_rows(index, leaf, path, around.stored) for leaf in leaves(call.arguments) if ID.search(leaf.name)]
    while queues:
        for queue in list(queues):
            choice = next(queue, None)
            if choice is None:
                queues.remove(queue)
            else:
                yield choice


def _moved_lists(index: int, name: str, listed: list[Leaf], path: Path, stored: Stored) -> Iterator[Choice]:
    """A list of rows, moved along its table as a whole."""
    values = [leaf.value for leaf in listed]
    if any(references(value) or stored.is_named(name, value, path.task.instruction) for value in values):
        return
    rows = stored.siblings(name, values[0])
    for start in range(min(_WINDOWS, max(0, len(rows) - len(values)))):
        others = [row for row in rows[start : start + len(values)] if not isinstance(row, bytes)]
        calls, answer = path.core, path.solution.final_answer
        for leaf, other in zip(listed, others, strict=False):
            calls = replaced(calls, index, leaf.where, other)
            answer = stored.retold(name, leaf.value, other, answer) if answer else answer
        yield f"{path.core[index].tool}: {name} is {others} instead of {values}", calls, answer


def _other_rows(index: int, leaf: Leaf, path: Path, stored: Stored) -> Iterator[Choice]:
    in_list = any(isinstance(step, int) for step in leaf.where)
    if in_list or references(leaf.value) or stored.is_named(leaf.name, leaf.value, path.task.instruction):
        return
    answer = path.solution.final_answer
    for other in stored.siblings(leaf.name, leaf.value)[:_WINDOWS]:
        if not isinstance(other, bytes):
            what = f"{path.core[index].tool}: {leaf.name} is {other!r} instead of {leaf.value!r}"
            told = stored.retold(leaf.name, leaf.value, other, answer) if answer else answer
            yield what, replaced(path.core, index, leaf.where, other), told


def _lists_of_rows(call: ToolCall) -> dict[str, list[Leaf]]:
    """Ids that stand in one list, be it of ids or of objects, by their name."""
    found: dict[str, list[Leaf]] = {}
    for leaf in leaves(call.arguments):
        if ID.search(leaf.name) and any(isinstance(step, int) for step in leaf.where):
            found.setdefault(leaf.name, []).append(leaf)
    return found


def _depend(core: Sequence[ToolCall], first: int) -> bool:
    """True if the next call needs the first one, or speaks of the same row."""
    one, other = core[first], core[first + 1]
    ids = [{(leaf.name, leaf.value) for leaf in leaves(call.arguments) if ID.search(leaf.name)} for call in (one, other)]
    return first in references(other.arguments) or bool(ids[0] & ids[1])


def _same_on_siblings(index: int, core: Sequence[ToolCall], tool: Tool | None, stored: Stored) -> list[ToolCall]:
    """The call again, each time on another row: its path's row where it has one, else the first row it names."""
    call = core[index]
    named = [leaf for leaf in leaves(call.arguments) if ID.search(leaf.name) and not references(leaf.value)]
    in_path = [leaf for leaf in named if tool is not None and "{" + leaf.name + "}" in tool.path]
    for leaf in [*in_path, *named]:
        others = stored.siblings(leaf.name, leaf.value)[:_ALL]
        if others:
            return [replaced(core, index, leaf.where, other)[index] for other in others if not isinstance(other, bytes)]
    return []


def _elsewhere(path: Path, around: Surroundings) -> list[WriteSample]:
    """Writes by tools that the solution does not use; those to tables it leaves alone first, none that only writes a log."""
    used, touched = {call.tool for call in path.core}, set(path.run.changes)
    seen: dict[str, WriteSample] = {}
    for sample in around.writes:
        last = sample.calls[-1]
        if last.tool not in used and not all(_LOGS.search(table) for table in sample.tables):
            seen.setdefault(last.tool, sample)
    return sorted(seen.values(), key=lambda sample: (bool(set(sample.tables) & touched), len(sample.calls)))[:_COLLATERAL]


def _undone(index: int, path: Path, around: Surroundings) -> Iterator[tuple[str, ToolCall]]:
    """Calls that take back what the solution did: the opposite verb on the same row, or the old values put back."""
    call = path.core[index]
    tool = around.tools.get(call.tool)
    result = [result for result, wrote in zip(path.run.results, path.run.wrote, strict=True) if wrote][index]
    made = result.content.get("id") if isinstance(result.content, dict) else None
    own = {leaf.name: leaf.value for leaf in leaves(call.arguments)}
    for name, other in around.tools.items():
        wanted = re.findall(r"\{(\w+)\}", other.path)
        required: Any = other.input_schema.get("required", [])
        if (
            other.method == "GET"
            or not wanted
            or set(required) - set(wanted)
            or name == call.tool
            or not _opposite(call.tool, name)
        ):
            continue
        row = {key: own[key] for key in wanted if key in own}
        if made is not None and len(row) == len(wanted) - 1:
            row |= {key: f"{{{{calls[{index}].id}}}}" for key in wanted if key not in row}
        if len(row) == len(wanted):
            yield f"{name} takes back what {call.tool} did", ToolCall(tool=name, arguments=row)
    if tool is not None and tool.method in ("PUT", "PATCH", "POST"):
        old = _old_values(call, path)
        if old:
            yield f"{call.tool} puts back the old values", ToolCall(tool=call.tool, arguments={**call.arguments, **old})


def _opposite(one: str, other: str) -> bool:
    return any(
        re.search(rf"(?:^|_){do}(?:_|$)", one) and re.search(rf"(?:^|_){undo}(?:_|$)", other)
        for pair in _UNDO
        for do, undo in (pair, pair[::-1])
    )


def _old_values(call: ToolCall, path: Path) -> dict[str, Any]:
    """What the changed columns held before, for arguments of their names."""
    changes = [row for rows in path.run.changes.values() for row in rows if row.before is not None and row.after is not None]
    found: dict[str, Any] = {}
    for row in changes:
        assert row.before is not None and row.after is not None
        for name, value in row.before.items():
            if name in call.arguments and value != row.after.get(name) and call.arguments[name] == row.after.get(name):
                found[name] = bool(value) if isinstance(call.arguments[name], bool) else value
    return found
