"""fastapi-mcp's converter of OpenAPI to tools, without the rest of fastapi-mcp.

Importing it the ordinary way brings in an MCP server and client, an HTTP client and a JSON Schema library: half a second of each
container's start, for two modules of pure functions. So its packages are stood in for by empty ones while these two are loaded;
and `mcp.types`, a seventh of what is imported else, by the one class that they make.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

_PACKAGES: Final = ("mcp", "fastapi_mcp", "fastapi_mcp.openapi")


@dataclass(frozen=True)
class Converted:
    """A tool as fastapi-mcp describes it; the fields of `mcp.types.Tool` that it fills."""

    name: str
    description: str
    inputSchema: dict[str, Any]  # noqa: N815 - the name on the wire


@contextmanager
def _hollow_packages() -> Iterator[None]:
    """Packages of these names that have their folders but ran nothing; afterwards all is as before."""
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in ("mcp", "fastapi_mcp")}
    for name in before:
        del sys.modules[name]
    try:
        for name in _PACKAGES:
            package = ModuleType(name)
            package.__path__ = [str(_folder(name))]
            sys.modules[name] = package
        types = ModuleType("mcp.types")
        types.Tool = Converted  # type: ignore[attr-defined]
        sys.modules["mcp.types"] = sys.modules["mcp"].types = types  # type: ignore[attr-defined]
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] in ("mcp", "fastapi_mcp")]:
            del sys.modules[name]
        sys.modules.update(before)


def _folder(package: str) -> Path:
    top, _, rest = package.partition(".")
    spec = find_spec(top) if top not in sys.modules else None
    locations = spec.submodule_search_locations if spec is not None else sys.modules[top].__path__
    assert locations, f"{top} is installed in every image"
    return Path(next(iter(locations)), *rest.split("."))


with _hollow_packages():
    _convert: Any = import_module("fastapi_mcp.openapi.convert")
    _utils: Any = import_module("fastapi_mcp.openapi.utils")

convert_openapi_to_mcp_tools: Callable[..., tuple[list[Converted], dict[str, dict[str, Any]]]] = (
    _convert.convert_openapi_to_mcp_tools
)
resolve_schema_references: Callable[..., dict[str, Any]] = _utils.resolve_schema_references
