"""Equivalents of a solution, which must be accepted as it is; and other choices, where the task leaves one open."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from awm_factory.certify import answers
from awm_factory.certify.mutants import Surroundings, other_choices
from awm_factory.certify.trying import Attempt, Path, picked, references, renumbered
from awm_runtime.contract import ToolCall

_SEARCHED: Final = 24
"""Other choices that are looked at for a task that leaves one open."""


def equivalents(path: Path, around: Surroundings) -> Iterator[Attempt]:
    solution, core, answer = path.solution, path.core, path.solution.final_answer
    task_id, instruction = path.task.task_id, path.task.instruction
    reads = [tool.name for tool in around.tools.values() if tool.method == "GET" and not tool.input_schema.get("required")]
    calls = list(solution.calls)
    extra = [ToolCall(tool=name, arguments={}) for name in reads[:2]]
    if extra:
        place = {old: old + len(extra) for old in range(len(calls))}
        shifted = [ToolCall(tool=call.tool, arguments=renumbered(call.arguments, place)) for call in calls]
        yield Attempt(task_id, "equivalent", "extra reads", f"{', '.join(reads[:2])} first", (*extra, *shifted), answer)
    again = [index for index, wrote in enumerate(path.run.wrote) if not wrote]
    if again and core:
        order = [*range(len(calls)), again[-1]]
        what = f"{calls[again[-1]].tool} once more at the end"
        yield Attempt(task_id, "equivalent", "extra reads", what, picked(calls, order), answer)
    for first in range(len(core) - 1):
        if first not in references(core[first + 1].arguments):
            order = [*range(first), first + 1, first, *range(first + 2, len(core))]
            what = f"{core[first + 1].tool} before {core[first].tool}"
            yield Attempt(task_id, "equivalent", "writes reordered", what, picked(core, order), answer, same_state=True)
    if answer:
        for what, text in answers.other_dress(answer, instruction).items():
            yield Attempt(task_id, "equivalent", "answer in other dress", what, core, text)
    if core and not answers.may_ask(instruction):
        yield Attempt(task_id, "equivalent", "answer nobody asked for", "it says no more than Done.", core, "Done.")


def alternatives(path: Path, around: Surroundings) -> Iterator[Attempt]:
    """What the author names; and, where the instruction leaves a choice open, other rows in place of those it does not name."""
    task_id = path.task.task_id
    for variant in path.solution.alternatives:
        yield Attempt(task_id, "alternative", "by its author", variant.why, tuple(variant.calls), variant.final_answer)
    if answers.leaves_open(path.task.instruction) is None:
        return
    for what, calls, told in islice(other_choices(path, around), _SEARCHED):
        yield Attempt(task_id, "alternative", "another choice", what, calls, told)
