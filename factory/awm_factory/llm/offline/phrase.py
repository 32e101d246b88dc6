"""Sentences: an operation with its arguments as a user asks for it, in one of several ways."""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from awm_factory.llm.offline.ir import Domain, Operation, Param
from awm_factory.llm.offline.locate import CURRENT_USER
from awm_factory.llm.offline.mention import Mention
from awm_factory.llm.offline.phrasing import SETTING, is_update, phrases_of
from awm_factory.llm.offline.wording import bare, capitalised, column_noun, figure, option, quoted, spoken
from awm_factory.llm.offline.words import listed

_SLOT: Final = re.compile(r"\{(\w+)\}")
_AS_IT_IS: Final = re.compile(r"(?:^|_)(?:full_name|email|phone|iban|plate|code|reference)$")
"""Texts that nobody would set in quotation marks."""
PLEAS: Final = (
    "{Do}.",
    "Please {do}.",
    "{Do}, please.",
    "I need you to {do}.",
    "Go ahead and {do}.",
    "I would like you to {do}.",
    "Next on my list: {do}.",
    "{Do} for me, please.",
    "Be so kind as to {do}.",
    "It is decided: {do}.",
    "{Do}. That is all for now.",
)
"""Ways to put a request, with `{do}` (or `{Do}`) for what is to be done. None of them asks for an answer."""


@dataclass(frozen=True)
class Sentence:
    """What is to be done, in the imperative and without a full stop."""

    text: str
    way: tuple[object, ...]
    """Which phrasing it is, whatever its slots hold."""
    mentions: tuple[Mention, ...] = ()
    made: tuple[str, ...] = ()
    """Texts that it has stored."""


def imperative(
    domain: Domain,
    operation: Operation,
    arguments: Mapping[str, Any],
    mentions: Mapping[str, Mention],
    rng: random.Random,
    instead: Mapping[str, str] | None = None,
) -> Sentence | None:
    """None where the operation can't be put into words. `instead`: words for a parameter whose row is not named."""
    said = dict(instead or {})
    currency = domain.currency
    if not operation.phrases and is_update(operation):
        return _update(operation, arguments, mentions, currency, rng, said)
    phrases = list(enumerate(phrases_of(domain, operation)))
    rng.shuffle(phrases)
    for number, phrase in phrases:
        wanted = set(_SLOT.findall(phrase))
        if not wanted <= arguments.keys() | said.keys():
            continue
        slots = {key: _slot(key, phrase, operation, arguments, mentions, currency, said) for key in wanted}
        text = phrase
        for key, slot in slots.items():
            text = text.replace(f"{{{key}}}", slot)
        spare = [param for param in operation.params if param.key in arguments.keys() | said.keys() and param.key not in wanted]
        tail = _tail(spare, arguments, mentions, currency, said)
        text += f",{tail}" if tail.startswith(" with ") and " with " in bare(text) else tail
        made = tuple(str(arguments[param.key]) for param in operation.params if param.kind == "text" and param.key in arguments)
        return Sentence(
            _mended(text), (operation.key, number, tuple(sorted(param.key for param in spare))), tuple(mentions.values()), made
        )
    return None


def _update(
    operation: Operation,
    arguments: Mapping[str, Any],
    mentions: Mapping[str, Mention],
    currency: str,
    rng: random.Random,
    said: Mapping[str, str],
) -> Sentence | None:
    """Columns of one row set to values."""
    path = next(param for param in operation.params if param.where == "path")
    given = [param for param in operation.params if param.key in arguments.keys() | said.keys() and param.where != "path"]
    if not given or (path.key not in said and path.key not in mentions):
        return None
    subject = said.get(path.key) or value_text(path, arguments[path.key], mentions[path.key], mentions, currency)
    number = rng.randrange(len(SETTING))
    marks = [f"{'' if arguments[p.key] else 'not '}{column_noun(p)}" for p in given if p.kind == "bool"]
    parts = []
    for param in given:
        if param.kind == "bool":
            continue
        value = said.get(param.key) or value_text(param, arguments[param.key], mentions.get(param.key), mentions, currency)
        noun = column_noun(param)
        if param.key in mentions:
            value = value.removeprefix(f"the {noun} ")
        parts.append((f"the {noun}", value))
    text = ""
    if parts:
        text = SETTING[number].replace("{noun}", parts[0][0]).replace("{subject}", subject).replace("{value}", parts[0][1])
        text += "".join(f", and {noun} to {value}" for noun, value in parts[1:])
    if marks:
        text = f"{text}, and mark it as {' and '.join(marks)}" if parts else f"mark {subject} as {' and '.join(marks)}"
    made = tuple(str(arguments[param.key]) for param in given if param.kind == "text" and param.key in arguments)
    way = (operation.key, "set", number, tuple(sorted(param.key for param in given)))
    return Sentence(_mended(text), way, tuple(mentions.values()), made)


def _slot(
    key: str,
    phrase: str,
    operation: Operation,
    arguments: Mapping[str, Any],
    mentions: Mapping[str, Mention],
    currency: str,
    said: Mapping[str, str],
) -> str:
    if key in said:
        return said[key]
    param = operation.param(key)
    in_quotes = f'"{{{key}}}"' in phrase
    return value_text(param, arguments[key], mentions.get(key), mentions, currency, in_quotes=in_quotes)


def value_text(
    param: Param,
    value: Any,
    mention: Mention | None,
    mentions: Mapping[str, Mention],
    currency: str,
    *,
    in_quotes: bool = False,
) -> str:
    if mention is not None:
        return "me" if mention.role == "user" and mention.id == CURRENT_USER else mention.text
    if param.kind == "list":
        return listed([_line(param, number, line, mentions, currency) for number, line in enumerate(value)])
    if param.kind == "text":
        return str(value) if in_quotes or _AS_IT_IS.search(param.key) else quoted(str(value))
    return spoken(value, param.kind, currency)


def _line(param: Param, number: int, line: Mapping[str, Any], mentions: Mapping[str, Mention], currency: str) -> str:
    """`3 Hammer drill`, `150.00 to Cash`; `mentions` holds those of lines under `lines[0].item_id`."""
    rest = []
    count = ""
    name = ""
    for item in param.items:
        if item.key not in line:
            continue
        mention = mentions.get(f"{param.key}[{number}].{item.key}")
        if mention is not None and not name:
            name = mention.text
        elif item.key == "quantity" or (item.kind == "int" and not count):
            count = f"{line[item.key]} of "
        else:
            text = value_text(item, line[item.key], mention, mentions, currency)
            rest.append(figure(item, text) if item.kind in ("int", "money") else f"the {column_noun(item)} {text}")
    tail = f" ({', '.join(rest)})" if rest else ""
    return f"{count}{name}{tail}" if name or count else ", ".join(rest)


_FOLLOWING: Final = {"place": "at", "party": "for"}
"""How a row of these follows in a sentence that has no place for it."""
_DIRECT: Final = {"dated_on": "dated", "until": "until", "until_on": "until", "from_on": "from"}
"""How a day of these follows."""
_SPAN: Final = ("starts_at", "ends_at", "starts_on", "ends_on")


def _tail(
    spare: Sequence[Param],
    arguments: Mapping[str, Any],
    mentions: Mapping[str, Mention],
    currency: str,
    said: Mapping[str, str],
) -> str:
    parts: list[str] = []
    marks: list[str] = []
    by_key = {param.key: param for param in spare}
    span = ""
    if {"starts_at", "ends_at"} <= by_key.keys() or {"starts_on", "ends_on"} <= by_key.keys():
        start, end = (key for key in by_key if key in _SPAN)
        times = [spoken(arguments[key], by_key[key].kind, currency) for key in sorted((start, end), reverse=True)]
        span = f" from {times[0]} to {times[1]}"
        spare = [param for param in spare if param.key not in _SPAN]
    for param in spare:
        if param.key in said:
            parts.append(f"{said[param.key]} as the {column_noun(param)}")
            continue
        value, mention = arguments[param.key], mentions.get(param.key)
        noun = column_noun(param)
        text = value_text(param, value, mention, mentions, currency)
        if mention is not None and param.ref in _FOLLOWING and noun in text:
            span += f" {_FOLLOWING[param.ref]} {text}"
        elif mention is not None:
            parts.append(text if noun in text else f"{text} as the {noun}")
        elif param.kind == "list":
            parts.append(text)
        elif param.kind == "bool":
            marks.append(f"{'' if value else 'not '}marked as {noun}")
        elif param.kind in ("money", "int"):
            parts.append(figure(param, text))
        elif param.kind == "choice":
            parts.append(option(param, text))
        elif param.kind == "date" and param.key in _DIRECT:
            span += f" {_DIRECT[param.key]} {text}"
        elif param.kind == "date" and noun == "date":
            span += f" on {text}"
        else:
            parts.append(f"the {noun} {text}")
    rest = f" with {listed(parts)}" if parts else ""
    return f"{span}{rest}{''.join(f', {mark}' for mark in marks)}"


def _mended(text: str) -> str:
    """Small faults of put-together sentences: a doubled article, a full stop before the end."""
    text = re.sub(r"\b(the|a|an) (the|my|me)\b", r"\2", text)
    text = re.sub(r"\bof the the\b", "of the", text)
    return re.sub(r"\s+", " ", text).strip().rstrip(".")


def put(plea: str, do: str) -> str:
    """A request made of a plea and what is to be done."""
    if do[-1:] == '"' and plea.endswith("{do}."):
        return plea.replace("{do}.", f"{do}.").replace("{Do}.", f"{capitalised(do)}.")
    return plea.replace("{do}", do).replace("{Do}", capitalised(do))
