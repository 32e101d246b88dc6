"""What planned calls come to, told as an Outcome: read off two states, and off the same calls made a little later."""

from datetime import datetime, timedelta
from typing import Any, Final

from awm_factory.llm.offline.ir import Column, Domain, Entity
from awm_factory.llm.offline.outcome import Added, Anything, Cell, Changed, Known, Made, Moment, Outcome, Removed
from awm_factory.llm.offline.rows import Edit
from awm_factory.llm.offline.state import World
from awm_factory.llm.offline.trace import Trace, filled

_LATER: Final = 97
"""Seconds by which the second run is shifted: cells that move with them are the service's own times."""


def outcome(start: World, trace: Trace) -> Outcome | None:
    """None where something else than a time depends on when the calls are made."""
    edits = start.difference(trace.world)
    later = start.copy()
    later.calls += _LATER
    for call in trace.calls:
        later.run(call.key, filled(call.arguments))
    shifted = start.difference(later)
    if [(edit.role, edit.id) for edit in edits] != [(edit.role, edit.id) for edit in shifted]:
        return None
    return _Reading(start, trace, edits, shifted).outcome()


class _MovesError(Exception):
    """A cell that is no time moves with the clock."""


class _Reading:
    def __init__(self, start: World, trace: Trace, edits: list[Edit], shifted: list[Edit]) -> None:
        self._start, self._trace = start, trace
        self._domain: Domain = start.domain
        self._edits, self._shifted = edits, shifted
        self._names = self._named()

    def outcome(self) -> Outcome | None:
        added, changed, removed = [], [], []
        try:
            for edit, other in zip(self._edits, self._shifted, strict=True):
                entity = self._domain.entity(edit.role)
                if edit.before is None:
                    name = self._names[edit.role, edit.id]
                    added.append((edit.role, Added(name, entity.plural, self._cells(entity, edit, other, whole=True))))
                elif edit.after is None:
                    removed.append(Removed(entity.plural, edit.id, label(self._start, edit.role, edit.id)))
                else:
                    cells = self._cells(entity, edit, other, whole=False)
                    changed.append(Changed(entity.plural, edit.id, cells, label(self._start, edit.role, edit.id)))
        except _MovesError:
            return None
        order = {role: place for place, role in enumerate(self._domain.entities)}
        added.sort(key=lambda pair: (pair[0] == "activity", order[pair[0]]))
        return Outcome(tuple(row for _, row in added), tuple(changed), tuple(removed))

    def _named(self) -> dict[tuple[str, int], str]:
        fresh = [edit for edit in self._edits if edit.before is None]
        counts: dict[str, int] = {}
        names = {}
        for edit in fresh:
            noun = self._domain.entity(edit.role).noun
            counts[edit.role] = counts.get(edit.role, 0) + 1
            several = sum(other.role == edit.role for other in fresh) > 1
            names[edit.role, edit.id] = f"{noun} {counts[edit.role]}" if several else noun
        return names

    def _cells(self, entity: Entity, edit: Edit, other: Edit, *, whole: bool) -> dict[str, Cell]:
        assert edit.after is not None and other.after is not None
        keys = [column.key for column in entity.columns] if whole else list(dict.fromkeys([*edit.columns, *other.columns]))
        cells: dict[str, Cell] = {}
        for key in keys:
            column = entity.column(key)
            cells[column.name or key] = self._cell(entity, column, edit, edit.after[key], other.after[key], fresh=whole)
        return cells

    def _cell(self, entity: Entity, column: Column, edit: Edit, value: Any, later: Any, *, fresh: bool) -> Cell:
        if value != later:
            if isinstance(value, datetime) and isinstance(later, datetime) and later - value <= timedelta(seconds=_LATER):
                return Moment(value)
            raise _MovesError
        if column.kind == "ref" and isinstance(value, int):
            return self._reference(column.ref, value)
        if entity.role == "activity" and column.key == "subject_id" and isinstance(value, int):
            assert edit.after is not None
            role = next((one.role for one in self._domain.entities.values() if one.name == edit.after["subject"]), "")
            return self._reference(role, value)
        cell: Cell = value
        if fresh and value is None and column.kind == "text" and column.null and self._left_open(column.key):
            return Anything()
        return cell

    def _reference(self, role: str, row_id: int) -> Cell:
        if (name := self._names.get((role, row_id))) is not None:
            return Made(name)
        return Known(row_id, label(self._start, role, row_id)) if role else row_id

    def _left_open(self, key: str) -> bool:
        """Whether an agent might have given this text as well, though nobody asked for it."""
        for call in self._trace.writes():
            for param in self._domain.operations[call.key].params:
                if param.key == key and param.kind == "text" and not param.required and key not in call.arguments:
                    return True
        return False


def label(world: World, role: str, row_id: int, depth: int = 0) -> str:
    """A few words for a row, for those who read a verifier."""
    entity, row = world.domain.entity(role), world.find(role, row_id)
    if row is None or depth > 2:
        return ""
    parts = []
    for key in entity.label:
        column, value = entity.column(key), row[key]
        if value is None:
            continue
        if column.kind == "ref":
            parts.append(label(world, column.ref, int(value), depth + 1))
        else:
            parts.append(f"{value:%Y-%m-%d %H:%M}" if isinstance(value, datetime) else str(value))
    return ", ".join(part for part in parts if part)
