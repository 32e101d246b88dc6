"""One tool call: arguments checked, endpoint called, outcome told.

Two ways lead to an endpoint. The short one validates the arguments with the endpoint's own fields and calls its function; it is
taken where nothing of the app stands between request and function. Elsewhere the app is called as a server would call it, with
the request that fastapi-mcp would send.
"""

import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any
from urllib.parse import quote, urlencode

import fastjsonschema
import pydantic_core
from fastapi import FastAPI
from fastapi.routing import serialize_response
from starlette.responses import Response

from awm_runtime import faults
from awm_runtime.dependencies import MISSING, outside_the_loop, parts, solve, take
from awm_runtime.faults import Fault
from awm_runtime.tools import FORMS, JSON, ServedTool
from awm_runtime.wire import ToolResult


@dataclass(frozen=True)
class Outcome:
    """`body` is JSON: the endpoint's, or the error's."""

    kind: str
    status: int | None
    body: bytes

    @property
    def is_error(self) -> bool:
        return self.kind != "ok"

    def result(self) -> ToolResult:
        content = pydantic_core.from_json(self.body) if self.body else None
        return ToolResult.model_validate(
            {"is_error": self.is_error, "kind": self.kind, "status": self.status, "content": content}
        )


def failed(fault: Fault) -> Outcome:
    return Outcome(fault.kind, fault.status, pydantic_core.to_json(fault.payload(), serialize_unknown=True))


class Caller:
    """A tool made ready to be called. Nothing in it belongs to an episode."""

    def __init__(self, app: FastAPI, served: ServedTool) -> None:
        self.app, self.served, self.tool = app, served, served.tool
        self.known = frozenset(served.tool.input_schema.get("properties", {}))  # type: ignore[arg-type]
        self.short = _nothing_between(app, served)
        route: Any = served.endpoint.route
        self.dependant = route.dependant
        self.field = getattr(route, "response_field", None)
        self.is_async = asyncio.iscoroutinefunction(self.dependant.call)
        self.embedded = bool(getattr(route, "_embed_body_fields", False))
        self.own = {f.alias for part in parts(self.dependant) for f in [*part.path_params, *part.query_params]}
        self.body_names = self.known - self.own
        self.clashing = self.own & _body_properties(served)
        self.status = route.status_code or 200
        self.needs_body = served.body_type == JSON and any(f.field_info.is_required() for f in self.dependant.body_params)
        """An object without fields is a body too, where all fields are optional; none at all would be refused as incomplete."""

    @cached_property
    def _check(self) -> Callable[[Any], Any]:
        """Takes as long to make as a few calls."""
        return compile_schema(self.tool.input_schema)

    def refuse(self, arguments: dict[str, Any]) -> Fault | None:
        """What is wrong with the arguments, by the tool's schema alone; the code is not reached with them."""
        if not self.served.takes_any and not arguments.keys() <= self.known:
            unknown = ", ".join(sorted(arguments.keys() - self.known))
            return self._invalid(f"unknown argument: {unknown}")
        try:
            self._check(arguments)
        except fastjsonschema.JsonSchemaValueException as error:
            return self._invalid(error.message.removeprefix("data."))
        return None

    def _invalid(self, message: str) -> Fault:
        return Fault("invalid_arguments", message, None, {"expected": self.tool.input_schema})

    async def __call__(self, arguments: dict[str, Any]) -> Outcome:
        """Raises whatever the environment's code raises."""
        return await (self._directly(arguments) if self.short else self._through_the_app(arguments))

    async def _directly(self, arguments: dict[str, Any]) -> Outcome:
        if not self.dependant.dependencies:
            return await self._call(arguments, {})
        async with AsyncExitStack() as stack:
            return await self._call(arguments, {}, stack)

    async def _call(self, arguments: dict[str, Any], cache: dict[Any, Any], stack: AsyncExitStack | None = None) -> Outcome:
        values, errors = self._values(arguments)
        if stack is not None:
            await solve(self.dependant, arguments, values, errors, cache, stack)
        if errors:
            return failed(self._invalid(faults.validation_text(errors)))
        if self.is_async:
            answer = await self.dependant.call(**values)
        else:
            answer = outside_the_loop(self.dependant.call, values)
        if isinstance(answer, Response):
            return _outcome(answer.status_code, bytes(answer.body))
        route: Any = self.served.endpoint.route
        content = await serialize_response(
            field=self.field,
            response_content=answer,
            include=route.response_model_include,
            exclude=route.response_model_exclude,
            by_alias=route.response_model_by_alias,
            exclude_unset=route.response_model_exclude_unset,
            exclude_defaults=route.response_model_exclude_defaults,
            exclude_none=route.response_model_exclude_none,
            dump_json=self.field is not None,
        )
        body = content if isinstance(content, bytes) else json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
        return _outcome(self.status, body)

    def _values(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        values: dict[str, Any] = {}
        errors: list[Any] = []
        for place, fields in (("path", self.dependant.path_params), ("query", self.dependant.query_params)):
            for field in fields:
                take(field, arguments.get(field.alias, MISSING), (place, field.alias), values, errors)
        body: Any = {name: value for name, value in arguments.items() if name not in self.own or name in self.clashing}
        if self.embedded:
            for field in self.dependant.body_params:
                take(field, body.get(field.alias, MISSING), ("body", field.alias), values, errors)
        elif self.dependant.body_params:
            (field,) = self.dependant.body_params
            take(field, body if body or field.field_info.is_required() else MISSING, ("body",), values, errors)
        return values, errors

    async def _through_the_app(self, arguments: dict[str, Any]) -> Outcome:
        """The request that fastapi-mcp would make; but a value in the path stays one segment, and null means not given."""
        rest, path = dict(arguments), self.tool.path
        query: list[tuple[str, str]] = []
        headers = [(b"host", b"apiserver"), (b"accept", b"*/*")]
        for parameter in self.served.parameters:
            name, place = parameter["name"], parameter["in"]
            if name not in rest:
                continue
            value = rest[name] if name in self.clashing else rest.pop(name)
            if place == "path" and "/" in _as_text(value) and not _takes_slashes(self.served, name):
                return failed(Fault("not_found", f"{name} holds a slash, and nothing has such a name", 404))
            if place == "path":
                path = path.replace("{" + name + "}", quote(_as_text(value), safe=""))
            elif place == "query" and value is not None:
                query.extend((name, _as_text(item)) for item in (value if isinstance(value, list) else [value]))
            elif place == "header" and value is not None:
                headers.append((name.encode(), _as_text(value).encode()))
        body = b""
        if self.served.body_type in FORMS:
            body = urlencode({name: _as_text(value) for name, value in rest.items() if value is not None}).encode()
            headers.append((b"content-type", FORMS[0].encode()))
        elif rest or self.clashing or self.needs_body:
            body = json.dumps(rest).encode()
            headers.append((b"content-type", JSON.encode()))
        return await _request(self.app, self.tool.method, path, urlencode(query), headers, body)


def compile_schema(schema: dict[str, Any]) -> Callable[[Any], Any]:
    """A validator as one Python function. Formats are left to the endpoint's own fields, defaults are not filled in."""
    plain = {**schema, "$schema": "http://json-schema.org/draft-07/schema"}
    compiled: Callable[[Any], Any] = fastjsonschema.compile(plain, use_default=False, use_formats=False)
    return compiled


def _nothing_between(app: FastAPI, served: ServedTool) -> bool:
    """True if calling the endpoint's function is all that the app would do with a request."""
    route: Any = served.endpoint.route
    everything = parts(route.dependant)
    special = ("request", "websocket", "http_connection", "response", "background_tasks", "security_scopes")
    plain = not any(getattr(part, f"{name}_param_name", None) for part in everything for name in special)
    fields = [field for part in everything for field in [*part.header_params, *part.cookie_params]]
    models = any(_is_model(field) for part in everything for field in part.query_params)
    bodies = any(part.body_params for part in everything if part is not route.dependant)
    handlers = {key for key in app.exception_handlers if key not in _default_handlers()}
    return (
        plain
        and not fields
        and not models
        and not bodies
        and served.body_type in (None, JSON)
        and not app.user_middleware
        and not handlers
        and not app.dependency_overrides
        and _default_response(route.response_class)
    )


@cache
def _default_handlers() -> frozenset[Any]:
    return frozenset(FastAPI().exception_handlers)


def _default_response(response_class: Any) -> bool:
    from fastapi.datastructures import DefaultPlaceholder

    return isinstance(response_class, DefaultPlaceholder)


def _is_model(field: Any) -> bool:
    from pydantic import BaseModel

    annotation = field.field_info.annotation
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _takes_slashes(served: ServedTool, name: str) -> bool:
    return type(served.endpoint.route.param_convertors.get(name)).__name__ == "PathConvertor"


def _body_properties(served: ServedTool) -> set[str]:
    route: Any = served.endpoint.route
    names: set[str] = set()
    for field in route.dependant.body_params:
        annotation = field.field_info.annotation
        model = getattr(annotation, "model_fields", None)
        names |= {info.alias or name for name, info in model.items()} if model else {field.alias}
    return names


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)


def _outcome(status: int, body: bytes) -> Outcome:
    if status < 400:
        return Outcome("ok", status, body or b"null")
    try:
        answer = json.loads(body)
    except ValueError:
        answer = {"detail": body.decode("utf-8", "replace")}
    return failed(faults.from_http(status, answer.get("detail", answer) if isinstance(answer, dict) else answer))


async def _request(app: FastAPI, method: str, path: str, query: str, headers: list[tuple[bytes, bytes]], body: bytes) -> Outcome:
    from urllib.parse import unquote

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "http",
        "query_string": query.encode(),
        "headers": [*headers, (b"content-length", str(len(body)).encode())],
        "client": ("127.0.0.1", 1),
        "server": ("apiserver", 80),
    }
    waiting = [{"type": "http.request", "body": body, "more_body": False}]
    status, parts = 500, []

    async def receive() -> dict[str, Any]:
        return waiting.pop() if waiting else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        elif message["type"] == "http.response.body":
            parts.append(message.get("body", b""))

    await app(scope, receive, send)
    return _outcome(status, _json(b"".join(parts)))


def _json(body: bytes) -> bytes:
    try:
        json.loads(body)
    except ValueError:
        return json.dumps(body.decode("utf-8", "replace")).encode() if body else b""
    return body
