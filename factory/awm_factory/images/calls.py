"""Calls to try on an environment that nobody has written calls for: one that reads, one that writes.

Arguments come from what the environment says of itself: examples and defaults in tool schemas and API spec, values that
the seeded database holds under the same name, and the plainest value of the type otherwise.
"""

import re
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import jsonpath
from pydantic import JsonValue

from awm_factory.bundle import Bundle
from awm_runtime.contract import ToolCall

_WRITING: Final = ("POST", "PUT", "PATCH", "DELETE")
_PLACEHOLDER: Final = re.compile(r"\{\{\s*calls\[(\d+)\](.*?)\s*\}\}\Z")
MAX_DEPTH: Final = 6
"""How deep a schema is followed; one that refers to itself has no bottom."""


@dataclass(frozen=True)
class ToolSpec:
    name: str
    schema: dict[str, Any]


def candidates(bundle: Bundle, tools: list[ToolSpec]) -> list[ToolCall]:
    """One call a tool, reading tools first, then by how many arguments must be made up."""
    methods, examples = _spec_says(bundle.api_spec)
    seeded = _seeded_values(bundle.seed_db)
    calls = []
    for tool in tools:
        operation = bundle.manifest.renamed.get(tool.name, tool.name)
        arguments = _Maker(tool.schema, examples.get(operation, {}), seeded, bundle.manifest.world_time).arguments()
        writes = methods.get(operation, "GET") in _WRITING
        calls.append((writes, len(arguments), tool.name, ToolCall(tool=tool.name, arguments=arguments)))
    return [call for *_, call in sorted(calls, key=lambda entry: entry[:3])]


def resolved(call: ToolCall, results: list[JsonValue]) -> ToolCall:
    """A solution's call with `{{calls[0].id}}` replaced by the value in that earlier result.

    Raises LookupError where there is no such value.
    """

    def value(node: JsonValue) -> JsonValue:
        if isinstance(node, dict):
            return {key: value(item) for key, item in node.items()}
        if isinstance(node, list):
            return [value(item) for item in node]
        if isinstance(node, str) and (found := _PLACEHOLDER.match(node.strip())):
            index, path = int(found[1]), found[2]
            matches = [cast("JsonValue", match) for match in jsonpath.findall("$" + path, results[index])]
            if not matches:
                raise LookupError(f"call {index} answered nothing at {path}")
            return matches[0]
        return node

    return ToolCall(tool=call.tool, arguments={key: value(item) for key, item in call.arguments.items()})


def _spec_says(spec: JsonValue) -> tuple[dict[str, str], dict[str, dict[str, JsonValue]]]:
    """Method and example arguments by operation id, from AWM's API spec; empty where it says nothing."""
    methods: dict[str, str] = {}
    examples: dict[str, dict[str, JsonValue]] = {}
    for endpoint in _endpoints(spec):
        operation = endpoint.get("operation_id")
        if not isinstance(operation, str):
            continue
        methods[operation] = str(endpoint.get("method", "")).upper()
        parameters = endpoint.get("request_params")
        if isinstance(parameters, dict):
            examples[operation] = {
                name: parameter["example"]
                for name, parameter in parameters.items()
                if isinstance(parameter, dict) and parameter.get("example") is not None
            }
    return methods, examples


def _endpoints(node: JsonValue) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if "operation_id" in node:
            yield node
        for item in node.values():
            yield from _endpoints(item)
    elif isinstance(node, list):
        for item in node:
            yield from _endpoints(item)


def _seeded_values(database: bytes | None) -> dict[str, JsonValue]:
    """A value by column name, and by `<table's singular>_id` for the row ids."""
    values: dict[str, JsonValue] = {}
    if database is None:
        return values
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(database)
        connection.row_factory = sqlite3.Row
        names = [row["name"] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
        for table in names:
            quoted = '"' + table.replace('"', '""') + '"'
            row = connection.execute(f"SELECT * FROM {quoted} LIMIT 1").fetchone()
            for column in row.keys() if row is not None else ():
                if isinstance(row[column], str | int | float):
                    name = f"{table.removesuffix('s')}_id" if column == "id" else column
                    values.setdefault(name, row[column])
    except sqlite3.Error:
        return values
    finally:
        connection.close()
    return values


class _Maker:
    def __init__(
        self, schema: Mapping[str, Any], examples: Mapping[str, JsonValue], seeded: Mapping[str, JsonValue], world_time: str
    ) -> None:
        self._root = schema
        self._examples = examples
        self._seeded = seeded
        self._world_time = world_time

    def arguments(self) -> dict[str, JsonValue]:
        made = self._value(self._root, "", 0)
        return made if isinstance(made, dict) else {}

    def _value(self, schema: Mapping[str, Any], name: str, depth: int) -> JsonValue:
        schema = self._followed(schema)
        kind = schema.get("type")
        if kind == "object" or "properties" in schema:
            properties = schema.get("properties", {})
            return {
                key: self._value(properties.get(key, {}), key, depth + 1)
                for key in schema.get("required", [])
                if depth < MAX_DEPTH
            }
        for said in (schema.get("const"), *schema.get("enum", [])[:1], *_first(schema.get("examples")), schema.get("example")):
            if said is not None:
                return said  # type: ignore[no-any-return]
        for known in (self._seeded, self._examples):
            if name in known and _fits(known[name], kind):
                return known[name]
        if schema.get("default") is not None:
            return schema["default"]  # type: ignore[no-any-return]
        if kind == "array":
            return [self._value(schema.get("items", {}), name.removesuffix("s"), depth + 1)] if depth < MAX_DEPTH else []
        return self._plain(schema, kind)

    def _plain(self, schema: Mapping[str, Any], kind: object) -> JsonValue:
        if kind in {"integer", "number"}:
            low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1 if "exclusiveMinimum" in schema else 1)
            return min(max(low, 1), schema.get("maximum", max(low, 1)))  # type: ignore[no-any-return]
        if kind == "boolean":
            return True
        if kind == "null":
            return None
        by_format = {
            "date-time": self._world_time,
            "date": self._world_time[:10],
            "time": self._world_time[11:19],
            "email": "somebody@example.com",
            "uuid": "00000000-0000-4000-8000-000000000001",
            "uri": "https://example.com/",
        }
        text = by_format.get(str(schema.get("format")), "sample")
        return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength", max(len(text), schema.get("minLength", 0)))]

    def _followed(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        for _ in range(MAX_DEPTH):
            if isinstance(reference := schema.get("$ref"), str) and reference.startswith("#/"):
                node: Any = self._root
                for part in reference[2:].split("/"):
                    node = node.get(part, {}) if isinstance(node, dict) else {}
                schema = node
            elif choices := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
                picked = next((choice for choice in choices if choice.get("type") != "null"), choices[0])
                schema = {**{key: item for key, item in schema.items() if key not in {"anyOf", "oneOf", "allOf"}}, **picked}
            else:
                break
        return schema


def _first(values: object) -> list[Any]:
    return values[:1] if isinstance(values, list) else []


def _fits(value: JsonValue, kind: object) -> bool:
    expected: dict[object, tuple[type, ...]] = {
        "string": (str,),
        "integer": (int,),
        "number": (int, float),
        "boolean": (bool,),
        "array": (list,),
        "object": (dict,),
        None: (object,),
    }
    return isinstance(value, expected.get(kind, ())) and (kind == "boolean" or not isinstance(value, bool))
