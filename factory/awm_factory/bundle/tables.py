"""Which table a statement of SQL belongs to, read from its head."""

import re

_GAP = r"(?>(?:\s|--[^\n]*|/\*.*?\*/)+)"
_NAME = r"""(?:(?:"[^"]*"|`[^`]*`|\[[^\]]*\]|\w+)\.)?(?:"([^"]*)"|`([^`]*)`|\[([^\]]*)\]|'([^']*)'|(\w+))"""


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(f"{_GAP}?{text}".replace(" ", _GAP).replace("NAME", _NAME), re.IGNORECASE | re.DOTALL)


_TABLE = _pattern(r"CREATE (?:(?:TEMP|TEMPORARY|VIRTUAL) )?TABLE (?:IF NOT EXISTS )?NAME")
_ON_TABLE = _pattern(r"CREATE (?:(?:UNIQUE|TEMP|TEMPORARY) )?(?:INDEX|TRIGGER)\b.*?\bON NAME")
_ROWS = _pattern(r"(?:(?:INSERT|REPLACE)\b.*?\bINTO NAME|UPDATE (?:OR \w+ )?NAME|DELETE FROM NAME)")


def created_table(statement: str) -> str | None:
    return _name(_TABLE, statement)


def indexed_table(statement: str) -> str | None:
    """Table that an index or a trigger is on."""
    return _name(_ON_TABLE, statement)


def written_table(statement: str) -> str | None:
    """Table that an INSERT, UPDATE or DELETE writes to."""
    return _name(_ROWS, statement)


def table_of(statement: str) -> str:
    """Table that a statement makes, indexes or writes to; empty for one that belongs to none, or can't be read."""
    return created_table(statement) or indexed_table(statement) or written_table(statement) or ""


def _name(pattern: re.Pattern[str], statement: str) -> str | None:
    match = pattern.match(statement)
    return next((group for group in match.groups() if group is not None), None) if match else None
