"""Conditions on rows: a path from a row, a comparator, a value."""

import operator
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any, Final, Protocol

from awm_factory.llm.offline.ir import Domain
from awm_factory.llm.offline.values import COMPARATORS, Row


class Rows(Protocol):
    """What expressions ask of the state."""

    @property
    def domain(self) -> Domain: ...

    @property
    def now(self) -> datetime: ...

    def row(self, role: str, row_id: int) -> Row: ...

    def all(self, role: str) -> Iterator[Row]:
        """By id."""
        ...

    def next_id(self, role: str) -> int: ...


def split(condition: str) -> tuple[str, str]:
    """`starts_at__gt` is ("starts_at", "gt"), `slot_id` ("slot_id", "eq"), `slot__place_id` ("slot__place_id", "eq")."""
    column, separator, comparator = condition.rpartition("__")
    return (column, comparator) if separator and comparator in COMPARATORS else (condition, "eq")


def matching(rows: Rows, role: str, tests: list[tuple[str, str, Any]]) -> Iterator[Row]:
    for row in rows.all(role):
        if all(holds(cell(rows, role, row, path), comparator, value) for path, comparator, value in tests):
            yield row


def cell(rows: Rows, role: str, row: Row, path: str) -> Any:
    """Of the row itself, or along references: `slot__place_id` is the place of its slot; None where a reference is empty."""
    if path in row:
        return row[path]
    first, _, rest = path.partition("__")
    column = rows.domain.entity(role).column(f"{first}_id")
    target = row[column.key]
    return None if target is None else cell(rows, column.ref, rows.row(column.ref, target), rest)


def holds(cell: Any, comparator: str, value: Any) -> bool:
    """As SQL would have it: NULL equals None alone. A date is compared with the day of a datetime."""
    if comparator == "eq":
        return bool(cell == value)
    if cell is None:
        return False
    if comparator == "ne":
        return value is None or bool(cell != value)
    if comparator == "in":
        return cell in value
    if comparator == "contains":
        return str(value).lower() in str(cell).lower()
    if isinstance(cell, datetime) and isinstance(value, date) and not isinstance(value, datetime):
        cell = cell.date()
    return bool(_ORDER[comparator](cell, value))


_ORDER: Final = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}
