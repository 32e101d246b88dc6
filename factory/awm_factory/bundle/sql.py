"""SQL scripts as lists of statements, and back, without loss.

Statements come from models and people, so they may end in a comment that would swallow the next semicolon, or never end
at all (a quote left open). Whatever they are, `split_statements(join_statements(s)) == s` for a canonical list.
"""

import json
import re
import sqlite3
from collections.abc import Iterable
from functools import lru_cache

_SPACE = " \t\n\f\r"
_TOKEN = re.compile(
    r"""--[^\n]* | /\*.*?(?:\*/|\Z) | '[^']*(?:'|\Z) | "[^"]*(?:"|\Z) | `[^`]*(?:`|\Z) | \[[^\]]*(?:\]|\Z) | ;""",
    re.DOTALL | re.VERBOSE,
)
_QUOTES = "'\"`["
_UNFINISHED = "-- unfinished statement: "
"""Before a statement that can't stand in a script, as a JSON string. SQLite refuses such a one anyway; here it harms no other."""


def split_statements(sql: str) -> list[str]:
    """Statements of a script, without their trailing semicolons and surrounding space.

    A semicolon inside a string, a comment or a trigger's body ends nothing: SQLite's own `complete_statement` decides.
    Comments stay with the statement that follows them; the last ones, with the last statement. Takes time in proportion
    to the length, whatever the script holds.
    """
    statements: list[str] = []
    comments = ""
    start = position = 0
    bare = True
    """Nothing but space and comments since `start`."""
    body: list[str] | None = None
    """Inside a trigger: what stands since the last semicolon; the trigger ends at the one that follows a lone END."""
    for token in _TOKEN.finditer(sql):
        text = token[0]
        if words := (sql[position : token.start()].strip(_SPACE) or (text[0] in _QUOTES and text)):
            bare = False
            if body is not None:
                body.append(words.lower())
        position = token.end()
        if text.startswith(_UNFINISHED) and bare and (piece := _decode(text)):
            statements.append(comments + piece)
            comments = ""
        elif text == ";" and (_complete(sql[start:position]) if body is None else body == ["end"]):
            piece = sql[start : token.start()].strip(_SPACE)
            if bare:
                comments += piece and f"{piece}\n"
            else:
                statements.append(comments + piece)
                comments = ""
        else:
            if text == ";":
                body = []
            continue
        start, bare, body = position, True, None
    rest = comments + _close_comment(sql[start:]).strip(_SPACE)
    if not bare or sql[position:].strip(_SPACE):
        statements.append(rest)
    elif rest and statements and finished(statements[-1]):
        statements[-1] += "\n" + rest.strip(_SPACE)
    return statements


def canonical(statements: Iterable[str]) -> list[str]:
    """One statement a string, as a script gives them back; strings that hold only space or comments are dropped."""
    return [piece for statement in statements for piece in _pieces(statement)]


@lru_cache(maxsize=2048)
def _pieces(statement: str) -> tuple[str, ...]:
    """Kept, because a bundle is made canonical again with each change of another part."""
    return tuple(split_statements(statement))


def join_statements(statements: Iterable[str]) -> str:
    return "".join(map(_terminated, statements))


def finished(statement: str) -> bool:
    """False where a semicolon can't end it: an open quote, a trigger without END."""
    return _complete(f"{statement}\n;")


def terminate(statement: str) -> str:
    """The statement with its semicolon, on a line of its own where a comment would swallow it."""
    commented = any(token[0].startswith("--") and token.end() == len(statement) for token in _TOKEN.finditer(statement))
    return statement + ("\n;" if commented else ";")


def _terminated(statement: str) -> str:
    if finished(statement):
        return terminate(statement) + "\n"
    return f"{_UNFINISHED}{json.dumps(statement)}\n"


def _complete(sql: str) -> bool:
    return sqlite3.complete_statement(sql.replace("\0", "\1"))


def _close_comment(sql: str) -> str:
    """A block comment that runs to the end is legal alone, but would take the rest of a script with it."""
    for token in _TOKEN.finditer(sql):
        if token[0].startswith("/*") and (len(token[0]) < len("/**/") or not token[0].endswith("*/")):
            return sql + "*/"
    return sql


def _decode(comment: str) -> str:
    try:
        statement = json.loads(comment.removeprefix(_UNFINISHED))
    except ValueError:
        return ""
    return statement if isinstance(statement, str) and not finished(statement) else ""
