"""Tools as an MCP client will see them: names and input schemas that clients refuse make a tool that nobody can call."""

import re
from collections.abc import Iterator
from typing import Any, Final, Never

import jsonschema_rs

from awm_factory.problems import Problem
from awm_factory.synthesis.checks.finding import error
from awm_runtime.contract import Tool

GATE: Final = "code"
_PROPERTY: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
_LOOK_AROUND: Final = re.compile(r"\(\?[=!<]")


def check(tools: list[Tool]) -> Iterator[Problem]:
    for tool in tools:
        for what in _faults(tool.input_schema):
            yield error(
                GATE, f"tool {tool.operation_id}", what, "Keep the request models plain: named fields, types, Literal, ge and le."
            )


def _faults(schema: dict[str, Any]) -> Iterator[str]:
    try:
        jsonschema_rs.Draft202012Validator(schema, retriever=_refuse)
    except jsonschema_rs.ValidationError as fault:
        yield f"Its input schema is invalid: {fault.message[:120]}."
        return
    if schema.get("type") != "object":
        yield f"Its input schema is of type {schema.get('type')!r}; clients want an object."
    if combined := {"anyOf", "oneOf", "allOf"} & schema.keys():
        yield f"Its input schema has {sorted(combined)[0]} at the top, which clients refuse."
    properties = schema.get("properties")
    for name in properties if isinstance(properties, dict) else {}:
        if not _PROPERTY.match(name):
            yield f"Its parameter {name!r} has a name that clients refuse."
    yield from _inside(schema)


def _refuse(address: str) -> Never:
    """Nothing is fetched because generated code names it."""
    raise ValueError(address)


def _inside(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        pattern = value.get("pattern")
        if isinstance(pattern, str) and _LOOK_AROUND.search(pattern):
            yield f"The pattern {pattern!r} looks around, which clients refuse."
        if "prefixItems" in value:
            yield "It takes a tuple (prefixItems), which clients refuse."
        for inner in value.values():
            yield from _inside(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _inside(inner)
