"""Questions that follow from the data: how many, what they come to, which one has the most; and figures of reports."""

from typing import Any, Final

from awm_factory.llm.offline.effects import label
from awm_factory.llm.offline.goals.ground import Draft, Ground, drafted
from awm_factory.llm.offline.goals.reports import report
from awm_factory.llm.offline.goals.sets import RowSet, extreme, extreme_place, row_set
from awm_factory.llm.offline.goals.telling import told_of
from awm_factory.llm.offline.ir import Column, Entity
from awm_factory.llm.offline.outcome import Told
from awm_factory.llm.offline.trace import Trace
from awm_factory.llm.offline.wording import amount, capitalised, column_noun, there_are, with_more

_TRIES: Final = 6
_COUNTED: Final = (2, 60)
_SUMMED: Final = (2, 30)
_HOW_MANY: Final = (
    "How many {things} are there?",
    "Tell me how many {things} there are.",
    "I need a count: how many {things} do we have?",
    "Please count {the things} and tell me the number.",
)
_OF_OWNER: Final = (
    "How many {things} does {owner} have?",
    "{owner} asks how many {things} there are under that name; tell me the number.",
    "Tell me how many {things} {owner} has.",
)
_TOTAL: Final = (
    "What is the total {figure} of {the things}?",
    "Add up the {figures} of {the things} and tell me the total.",
    "Tell me the sum of the {figures} of {the things}.",
)
_TOTAL_OF_TOTALS: Final = "What do {the things} come to in total?"
_WHICH: Final = (
    "Tell me the {label} of {thing}.",
    "Look for {thing} and tell me the {label}.",
    "I need the {label} of {thing}; tell me what it is.",
)


def ask(ground: Ground) -> Draft | None:
    kinds = [_count, _total, _extreme, _extreme, report]
    ground.rng.shuffle(kinds)
    for kind in kinds:
        draft = kind(ground)
        if draft is not None:
            return draft
    return None


def _roles(ground: Ground) -> list[str]:
    roles = [role for role in ground.domain.entities if role not in ("activity", "user") and ground.domain.lists(role)]
    ground.rng.shuffle(roles)
    return roles[:_TRIES]


def _count(ground: Ground) -> Draft | None:
    for role in _roles(ground):
        found = row_set(ground, role, *_COUNTED)
        if found is None:
            continue
        trace = Trace.on(ground.world)
        if found.listed(trace) is None:
            continue
        owner = found.owner()
        if owner is not None:
            number = ground.rng.randrange(len(_OF_OWNER))
            things = found.text(ground, definite=False, without_owner=True)
            text = _OF_OWNER[number].replace("{things}", things).replace("{owner}", owner.text)
        else:
            number = ground.rng.randrange(len(_HOW_MANY))
            text = _HOW_MANY[number].replace("{things}", found.text(ground, definite=False))
            text = text.replace("{the things}", found.text(ground))
        count = len(found.ids)
        draft = drafted(
            ground,
            "ask",
            instruction=text,
            signature=("count", found.signature),
            way=("count", bool(owner), number, found.entity.role, tuple(one.param.key for one in found.conditions)),
            trace=trace,
            answer=f"{there_are(count)}.",
            told=(Told("count", count),),
            mentions=found.mentions,
            constraints=len(found.conditions),
            expected=f"{count} {found.text(ground, definite=False)}; nothing is changed.",
        )
        if draft is not None:
            return draft
    return None


def _total(ground: Ground) -> Draft | None:
    for role in _roles(ground):
        entity = ground.domain.entity(role)
        columns = [column for column in entity.columns if column.kind == "money" and not column.null and adds_up(entity, column)]
        if not columns:
            continue
        column = ground.rng.choice(columns)
        found = row_set(ground, role, *_SUMMED)
        if found is None:
            continue
        total = sum(int(ground.world.row(role, row_id)[column.key]) for row_id in found.ids)
        trace = Trace.on(ground.world)
        if total == 0 or found.listed(trace) is None:
            continue
        number, figure = ground.rng.randrange(len(_TOTAL)), column_noun(column)
        text = (_TOTAL_OF_TOTALS if number == 0 and figure == "total" else _TOTAL[number]).replace("{figure}", figure)
        text = text.replace("{figures}", _plural(figure)).replace("{the things}", found.text(ground))
        draft = drafted(
            ground,
            "ask",
            instruction=text,
            signature=("total", found.signature, column.key),
            way=("total", number, role, column.key, tuple(one.param.key for one in found.conditions)),
            trace=trace,
            answer=f"They come to {amount(total, ground.currency)}.",
            told=(Told("amount", total),),
            mentions=found.mentions,
            constraints=len(found.conditions) + 1,
            expected=f"{amount(total, ground.currency)} for {len(found.ids)} {entity.nouns}; nothing is changed.",
        )
        if draft is not None:
            return draft
    return None


def adds_up(entity: Entity, column: Column) -> bool:
    """Not the price of one piece, where the row is about several."""
    return not (entity.has("quantity") and column.key.startswith("price"))


def _plural(figure: str) -> str:
    """Of an amount's noun; `paid` and its like have none."""
    return figure if figure.endswith(("s", "paid", "ed")) else f"{figure}s"


def _extreme(ground: Ground) -> Draft | None:
    for role in _roles(ground):
        found = row_set(ground, role, 3, 40)
        one = extreme(ground, found) if found is not None else None
        if found is None or one is None:
            continue
        asked = _asked(ground, found, one.id, one.column)
        trace = Trace.on(ground.world)
        if asked is None or extreme_place(trace, found, one) is None:
            continue
        told, said, noun = asked
        thing = found.text(ground, plural=False)
        number = ground.rng.randrange(len(_WHICH))
        text = _WHICH[number].replace("{label}", noun).replace("{thing}", with_more(thing, one.words()))
        draft = drafted(
            ground,
            "ask",
            instruction=text,
            signature=("extreme", found.signature, one.column.key, one.highest, noun),
            way=("extreme", number, role, one.column.key, noun, tuple(key.param.key for key in found.conditions)),
            trace=trace,
            answer=f"It is {said}.",
            told=(told,),
            mentions=found.mentions,
            constraints=len(found.conditions) + 1,
            expected=f"{capitalised(said)} ({label(ground.world, role, one.id)}); nothing is changed.",
        )
        if draft is not None:
            return draft
    return None


def _asked(ground: Ground, found: RowSet, row_id: int, by: Column) -> tuple[Told, str, str] | None:
    """What to ask of the row: the text by which it is called, or another figure of it."""
    entity, row = found.entity, ground.world.row(found.entity.role, row_id)
    rows = [ground.world.row(entity.role, other) for other in found.ids]
    columns = [
        column
        for column in entity.columns
        if column.kind in ("text", "money", "date", "datetime", "ref")
        and column.key != by.key
        and row[column.key] is not None
        and all(one.column != column.key for one in found.conditions)
        and not (column.server and column.kind == "datetime")
    ]
    ground.rng.shuffle(columns)
    columns.sort(key=lambda column: column.key not in entity.label)
    for column in columns:
        value: Any = row[column.key]
        if column.kind == "ref":
            target = ground.domain.entity(column.ref)
            names = [key for key in target.label if target.column(key).kind == "text"]
            shown = {show.key for show in entity.shows}
            suffix = "name" if names and names[0] in ("name", "full_name") else names[0] if names else ""
            key = f"{column.key.removesuffix('_id')}_{suffix}"
            if len(target.label) != 1 or not names or key not in shown:
                continue
            name = str(ground.world.row(column.ref, value)[names[0]])
            others = _names(ground, column.ref, names[0], {other[column.key] for other in rows} - {value})
            return Told("name", name, others), name, column_noun(column)
        if column.kind == "text":
            others = tuple(dict.fromkeys(str(other[column.key]) for other in rows if other[column.key] not in (None, value)))
            if len(str(value)) > 60 or len(others) > 20:
                continue
            return Told("name", str(value), others), str(value), column_noun(column)
        if sum(other[column.key] == value for other in rows) == 1:
            told, said = told_of(ground, column, value)
            return told, said, column_noun(column)
    return None


def _names(ground: Ground, role: str, key: str, ids: set[Any]) -> tuple[str, ...]:
    return tuple(str(ground.world.row(role, row_id)[key]) for row_id in sorted(row_id for row_id in ids if row_id is not None))[
        :20
    ]
