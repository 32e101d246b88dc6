"""The kinds of values in rows, and conditions on them."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final, Literal

Value = str | int | bool | date | datetime | None
"""Of a cell: `money` is an int of cents, `choice` a str, `ref` the id of a row, `date` and `datetime` (naive, UTC) themselves."""

Row = Mapping[str, Any]
"""A row's Values by column key, `id` among them."""

Kind = Literal["int", "text", "money", "date", "datetime", "bool", "choice", "ref"]
Where = Mapping[str, str]
"""Conditions on rows that all hold: `column` or `column__comparator` to an expression. Comparators are those of COMPARATORS."""

COMPARATORS: Final = ("eq", "ne", "lt", "le", "gt", "ge", "in", "contains")
