"""pydantic's PastDate, FutureDate, PastDatetime and FutureDatetime by the world's clock: compiled code would ask the kernel."""

import datetime
from collections.abc import Callable
from typing import Any, Final

from pydantic import types
from pydantic_core import PydanticKnownError, core_schema

_TYPES: Final = {
    types.PastDate: ("date_past", lambda value: value < datetime.datetime.now(datetime.UTC).date()),
    types.FutureDate: ("date_future", lambda value: value > datetime.datetime.now(datetime.UTC).date()),
    types.PastDatetime: ("datetime_past", lambda value: value < datetime.datetime.now(value.tzinfo)),
    types.FutureDatetime: ("datetime_future", lambda value: value > datetime.datetime.now(value.tzinfo)),
}


def install() -> None:
    """Once, before environment code defines its models."""
    for cls, (error, holds) in _TYPES.items():
        cls.__get_pydantic_core_schema__ = classmethod(_schema(cls.__get_pydantic_core_schema__.__func__, error, holds))  # type: ignore[attr-defined]


def _schema(given: Callable[..., Any], error: Any, holds: Callable[[Any], bool]) -> Callable[..., Any]:
    def check(value: Any) -> Any:
        if not holds(value):
            raise PydanticKnownError(error)
        return value

    def schema(cls: Any, source: Any, handler: Any) -> Any:
        plain = given(cls, source, handler)
        plain.pop("now_op")
        return core_schema.no_info_after_validator_function(check, plain)

    return schema
