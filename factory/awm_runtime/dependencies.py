"""FastAPI's dependencies without its request: what an endpoint asks for by `Depends`, solved from a tool's arguments.

Only for endpoints that `calling` found to need nothing of the request itself; the others are called through the app.
"""

import asyncio
import inspect
from collections.abc import Callable
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, Final

MISSING: Final = object()


def parts(dependant: Any) -> list[Any]:
    """A dependant and all that it depends on."""
    return [dependant, *(part for inner in dependant.dependencies for part in parts(inner))]


async def solve(
    dependant: Any,
    arguments: dict[str, Any],
    values: dict[str, Any],
    errors: list[Any],
    cache: dict[Any, Any],
    stack: AsyncExitStack,
) -> None:
    """Add what the dependencies give to `values`, once each; what they opened is closed with the stack."""
    for inner in dependant.dependencies:
        if inner.use_cache and inner.call in cache:
            solved = cache[inner.call]
        else:
            own: dict[str, Any] = {}
            wrong: list[Any] = []
            for place, fields in (("path", inner.path_params), ("query", inner.query_params)):
                for field in fields:
                    take(field, arguments.get(field.alias, MISSING), (place, field.alias), own, wrong)
            await solve(inner, arguments, own, wrong, cache, stack)
            if wrong:
                errors.extend(wrong)
                continue
            solved = cache[inner.call] = await _called(inner.call, own, stack)
        if inner.name is not None:
            values[inner.name] = solved


async def _called(call: Callable[..., Any], values: dict[str, Any], stack: AsyncExitStack) -> Any:
    function = call if inspect.isroutine(call) or inspect.isclass(call) else getattr(call, "__call__", call)  # noqa: B004
    if inspect.isasyncgenfunction(function):
        return await stack.enter_async_context(asynccontextmanager(call)(**values))
    if inspect.isgeneratorfunction(function):
        manager = contextmanager(call)(**values)
        entered = outside_the_loop(manager.__enter__, {})
        stack.push(manager)
        return entered
    if inspect.iscoroutinefunction(function):
        return await call(**values)
    return outside_the_loop(call, values)


def take(field: Any, value: Any, place: tuple[str, ...], values: dict[str, Any], errors: list[Any]) -> None:
    """Validate one value by its FastAPI field, or take the field's default."""
    if value is MISSING:
        if field.field_info.is_required():
            errors.append({"loc": place, "msg": "Field required"})
            return
        values[field.name] = field.get_default()
        return
    values[field.name], wrong = field.validate(value, {}, loc=place)
    errors.extend(wrong or ())


def outside_the_loop(function: Callable[..., Any], values: dict[str, Any]) -> Any:
    """A plain function runs in a thread elsewhere, where there is no running loop; it may start one of its own."""
    loop = asyncio.get_running_loop()
    asyncio._set_running_loop(None)
    try:
        return function(**values)
    finally:
        asyncio._set_running_loop(loop)
