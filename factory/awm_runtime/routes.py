"""Which endpoint really answers a method and path: FastAPI asks its routes in their order, OpenAPI forgets that."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Match

METHODS: Final = ("GET", "POST", "PUT", "DELETE", "PATCH")


@dataclass(frozen=True)
class Endpoint:
    """One method of one route."""

    route: APIRoute
    method: str

    @property
    def operation_id(self) -> str:
        return self.route.operation_id or self.route.unique_id

    @property
    def path(self) -> str:
        return self.route.path_format

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def endpoints(app: FastAPI) -> list[Endpoint]:
    """Endpoints that OpenAPI lists, in the order in which they are asked."""
    return [
        Endpoint(route, m)
        for route in _flat(app.routes)
        if route.include_in_schema
        for m in METHODS
        if m in (route.methods or ())
    ]


def _flat(routes: Sequence[BaseRoute]) -> Iterator[APIRoute]:
    for route in routes:
        if isinstance(route, APIRoute):
            yield route
            continue
        # FastAPI keeps included routers as one entry each, and makes their routes on demand.
        contexts = getattr(route, "effective_route_contexts", None)
        for context in contexts() if contexts is not None else ():
            made: Any = context.starlette_route if context.starlette_route is not None else context
            if isinstance(getattr(made, "original_route", made), APIRoute):
                yield made


def answering(app: FastAPI, endpoint: Endpoint) -> Endpoint | None:
    """The endpoint that answers this one's path, with values put in for its parameters; itself if it can be reached."""
    values = {name: _sample(converter) for name, converter in endpoint.route.param_convertors.items()}
    path = endpoint.route.path_format
    for name, value in values.items():
        path = path.replace("{" + name + "}", value)
    scope = {"type": "http", "method": endpoint.method, "path": path, "root_path": "", "headers": []}
    for candidate in endpoints(app):
        if candidate.method == endpoint.method and candidate.route.matches(dict(scope))[0] is Match.FULL:
            return candidate
    return None


def _sample(convertor: Any) -> str:
    """A value that only a parameter takes: no author names a path segment so."""
    samples = {"IntegerConvertor": "9173046", "FloatConvertor": "9173.5", "UUIDConvertor": "6f0cf6ab-2f0b-4d83-9d3c-0f4f7c1d3a55"}
    return samples.get(type(convertor).__name__, "zq9173046")
