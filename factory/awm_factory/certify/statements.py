"""A bundle's SQL as the checks want it: each statement with the table it belongs to and its place among that table's."""

import re
from collections import Counter
from collections.abc import Iterable

from awm_runtime.contract import Statement

_NAME = r"""(?:"((?:[^"]|"")+)"|`([^`]+)`|\[([^\]]+)\]|([^\W\d]\w*))"""
_COMMENTS = r"(?:\s|--[^\n]*\n|/\*.*?\*/)*"
_TABLE = re.compile(
    rf"{_COMMENTS}(?:"
    rf"CREATE\s+(?:TEMP(?:ORARY)?\s+)?(?:VIRTUAL\s+)?(?:TABLE|VIEW)\s+(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}"
    rf"|CREATE\s+(?:UNIQUE\s+)?INDEX\s+.*?\sON\s+{_NAME}"
    rf"|CREATE\s+(?:TEMP(?:ORARY)?\s+)?TRIGGER\s+.*?\sON\s+{_NAME}"
    rf"|(?:INSERT|REPLACE)\s+(?:OR\s+\w+\s+)?INTO\s+{_NAME}"
    rf"|UPDATE\s+(?:OR\s+\w+\s+)?{_NAME}"
    rf"|DELETE\s+FROM\s+{_NAME}"
    r")",
    re.IGNORECASE | re.DOTALL,
)


def table_of(sql: str) -> str:
    """Table that a statement makes, fills or indexes; empty for what belongs to none (a PRAGMA) or can't be read."""
    found = _TABLE.match(sql)
    return next((name for name in found.groups() if name), "") if found else ""


def numbered(statements: Iterable[str]) -> list[Statement]:
    places: Counter[str] = Counter()
    result = []
    for sql in statements:
        table = table_of(sql)
        result.append(Statement(sql=sql, table=table, index=places[table]))
        places[table] += 1
    return result
