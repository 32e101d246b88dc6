"""Calls as they are planned: run on a copy of the world, and remembered with where each argument comes from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from awm_factory.llm.offline.arguments import Refusal
from awm_factory.llm.offline.ir import Domain, Param
from awm_factory.llm.offline.state import Result, World, plain
from awm_factory.llm.offline.steps import ReturnRow
from awm_runtime.contract import ToolCall


@dataclass(frozen=True)
class Given:
    """An argument: what it is here, and from which earlier result it was taken, if from one."""

    value: Any
    source: str = ""
    """`{{calls[0].items[0].id}}`; empty for what the task itself says."""
    hops: int = 0
    """How many look-ups stand one behind the other before it is known."""


Arguments = Mapping[str, Any]
"""Param key to Given, or to a list of such mappings."""


@dataclass(frozen=True)
class Call:
    key: str
    arguments: Arguments
    result: Result | Refusal

    @property
    def refused(self) -> bool:
        return isinstance(self.result, Refusal)


def filled(arguments: Any) -> Any:
    """Arguments as values."""
    if isinstance(arguments, Given):
        return arguments.value
    if isinstance(arguments, Mapping):
        return {key: filled(item) for key, item in arguments.items()}
    if isinstance(arguments, list):
        return [filled(item) for item in arguments]
    return arguments


@dataclass
class Trace:
    world: World
    """A copy of its own, in the state after the calls so far."""
    calls: list[Call] = field(default_factory=list)
    known: dict[tuple[str, int], Given] = field(default_factory=dict)
    """Rows whose id has been found out."""

    @classmethod
    def on(cls, world: World) -> "Trace":
        return cls(world.copy())

    @property
    def domain(self) -> Domain:
        return self.world.domain

    def fork(self) -> "Trace":
        return Trace(self.world.copy(), list(self.calls), dict(self.known))

    def call(self, key: str, arguments: Arguments) -> Result | Refusal:
        operation = self.domain.operations[key]
        if not operation.writes:
            for call in self.calls:
                if call.key == key and filled(call.arguments) == filled(arguments) and not self._written_since(call):
                    return call.result
        result = self.world.run(key, filled(arguments))
        self.calls.append(Call(key, arguments, result))
        if operation.writes and isinstance(result, dict) and isinstance(operation.returns, ReturnRow) and "id" in result:
            row_id = int(result["id"])
            self.known.setdefault((operation.entity, row_id), Given(row_id, self.path(".id"), self.depth(arguments) + 1))
        return result

    def _written_since(self, call: Call) -> bool:
        return any(self.domain.operations[later.key].writes for later in self.calls[self.calls.index(call) + 1 :])

    def number(self, key: str, arguments: Arguments) -> int:
        """Which call this one is."""
        wanted = filled(arguments)
        return max(place for place, call in enumerate(self.calls) if call.key == key and filled(call.arguments) == wanted)

    def path(self, rest: str, call: int | None = None) -> str:
        return f"{{{{calls[{len(self.calls) - 1 if call is None else call}]{rest}}}}}"

    def depth(self, arguments: Any) -> int:
        if isinstance(arguments, Given):
            return arguments.hops
        if isinstance(arguments, Mapping):
            return max((self.depth(item) for item in arguments.values()), default=0)
        if isinstance(arguments, Sequence) and not isinstance(arguments, str):
            return max((self.depth(item) for item in arguments), default=0)
        return 0

    def tool_calls(self) -> list[ToolCall]:
        return [tool_call(self.domain, call.key, call.arguments) for call in self.calls]

    def writes(self) -> list[Call]:
        return [call for call in self.calls if self.domain.operations[call.key].writes]


def tool_call(domain: Domain, key: str, arguments: Arguments) -> ToolCall:
    operation = domain.operations[key]
    return ToolCall(tool=operation.name, arguments=_named(operation.params, arguments))


def _named(params: tuple[Param, ...], arguments: Arguments) -> dict[str, Any]:
    by_key = {param.key: param for param in params}
    named: dict[str, Any] = {}
    for key, value in arguments.items():
        param = by_key.get(key)
        if isinstance(value, list) and param is not None:
            named[param.name or key] = [_named(param.items, item) for item in value]
        elif isinstance(value, Given):
            named[param.name or key if param else key] = value.source or plain(value.value)
        else:
            named[param.name or key if param else key] = plain(value)
    return named
