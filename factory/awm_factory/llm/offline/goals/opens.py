"""A choice left open: any row that fits will do, and the verifier accepts each of them."""

from typing import Any, Final

from awm_factory.bundle import Variant
from awm_factory.llm.offline.arguments import Refusal
from awm_factory.llm.offline.effects import label, outcome
from awm_factory.llm.offline.goals.ground import Draft, Ground, calls_with, drafted
from awm_factory.llm.offline.goals.sets import RowSet, place_of, row_set
from awm_factory.llm.offline.ir import Operation, Param
from awm_factory.llm.offline.outcome import Option, united
from awm_factory.llm.offline.phrase import PLEAS, put
from awm_factory.llm.offline.trace import Given, Trace

_MOST: Final = 12
_TRIES: Final = 6
_ENDINGS: Final = ("", " Which one is up to you.", " I leave the choice to you.", " They are all the same to me.")


def open_choice(ground: Ground) -> Draft | None:
    for operation in ground.writes()[: _TRIES * 2]:
        if not operation.things:
            continue
        param = ground.rng.choice(operation.things)
        for _ in range(4):
            found = row_set(ground, param.ref, 2, _MOST)
            draft = _of(ground, operation, param, found) if found is not None else None
            if draft is not None:
                return draft
    return None


def _of(ground: Ground, operation: Operation, param: Param, found: RowSet) -> Draft | None:
    for _ in range(5):
        arguments = ground.chooser.arguments(operation, {param.key: ground.rng.choice(found.ids)})
        if arguments is None:
            return None
        arguments = ground.needed(operation, arguments)
        valid = [row_id for row_id in found.ids if ground.changes(operation, {**arguments, param.key: row_id})]
        if len(valid) >= 2:
            return _draft(ground, operation, param, found, arguments, valid)
    return None


def _draft(
    ground: Ground, operation: Operation, param: Param, found: RowSet, arguments: dict[str, Any], valid: list[int]
) -> Draft | None:
    mentions = ground.named(operation, arguments, skip=(param.key,))
    thing = found.text(ground, plural=False, definite=False, without_owner=found.owner() is not None)
    owner = found.owner()
    words = f"any {thing}" + (f" of {owner.text}" if owner is not None else "")
    sentence = ground.spoken(operation, arguments, mentions, {param.key: words}) if mentions is not None else None
    looked = Trace.on(ground.world)
    number = found.listed(looked)
    if mentions is None or sentence is None or number is None:
        return None
    traces, last = [], {}
    for row_id in valid:
        trace = looked.fork()
        place = place_of(looked.calls[number].result, row_id)
        source = Given(row_id, trace.path(f".items{place}.id", number), trace.depth(trace.calls[number].arguments) + 1)
        given = ground.given(trace, operation, {**arguments, param.key: row_id}, mentions, {param.key: source})
        if given is None or isinstance(trace.call(operation.key, given), Refusal):
            return None
        traces.append(trace)
        last[row_id] = given
    options = [outcome(ground.world, trace) for trace in traces]
    wanted = united([Option(one) for one in options if one is not None]) if all(options) else None
    if wanted is None or not wanted.choices:
        return None
    plea, ending = ground.rng.randrange(len(PLEAS)), ground.rng.randrange(len(_ENDINGS))
    chosen = ground.rng.randrange(len(valid))
    answer = f"Done, with {label(ground.world, param.ref, valid[chosen])}."
    others = [place for place in range(len(valid)) if place != chosen]
    return drafted(
        ground,
        "open",
        instruction=put(PLEAS[plea], sentence.text) + _ENDINGS[ending],
        signature=(
            "open",
            operation.key,
            param.key,
            found.signature,
            repr(sorted((k, v) for k, v in arguments.items() if k != param.key)),
        ),
        way=("open", sentence.way, plea, ending, tuple(one.param.key for one in found.conditions)),
        trace=traces[chosen],
        wanted=wanted,
        answer=answer,
        alternatives=[
            Variant(
                why=f"with {label(ground.world, param.ref, valid[place])}",
                calls=traces[place].tool_calls(),
                final_answer=f"Done, with {label(ground.world, param.ref, valid[place])}.",
            )
            for place in others
        ],
        near_misses=_outside(ground, operation, param, found, traces[chosen], last[valid[chosen]], arguments, answer),
        mentions=(*mentions.values(), *found.mentions),
        constraints=len(found.conditions) + len(arguments) - len(mentions),
        made=sentence.made,
        is_open=True,
        expected=f"{len(valid)} choices are right: {'; '.join(label(ground.world, param.ref, row_id) for row_id in valid)}.",
    )


def _outside(
    ground: Ground,
    operation: Operation,
    param: Param,
    found: RowSet,
    trace: Trace,
    given: Any,
    arguments: dict[str, Any],
    answer: str,
) -> tuple[Variant, ...]:
    """A row that would be accepted by the tool, but is none of those meant."""
    for row_id in ground.chooser.rows(param.ref):
        if row_id not in found.ids and ground.changes(operation, {**arguments, param.key: row_id}):
            calls = calls_with(trace, (operation.key, {**given, param.key: Given(row_id)}))
            return (Variant(why="a row that is none of those meant", calls=calls, final_answer=answer),)
    return ()
