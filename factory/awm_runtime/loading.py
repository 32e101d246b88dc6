"""Environment code imported as it was written, and the FastAPI app found in it.

No line of it is changed, no main block is needed, no name is prescribed. What it opens goes where `binding` leads it; a server
that it starts on import is not started.
"""

import asyncio
import inspect
import linecache
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from fastapi import FastAPI
from starlette.routing import Mount

from awm_runtime.lean import Waiting

FILE_NAME: Final = "app.py"
MODULE_NAME: Final = "environment_app"
_FACTORIES: Final = ("create_app", "make_app", "get_app", "build_app")


class LoadFailed(Exception):
    """Environment code that can't be served. `kind` is that of the Finding it becomes."""

    def __init__(self, kind: str, where: str, what: str) -> None:
        super().__init__(what)
        self.kind, self.where, self.what = kind, where, what


@dataclass(frozen=True)
class Loaded:
    app: FastAPI
    module: types.ModuleType


def load(code: str) -> Loaded:
    """Import the code and run the app's start-up handlers. Raises LoadFailed.

    The caller has installed `clock` and `binding`, and entered the world's time and a slot.
    """
    module = types.ModuleType(MODULE_NAME)
    module.__file__ = FILE_NAME
    sys.modules[MODULE_NAME] = module
    linecache.cache[FILE_NAME] = (len(code), None, code.splitlines(keepends=True), FILE_NAME)
    try:
        with _no_server():
            exec(compile(code, FILE_NAME, "exec"), module.__dict__)
    except BaseException as error:
        raise LoadFailed("import_error", _where(error), _what(error)) from error
    app = _find(module)
    try:
        asyncio.run(_start(app))
    except BaseException as error:
        raise LoadFailed("import_error", _where(error), f"its start-up handler failed: {_what(error)}") from error
    return Loaded(app, module)


async def _start(app: FastAPI) -> None:
    """Enter the app's lifespan, as a server would, and never leave it."""
    await app.router.lifespan_context(app).__aenter__()


@contextmanager
def _no_server() -> Iterator[None]:
    """While it is imported, `uvicorn.run` returns at once: the tools are served by us. Mostly it does not even import uvicorn."""
    real: list[tuple[Any, str, Any]] = []

    async def serve(*_args: Any, **_options: Any) -> None:
        return None

    def hold(uvicorn: Any) -> None:
        run = lambda *_args, **_options: None  # noqa: E731 - three names of one function that does nothing
        for holder, name, put in ((uvicorn, "run", run), (uvicorn.Server, "run", run), (uvicorn.Server, "serve", serve)):
            real.append((holder, name, getattr(holder, name)))
            setattr(holder, name, put)

    try:
        with Waiting("uvicorn", hold).on_watch():
            yield
    finally:
        for holder, name, value in real:
            setattr(holder, name, value)


def _find(module: types.ModuleType) -> FastAPI:
    names = vars(module)
    apps: dict[str, FastAPI] = {name: value for name, value in names.items() if isinstance(value, FastAPI)}
    if not apps:
        for name in _FACTORIES:
            if callable(factory := names.get(name)) and _needs_nothing(factory) and isinstance(app := factory(), FastAPI):
                apps[name] = app
    mounted = {id(route.app) for app in apps.values() for route in app.routes if isinstance(route, Mount)}
    outermost = [(name, app) for name, app in apps.items() if id(app) not in mounted]
    if not outermost:
        raise LoadFailed("no_app", FILE_NAME, "it holds no FastAPI object at module level, nor a create_app() without arguments.")
    return min(outermost, key=lambda item: (item[0] != "app", -len(item[1].routes)))[1]


def _needs_nothing(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


def _where(error: BaseException) -> str:
    """The last line of environment code on the way to the error."""
    if isinstance(error, SyntaxError) and error.filename == FILE_NAME:
        return f"{FILE_NAME} line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE_NAME]
    return f"{FILE_NAME} line {lines[-1]}" if lines else FILE_NAME


def _what(error: BaseException) -> str:
    first = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {first[0] if first else ''}".strip()
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE_NAME]
    return f"{text} (at `{lines[-1].line}`)" if lines and lines[-1].line else text
