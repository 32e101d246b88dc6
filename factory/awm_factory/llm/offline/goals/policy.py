"""Something that the house rules may forbid: then nothing is to change, and the answer names the figure that decides it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from awm_factory.llm.offline.arguments import Refusal
from awm_factory.llm.offline.expr import pieces
from awm_factory.llm.offline.goals.act import deed
from awm_factory.llm.offline.goals.ground import Draft, Ground, drafted
from awm_factory.llm.offline.goals.telling import tell
from awm_factory.llm.offline.ir import Operation
from awm_factory.llm.offline.outcome import Told
from awm_factory.llm.offline.phrase import Sentence
from awm_factory.llm.offline.steps import Each, Require, Step, When
from awm_factory.llm.offline.trace import Trace
from awm_factory.llm.offline.wording import capitalised

_TRIES: Final = 40
_ALLOWED_SHARE: Final = 0.25
"""Of these tasks, so many are about something that the rules do allow: refusing always is no way through."""
_WAYS: Final = (
    "{Do}, if the house rules allow it. If they do not, leave everything as it is and tell me {what}.",
    "Check whether the rules let us {do}. If so, do it; if not, change nothing and tell me {what}.",
    "I have been asked to {do}. Do so only if it is within the rules; otherwise change nothing, and tell me {what}.",
    "If our rules permit it, {do}; if not, leave it and let me know {what}.",
)
_ALLOWED: Final = (
    "{Do}, if the house rules allow it, and tell me {told}. If they do not, leave everything as it is and tell me {what}.",
    "If our rules permit it, {do} and let me know {told}; if not, leave it and let me know {what}.",
    "I have been asked to {do}. If the rules allow it, do so and tell me {told}; otherwise change nothing, and tell me {what}.",
)


@dataclass(frozen=True)
class Figure:
    told: Told
    question: str
    said: str


def policy(ground: Ground) -> Draft | None:
    operations = [op for op in ground.writes() if any(step.rule for step in requires(op.steps))]
    allowed = ground.rng.random() < _ALLOWED_SHARE
    for operation in operations[:6]:
        draft = _permitted(ground, operation) if allowed else _forbidden(ground, operation)
        if draft is not None:
            return draft
    return None


def requires(steps: tuple[Step, ...]) -> Iterator[Require]:
    for step in steps:
        match step:
            case Require():
                yield step
            case When():
                yield from requires(step.steps)
                yield from requires(step.otherwise)
            case Each():
                yield from requires(step.steps)


def _forbidden(ground: Ground, operation: Operation) -> Draft | None:
    for _ in range(_TRIES):
        arguments = ground.chooser.arguments(operation, {param.key: None for param in operation.params if not param.required})
        if arguments is None:
            return None
        arguments = {key: value for key, value in arguments.items() if value is not None}
        refusal = ground.try_out(operation, arguments)
        if not isinstance(refusal, Refusal) or not is_rule(refusal):
            continue
        figure = figure_of(operation, refusal)
        if figure is None:
            continue
        mentions = ground.named(operation, arguments)
        sentence = ground.spoken(operation, arguments, mentions) if mentions is not None else None
        if sentence is None or mentions is None:
            continue
        trace = Trace.on(ground.world)
        given = ground.given(trace, operation, arguments, mentions)
        if given is None:
            continue
        trace.call(operation.key, given)
        number = ground.rng.randrange(len(_WAYS))
        draft = drafted(
            ground,
            "policy",
            instruction=_filled(_WAYS[number], sentence, what=figure.question),
            signature=("policy", operation.key, repr(sorted(arguments.items()))),
            way=("policy", number, sentence.way, refusal.rule),
            trace=trace,
            answer=f"The rules do not allow it, so I left everything as it is. {refusal.detail}",
            told=(figure.told,),
            mentions=tuple(mentions.values()),
            constraints=len(arguments) - len(mentions) + 1,
            expected=f"Nothing is changed, and the answer names {figure.said}: {refusal.detail}",
        )
        if draft is not None:
            return draft
    return None


def _permitted(ground: Ground, operation: Operation) -> Draft | None:
    figures = [found for step in requires(operation.steps) if step.rule and (found := _question_of(step)) is not None]
    done = deed(ground, operation)
    if done is None or not figures:
        return None
    trace = done.planned(ground, Trace.on(ground.world))
    telling = tell(ground, trace, done.sentence.text) if trace is not None else None
    if trace is None or telling is None:
        return None
    number = ground.rng.randrange(len(_ALLOWED))
    told = telling.answer.removeprefix("It is done; ").partition(" is ")[0]
    return drafted(
        ground,
        "policy",
        instruction=_filled(_ALLOWED[number], done.sentence, what=ground.rng.choice(figures), told=told),
        signature=("policy", done.signature),
        way=("policy", "allowed", number, done.sentence.way),
        trace=trace,
        answer=telling.answer,
        told=telling.told,
        mentions=tuple(done.mentions.values()),
        constraints=len(done.arguments) - len(done.mentions) + 1,
        made=done.sentence.made,
    )


def _filled(way: str, sentence: Sentence, **more: str) -> str:
    text = way.replace("{do}", sentence.text).replace("{Do}", capitalised(sentence.text))
    for key, value in more.items():
        text = text.replace(f"{{{key}}}", value)
    return text


def figure_of(operation: Operation, refusal: Refusal) -> Figure | None:
    """The figure that a refusal names: a limit of the rules, else a date, an amount or a number, if it is the only one."""
    for step in requires(operation.steps):
        if step.rule != refusal.rule:
            continue
        values = _read(step.detail, refusal.detail)
        if values is None:
            continue
        figures = [(expression, told) for expression, text in values if (told := _told(text)) is not None]
        limits = [pair for pair in figures if "policy." in pair[0]]
        question = _question_of(step)
        chosen = limits[0][1] if len({str(told) for _, told in limits}) == 1 else None
        if chosen is None and not limits:
            order = ("moment", "day", "amount", "count")
            for kind in order:
                of_kind = {told for _, told in figures if told.kind == kind}
                if len(of_kind) == 1:
                    chosen = of_kind.pop()
                    break
        if chosen is not None and question is not None:
            return Figure(chosen, question, str(chosen.value))
    return None


def _read(detail: str, said: str) -> list[tuple[str, str]] | None:
    """The values in a refusal's text, by the expressions that they come from."""
    pattern, names = "", []
    for kind, part in pieces(detail):
        pattern += re.escape(part) if kind == "text" else "(.+?)"
        names += [part] if kind == "expr" else []
    match = re.fullmatch(pattern, said)
    return list(zip(names, match.groups(), strict=True)) if match is not None else None


def _told(text: str) -> Told | None:
    if re.fullmatch(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?", text):
        return Told("moment", datetime.fromisoformat(text))
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return Told("day", datetime.fromisoformat(text).date())
    if match := re.fullmatch(r"(?:[A-Z]{3} )?(\d+)\.(\d\d)(?: [A-Z]{3})?", text):
        return Told("amount", int(match[1]) * 100 + int(match[2]))
    return Told("count", int(text)) if re.fullmatch(r"\d+", text) else None


def _question_of(step: Require) -> str | None:
    """What to ask for where the rule stands against it, by what its text tells."""
    expressions = [part for kind, part in pieces(step.detail) if kind == "expr"]
    limits = [part for part in expressions if "policy." in part]
    if limits:
        key = re.search(r"policy\.(\w+)", limits[0])
        unit = re.search(r"_(hours|days|months|minutes)$", key[1]) if key else None
        if unit:
            return f"how many {unit[1]} the rule sets"
        return (
            "the amount that the rule sets as the limit"
            if "money(" in limits[0]
            else "the number that the rule sets as the limit"
        )
    for expression in expressions:
        name = expression.rpartition(".")[2]
        if re.search(r"_at\b", name):
            return "the date and time that the rule goes by"
        if re.search(r"_on\b|day\(", expression):
            return "the date that the rule goes by"
        if "money(" in expression or name.endswith("_cents"):
            return "the amount that the rule goes by"
        if re.search(r"count\(|total\(|capacity|quantity|limit|_days|_hours|left|-|\+", expression):
            return "the number that the rule goes by"
    return None


def is_rule(refusal: Refusal) -> bool:
    """A refusal by a rule of the house, not of arguments that make no sense (422)."""
    return bool(refusal.rule) and refusal.status != 422
