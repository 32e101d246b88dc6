"""More than one thing: two acts on different matters, something made and then worked on, or all rows of a small set."""

from dataclasses import replace
from typing import Any, Final

from awm_factory.bundle import Variant
from awm_factory.llm.offline.arguments import Refusal
from awm_factory.llm.offline.goals.act import Deed, deed
from awm_factory.llm.offline.goals.ground import Draft, Ground, drafted
from awm_factory.llm.offline.goals.sets import RowSet, place_of, row_set
from awm_factory.llm.offline.ir import Operation
from awm_factory.llm.offline.mention import Mention
from awm_factory.llm.offline.phrasing import is_update
from awm_factory.llm.offline.trace import Given, Trace
from awm_factory.llm.offline.wording import capitalised, noun_of

_TRIES: Final = 6
_TWO: Final = (
    "{First}, and {second}.",
    "Two things: {first}, and {second}.",
    "Please {first}. Then {second}.",
    "{First}; besides, {second}.",
    "First {first}, then {second}.",
)
_THEN: Final = (
    "{First}, and then {second}.",
    "Please {first}; once that is done, {second}.",
    "{First}. When it is in, {second}.",
)
_ALL: Final = (
    "{Do}.",
    "Please {do}.",
    "{Do}, without exception.",
    "I need you to {do}.",
    "{Do}, please, and leave the rest alone.",
)


def several(ground: Ground) -> Draft | None:
    return ground.first_of(_two, _chain, _all, _all)


def _two(ground: Ground) -> Draft | None:
    for operation in ground.writes()[:_TRIES]:
        first = deed(ground, operation, tries=8)
        if first is None:
            continue
        trace = first.planned(ground, Trace.on(ground.world))
        if trace is None:
            continue
        party = next((one for one in _all_mentions(first) if one.role == "party"), None)
        second = _other_deed(ground, first, party, trace)
        if second is None:
            continue
        alone = list(trace.tool_calls())
        if second.planned(ground, trace) is None:
            continue
        number = ground.rng.randrange(len(_TWO))
        return _of_two(ground, _TWO[number], number, first, second, trace, alone)
    return None


def _of_two(ground: Ground, way: str, number: int, first: Deed, second: Deed, trace: Trace, alone: list[Any]) -> Draft | None:
    text = way.replace("{first}", first.sentence.text).replace("{First}", capitalised(first.sentence.text))
    text = text.replace("{second}", second.sentence.text)
    answer = f"Both are done: {first.sentence.text}; {second.sentence.text}."
    return drafted(
        ground,
        "several",
        instruction=text,
        signature=("two", first.signature, second.signature),
        way=("two", number, first.sentence.way, second.sentence.way),
        trace=trace,
        answer=answer,
        near_misses=(Variant(why="only the first of the two", calls=alone, final_answer=answer),),
        mentions=(*first.mentions.values(), *second.mentions.values()),
        constraints=len(first.arguments) + len(second.arguments) - len(first.mentions) - len(second.mentions),
        made=(*first.sentence.made, *second.sentence.made),
    )


def _all_mentions(done: Deed) -> list[Mention]:
    found: list[Mention] = []
    queue = list(done.mentions.values())
    while queue:
        one = queue.pop()
        found.append(one)
        queue += [fact for fact in one.facts.values() if isinstance(fact, Mention)]
    return found


def _other_deed(ground: Ground, first: Deed, party: Mention | None, trace: Trace) -> Deed | None:
    """An act of another kind, about the same party if it can be, that is carried out before the first one as well as after it."""
    module = first.operation.key.partition(".")[0]
    operations = [op for op in ground.writes() if op.key != first.operation.key]
    operations.sort(key=lambda op: op.key.partition(".")[0] == module)
    for operation in operations[:8]:
        parties = [param for param in operation.params if param.ref == "party" and param.required]
        fixed = {parties[0].key: party.id} if party is not None and parties else None
        second = deed(ground, operation, fixed, tries=8)
        if second is not None and ground.changes(operation, second.arguments, trace.world) and _are_apart(first, second):
            return second
    return None


def _are_apart(first: Deed, second: Deed) -> bool:
    """Whether neither changes what the words for the other say."""
    changed = {(param.ref, first.arguments[param.key]) for param in first.operation.params if param.where == "path" and param.ref}
    spoken = {(one.role, one.id) for one in _all_mentions(second)}
    return not changed & spoken


def _chain(ground: Ground) -> Draft | None:
    """Something is made, and then worked on."""
    for operation in ground.writes("create")[:_TRIES]:
        followers = [
            op
            for op in ground.writes("act", "create")
            if op.key != operation.key and any(param.ref == operation.entity and param.required for param in op.params)
        ]
        if not followers:
            continue
        first = deed(ground, operation, tries=8)
        trace = first.planned(ground, Trace.on(ground.world)) if first is not None else None
        if first is None or trace is None or not isinstance(result := trace.calls[-1].result, dict) or "id" not in result:
            continue
        alone = list(trace.tool_calls())
        for follower in followers[:3]:
            draft = _followed(ground, first, trace.fork(), follower, int(result["id"]), alone)
            if draft is not None:
                return draft
    return None


def _followed(ground: Ground, first: Deed, trace: Trace, follower: Operation, made: int, alone: list[Any]) -> Draft | None:
    own = next(param for param in follower.params if param.ref == first.operation.entity and param.required)
    for _ in range(6):
        arguments = ground.chooser.arguments(follower, {own.key: made})
        if arguments is None:
            return None
        if not ground.changes(follower, arguments, trace.world):
            continue
        arguments = ground.needed(follower, arguments, trace.world)
        mentions = ground.named(follower, arguments, skip=(own.key,))
        noun = noun_of(trace.domain, first.operation.entity)
        words = f"the new {noun}" if not noun.startswith("new") else f"the {noun}"
        sentence = ground.spoken(follower, arguments, mentions, {own.key: words}) if mentions is not None else None
        if mentions is None or sentence is None:
            continue
        known = trace.known[first.operation.entity, made]
        given = ground.given(trace, follower, arguments, mentions, {own.key: known})
        if given is None or isinstance(trace.call(follower.key, given), Refusal):
            return None
        second = Deed(follower, arguments, mentions, sentence)
        number = ground.rng.randrange(len(_THEN))
        return _of_two(ground, _THEN[number], number, first, second, trace, alone)
    return None


def _all(ground: Ground) -> Draft | None:
    """All rows of a small set, each in the same way."""
    for operation in ground.writes("act", "delete")[:_TRIES]:
        own = next((param for param in operation.params if param.where == "path" and param.ref), None)
        if own is None:
            continue
        for _ in range(3):
            arguments = ground.chooser.arguments(operation, {own.key: 0})
            if arguments is None:
                break
            if is_update(operation) and any(operation.param(key).kind == "text" for key in arguments):
                continue  # nobody gives several rows one telephone number
            found = row_set(ground, own.ref, 2, 5)
            if found is None:
                continue
            draft = _each(ground, operation, own.key, arguments, found)
            if draft is not None:
                return draft
    return None


def _each(ground: Ground, operation: Operation, own: str, arguments: dict[str, Any], found: RowSet) -> Draft | None:
    after = ground.world.copy()
    for row_id in found.ids:
        if not ground.changes(operation, {**arguments, own: row_id}) or isinstance(
            after.run(operation.key, {**arguments, own: row_id}), Refusal
        ):
            return None
    arguments = ground.needed(operation, {**arguments, own: found.ids[0]})
    mentions = ground.named(operation, arguments, skip=(own,))
    if mentions is None or any(not ground.changes(operation, {**arguments, own: row_id}) for row_id in found.ids):
        return None
    things = found.text(ground)
    words = f"all {things}" if things.startswith("the ") else f"all of {things}"
    sentence = ground.spoken(operation, arguments, mentions, {own: words})
    if sentence is not None:
        sentence = replace(
            sentence, text=sentence.text.replace(f"{words} is ", f"{words} are ").replace(f"{words} was ", f"{words} were ")
        )
    trace = Trace.on(ground.world)
    number = found.listed(trace)
    if sentence is None or number is None:
        return None
    listed = trace.calls[number].result
    for row_id in found.ids:
        source = Given(
            row_id, trace.path(f".items{place_of(listed, row_id)}.id", number), trace.depth(trace.calls[number].arguments) + 1
        )
        given = ground.given(trace, operation, {**arguments, own: row_id}, mentions, {own: source})
        if given is None or isinstance(trace.call(operation.key, given), Refusal):
            return None
    plea = ground.rng.randrange(len(_ALL))
    text = _ALL[plea].replace("{do}", sentence.text).replace("{Do}", capitalised(sentence.text))
    answer = f"Done for all {len(found.ids)}: {sentence.text}."
    calls = trace.tool_calls()
    return drafted(
        ground,
        "several",
        instruction=text,
        signature=("all", operation.key, found.signature, repr(sorted((k, v) for k, v in arguments.items() if k != own))),
        way=("all", plea, sentence.way, tuple(one.param.key for one in found.conditions)),
        trace=trace,
        answer=answer,
        near_misses=(Variant(why="all of them but the last", calls=calls[:-1], final_answer=answer),),
        mentions=(*mentions.values(), *found.mentions),
        constraints=len(found.conditions) + len(arguments) - len(mentions),
        made=sentence.made,
    )
