"""Other values in the place of one argument: the row beside it, a cent more, the day after, another of an enumeration."""

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final

from awm_factory.certify import answers
from awm_factory.certify.stored import Stored
from awm_factory.certify.trying import Leaf, Path, leaves, property_of, references, replaced
from awm_runtime.contract import Tool, ToolCall

ID: Final = re.compile(r"(?:^|_)ids?$|[a-z]Ids?$")
_SIBLINGS: Final = 2
_ROWS: Final = ("sibling row", "wrong parent")
_VALUES: Final = ("off by one", "other enum value")
_TIMES: Final = {"date", "day", "time", "week", "month", "slot", "moment"}
_MOMENT: Final = re.compile(r"date|day|time|when|week|month|start|end|_on$|_at$", re.IGNORECASE)


def is_free(kind: str, leaf: Leaf, stored: Stored, instruction: str) -> bool:
    """Whether a mutant of this kind may be nothing but another choice, which the instruction leaves to the agent.

    Another row may be one where the instruction does not name the row; another date or member of an enumeration, where it says
    of just that argument that any will do ("any day of that week", "any category"). An amount off by one never is.
    """
    if kind in _ROWS:
        return not stored.is_named(leaf.name, leaf.value, instruction)
    if kind not in _VALUES or isinstance(leaf.value, (int, float)) or str(leaf.value).lower() in instruction.lower():
        return False
    stems = _TIMES if _MOMENT.search(leaf.name) else set(leaf.name.lower().split("_"))
    return answers.leaves_open_what(instruction, stems)


def other_values(leaf: Leaf, tool: Tool | None, stored: Stored, path: Path) -> Iterator[tuple[str, Any]]:
    """What kind of near miss another value makes, and the value."""
    value, schema = leaf.value, property_of(tool, leaf.where)
    if value is None or (isinstance(value, str) and references(value)):
        return
    in_path = tool is not None and "{" + leaf.name + "}" in tool.path
    siblings = stored.siblings(leaf.name, value) if not isinstance(value, (bool, float)) else []
    if ID.search(leaf.name) or (isinstance(value, str) and siblings and in_path):
        yield from (("sibling row" if in_path else "wrong parent", other) for other in siblings[:_SIBLINGS])
        return
    enum = _enum(schema) or (stored.enums.get(leaf.name.lower(), []) if isinstance(value, str) else [])
    if isinstance(value, bool):
        yield "other enum value", not value
    elif enum and value in enum:
        yield from (("other enum value", other) for other in [one for one in enum if one != value][:_SIBLINGS])
    elif isinstance(value, int):
        yield from (("off by one", other) for other in (value + 1, value - 1) if other >= 0 or value < 0)
    elif isinstance(value, float):
        yield from (("off by one", round(value + step, 2)) for step in (0.01, 1.0))
    elif isinstance(value, str):
        yield from _other_texts(value, siblings, path.task.instruction)


def _other_texts(value: str, siblings: Sequence[Any], instruction: str) -> Iterator[tuple[str, Any]]:
    moved = _a_day_later(value)
    if moved is not None:
        yield "off by one", moved
    elif siblings and value in instruction:
        yield "sibling row", siblings[0]
    elif len(value) >= 3 and value in instruction:
        yield "other text", _altered(value)


def in_other_words(call: ToolCall, tool: Tool | None) -> ToolCall | None:
    """The call with every text of its own altered, so that no rule against doing it twice stands in the way."""
    changed = call
    for leaf in leaves(call.arguments):
        free = isinstance(leaf.value, str) and len(leaf.value) >= 3 and not references(leaf.value) and not ID.search(leaf.name)
        if free and not _enum(property_of(tool, leaf.where)) and _a_day_later(leaf.value) is None:
            (changed,) = replaced([changed], 0, leaf.where, _altered(leaf.value))
    return changed if changed != call and not references(changed.arguments) else None


def _altered(text: str) -> str:
    """One figure, or else the last word, is another."""
    figures = list(re.finditer(r"\d", text))
    if figures:
        at = figures[-1].start()
        return f"{text[:at]}{(int(text[at]) + 1) % 10}{text[at + 1 :]}"
    head, space, _ = text.rstrip().rpartition(" ")
    return f"{head}{space}Other" if "@" not in text else f"other.{text}"


def _a_day_later(text: str) -> str | None:
    """The same time tomorrow, written as it was."""
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return (date.fromisoformat(text) + timedelta(days=1)).isoformat()
    if re.match(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", text):
        try:
            datetime.fromisoformat(text)
        except ValueError:
            return None
        return (date.fromisoformat(text[:10]) + timedelta(days=1)).isoformat() + text[10:]
    return None


def _enum(schema: dict[str, Any]) -> list[Any]:
    options = [schema, *(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())]
    return next((list(option["enum"]) for option in options if option.get("enum")), [])
