"""This or that, as the data have it: another row where the first is refused, or one of two acts by how many there are."""

from typing import Any, Final

from awm_factory.bundle import Variant
from awm_factory.llm.offline.arguments import Refusal
from awm_factory.llm.offline.goals.act import Deed, deed
from awm_factory.llm.offline.goals.ground import Draft, Ground, drafted
from awm_factory.llm.offline.goals.policy import is_rule, requires
from awm_factory.llm.offline.goals.sets import RowSet, row_set
from awm_factory.llm.offline.ir import Operation, Param
from awm_factory.llm.offline.mention import Mention
from awm_factory.llm.offline.trace import Trace
from awm_factory.llm.offline.wording import capitalised, there_are

_TRIES: Final = 30
_INSTEAD: Final = (
    "{Do}. If the rules stand against that, take {other} instead.",
    "Try to {do}; if it is refused, do the same with {other}.",
    "{Do}. Should that be refused, let it be {other} instead.",
    "{Do}, or if that is not possible, with {other} in place of {first}.",
)
"""The last one only for a row that is not the operation's own."""
_BY_COUNT: Final = (
    "If {more}, {do}; otherwise {other}.",
    "Count {the things}: if there are more than {limit}, {do}, and if not, {other}.",
    "In case {more}, {do}. If not, {other}.",
)


def conditional(ground: Ground) -> Draft | None:
    return ground.first_of(_another_row, _by_count)


def _another_row(ground: Ground) -> Draft | None:
    """First this row, else that one; whether the first one will do is for the rules to say."""
    for operation in [op for op in ground.writes() if any(step.rule for step in requires(op.steps))][:6]:
        if not operation.things:
            continue
        param = ground.rng.choice(operation.things)
        for _ in range(_TRIES):
            arguments = ground.chooser.arguments(operation, {p.key: None for p in operation.params if not p.required})
            if arguments is None:
                break
            arguments = {key: value for key, value in arguments.items() if value is not None}
            first_is_refused = ground.rng.random() < 0.6
            result = ground.try_out(operation, arguments)
            is_refused = isinstance(result, Refusal) and is_rule(result)
            if is_refused != first_is_refused or (isinstance(result, Refusal) and not is_refused):
                continue
            draft = _with_other(ground, operation, param, arguments, is_refused)
            if draft is not None:
                return draft
            break
    return None


def _with_other(ground: Ground, operation: Operation, param: Param, arguments: dict[str, Any], is_refused: bool) -> Draft | None:
    for row_id in ground.chooser.rows(param.ref)[:12]:
        second = {**arguments, param.key: row_id}
        if row_id == arguments[param.key] or not ground.changes(operation, second):
            continue
        if not is_refused and not ground.changes(operation, arguments):
            return None
        mentions = ground.named(operation, arguments)
        other = ground.mention(param.ref, row_id)
        sentence = ground.spoken(operation, arguments, mentions) if mentions is not None else None
        if mentions is None or other is None or sentence is None or other.text == mentions[param.key].text:
            return None
        trace = Trace.on(ground.world)
        given = ground.given(trace, operation, arguments, mentions)
        if given is None:
            return None
        trace.call(operation.key, given)
        calls: list[Any] = []
        if is_refused:
            last = ground.given(trace, operation, second, {**mentions, param.key: other})
            if last is None or isinstance(trace.call(operation.key, last), Refusal):
                return None
        else:
            wrong = Trace.on(ground.world)
            last = ground.given(wrong, operation, second, {**mentions, param.key: other})
            if last is not None:
                wrong.call(operation.key, last)
                calls = wrong.tool_calls()
        number = ground.rng.randrange(len(_INSTEAD) - (param.where == "path"))
        text = _INSTEAD[number].replace("{do}", sentence.text).replace("{Do}", capitalised(sentence.text))
        text = text.replace("{other}", other.text).replace("{first}", mentions[param.key].text)
        answer = (
            f"The first was refused, so I took {other.text}."
            if is_refused
            else f"It could be done with {mentions[param.key].text}."
        )
        return drafted(
            ground,
            "conditional",
            instruction=text,
            signature=("instead", operation.key, repr(sorted(arguments.items())), param.key, row_id),
            way=("instead", number, sentence.way),
            trace=trace,
            answer=answer,
            near_misses=(Variant(why="the second choice, though the first will do", calls=calls, final_answer=answer),)
            if calls
            else (),
            mentions=(*mentions.values(), other),
            constraints=len(arguments) - len(mentions) + 1,
            made=sentence.made,
        )
    return None


def _by_count(ground: Ground) -> Draft | None:
    """One of two acts, by how many rows of a kind there are."""
    roles = [role for role in ground.domain.entities if role not in ("activity", "user", "category")]
    ground.rng.shuffle(roles)
    for role in roles[:6]:
        found = row_set(ground, role, 1, 15)
        if found is None:
            continue
        pair = _two_deeds(ground, found.owner())
        if pair is None:
            return None
        is_more = ground.rng.random() < 0.5
        count = len(found.ids)
        limit = max(0, count - ground.rng.randint(1, 2)) if is_more else count + ground.rng.randint(0, 2)
        is_more = count > limit
        if limit < 2:
            continue
        done, other = (pair[0], pair[1]) if is_more else (pair[1], pair[0])
        trace = Trace.on(ground.world)
        if found.listed(trace) is None or done.planned(ground, trace) is None:
            continue
        wrong = other.planned(ground, Trace.on(ground.world))
        number = ground.rng.randrange(len(_BY_COUNT))
        text = _BY_COUNT[number].replace("{do}", pair[0].sentence.text).replace("{Do}", capitalised(pair[0].sentence.text))
        text = text.replace("{other}", pair[1].sentence.text).replace("{limit}", str(limit))
        text = text.replace("{the things}", found.text(ground)).replace("{more}", _more(ground, found, limit))
        answer = f"{there_are(count)}, so I did this: {done.sentence.text}."
        draft = drafted(
            ground,
            "conditional",
            instruction=text,
            signature=("by count", found.signature, pair[0].signature, pair[1].signature),
            way=("by count", number, role, pair[0].sentence.way, pair[1].sentence.way),
            trace=trace,
            answer=answer,
            near_misses=(Variant(why="the other of the two", calls=wrong.tool_calls(), final_answer=answer),) if wrong else (),
            mentions=(*done.mentions.values(), *found.mentions),
            constraints=len(found.conditions) + 2,
            made=(*pair[0].sentence.made, *pair[1].sentence.made),
        )
        if draft is not None:
            return draft
    return None


def _more(ground: Ground, found: RowSet, limit: int) -> str:
    owner = found.owner()
    if owner is None:
        return f"there are more than {limit} {found.text(ground, definite=False)}"
    return f"{owner.text} has more than {limit} {found.text(ground, definite=False, without_owner=True)}"


def _two_deeds(ground: Ground, owner: Mention | None) -> tuple[Deed, Deed] | None:
    """Two different acts, on rows of the owner if it can be."""
    found: list[Deed] = []
    for operation in ground.writes()[:8]:
        fixed = None
        parties = [param for param in operation.params if param.ref == "party" and param.required]
        if owner is not None and parties:
            fixed = {parties[0].key: owner.id}
        done = deed(ground, operation, fixed, tries=8)
        if done is not None and all(done.operation.key != other.operation.key for other in found):
            found.append(done)
        if len(found) == 2:
            return found[0], found[1]
    return None
