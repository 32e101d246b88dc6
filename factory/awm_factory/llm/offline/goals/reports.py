"""Figures of reports: one that stands alone, or one cell of a table."""

import re
from typing import Final

from awm_factory.llm.offline.arguments import Refusal
from awm_factory.llm.offline.goals.ground import Draft, Ground, drafted
from awm_factory.llm.offline.goals.telling import told_of
from awm_factory.llm.offline.ir import Column, Operation
from awm_factory.llm.offline.steps import Field, ReturnRecord, ReturnTable
from awm_factory.llm.offline.trace import Trace
from awm_factory.llm.offline.wording import capitalised, column_noun

_TRIES: Final = 6
_REPORT: Final = (
    "{Do} and tell me {what}.",
    "I need one figure for a meeting: {do} and tell me {what}.",
    "Please {do}; then let me know {what}.",
)


def report(ground: Ground) -> Draft | None:
    """One figure of a report."""
    operations = [op for op in ground.domain.operations.values() if op.kind == "report"]
    ground.rng.shuffle(operations)
    for operation in operations[:_TRIES]:
        if isinstance(operation.returns, ReturnRecord):
            draft = _of_record(ground, operation, operation.returns)
        elif isinstance(operation.returns, ReturnTable):
            draft = _of_table(ground, operation, operation.returns)
        else:
            continue
        if draft is not None:
            return draft
    return None


def _of_record(ground: Ground, operation: Operation, returns: ReturnRecord) -> Draft | None:
    arguments = ground.chooser.arguments(operation, {param.key: None for param in operation.params if not param.required})
    if arguments is None:
        return None
    arguments = {key: value for key, value in arguments.items() if value is not None}
    result = ground.try_out(operation, arguments)
    mentions = ground.named(operation, arguments)
    if isinstance(result, Refusal) or mentions is None:
        return None
    fields = [field for field in returns.fields if field.kind in ("int", "money") and result[field.key]]
    if not fields:
        return None
    field = ground.rng.choice(fields)
    trace = Trace.on(ground.world)
    given = ground.given(trace, operation, arguments, mentions)
    if given is None:
        return None
    trace.call(operation.key, given)
    told, said = told_of(ground, Column(field.key, field.kind, name=field.name), result[field.key])
    sentence = ground.spoken(operation, arguments, mentions)
    if sentence is None:
        return None
    number = ground.rng.randrange(len(_REPORT))
    text = _REPORT[number].replace("{do}", sentence.text).replace("{Do}", capitalised(sentence.text))
    text = text.replace("{what}", _what(field))
    return drafted(
        ground,
        "ask",
        instruction=text,
        signature=("report", operation.key, field.key, repr(sorted(arguments.items()))),
        way=("report", number, sentence.way, field.key),
        trace=trace,
        answer=f"It is {said}.",
        told=(told,),
        mentions=tuple(mentions.values()),
        constraints=len(arguments),
        expected=f"{said}; nothing is changed.",
    )


def _of_table(ground: Ground, operation: Operation, returns: ReturnTable) -> Draft | None:
    """One cell of a report with many rows: that of the row which is called so."""
    arguments = ground.chooser.arguments(operation, {param.key: None for param in operation.params if not param.required})
    if arguments is None:
        return None
    arguments = {key: value for key, value in arguments.items() if value is not None}
    result = ground.try_out(operation, arguments)
    mentions = ground.named(operation, arguments)
    names = [field for field in returns.fields if field.kind == "text"]
    if isinstance(result, Refusal) or mentions is None or not names or len(result["rows"]) < 2:
        return None
    row = ground.rng.choice(result["rows"])
    figures = [
        field for field in returns.fields if field.kind in ("int", "money") and row[field.key] and not field.key.endswith("id")
    ]
    called = [other[names[0].key] for other in result["rows"]]
    if not figures or called.count(row[names[0].key]) != 1:
        return None
    field = ground.rng.choice(figures)
    trace = Trace.on(ground.world)
    given = ground.given(trace, operation, arguments, mentions)
    sentence = ground.spoken(operation, arguments, mentions)
    if given is None or sentence is None:
        return None
    trace.call(operation.key, given)
    told, said = told_of(ground, Column(field.key, field.kind, name=field.name), row[field.key])
    number = ground.rng.randrange(len(_REPORT))
    text = _REPORT[number].replace("{do}", sentence.text).replace("{Do}", capitalised(sentence.text))
    return drafted(
        ground,
        "ask",
        instruction=text.replace("{what}", f"what stands there for {row[names[0].key]} as {column_noun(field)}"),
        signature=("report", operation.key, field.key, row[names[0].key], repr(sorted(arguments.items()))),
        way=("report", number, sentence.way, field.key),
        trace=trace,
        answer=f"It is {said}.",
        told=(told,),
        mentions=tuple(mentions.values()),
        constraints=len(arguments) + 1,
        expected=f"{said}; nothing is changed.",
    )


def _what(field: Field) -> str:
    """`what is owed`, or `this figure: orders that were cancelled`."""
    about = re.sub(r",? in cents\b", "", field.about).rstrip(".") or field.name.replace("_", " ")
    about = about[:1].lower() + about[1:]
    return about if about.split()[0] in ("how", "what", "the", "which", "who") else f"this figure: {about}"
