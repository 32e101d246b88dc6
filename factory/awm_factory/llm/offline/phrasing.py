"""Phrasings that follow from an operation's own summary, name and parameters, where its module gives none or too few."""

import re
from typing import Final

from awm_factory.llm.offline.ir import Domain, Operation, Param
from awm_factory.llm.offline.wording import column_noun, noun_of
from awm_factory.llm.offline.words import article

_FEWEST: Final = 3
_MADE: Final = {
    "create": ("create", "enter", "set up"),
    "add": ("add", "enter", "put in"),
    "register": ("register", "enter", "sign up"),
    "record": ("record", "enter", "note"),
    "open": ("open", "set up", "start"),
    "place": ("place", "enter", "set up"),
}
_IRREGULAR: Final = {
    "hide": "hidden",
    "choose": "chosen",
    "break": "broken",
    "freeze": "frozen",
    "lose": "lost",
    "lead": "led",
    "meet": "met",
    "build": "built",
    "rebuild": "rebuilt",
    "split": "split",
    "cut": "cut",
    "shut": "shut",
    "reset": "reset",
    "redo": "redone",
    "resend": "resent",
    "forgive": "forgiven",
    "drive": "driven",
    "lay": "laid",
    "read": "read",
    "hit": "hit",
    "win": "won",
    "send": "sent",
    "sell": "sold",
    "withdraw": "withdrawn",
    "pay": "paid",
    "hold": "held",
    "begin": "begun",
    "take": "taken",
    "put": "put",
    "give": "given",
    "write": "written",
    "set": "set",
    "make": "made",
    "lend": "lent",
    "leave": "left",
    "undo": "undone",
    "let": "let",
    "find": "found",
    "draw": "drawn",
    "bring": "brought",
    "keep": "kept",
    "buy": "bought",
}


def phrases_of(domain: Domain, operation: Operation) -> tuple[str, ...]:
    """With `{param key}` for what is given. Those of the module come first, and alone where they are enough."""
    if len(operation.phrases) >= _FEWEST:
        return operation.phrases
    nouns = {param.ref: noun_of(domain, param.ref) for param in operation.params if param.ref}
    derived = _derived(operation, nouns, domain.entity(operation.entity).noun)
    return tuple(dict.fromkeys([*operation.phrases, *derived]))


def _derived(operation: Operation, nouns: dict[str, str], own: str) -> list[str]:
    paths = [param for param in operation.params if param.where == "path"]
    summary = _by_summary(operation, nouns, own)
    if operation.kind == "create" and not paths:
        return ([summary] if summary else []) + _creating(operation, own)
    if not paths:
        return [summary or _plain_summary(operation)]
    if not any(param.required for param in operation.params if param.where == "body") and _is_update(operation):
        return []
    subject = f"{{{paths[0].key}}}"
    if operation.kind == "create":
        return [summary] if summary else [f"{verb} a new {own} to {subject}" for verb in ("add", "enter", "put in")]
    if operation.kind == "delete":
        return [f"remove {subject}", f"delete {subject}", f"take {subject} off the books", *([summary] if summary else [])]
    ends = "".join(
        _ending(param) for param in operation.params if param.kind == "ref" and param.where == "body" and param.required
    )
    if summary and subject in summary:
        rest = "".join(_ending(p) for p in operation.params if p.kind == "ref" and p.required and f"{{{p.key}}}" not in summary)
        found = [f"{summary}{rest}"]
    else:
        found = []
    verb = _verb(operation, own)
    if verb and not (found and ends):
        past = participle(verb)
        first, _, rest = verb.partition(" ")
        do = f"{first} {subject} {rest}" if rest.endswith("ed") else f"{verb} {subject}"
        found += [f"{do}{ends}", f"see to it that {subject} is {past}{ends}", f"get {subject} {past}{ends}"]
    return found


def is_update(operation: Operation) -> bool:
    """Whether it sets columns of one row to values given."""
    return _is_update(operation)


def _is_update(operation: Operation) -> bool:
    return operation.method == "PATCH"


def _by_summary(operation: Operation, nouns: dict[str, str], own: str) -> str:
    """`Move a reservation to another session` is `move {booking_id} to {to_slot_id}`; empty where it names no row."""
    text = operation.summary.rstrip(".")
    text = text[:1].lower() + text[1:]
    # `an account` is no account in `an account entry`.
    longer = "".join(rf"(?!{re.escape(own[len(noun) :])}\b)" for noun in nouns.values() if own.startswith(f"{noun} "))
    filled = 0
    for param in sorted(operation.params, key=lambda param: (param.where != "path", -len(nouns.get(param.ref, "")))):
        if param.kind != "ref" or not param.required:
            continue
        noun = re.escape(nouns[param.ref])
        text, count = re.subn(
            rf"\b(?:an?|the|one|another)\s+(?:(?!new\b)[a-z-]+\s+)?{noun}\b{longer}(?!\s+\{{)", f"{{{param.key}}}", text, count=1
        )
        if not count:
            text, count = re.subn(rf"\b(?:an?|the|one|another)\s+{noun}\b{longer}", f"{{{param.key}}}", text, count=1)
        filled += count
    text = re.sub(r"\banother\b", "a new", text)
    text = re.sub(r"(\{\w+\}) that (?:is|are|has|have|was|were)\b[^,]*\Z", r"\1", text)
    return text if filled else ""


def _plain_summary(operation: Operation) -> str:
    text = operation.summary.rstrip(".")
    return text[:1].lower() + text[1:]


def _creating(operation: Operation, own: str) -> list[str]:
    verb = operation.name.partition("_")[0]
    verbs = _MADE.get(verb, (verb, "enter", "set up"))
    ends = "".join(_ending(param) for param in operation.params if param.kind == "ref" and param.required)
    new = f"a new {own}" if not own.startswith("new") else f"{article(own)} {own}"
    return [f"{verbs[0]} {new}{ends}", f"{verbs[1]} {article(own)} {own}{ends}", f"{verbs[2]} {new}{ends}"]


def _ending(param: Param) -> str:
    """How a row that an operation takes besides its own follows in the sentence."""
    slot = f"{{{param.key}}}"
    if param.key.startswith("debit_"):
        return f" debiting {slot}"
    if param.key.startswith("credit_"):
        return f" and crediting {slot}"
    if param.key.startswith("to_"):
        return f" to {slot}"
    if param.key.startswith("from_"):
        return f" from {slot}"
    if param.ref == "place":
        return f" at {slot}"
    if param.ref == "party":
        return f" for {slot}"
    if param.ref == "user":
        return f" with {slot} as the {column_noun(param)}"
    return f" for {slot}"


def _verb(operation: Operation, own: str) -> str:
    """`check_in_reservation` is `check in`."""
    name = operation.name.replace("_", " ")
    if name.endswith(f" {own}"):
        return name.removesuffix(f" {own}")
    return ""


_DOUBLED: Final = {"submit", "permit", "commit", "admit", "refit", "refer", "defer", "transfer", "cancel", "fulfil", "travel"}


def participle(verb: str) -> str:
    first, _, rest = verb.partition(" ")
    if first in _IRREGULAR:
        past = _IRREGULAR[first]
    elif first in _DOUBLED:
        past = f"{first}{first[-1]}ed"
    elif first.endswith("e"):
        past = f"{first}d"
    elif first.endswith("y") and first[-2:-1] not in "aeiou":
        past = f"{first[:-1]}ied"
    elif re.search(r"[^aeiou][aeiou][bdglmnprt]\Z", first) and not re.search(r"(?:er|en|on|it|or|et)\Z", first):
        past = f"{first}{first[-1]}ed"
    else:
        past = f"{first}ed"
    return f"{past} {rest}" if rest else past


SETTING: Final = (
    "change {noun} of {subject} to {value}",
    "set {noun} of {subject} to {value}",
    "correct {noun} of {subject} to {value}",
)
"""How an update is asked for, column by column; `{noun}` comes with its article."""
