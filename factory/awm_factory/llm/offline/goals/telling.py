"""What a user may want to be told of something that was done: a figure or a date that only the result shows."""

import re
from dataclasses import dataclass
from datetime import date, datetime

from awm_factory.llm.offline.effects import outcome
from awm_factory.llm.offline.goals.ground import Ground
from awm_factory.llm.offline.ir import Column
from awm_factory.llm.offline.outcome import Added, Changed, Moment, Told
from awm_factory.llm.offline.steps import ReturnRow
from awm_factory.llm.offline.trace import Trace
from awm_factory.llm.offline.values import Value
from awm_factory.llm.offline.wording import amount, column_noun, day, moment, noun_of, numbers

_QUESTIONS = ("Tell me {what} then.", "Then tell me {what}.", "Let me know {what} afterwards.", "And tell me {what}.")


@dataclass(frozen=True)
class Telling:
    question: str
    answer: str
    told: tuple[Told, ...]
    way: tuple[object, ...]


def tell(ground: Ground, trace: Trace, request: str) -> Telling | None:
    """Something of the row that the last call answers with, which the request does not say; None where there is nothing."""
    last = trace.calls[-1]
    operation = trace.domain.operations[last.key]
    if not isinstance(operation.returns, ReturnRow) or not isinstance(last.result, dict):
        return None
    entity = trace.domain.entity(operation.entity)
    row = trace.world.find(operation.entity, int(last.result["id"]))
    found = outcome(ground.world, trace)
    if row is None or found is None:
        return None
    written: tuple[Added | Changed, ...] = (*found.added, *found.changed)
    moving = {
        name
        for changed in written
        if changed.table == entity.plural
        for name, cell in changed.values.items()
        if isinstance(cell, Moment)
    }
    columns = [
        column
        for column in entity.columns
        if column.kind in ("money", "date", "datetime", "int")
        and not re.search(r"(?:^|_)(?:position|number|mon0)$", column.key)
        and column.key not in last.arguments
        and (column.name or column.key) not in moving
        and not (column.server and column.kind == "datetime")
    ]
    ground.rng.shuffle(columns)
    for column in columns:
        value = row[column.key]
        if value is None or value == 0 or not _is_news(column, value, request):
            continue
        told, said = told_of(ground, column, value)
        number = ground.rng.randrange(len(_QUESTIONS))
        what = f"the {column_noun(column)} of the {noun_of(ground.domain, entity.role)}"
        return Telling(
            _QUESTIONS[number].replace("{what}", what),
            f"It is done; {what} is {said}.",
            (told,),
            (number, entity.role, column.key),
        )
    return None


def _is_news(column: Column, value: Value, request: str) -> bool:
    figures = numbers(request)
    if isinstance(value, datetime | date):
        return day(value) not in request
    return not ({str(value), f"{int(value) // 100}.{int(value) % 100:02d}", str(int(value) // 100)} & figures)  # type: ignore[arg-type]


def told_of(ground: Ground, column: Column, value: Value) -> tuple[Told, str]:
    """A cell as something that an answer tells, and the words for it."""
    if isinstance(value, datetime):
        return Told("moment", value), moment(value)
    if isinstance(value, date):
        return Told("day", value), day(value)
    if column.kind == "money" and isinstance(value, int):
        return Told("amount", value), amount(value, ground.currency)
    if isinstance(value, int):
        return Told("count", value), str(value)
    return Told("name", str(value)), str(value)
