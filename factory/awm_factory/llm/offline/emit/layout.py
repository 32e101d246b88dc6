"""Lines of Python broken where they are too long, as formatters break them."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

WIDTH: Final = 120
MESSAGE: Final = 104
"""Characters of a text on one line; a longer one goes over several."""
_PAIRS: Final = {"(": ")", "[": "]", "{": "}"}


_OPERATORS: Final = ((" or ",), (" and ",), (" == ", " != ", " <= ", " >= ", " < ", " > ", " in ", " not in "), (" + ", " - "))
"""By how loosely they bind."""


def wrapped(lines: Iterable[str]) -> list[str]:
    return [piece for line in lines for piece in _wrap(line)]


def _wrap(line: str) -> Iterator[str]:
    if len(line) <= WIDTH:
        yield line
        return
    indent = line[: len(line) - len(line.lstrip())]
    if match := _CONDITION.match(line):
        keyword, expression = match[2] or match[6], match[3] or match[7]
        if len(parts := _operands(expression)) > 1:
            yield f"{indent}{keyword} ("
            for part in parts:
                yield from _wrap(f"{indent}    {part}")
            yield f"{indent}){match[4] or ''}"
            return
    elif line.startswith(f"{indent}if ") and len(parts := _operands(line.strip())) > 1:
        for part in parts:
            yield from _wrap(f"{indent}{part}")
        return
    found = _group(line)
    if found is None:
        yield line
        return
    start, end = found
    inner = line[start + 1 : end]
    parts = [part.strip() for part in _split(inner, ",")]
    yield line[: start + 1]
    if len(indent) + 4 + len(inner) <= WIDTH:
        yield f"{indent}    {inner}"
    elif len(parts) == 1:
        is_call = line[start] == "(" and re.search(r"[\w\])]$", line[:start]) is not None
        lone = " for " in inner or not is_call  # elsewhere than in a call, a comma after one thing makes a tuple
        yield from _element(f"{indent}    ", parts[0], "" if lone or len(_operands(inner)) > 1 or len(_chain(inner)) > 2 else ",")
    else:
        for part in parts:
            yield from _element(f"{indent}    ", part, ",")
    yield from _wrap(indent + line[end:])


def _element(indent: str, text: str, end: str) -> Iterator[str]:
    """One of several things between brackets, with the comma after it."""
    if len(indent) + len(text) + len(end) <= WIDTH:
        yield f"{indent}{text}{end}"
        return
    pieces = _operands(text)
    if len(pieces) == 1:
        pieces = _chain(text)
        pieces = pieces if len(pieces) > 2 else [text]
    for piece in pieces[:-1]:
        yield from _wrap(f"{indent}{piece}")
    yield from _wrap(f"{indent}{pieces[-1]}{end}")


_CONDITION: Final = re.compile(r"( *)(if|elif) (.*)(:)$|( *)(return) (.*)()$")


def _operands(text: str) -> list[str]:
    """`a and b` as `a`, `and b`: at the operators that bind most loosely."""
    if text.startswith(("lambda ", "*")):
        return [text]
    for operators in _OPERATORS:
        places = [(index, operator) for operator in operators for index in _places(text, operator)]
        if places:
            cuts = [0, *(index + 1 for index, _ in sorted(places)), len(text)]
            return [text[first:last].strip() for first, last in pairwise(cuts)]
    return [text]


def _chain(text: str) -> list[str]:
    """`select(A).where(b).order_by(c)` as `select(A)`, `.where(b)`, `.order_by(c)`."""
    cuts = [0, *(index + 1 for index in _places(text, ").")), len(text)]
    return [text[first:last] for first, last in pairwise(cuts)]


def _places(text: str, wanted: str) -> Iterator[int]:
    """Where it stands outside strings and brackets."""
    depth = 0
    for index, character in _code(text):
        if character in _PAIRS:
            depth += 1
        elif character in _PAIRS.values():
            depth -= 1
        if depth == 0 and text.startswith(wanted, index):
            yield index


def _group(line: str) -> tuple[int, int] | None:
    """The outermost brackets that hold most of the line."""
    best: tuple[int, int] | None = None
    stack: list[int] = []
    for index, character in _code(line):
        if character in _PAIRS:
            stack.append(index)
        elif character in _PAIRS.values() and stack:
            start = stack.pop()
            if not stack and index > start + 1 and (best is None or index - start > best[1] - best[0]):
                best = (start, index)
    return best


def _split(text: str, separator: str) -> Iterator[str]:
    depth, last = 0, 0
    for index, character in _code(text):
        if character in _PAIRS:
            depth += 1
        elif character in _PAIRS.values():
            depth -= 1
        elif depth == 0 and index >= last and text.startswith(separator, index):
            yield text[last:index]
            last = index + len(separator)
    if text[last:].strip():
        yield text[last:]


def _code(text: str) -> Iterator[tuple[int, str]]:
    """Characters that are not inside a string."""
    quote = ""
    index = 0
    while index < len(text):
        character = text[index]
        if quote:
            if character == "\\":
                index += 1
            elif character == quote:
                quote = ""
        elif character in "\"'":
            quote = character
        else:
            yield index, character
        index += 1


def broken(message: str) -> Iterator[str]:
    """A long text as several that Python joins; cut at spaces outside braces."""
    prefix, body = ("f", message[2:-1]) if message.startswith("f") else ("", message[1:-1])
    words = re.split(r" (?![^{]*\})", body)
    line = ""
    for word in words:
        if line and len(line) + len(word) > MESSAGE - 10:
            yield f'{prefix if "{" in line else ""}"{line} "'
            line = word
        else:
            line = f"{line} {word}" if line else word
    yield f'{prefix if "{" in line else ""}"{line}",'
