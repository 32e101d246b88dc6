"""Environments as TRL's `environment_factory` wants them (trl 1.16, which marks that interface experimental).

    GRPOTrainer(..., environment_factory={name: environment(name, fleet=fleet) for name in names})

TRL reads a class: `reset` and `get_reward`, and every other public method is a tool, described by its signature and docstring. It
makes one instance as a probe, keeps all of them and closes none, so an episode is held from `reset` to `get_reward` only.
docs/training.md has the limits of that way, and the recipe that has none of them.
"""

import inspect
import itertools
import json
import keyword
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Protocol, Union

from awm_factory.client.results import Tool
from awm_factory.client.sync import AwmEnv, Fleet
from awm_factory.errors import Fault, UsageError

_TYPES: Final[dict[str, Any]] = {"string": str, "integer": int, "number": float, "boolean": bool, "null": type(None)}
_TOLD: Final = frozenset({"type", "title", "description", "default", "enum", "const", "anyOf", "oneOf", "items"})
"""What the type or the docstring says already; other keywords of a schema go into the description."""
_TAKEN: Final = ("reset", "get_reward")
_SECTION: Final = re.compile(r"^(\s*)(Args|Returns|Raises):", re.MULTILINE)


class TrlEnvironment(Protocol):
    """What an instance has beside its tools."""

    def reset(self, **row: Any) -> str | None:
        """Begin the episode of the row's `task_id`; returns the instruction, unless the row's prompt says it already."""
        ...

    def get_reward(self) -> float | None:
        """The verdict's reward, and the end of the episode. None where it must be masked, which TRL does."""
        ...


def environment(
    env_id: str, *, fleet: Fleet | None = None, url: str | None = None, token: str | None = None
) -> type[TrlEnvironment]:
    """A class of its own for one environment: on leases of a fleet, or on a container by the address of its port 8000.

    Its tools are asked for once, here. Raises AwmError where nothing answers.
    """
    if (fleet is None) == (url is None):
        raise UsageError("say where the episodes are: environment(env_id, fleet=…) or environment(env_id, url=…)")

    def seat(task_id: int | None) -> AwmEnv:
        env = fleet.lease(env_id, task_id) if fleet is not None else AwmEnv.connect(url or "", token=token)
        try:
            env.reset(task_id)
        except BaseException:
            env.close()
            raise
        return env

    with seat(None) as env:
        tools = env.tools()
    return type(env_id, (_Held,), {"_seat": staticmethod(seat), "__doc__": f"Episodes of {env_id}.", **_methods(tools)})


class _Held:
    """An episode between `reset` and `get_reward`."""

    _seat: Callable[[int | None], AwmEnv]

    def __init__(self) -> None:
        self._env: AwmEnv | None = None
        self._fault: Fault | None = None

    def reset(self, **row: Any) -> str | None:
        self._release()
        self._fault = None
        try:
            self._env = self._seat(row.get("task_id"))
        except Fault as fault:
            # A run is not to end because one episode could not be had; this one is masked.
            self._fault = fault
            return None
        instruction = self._env.instruction
        return None if instruction is None or instruction in json.dumps(row.get("prompt"), ensure_ascii=False) else instruction

    def get_reward(self) -> float | None:
        try:
            if self._env is None or self._fault is not None:
                return None
            verdict = self._env.submit()
            return None if verdict.masked else verdict.reward
        except Fault:
            return None
        finally:
            self._release()

    def _call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        if self._env is None or self._fault is not None:
            return json.dumps({"error": {"kind": "infrastructure", "message": f"the episode is lost: {self._fault}"}})
        try:
            return self._env.call(tool, arguments).text
        except Fault as fault:
            if fault.masked:
                self._fault = fault
            return json.dumps({"error": {"kind": fault.code or fault.fault, "message": str(fault)}})

    def _release(self) -> None:
        if self._env is not None:
            self._env.close()
            self._env = None


def _methods(tools: list[Tool]) -> dict[str, Callable[..., str]]:
    names = _unique([tool.name for tool in tools], _method_name, set(_TAKEN))
    return {name: _method(name, tool) for name, tool in zip(names, tools, strict=True)}


def _method(name: str, tool: Tool) -> Callable[..., str]:
    schemas: dict[str, dict[str, Any]] = tool.input_schema.get("properties") or {}
    wire = dict(zip(_unique(list(schemas), _parameter_name, {"self", "cls"}), schemas, strict=True))
    required = set(tool.input_schema.get("required") or ())

    def method(self: _Held, **arguments: Any) -> str:
        return self._call(tool.name, {wire.get(given, given): value for given, value in arguments.items()})

    hints = {given: _hint(schemas[known], optional=known not in required) for given, known in wire.items()}
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    # Those that must be given come first, as Python wants it.
    order = sorted(wire, key=lambda given: wire[given] not in required)
    given = [
        inspect.Parameter(
            one,
            kind,
            annotation=hints[one],
            default=inspect.Parameter.empty if wire[one] in required else schemas[wire[one]].get("default"),
        )
        for one in order
    ]
    method.__name__ = method.__qualname__ = name
    method.__annotations__ = {**hints, "return": str}
    method.__signature__ = inspect.Signature([inspect.Parameter("self", kind), *given], return_annotation=str)  # type: ignore[attr-defined]
    method.__doc__ = _docstring(tool, {one: schemas[wire[one]] for one in order})
    return method


def _docstring(tool: Tool, schemas: Mapping[str, Mapping[str, Any]]) -> str:
    description = _SECTION.sub(r"\1\2 -", tool.description.strip()) or tool.name
    lines = [f"    {name}: {_described(schema)}" for name, schema in schemas.items()]
    return "\n".join([description, "", "Args:", *lines]) if lines else description


def _described(schema: Mapping[str, Any]) -> str:
    """On one line: what the schema says of a parameter that its type does not."""
    limits = {key: value for key, value in _inner(schema).items() if key not in _TOLD}
    words = " ".join(str(schema.get("description") or schema.get("title") or "").split())
    told = f"{words} {json.dumps(limits, ensure_ascii=False)}".strip() if limits else words
    # transformers reads "(choices: …)" at the end as JSON.
    return f"{told}." if told.endswith(")") else told or "As its name says."


def _inner(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema itself, or the one alternative to null in it."""
    others = [one for one in schema.get("anyOf") or schema.get("oneOf") or [] if one.get("type") != "null"]
    return others[0] if len(others) == 1 else schema


def _hint(schema: Mapping[str, Any], *, optional: bool) -> Any:
    """A Python type from which transformers makes nearly the same schema again."""
    hint = _type(schema)
    return Union[hint, None] if optional else hint  # noqa: UP007 -- what is made here takes no `|`


def _type(schema: Mapping[str, Any]) -> Any:
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if values and all(isinstance(value, str | int | bool) for value in values):
        return Literal[tuple(values)]
    if alternatives := schema.get("anyOf") or schema.get("oneOf"):
        return _any_of([_type(one) for one in alternatives])
    kind = schema.get("type")
    if isinstance(kind, list):
        return _any_of([_type({**schema, "type": one}) for one in kind])
    if kind == "array":
        return list.__class_getitem__(_type(schema.get("items") or {}))
    return dict if kind == "object" else _TYPES.get(str(kind), Any)


def _any_of(hints: list[Any]) -> Any:
    return Any if Any in hints else Union[tuple(hints)]  # noqa: UP007 -- the same


def _unique(names: list[str], made: Callable[[str], str], taken: set[str]) -> list[str]:
    """Names that Python takes, in order; what two of them would share gets underscores."""
    found = []
    for name in names:
        stem = made(name)
        free = next(one for one in (stem + "_" * more for more in itertools.count()) if one not in taken)
        taken.add(free)
        found.append(free)
    return found


def _method_name(name: str) -> str:
    """TRL takes what begins with an underscore for private."""
    return name.lstrip("_") or "tool"


def _parameter_name(name: str) -> str:
    plain = re.sub(r"\W", "_", name) or "_"
    return f"{plain}_" if keyword.iskeyword(plain) else f"p{plain}" if plain[0].isdigit() else plain
