"""Python by the grammar of where it will run: what this Python can't parse, the sandbox is asked for."""

import ast
import json
from functools import lru_cache
from typing import Any

from awm_factory import syntax
from awm_factory.sandbox.pool import Sandbox, expect
from awm_runtime.contract import CheckFailed, ParseReply, ParseRequest


def parse(code: str, sandbox: Sandbox) -> ast.Module:
    """The tree; parameters of types, which an older Python has no node for, are left out. Raises SyntaxError."""
    try:
        return _parsed(code)
    except SyntaxError:
        reply = expect(ParseReply, sandbox.check(ParseRequest(code=code)))
    if isinstance(reply, CheckFailed):
        raise SyntaxError(f"its parser gave up ({reply.message})", ("", 0, 0, ""))
    if reply.tree is None:
        raise SyntaxError(reply.fault, ("", reply.line, 0, ""))
    tree = unpacked(json.loads(reply.tree))
    assert isinstance(tree, ast.Module)
    return tree


@lru_cache(maxsize=64)
def _parsed(code: str) -> ast.Module:
    """Kept for the checks and gates that read the same verifiers one after another; nobody changes a tree."""
    return syntax.module(code)


def unpacked(value: Any) -> Any:
    """What `awm_runtime.syntax` packed, as nodes of this Python."""
    if isinstance(value, list):
        return [unpacked(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "literal" in value:
        return ast.literal_eval(syntax.expression(value["literal"]))
    name = value["node"]
    if name == "TypeAlias" and not hasattr(ast, name):
        value = value | {"node": "Assign", "targets": [value["name"]]}
    kind = getattr(ast, value["node"], None)
    if not (isinstance(kind, type) and issubclass(kind, ast.AST)):
        raise SyntaxError(f"{name} is newer than this installation's Python", ("", value.get("lineno", 0), 0, ""))
    fields = {field: unpacked(value[field]) for field in kind._fields if field in value}
    places = {place: value[place] for place in ("lineno", "col_offset") if place in value}
    return kind(**fields, **places)
