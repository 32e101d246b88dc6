"""What trials of one task came to: which near misses were rejected, which are none, which equivalents were accepted."""

from dataclasses import dataclass, field
from typing import Any, Final

from awm_factory.certify import answers
from awm_factory.certify.trying import Path, Tried
from awm_runtime.contract import RowChange

_TOLD: Final = 5
"""Mutants told that are another choice and so no near miss."""


@dataclass(frozen=True)
class Weighed:
    killed: list[Tried] = field(default_factory=list)
    survivors: list[Tried] = field(default_factory=list)
    equivalent: list[Tried] = field(default_factory=list)
    """Mutants that end where the solution ends, and say what it says."""
    choices: list[Tried] = field(default_factory=list)
    """Accepted mutants that end as an alternative of the author's, or that change the same elsewhere where it is left open."""
    accepted: list[Tried] = field(default_factory=list)
    """Equivalents that are complete."""
    rejected: list[Tried] = field(default_factory=list)
    alternatives: list[Tried] = field(default_factory=list)
    """Alternatives of its author."""
    searched: list[Tried] = field(default_factory=list)
    """Other choices that were tried, for a task that leaves one open."""
    broken: list[Tried] = field(default_factory=list)
    """Trials that the verifier gave no verdict on."""
    unplayed: list[Tried] = field(default_factory=list)

    def rates(self) -> dict[str, Any]:
        kinds = sorted({one.attempt.kind for one in [*self.killed, *self.survivors]})
        found: dict[str, Any] = {
            "near_misses": len(self.killed) + len(self.survivors),
            "killed": len(self.killed),
            "equivalent_mutants": len(self.equivalent),
            "equivalents": len(self.accepted) + len(self.rejected),
            "accepted": len(self.accepted),
            "by_kind": {
                kind: [sum(one.attempt.kind == kind for one in side) for side in (self.killed, [*self.killed, *self.survivors])]
                for kind in kinds
            },
        }
        if self.choices:
            found["other_choices"] = [one.attempt.what for one in self.choices[:_TOLD]]
        if self.alternatives:
            found["alternatives"] = len(self.alternatives)
            found["alternatives_accepted"] = sum(one.complete for one in self.alternatives)
        if self.searched:
            found["choices_tried"] = len(self.searched)
            found["choices_accepted"] = sum(one.complete for one in self.searched)
        return found


def weigh(path: Path, tried: list[Tried]) -> Weighed:
    weighed = Weighed()
    is_open = answers.leaves_open(path.task.instruction) is not None
    named = [one for one in tried if one.attempt.kind == "by its author" and one.attempt.role == "alternative"]
    ends = {(one.run.state, answer) for one in named for answer in (one.attempt.answer, path.solution.final_answer)}
    for one in tried:
        attempt, run = one.attempt, one.run
        if attempt.role in ("control", "reads"):
            continue
        same = run.state == path.run.state
        if run.error is not None:
            weighed.unplayed.append(one)
        elif any(verdict.error is not None for verdict in run.verdicts):
            weighed.broken.append(one)
        elif attempt.role == "near_miss":
            if same and attempt.answer == path.solution.final_answer:
                weighed.equivalent.append(one)
            elif not one.complete:
                weighed.killed.append(one)
            elif (run.state, attempt.answer) in ends or (
                is_open and attempt.choice and _shape(run.changes) == _shape(path.run.changes)
            ):
                weighed.choices.append(one)
            else:
                weighed.survivors.append(one)
        elif attempt.role == "equivalent":
            if attempt.same_state and not same:
                continue
            (weighed.accepted if one.complete else weighed.rejected).append(one)
        elif attempt.kind == "by its author":
            weighed.alternatives.append(one)
        elif not same and _shape(one.run.changes) == _shape(path.run.changes):
            weighed.searched.append(one)
    return weighed


def _shape(changes: dict[str, list[RowChange]]) -> list[tuple[str, str, tuple[str, ...]]]:
    """What was done to which tables, whatever the rows are."""
    found: list[tuple[str, str, tuple[str, ...]]] = []
    for table, rows in changes.items():
        for row in rows:
            if row.before is None or row.after is None:
                found.append((table, "added" if row.before is None else "removed", ()))
            else:
                changed = tuple(sorted(name for name in row.after if row.after[name] != row.before.get(name)))
                found.append((table, "changed", changed))
    return sorted(found)


def difference(path: Path, one: Tried, most: int = 4) -> str:
    """How an end differs from the solution's, in words: the rows that only one of the two has changed, or changed otherwise."""
    told = []
    for table in sorted(path.run.changes.keys() | one.run.changes.keys()):
        wanted = {_key(row): row for row in path.run.changes.get(table, [])}
        found = {_key(row): row for row in one.run.changes.get(table, [])}
        for key in [*wanted, *(key for key in found if key not in wanted)]:
            text = _row_difference(wanted.get(key), found.get(key))
            if text:
                told.append(f"{table}{list(key)}: {text}")
    if not told:
        return "the end state is the solution's"
    more = f" and {len(told) - most} rows more" if len(told) > most else ""
    return "; ".join(told[:most]) + more


def _key(row: RowChange) -> tuple[Any, ...]:
    return tuple(map(str, row.key))


def _row_difference(wanted: RowChange | None, found: RowChange | None) -> str:
    if found is None:
        assert wanted is not None
        return "not " + ("added" if wanted.before is None else "removed" if wanted.after is None else "changed")
    if wanted is None:
        return _told(found)
    if wanted.after is None or found.after is None:
        return "" if wanted.after is found.after else f"{_told(found)} instead of {_told(wanted)}"
    parts = [
        f"{name} is {found.after.get(name)!r}, the solution has {value!r}"
        for name, value in wanted.after.items()
        if found.after.get(name) != value and not _is_moment(value)
    ]
    return ", ".join(parts[:4])


def _told(row: RowChange) -> str:
    if row.after is None:
        return "removed"
    if row.before is None:
        return "added (" + ", ".join(f"{name} {value!r}" for name, value in list(row.after.items())[:6]) + ")"
    return (
        "changed (" + ", ".join(f"{name} {value!r}" for name, value in row.after.items() if value != row.before.get(name)) + ")"
    )


def _is_moment(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= 19 and value[4:5] == "-" and value[13:14] == ":"
