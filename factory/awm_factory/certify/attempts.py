"""Which ways through a task are tried, and how many go into one check."""

from collections.abc import Iterable
from concurrent.futures import Future
from itertools import groupby
from typing import Final

from awm_factory.certify import mutants, variants
from awm_factory.certify.trying import Attempt, Path, Tried, picked
from awm_runtime.contract import CheckFailed, TrialsReply

_ENOUGH: Final = 50
"""Trials after which a check holds enough; those of one task stay together."""


Trying = tuple[list[Attempt], "Future[TrialsReply | CheckFailed]"]
"""Trials of one check, and its reply when it is done."""


def collected(trying: list[Trying]) -> tuple[list[Tried], CheckFailed | None]:
    tried, failed = [], None
    for batch, future in trying:
        reply = future.result()
        if isinstance(reply, CheckFailed):
            failed = reply
        else:
            tried += [Tried(attempt, run) for attempt, run in zip(batch, reply.runs, strict=True)]
    return tried, failed


def by_task(attempts: list[Attempt]) -> list[list[Attempt]]:
    """Trials of one task together, for they begin with the same calls and are judged by the same verifier."""
    found: list[list[Attempt]] = []
    for _, group in groupby(sorted(attempts, key=lambda attempt: attempt.task_id), key=lambda attempt: attempt.task_id):
        if not found or len(found[-1]) >= _ENOUGH:
            found.append([])
        found[-1] += group
    return found


def reads(path: Path) -> Iterable[Attempt]:
    """The solution's reads without its writes, and nothing said."""
    order = [index for index, wrote in enumerate(path.run.wrote) if not wrote]
    calls = [call for index, call in enumerate(path.solution.calls) if index in order]
    if calls:
        filled = picked(path.solution.calls, order)
        yield Attempt(path.task.task_id, "reads", "reads only", "its reads, no writes, no answer", filled, "")


def others(path: Path, around: mutants.Surroundings) -> Iterable[Attempt]:
    """All but near misses."""
    answer = path.solution.final_answer
    yield Attempt(path.task.task_id, "control", "writes only", "its writes without its reads", path.core, answer)
    yield from variants.equivalents(path, around)
    yield from variants.alternatives(path, around)
