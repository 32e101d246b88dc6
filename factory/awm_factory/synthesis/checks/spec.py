"""API spec: the tools that an agent will have, before any code serves them."""

import re
from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue

from awm_factory.problems import Problem
from awm_factory.synthesis.artifacts import ApiSpec, Endpoint
from awm_factory.synthesis.checks.finding import error, listed
from awm_factory.synthesis.workbench import TableRows

GATE: Final = "spec"
METHODS: Final = {"GET", "POST", "PUT", "PATCH", "DELETE"}
TYPES: Final = {"string", "integer", "number", "boolean", "array", "object", "date", "datetime"}
MOST_SUMMARY, MOST_DESCRIPTION, MOST_NAME = 80, 200, 64

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")
_PARAM: Final = re.compile(r"\{(\w+)(?::\w+)?\}")
_CURRENT: Final = {"user_id", "current_user_id"}


def check(spec: ApiSpec, rows: dict[str, TableRows]) -> list[Problem]:
    endpoints = spec.endpoints
    if not endpoints:
        return [error(GATE, "api_groups", "The spec holds no endpoint.", "Specify the endpoints that the tasks need.")]
    problems = [problem for endpoint in endpoints for problem in (*_form(endpoint), *_params(endpoint), *_tables(endpoint, rows))]
    return problems + _names(endpoints) + _routes(endpoints) + _unrevealed(endpoints, rows)


def _form(endpoint: Endpoint) -> Iterator[Problem]:
    where = f"endpoint {endpoint.operation_id or endpoint.path}"
    if not _NAME.match(endpoint.operation_id) or len(endpoint.operation_id) > MOST_NAME:
        yield error(
            GATE, where, "Its operation_id is not snake_case of at most 64 characters.", "Write verb_object in small letters."
        )
    if endpoint.method.upper() not in METHODS:
        yield error(GATE, where, f"{endpoint.method!r} is no method of HTTP.", f"Use one of {', '.join(sorted(METHODS))}.")
    if not endpoint.path.startswith("/"):
        yield error(GATE, where, f"Its path {endpoint.path!r} does not begin with a slash.", "Begin it with a slash.")
    for name, text, most in (
        ("summary", endpoint.summary, MOST_SUMMARY),
        ("description", endpoint.description, MOST_DESCRIPTION),
    ):
        if not text.strip() or len(text) > most:
            yield error(GATE, where, f"Its {name} has {len(text)} characters.", f"Write 1 to {most}.")


def _params(endpoint: Endpoint) -> Iterator[Problem]:
    where = f"endpoint {endpoint.operation_id}"
    in_path = set(_PARAM.findall(endpoint.path))
    declared = {name for name, param in endpoint.request_params.items() if param.param_type == "path"}
    for name in sorted(in_path - declared):
        yield error(GATE, where, f"{{{name}}} of the path is not among its path parameters.", "Declare it with param_type path.")
    for name in sorted(declared - in_path):
        yield error(
            GATE,
            where,
            f"The path parameter {name!r} is not in {endpoint.path}.",
            "Put it into the path, or make it a query parameter.",
        )
    for name, param in endpoint.request_params.items():
        if param.type.lower() not in TYPES and not param.type.lower().startswith(("array", "list")):
            yield error(
                GATE, where, f"{name!r} is of the unknown type {param.type!r}.", f"Use one of {', '.join(sorted(TYPES))}."
            )
        if param.param_type == "path" and not param.required:
            yield error(GATE, where, f"The path parameter {name!r} is not required.", "A path parameter is always required.")
        if param.param_type == "body" and endpoint.method.upper() in {"GET", "DELETE"}:
            yield error(GATE, where, f"{name!r} is in the body of a {endpoint.method.upper()}.", "Make it a query parameter.")


def _tables(endpoint: Endpoint, rows: dict[str, TableRows]) -> Iterator[Problem]:
    if not rows:
        return
    where = f"endpoint {endpoint.operation_id}"
    unknown = [name for name in (*endpoint.required_tables, *endpoint.required_fields) if name.lower() not in rows]
    if unknown:
        yield error(GATE, where, f"It needs {listed(unknown)}, which the schema lacks.", "Name tables of the schema.")
    lost = [
        f"{table}.{field}"
        for table, fields in endpoint.required_fields.items()
        if table.lower() in rows
        for field in fields
        if field not in rows[table.lower()].columns
    ]
    if lost:
        yield error(GATE, where, f"It needs {listed(lost)}, which the schema lacks.", "Name columns of the schema.")


def _names(endpoints: list[Endpoint]) -> list[Problem]:
    names = [endpoint.operation_id for endpoint in endpoints]
    return [
        error(GATE, f"endpoint {name}", f"{names.count(name)} endpoints have this operation_id.", "Give each its own.")
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]


def _routes(endpoints: list[Endpoint]) -> list[Problem]:
    """Two operations on one route: the second is listed as a tool and answered by the first."""
    first: dict[tuple[str, str], str] = {}
    problems = []
    for endpoint in endpoints:
        route = (endpoint.method.upper(), _PARAM.sub("{}", endpoint.path.rstrip("/")).lower())
        other = first.setdefault(route, endpoint.operation_id)
        if other != endpoint.operation_id:
            problems.append(
                error(
                    GATE,
                    f"endpoint {endpoint.operation_id}",
                    f"It shares {route[0]} {endpoint.path} with {other}, which alone would answer.",
                    "Give it a path of its own, or join the two.",
                )
            )
    return problems


def _unrevealed(endpoints: list[Endpoint], rows: dict[str, TableRows]) -> list[Problem]:
    """Ids that must be given and that no answer shows: nobody could know them."""
    shown: set[str] = set()
    for endpoint in endpoints:
        nouns = {_singular(part) for part in re.split(r"[/_]", endpoint.path) if part and not part.startswith("{")}
        nouns |= {_singular(word) for name in endpoint.required_tables for word in (name.lower(), name.lower().split("_")[-1])}
        for key, owner in _keys(endpoint.response, ""):
            shown.add(key.lower())
            if key.lower() == "id":
                shown |= {f"{noun}_id" for noun in (*nouns, _singular(owner)) if noun}
    problems = []
    for endpoint in endpoints:
        for name, param in endpoint.request_params.items():
            lower = name.lower()
            if not param.required or not lower.endswith("_id") or lower in _CURRENT or lower in shown:
                continue
            parents = {table.parents[name] for table in rows.values() if name in table.parents}
            if any(f"{_singular(word)}_id" in shown for parent in parents for word in (parent, parent.split("_")[-1])):
                continue
            if any(known.endswith(f"_{lower}") or lower.endswith(f"_{known}") for known in shown if known.endswith("_id")):
                continue
            problems.append(
                error(
                    GATE,
                    f"endpoint {endpoint.operation_id}",
                    f"It requires {name!r}, which no endpoint's response shows.",
                    "Add a list or search that shows it, or let the caller name the thing in words.",
                )
            )
    return problems


def _keys(value: JsonValue, owner: str) -> Iterator[tuple[str, str]]:
    """Field names of a response, each with the field it lies in; schema words between them don't count."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in {
                "type",
                "description",
                "example",
                "items",
                "properties",
                "required",
                "format",
                "enum",
            } or not isinstance(inner, str | list | int | float | bool | None):
                if key not in {"items", "properties"}:
                    yield key, owner
                yield from _keys(inner, owner if key in {"items", "properties"} else key)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner, owner)


def _singular(noun: str) -> str:
    noun = noun.lower()
    if noun.endswith("ies"):
        return f"{noun[:-3]}y"
    if noun.endswith(("sses", "xes", "ches", "shes")):
        return noun[:-2]
    return noun[:-1] if noun.endswith("s") and not noun.endswith("ss") else noun
