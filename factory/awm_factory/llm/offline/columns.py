"""Columns, shortly: the key comes first, then what differs from the plain case."""

from collections.abc import Iterable, Sequence
from typing import Any

from awm_factory.llm.offline.ir import Column

Names = str | Sequence[str]
"""Keys, as a list or as one text with spaces between them."""


def text(key: str, about: str = "", **more: Any) -> Column:
    return Column(key, "text", about=about, **more)


def number(key: str, about: str = "", low: int = 0, **more: Any) -> Column:
    return Column(key, "int", about=about, low=low, **more)


def cents(key: str, about: str = "", low: int | None = 0, **more: Any) -> Column:
    """An amount; the key ends in `_cents`."""
    return Column(key, "money", about=about, low=low, **more)


def day(key: str, about: str = "", **more: Any) -> Column:
    return Column(key, "date", about=about, **more)


def moment(key: str, about: str = "", **more: Any) -> Column:
    return Column(key, "datetime", about=about, **more)


def flag(key: str, about: str = "", default: bool = False, **more: Any) -> Column:
    return Column(key, "bool", about=about, default=default, **more)


def ref(key: str, to: str, about: str = "", **more: Any) -> Column:
    """The id of a row of another entity; `owned=True` where it goes with that row."""
    return Column(key, "ref", ref=to, about=about, **more)


def choice(key: str, values: Iterable[str], about: str = "", **more: Any) -> Column:
    return Column(key, "choice", choices=tuple(values), about=about, **more)


def created(key: str = "created_at", about: str = "When it was entered") -> Column:
    return Column(key, "datetime", about=about, server=True)


def keys(names: Names) -> tuple[str, ...]:
    return tuple(names.split()) if isinstance(names, str) else tuple(names)
