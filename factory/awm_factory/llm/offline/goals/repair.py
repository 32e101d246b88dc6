"""A wrong state put right: a value was entered with a slip, and the user says what it should be."""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from awm_factory.llm.offline.arguments import Refusal
from awm_factory.llm.offline.goals.ground import Draft, Ground, beyond_times, drafted
from awm_factory.llm.offline.ir import Column, Operation
from awm_factory.llm.offline.state import World
from awm_factory.llm.offline.steps import Change, Fill, Step, When
from awm_factory.llm.offline.trace import Trace
from awm_factory.llm.offline.values import Value
from awm_factory.llm.offline.wording import column_noun, quoted, spoken

_WAYS: Final = (
    "There is a slip in the records: the {noun} of {row} should be {right}, not {wrong}. Put it right.",
    "Somebody entered {wrong} as the {noun} of {row}; it is really {right}. Please correct that.",
    "The {noun} of {row} is wrong. It says {wrong}, but it has to be {right}: correct it.",
    "Please mend a typing error: {row} should have {right} as the {noun}.",
)
_TRIES: Final = 12


@dataclass(frozen=True)
class Slip:
    """A wrong value that was planted, and the right one."""

    operation: str
    """By which it can be put right, with its parameter."""
    param: str
    role: str
    id: int
    key: str
    right: Value
    wrong: Value


def plant(world: World, rng: random.Random, count: int) -> list[Slip]:
    """Changes `world`: so many cells get a value that somebody may have mistyped. Nothing else hangs on any of them."""
    faults = world.faults()
    slips: list[Slip] = []
    places = [(op, *keys) for op in world.domain.operations.values() for keys in settable(world, op)]
    if not places:
        return []
    for _ in range(count * _TRIES):
        if len(slips) == count:
            break
        operation, param, key = rng.choice(places)
        rows = [row for row in world.all(operation.entity) if row[key] is not None]
        if not rows:
            continue
        row = rng.choice(rows)
        row_id, right = int(row["id"]), row[key]
        if any((slip.role, slip.id) == (operation.entity, row_id) for slip in slips):
            continue
        column = world.domain.entity(operation.entity).column(key)
        wrong = _slipped(column, right, rng)
        if wrong is None or wrong == right:
            continue
        world.change(operation.entity, row_id, **{key: wrong})
        trial = world.copy()
        result = trial.run(operation.key, {_path(operation): row_id, param: right})
        mended = not isinstance(result, Refusal) and trial.row(operation.entity, row_id)[key] == right
        if world.faults() != faults or not mended or not _changes_alone(world, trial, operation.entity, row_id, key):
            world.change(operation.entity, row_id, **{key: right})
            continue
        slips.append(Slip(operation.key, param, operation.entity, row_id, key, right, wrong))
    return slips


def _changes_alone(before: World, after: World, role: str, row_id: int, key: str) -> bool:
    """Whether putting the cell right changes no other, its log and the times of the service aside: a total made of it was
    made of the right value."""
    for edit in before.difference(after):
        if edit.role == "activity":
            continue
        others = [other for other in edit.columns if other != key]
        if (edit.role, edit.id) != (role, row_id) or edit.after is None or beyond_times(before.domain, role, others):
            return False
    return True


def settable(world: World, operation: Operation) -> Iterator[tuple[str, str]]:
    """Parameters that give a column of the operation's own row its value, with that column."""
    demanded = [param for param in operation.params if param.required]
    if operation.kind != "act" or not demanded or demanded[0].where != "path" or demanded[0].ref != operation.entity:
        return
    entity = world.domain.entity(operation.entity)
    for param in operation.params:
        key = next((column for column, name in _assigned(operation.steps) if name == param.key), None)
        others = [other for other in demanded[1:] if other.key != param.key]
        if key is None or param.where == "path" or others or key in entity.label or not entity.has(key):
            continue
        column = entity.column(key)
        if column.kind in ("int", "money", "date", "datetime", "choice", "text") and not column.server:
            yield param.key, key


def _assigned(steps: tuple[Step, ...]) -> Iterator[tuple[str, str]]:
    """Columns that are set to nothing but a parameter, with its name."""
    for step in steps:
        match step:
            case Fill(keys=keys):
                yield from ((key, key) for key in keys)
            case Change(values=values):
                yield from values.items()
            case When(steps=inner):
                yield from _assigned(inner)


def _path(operation: Operation) -> str:
    return next(param.key for param in operation.params if param.where == "path")


def _slipped(column: Column, value: Value, rng: random.Random) -> Value:
    """The value with a slip of the pen."""
    match value:
        case bool():
            return None
        case datetime():
            return value + timedelta(days=rng.choice((1, 7)))
        case date():
            return value + timedelta(days=rng.choice((1, 7)))
        case int() if column.kind in ("int", "money"):
            wrong = value * 10 if rng.random() < 0.4 else value + rng.choice((1, 2, 10)) * (100 if column.kind == "money" else 1)
            if column.high is not None and wrong > column.high:
                wrong = value - 1
            return wrong if column.low is None or wrong >= column.low else None
        case str() if column.kind == "choice":
            return rng.choice([word for word in column.choices if word != value] or [value])
        case str():
            return _mistyped(value, rng)
    return None


def _mistyped(text: str, rng: random.Random) -> str | None:
    """Two neighbouring digits or letters exchanged."""
    digits = [
        place
        for place in range(len(text) - 1)
        if text[place].isdigit() and text[place + 1].isdigit() and text[place] != text[place + 1]
    ]
    letters = [
        place
        for place in range(1, len(text) - 2)
        if text[place].islower() and text[place + 1].islower() and text[place] != text[place + 1]
    ]
    places = digits or letters
    if not places or re.search(r"\"", text):
        return None
    place = rng.choice(places)
    return text[:place] + text[place + 1] + text[place] + text[place + 2 :]


def repair(ground: Ground, slip: Slip) -> Draft | None:
    """The correction of a planted slip."""
    operation = ground.domain.operations[slip.operation]
    row = ground.mention(slip.role, slip.id)
    if row is None or slip.key in row.facts:
        return None
    path = _path(operation)
    trace = Trace.on(ground.world)
    given = ground.given(trace, operation, {path: slip.id, slip.param: slip.right}, {path: row})
    if given is None or isinstance(trace.call(operation.key, given), Refusal):
        return None
    column = ground.domain.entity(slip.role).column(slip.key)
    number = ground.rng.randrange(len(_WAYS))
    text = _WAYS[number].replace("{noun}", column_noun(column)).replace("{row}", row.text)
    text = text.replace("{right}", _said(ground, column, slip.right)).replace("{wrong}", _said(ground, column, slip.wrong))
    return drafted(
        ground,
        "repair",
        instruction=text,
        signature=("repair", slip.role, slip.id, slip.key),
        way=("repair", number, operation.key, slip.key),
        trace=trace,
        answer=f"It is corrected: {_said(ground, column, slip.right)}.",
        mentions=(row,),
        constraints=1,
    )


def _said(ground: Ground, column: Column, value: Value) -> str:
    said = spoken(value, column.kind, ground.currency)
    return quoted(said) if column.kind == "text" and not re.fullmatch(r"[+\d\s()/-]+|\S+@\S+", said) else said
