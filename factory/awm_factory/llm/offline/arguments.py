"""What a call is given, read as FastAPI will read it, and how a call is refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from awm_factory.llm.offline.ir import Param


@dataclass(frozen=True)
class Refusal:
    """A call that was not carried out; it changed nothing."""

    status: int
    detail: str
    rule: str = ""


class RefusedError(Exception):
    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal


def given(params: tuple[Param, ...], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by key, each of its kind, None for those left out. Raises RefusedError (422) as FastAPI's validation would."""
    known = {param.key for param in params} | {"limit", "offset", "sort"}
    if unknown := [key for key in arguments if key not in known]:
        raise ValueError(f"there is no parameter {unknown[0]!r}; there are {', '.join(sorted(known))}")
    values: dict[str, Any] = {key: arguments[key] for key in ("limit", "offset", "sort") if key in arguments}
    for param in params:
        value = arguments.get(param.key, param.default)
        if value is None and param.required:
            raise RefusedError(Refusal(422, f"{param.name or param.key}: Field required"))
        values[param.key] = None if value is None else _one(param, value)
    return values


def _one(param: Param, value: Any) -> Any:
    if param.kind == "list":
        _bounded(param, len(value))
        return [given(param.items, item) for item in value]
    if param.kind == "date" and isinstance(value, str):
        value = date.fromisoformat(value)
    if param.kind == "datetime" and isinstance(value, str):
        value = datetime.fromisoformat(value)
    if param.choices and value not in param.choices:
        raise RefusedError(Refusal(422, f"{param.name or param.key}: Input should be one of {', '.join(param.choices)}"))
    if param.kind in ("int", "money"):
        _bounded(param, value)
    if param.kind == "text":
        _bounded(param, len(value))
    return value


def _bounded(param: Param, size: int) -> None:
    if not within(size, param.low, param.high):
        raise RefusedError(Refusal(422, f"{param.name or param.key}: Input should be between {param.low} and {param.high}"))


def within(number: Any, low: int | None, high: int | None) -> bool:
    return (low is None or number >= low) and (high is None or number <= high)
