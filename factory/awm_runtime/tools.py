"""From an app to the tools it offers: as fastapi-mcp derives them, less those that can't work, mended where that is safe."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from awm_runtime import names, routes, schemas
from awm_runtime.converter import convert_openapi_to_mcp_tools, resolve_schema_references
from awm_runtime.routes import Endpoint
from awm_runtime.schemas import Schema
from awm_runtime.wire import Finding, Tool, ToolMending

JSON: Final = "application/json"
FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")


@dataclass(frozen=True)
class ServedTool:
    tool: Tool
    endpoint: Endpoint
    parameters: list[Schema]
    """OpenAPI's, of the path, query, header and cookies."""
    body_type: str | None
    """Media type of the request body, where the endpoint takes one."""
    takes_any: bool
    """The body is an object of any keys, so no argument is unknown."""


@dataclass
class Derived:
    tools: list[ServedTool] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    mendings: list[ToolMending] = field(default_factory=list)

    def omit(self, name: str, kind: str, where: str, what: str, fix: str) -> None:
        self.findings.append(_finding(kind, where, what, fix, omitted=name))
        self.mendings.append(ToolMending(tool=name, kind="omitted", why=what))


def _finding(kind: str, where: str, what: str, fix: str, **rest: Any) -> Finding:
    return Finding.model_validate({"kind": kind, "where": where, "what": what, "fix": fix, **rest})


def derive(app: FastAPI) -> Derived:
    """Tools in the order of OpenAPI's paths. Never raises for what an author wrote: it becomes a finding."""
    derived = Derived()
    document = _openapi(app, derived)
    recursive = schemas.recursive_models(document)
    for model in recursive:
        what = f"model {model} refers to itself; fastapi-mcp would never end inlining it."
        fix = f"Served with a reference in place of the inner {model}; a fixed depth would read better for agents."
        derived.findings.append(_finding("recursive_model", f"model {model}", what, fix, mended=True))
    kept = schemas.keep_references(document, recursive)
    tools, operations = convert_openapi_to_mcp_tools(kept)
    definitions = schemas.definitions(document, recursive)
    listed = {(method.upper(), path): op for path, item in document.get("paths", {}).items() for method, op in item.items()}
    by_place = {(e.method, e.path): e for e in routes.endpoints(app)}  # as OpenAPI: the last one with a method and path is listed
    descriptions = iter(tools)
    seen: set[str] = set()
    for (method, path), operation in listed.items():
        if method not in routes.METHODS or not operation.get("operationId"):
            continue
        converted, endpoint = next(descriptions), by_place.get((method, path))
        operation_id = operation["operationId"]
        if endpoint is None or _unreachable(app, endpoint, operation_id, derived):
            continue
        name = _name(operation_id, f"{method} {path}", operation_id in seen, derived)
        seen.add(operation_id)
        inlined = {**operations[operation_id], **_inlined(kept, method, path)}
        _add(derived, name, endpoint, converted.description or "", converted.inputSchema, inlined, definitions)
    if not derived.tools:
        what, fix = "no endpoint of it can be served as a tool.", "Give the app endpoints with an operation_id each."
        derived.findings.append(_finding("no_tools", "app.py", what, fix))
    return derived


def _openapi(app: FastAPI, derived: Derived) -> Schema:
    """The app's OpenAPI document; routes that have none (an odd annotation) are left out, each with a finding."""

    def document(chosen: list[Any]) -> Schema:
        return get_openapi(
            title=app.title, version=app.version, openapi_version=app.openapi_version, description=app.description, routes=chosen
        )

    try:
        return document(list(app.routes))
    except Exception:  # noqa: BLE001 - the boundary to generated models and annotations, which pydantic runs here
        good = []
        for route in app.routes:
            try:
                document([route])
                good.append(route)
            except Exception as error:  # noqa: BLE001 - the same boundary, one route at a time
                where = str(getattr(route, "path", route))
                name = str(getattr(route, "operation_id", None) or getattr(route, "name", where))
                what = f"it has no OpenAPI description: {type(error).__name__}: {str(error)[:300]}"
                derived.omit(name, "unserved_endpoint", where, what, "Use types that pydantic can describe as JSON.")
        return document(good)


def _inlined(document: Schema, method: str, path: str) -> Schema:
    resolved: Schema = resolve_schema_references(document["paths"][path][method.lower()], document)
    return {"parameters": resolved.get("parameters", []), "request_body": resolved.get("requestBody", {})}


def _unreachable(app: FastAPI, endpoint: Endpoint, operation_id: str, derived: Derived) -> bool:
    answering = routes.answering(app, endpoint)
    if answering is None or answering == endpoint:
        return False
    other, name = answering.operation_id, names.legal_name(operation_id)
    if answering.path == endpoint.path:
        what = (
            f"{operation_id} ({endpoint}) and {other} have one method and path; the tool that is listed runs the code of {other}."
        )
        derived.omit(name, "duplicate_route", f"tool {operation_id}", what, "Give one of them another path or method.")
    else:
        what = f"{operation_id} ({endpoint}) is answered by {other}, because {answering.path} stands before it."
        derived.omit(name, "shadowed_route", f"tool {operation_id}", what, f"Move it above {answering.path}.")
    return True


def _name(operation_id: str, place: str, taken: bool, derived: Derived) -> str:
    if taken:
        name = names.distinct_name(operation_id, f"{operation_id} {place}")
        what = f"two endpoints have the operation id {operation_id}; {place} is served as {name}."
        derived.findings.append(
            _finding("duplicate_name", f"tool {operation_id}", what, "Give each its own operation_id.", mended=True)
        )
        derived.mendings.append(ToolMending(tool=name, kind="renamed", why=what))
        return name
    name = names.legal_name(operation_id)
    if name != operation_id:
        what = f"operation id {operation_id!r} ({len(operation_id)} characters) is no name that clients accept; served as {name}."
        fix = "Use at most 64 of the characters A-Z a-z 0-9 _ and -."
        derived.findings.append(_finding("long_name", f"tool {operation_id}", what, fix, mended=True))
        derived.mendings.append(ToolMending(tool=name, kind="renamed", why=what))
    return name


def _add(
    derived: Derived, name: str, endpoint: Endpoint, description: str, schema: Schema, operation: Schema, definitions: Schema
) -> None:
    body = operation["request_body"].get("content", {})
    body_type = next(iter(body), None)
    body_schema: Schema = body[body_type].get("schema", {}) if body_type else {}
    required_body = bool(operation["request_body"].get("required"))
    takes_any = body_type == JSON and "properties" not in body_schema and body_schema.get("type") == "object"
    for parameter in operation["parameters"]:
        if parameter["in"] in ("header", "cookie") and parameter.get("required"):
            what = f"it needs the {parameter['in']} {parameter['name']}, which no tool call can send."
            fix = f"Take {parameter['name']} from the query or the body, or give it a default."
            derived.omit(name, "unserved_endpoint", f"tool {name}", what, fix)
            return
    if body_type and required_body and not takes_any and "properties" not in body_schema:
        what = "its body is no JSON object with named fields, so no argument of a tool call can carry it."
        derived.omit(name, "unserved_endpoint", f"tool {name}", what, "Take a pydantic model as the body.")
        return
    _mend(derived, name, schema, operation, body_schema, definitions)
    tool = Tool(
        name=name,
        operation_id=endpoint.operation_id,
        method=endpoint.method,
        path=endpoint.path,
        description=description,
        input_schema=schema,
    )
    derived.tools.append(ServedTool(tool, endpoint, operation["parameters"], body_type, takes_any))


def _mend(derived: Derived, name: str, schema: Schema, operation: Schema, body_schema: Schema, definitions: Schema) -> None:
    def mended(kind: str, why: str) -> None:
        derived.mendings.append(ToolMending.model_validate({"tool": name, "kind": kind, "why": why}))

    sources = {p["name"]: p.get("schema", {}) for p in operation["parameters"]} | body_schema.get("properties", {})
    if changed := schemas.allow_null(schema):
        mended(
            "null_allowed",
            f"null is allowed for {', '.join(changed)}, as the author wrote; fastapi-mcp adds a type that forbids it.",
        )
    if changed := schemas.drop_false_type(schema, sources):
        mended(
            "schema_repaired", f"a type that fastapi-mcp guessed for {', '.join(changed)} is gone; the author's schema has none."
        )
    clashes = [
        p["name"]
        for p in operation["parameters"]
        if p["in"] in ("path", "query") and p["name"] in body_schema.get("properties", {})
    ]
    for clash in clashes:
        what = f"{clash} stands in the path or query and in the body; the one value given goes to both."
        fix = f"Take {clash} out of the body, or rename one of the two."
        derived.findings.append(_finding("name_clash", f"tool {name}", what, fix, mended=True))
    if schemas.single_required(schema):
        mended("schema_repaired", f"{', '.join(clashes)} stood twice under required, which clients refuse.")
    if schemas.points_to_definitions(schema):
        schema["$defs"] = definitions
        mended("schema_repaired", "a model that refers to itself stands under $defs.")


def tool_names(derived: Derived) -> Iterator[str]:
    return (served.tool.name for served in derived.tools)
