"""JSON Schemas of tools: OpenAPI made safe for fastapi-mcp, and its input schemas made right for clients."""

from typing import Any, Final

_REFERENCE: Final = "#/components/schemas/"
_KEPT: Final = "#/$defs/"
"""Where references that can't be inlined point to; fastapi-mcp leaves them alone."""

Schema = dict[str, Any]


def recursive_models(openapi: Schema) -> list[str]:
    """Names of component schemas that contain themselves; fastapi-mcp inlines every reference and would never end."""
    components = openapi.get("components", {}).get("schemas", {})
    edges = {name: set(_references(schema)) & components.keys() for name, schema in components.items()}
    return sorted(name for name in edges if name in _reachable(name, edges))


def _reachable(start: str, edges: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(edges[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(edges[name])
    return found


def _references(schema: Any) -> list[str]:
    if isinstance(schema, dict):
        own = [schema["$ref"].removeprefix(_REFERENCE)] if isinstance(schema.get("$ref"), str) else []
        return own + [name for value in schema.values() for name in _references(value)]
    if isinstance(schema, list):
        return [name for value in schema for name in _references(value)]
    return []


def keep_references(openapi: Schema, models: list[str]) -> Schema:
    """The document with references *inside* the given models pointing at `$defs`, so that inlining ends after one level."""
    if not models:
        return openapi
    components = openapi["components"]["schemas"]
    renamed = {name: _repointed(schema, set(models)) if name in models else schema for name, schema in components.items()}
    return {**openapi, "components": {**openapi["components"], "schemas": renamed}}


def _repointed(schema: Any, models: set[str]) -> Any:
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.removeprefix(_REFERENCE) in models:
            return {**schema, "$ref": _KEPT + reference.removeprefix(_REFERENCE)}
        return {key: _repointed(value, models) for key, value in schema.items()}
    if isinstance(schema, list):
        return [_repointed(value, models) for value in schema]
    return schema


def definitions(openapi: Schema, models: list[str]) -> Schema:
    """`$defs` for the given models, closed under reference."""
    if not models:
        return {}
    components = openapi["components"]["schemas"]
    edges = {name: set(_references(schema)) & components.keys() for name, schema in components.items()}
    needed = set(models) | {name for model in models for name in _reachable(model, edges)}
    return {name: _repointed(components[name], needed) for name in sorted(needed)}


def points_to_definitions(schema: Any) -> bool:
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        return (isinstance(reference, str) and reference.startswith(_KEPT)) or any(map(points_to_definitions, schema.values()))
    return isinstance(schema, list) and any(map(points_to_definitions, schema))


def allow_null(input_schema: Schema) -> list[str]:
    """Undo, in place, the `type` that fastapi-mcp adds beside an `anyOf` that allows null. Returns the arguments changed."""
    changed = []
    for name, schema in input_schema.get("properties", {}).items():
        options = schema.get("anyOf") or schema.get("oneOf")
        if options and "type" in schema and schema["type"] != "null" and any(o.get("type") == "null" for o in options):
            del schema["type"]
            changed.append(name)
    return changed


def drop_false_type(input_schema: Schema, source: Schema) -> list[str]:
    """Undo, in place, a `type` that fastapi-mcp guessed where the author's schema has none (any value, a union, a const)."""
    changed = []
    for name, schema in input_schema.get("properties", {}).items():
        original = source.get(name)
        if original is not None and "type" in schema and "type" not in original and "$ref" not in original:
            del schema["type"]
            changed.append(name)
    return changed


def single_required(input_schema: Schema) -> bool:
    """Undo, in place, names that stand twice under `required`: JSON Schema forbids it and clients refuse the tool."""
    required = input_schema.get("required", [])
    unique = list(dict.fromkeys(required))
    if unique == required:
        return False
    input_schema["required"] = unique
    return True
