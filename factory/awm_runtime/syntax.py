"""Syntax trees as JSON, for a host whose Python is older than the one that the code runs on.

The rules that read code work on trees, and newer syntax mostly makes the same nodes: an f-string that nests its own quotes is
the JoinedStr it always was. What is new in kind, the host leaves out.
"""

import ast
import json
import warnings
from types import EllipsisType

from pydantic import JsonValue

from awm_runtime.contract import ParseReply


def parse(code: str) -> ParseReply:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except SyntaxError as fault:
        return ParseReply(tree=None, fault=fault.msg, line=fault.lineno or 0)
    except ValueError as fault:
        return ParseReply(tree=None, fault=str(fault))
    return ParseReply(tree=json.dumps(_packed(tree)))


def _packed(value: object) -> JsonValue:
    """A node as an object of its fields, with its class under `node`; what JSON has no word for as {"literal": …}."""
    if isinstance(value, ast.AST):
        fields = {name: _packed(getattr(value, name)) for name in value._fields if hasattr(value, name)}
        place = {name: getattr(value, name) for name in ("lineno", "col_offset") if hasattr(value, name)}
        return {"node": type(value).__name__} | place | fields
    if isinstance(value, list):
        return [_packed(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, bytes | float | complex | EllipsisType):
        return {"literal": ast.unparse(ast.Constant(value))}
    raise TypeError(f"a syntax tree holds no {type(value).__name__}")
