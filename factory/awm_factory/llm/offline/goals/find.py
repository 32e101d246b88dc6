"""Something to be done to a row that the sentence does not name: the one with the most of something, or the only one so."""

from typing import Any, Final

from awm_factory.bundle import Variant
from awm_factory.llm.offline.arguments import Refusal
from awm_factory.llm.offline.goals.ground import Draft, Ground, calls_with, drafted
from awm_factory.llm.offline.goals.sets import Extreme, RowSet, extreme, extreme_place, place_of, row_set
from awm_factory.llm.offline.goals.telling import tell
from awm_factory.llm.offline.ir import Operation, Param
from awm_factory.llm.offline.phrase import PLEAS, put
from awm_factory.llm.offline.trace import Given, Trace
from awm_factory.llm.offline.wording import with_more

_TRIES: Final = 5
_SETS: Final = (2, 24)


def find_and_act(ground: Ground) -> Draft | None:
    for operation in ground.writes()[:_TRIES]:
        params = [param for param in operation.params if param.kind == "ref" and param.required]
        if not params:
            continue
        own = next((param for param in params if param.where == "path"), None) or ground.rng.choice(params)
        draft = _by_extreme(ground, operation, own) if ground.rng.random() < 0.7 else _by_criteria(ground, operation, own)
        if draft is not None:
            return draft
    return None


def _by_extreme(ground: Ground, operation: Operation, own: Param) -> Draft | None:
    for _ in range(_TRIES):
        found = row_set(ground, own.ref, *_SETS, fewest_conditions=0 if ground.rng.random() < 0.15 else 1)
        one = extreme(ground, found) if found is not None else None
        if found is None or one is None:
            continue
        draft = _draft(ground, operation, own, found, one.id, with_more(found.text(ground, plural=False), one.words()), one)
        if draft is not None:
            return draft
    return None


def _by_criteria(ground: Ground, operation: Operation, own: Param) -> Draft | None:
    """The only row of its kind, by criteria that are not its label."""
    for _ in range(_TRIES):
        found = row_set(ground, own.ref, 1, 1, fewest_conditions=2)
        if found is None:
            return None
        draft = _draft(ground, operation, own, found, found.ids[0], found.text(ground, plural=False), None)
        if draft is not None:
            return draft
    return None


def _draft(
    ground: Ground, operation: Operation, own: Param, found: RowSet, row_id: int, words: str, one: Extreme | None
) -> Draft | None:
    for _ in range(4):
        arguments = ground.chooser.arguments(operation, {own.key: row_id})
        if arguments is not None and ground.changes(operation, arguments):
            break
    else:
        return None
    arguments = ground.needed(operation, arguments)
    mentions = ground.named(operation, arguments, skip=(own.key,))
    if mentions is None or not ground.changes(operation, arguments):
        return None
    sentence = ground.spoken(operation, arguments, mentions, {own.key: words})
    trace = Trace.on(ground.world)
    where = _place(trace, found, row_id, one)
    if sentence is None or where is None:
        return None
    number, place = where
    source = Given(row_id, trace.path(f".items{place}.id", number), trace.depth(trace.calls[number].arguments) + 1)
    given = ground.given(trace, operation, arguments, mentions, {own.key: source})
    if given is None or isinstance(trace.call(operation.key, given), Refusal):
        return None
    plea = ground.rng.randrange(len(PLEAS))
    request = put(PLEAS[plea], sentence.text)
    telling = tell(ground, trace, request) if ground.rng.random() < 0.3 else None
    answer = telling.answer if telling else f"Done as you asked: {sentence.text}."
    return drafted(
        ground,
        "find",
        instruction=f"{request} {telling.question}" if telling else request,
        signature=(
            "find",
            operation.key,
            found.signature,
            one.column.key if one else "",
            one.highest if one else "",
            _rest(arguments, own),
        ),
        way=("find", sentence.way, plea, bool(one), telling.way if telling else ""),
        trace=trace,
        answer=answer,
        told=telling.told if telling else (),
        near_misses=_second(ground, operation, own, arguments, trace, given, one, number, answer),
        mentions=(*mentions.values(), *found.mentions),
        constraints=len(found.conditions) + (1 if one else 0) + len(arguments) - len(mentions) - 1,
        made=sentence.made,
    )


def _rest(arguments: dict[str, Any], own: Param) -> str:
    return repr(sorted((key, value) for key, value in arguments.items() if key != own.key))


def _place(trace: Trace, found: RowSet, row_id: int, one: Extreme | None) -> tuple[int, str] | None:
    if one is not None:
        return extreme_place(trace, found, one)
    number = found.listed(trace)
    return (number, place_of(trace.calls[number].result, row_id)) if number is not None else None


def _second(
    ground: Ground,
    operation: Operation,
    own: Param,
    arguments: dict[str, Any],
    trace: Trace,
    given: Any,
    one: Extreme | None,
    number: int,
    answer: str,
) -> tuple[Variant, ...]:
    """The same, done to the row that comes next."""
    if one is None or not ground.changes(operation, {**arguments, own.key: one.second}):
        return ()
    place = place_of(trace.calls[number].result, one.second)
    other = {**given, own.key: Given(one.second, trace.path(f".items{place}.id", number))}
    calls = calls_with(trace, (operation.key, other))
    return (Variant(why="done to the row that comes next", calls=calls, final_answer=answer),)
