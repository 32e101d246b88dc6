"""Python literals as one writes them by hand: on one line where they fit, else one item a line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 128


@dataclass(frozen=True)
class Code:
    """An expression as it stands."""

    text: str


@dataclass(frozen=True)
class Noted:
    """A value, and a remark to go beside it, for which every container around it takes a line an item."""

    value: object
    remark: str


def literal(value: object, indent: int = 0, used: int = 0) -> str:
    """`indent` is where its lines begin, `used` how much of the first line stands before and after it."""
    flat = _flat(value)
    if flat is not None and indent + used + len(flat) <= WIDTH:
        return flat
    if isinstance(value, Noted):
        return literal(value.value, indent, used)
    pad = " " * (indent + 4)
    if isinstance(value, Mapping):
        lines = [_line(pad, f"{literal(key)}: ", item, indent) for key, item in value.items()]
        return "{\n" + "".join(lines) + " " * indent + "}"
    if isinstance(value, tuple | list):
        left, right = ("(", ")") if isinstance(value, tuple) else ("[", "]")
        return f"{left}\n" + "".join(_line(pad, "", item, indent) for item in value) + " " * indent + right
    return flat if flat is not None else repr(value)


def _line(pad: str, head: str, item: object, indent: int) -> str:
    remark = f"  # {item.remark}" if isinstance(item, Noted) and item.remark else ""
    return f"{pad}{head}{literal(item, indent + 4, len(head) + 1)},{remark}\n"


def _flat(value: object) -> str | None:
    """On one line; None where something in it has a remark."""
    if isinstance(value, Code):
        return value.text
    if isinstance(value, Noted):
        return None if value.remark else _flat(value.value)
    if isinstance(value, Mapping):
        pairs = [(_flat(key), _flat(item)) for key, item in value.items()]
        if any(one is None or other is None for one, other in pairs):
            return None
        return "{" + ", ".join(f"{one}: {other}" for one, other in pairs) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = [_flat(item) for item in value]
        if any(item is None for item in items):
            return None
        inside = ", ".join(item for item in items if item is not None)
        if isinstance(value, tuple):
            return f"({inside},)" if len(items) == 1 else f"({inside})"
        return f"[{inside}]"
    return text(value) if isinstance(value, str) else repr(value)


def text(value: str) -> str:
    """A string in double quotes, where its content lets it."""
    plain = repr(value)
    if plain[0] == "'" and '"' not in value:
        inner = plain[1:-1].replace("\\'", "'")
        return f'"{inner}"'
    return plain
