"""Whether an app keeps the limits that its refusals name: "takes 900 g at most" must refuse 901 and must not refuse 899.

A refusal quotes a number, the limit; the call, or the row it is about, holds another that is beyond it. That other number is
moved to both sides of the limit. An app that changes its mind at none of the numbers that it quotes, but beside one, is told.
"""

import json
import re
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

from awm_runtime import dump
from awm_runtime.arguments import table_of
from awm_runtime.contract import ToolCall, ToolResult
from awm_runtime.dump import Layout

Try = Callable[[bytes | None, ToolCall], Awaitable[ToolResult]]
"""Makes a call on a database (None: the seed) and tells what came of it."""

_NUMBER: Final = re.compile(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?(?![\w-]|\.\d)")
_QUOTED: Final = 5
"""Numbers of one refusal that are looked at."""
_NEAR: Final = 3
"""How far from the number that is named the app may change its mind for that to be its limit still."""


@dataclass(frozen=True)
class Refused:
    """A call that the app refused, and the database it met."""

    state: bytes | None
    call: ToolCall
    result: ToolResult
    before: tuple[ToolCall, ...] | None = ()
    """Calls that led to the state; None for a state that no calls led to."""

    @property
    def pattern(self) -> str:
        return pattern(self.result)


def pattern(result: ToolResult) -> str:
    """The words of a refusal without its numbers, names and days."""
    return " ".join(word for word in re.sub(r"[\d.,:\"'-]+", "#", _words(result)).split() if word[:1].islower())


def _words(result: ToolResult) -> str:
    error: Any = result.content.get("error", {}) if isinstance(result.content, dict) else {}
    if not isinstance(error, dict):
        return ""
    detail = error.get("detail")
    told = detail.get("problem", detail.get("message", detail)) if isinstance(detail, dict) else detail
    return str(error.get("message", "")) if detail is None else json.dumps(told, ensure_ascii=False)


def quoted(result: ToolResult) -> list[float]:
    """Numbers in the words and details of a refusal; amounts with two decimals in hundredths as well."""
    error: Any = result.content.get("error", {}) if isinstance(result.content, dict) else {}
    text = (
        json.dumps({key: value for key, value in error.items() if key in ("message", "detail")}, ensure_ascii=False)
        if isinstance(error, dict)
        else ""
    )
    text = re.sub(r"\d{4}-\d\d-\d\d(?:[T ][\d:.]+)?Z?", " ", text)
    found: dict[float, None] = {}
    for match in _NUMBER.finditer(text):
        digits = match[0].replace(",", "").rstrip(".")
        found[float(digits)] = None
        if re.search(r"\.\d\d$", digits):
            found[round(float(digits) * 100, 2)] = None
    return list(found)


def names_limit(call: ToolCall, result: ToolResult) -> bool:
    """True for a refusal that quotes a number which the call did not bring along."""
    brought = {float(leaf) for leaf in _leaves(call.arguments) if type(leaf) in (int, float)}
    return result.kind in ("refused", "invalid_arguments") and result.status is not None and bool(set(quoted(result)) - brought)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    else:
        yield value


Subject = tuple[str, float, Callable[[float], tuple[bytes | None, ToolCall] | None]]
"""What a limit may be about, how much of it there is, and how the call is made with another amount."""


class Limits:
    def __init__(self, layouts: list[Layout], seed: bytes, attempt: Try, path_of: Mapping[str, str]) -> None:
        """`path_of`: the path of each tool."""
        self._layouts, self._seed, self._try, self._path_of = {one.name: one for one in layouts}, seed, attempt, path_of

    async def unkept(self, refused: Refused) -> str | None:
        """How the limit is passed that a refusal names, in words; None where it is kept, or where it names none."""
        numbers = quoted(refused.result)
        given: dict[str, Any] = refused.call.arguments
        ids = {float(v) for k, v in given.items() if k.lower().endswith("id") and type(v) in (int, float)}
        for what, amount, made in [*_arguments(refused), *self._columns(refused, numbers)]:
            whole = [number for number in numbers if number.is_integer() or not amount.is_integer()]
            limits = [number for number in whole if number not in ids and number != amount][:_QUOTED]
            told = await self._passed(refused, what, amount, limits, made) if limits else None
            if told is not None:
                return told
        return None

    async def _passed(
        self, refused: Refused, what: str, amount: float, limits: list[float], made: Callable[[float], Any]
    ) -> str | None:
        """One answer for every number beside those quoted, from the refused side to the other."""
        known: dict[float, str | None] = {amount: "refused"}

        async def answer(value: float) -> str | None:
            """`refused` in the same words, `passed`, `other`; None where the call can't be made with that."""
            if value not in known:
                known[value] = await self._answer(refused, made, value)
            return known[value]

        async def around(limit: float) -> tuple[int, list[str | None]]:
            """Where the refused side lies, and the answers beyond, at and within the limit."""
            side = 1 if amount > limit else -1
            return side, [await answer(limit + step * side) for step in (1, 0, -1)]

        suspicion: str | None = None
        for limit in limits:
            side, (beyond, at, within) = await around(limit)
            if _turns(beyond, at, within):
                return None
            if beyond == "passed" and suspicion is None and await self._changes_beyond(limit, side, amount, answer):
                suspicion = f"{what} = {limit + side:g} is not refused for it, though {amount:g} is and {limit:g} is named"
            elif beyond == at == within == "refused" and suspicion is None:
                steps = [await answer(limit - step * side) for step in range(2, _NEAR + 1)]
                if "passed" in steps:
                    suspicion = f"{what} = {limit - side:g} is refused, though it names {limit:g} for it"
        for one, other in combinations(limits, 2) if suspicion is not None else ():
            _, answers = await around(abs(one - other))
            if _turns(*answers):
                return None  # "room for 5, of which 2 are taken"
        return suspicion

    async def _changes_beyond(self, limit: float, side: int, amount: float, answer: Callable[[float], Awaitable[Any]]) -> bool:
        """True if the refusals begin close behind the limit: the number named is it, and not another one by chance."""
        for step in range(2, _NEAR + 1):
            value = limit + step * side
            if (value - amount) * side > 0:
                return False
            if await answer(value) == "refused":
                return True
        return False

    async def _answer(self, refused: Refused, made: Callable[[float], Any], value: float) -> str | None:
        case = made(value)
        if case is None:
            return None
        result = await self._try(*case)
        if result.kind == "invalid_arguments" and result.status is None:
            return None
        if result.kind in ("ok", "constraint", "internal") or "constraint failed" in _words(result):
            return "passed"  # what only the database refuses has passed the app's own check
        return "refused" if pattern(result) == refused.pattern else "other"

    def _columns(self, refused: Refused, numbers: list[float]) -> Iterator[Subject]:
        """Amounts of the row that the path leads to and that the refusal quotes."""
        path = self._path_of.get(refused.call.tool, "")
        argument = path.partition("{")[2].partition("}")[0]
        key = refused.call.arguments.get(argument)
        table = table_of(argument, self._layouts)
        if table is None or not isinstance(key, (int, str)) or len(self._layouts[table].key) != 1:
            return
        layout, state = self._layouts[table], refused.state or self._seed
        where = f"{dump.quote(layout.key[0])} = ?"
        connection = dump.open_bytes(state)
        row = connection.execute(
            f"SELECT {', '.join(map(dump.quote, layout.columns))} FROM {dump.quote(table)} WHERE {where}", (key,)
        )
        for column, value in zip(layout.columns, row.fetchone() or (), strict=False):
            if type(value) not in (int, float) or value not in numbers or column in layout.key or column.endswith("_id"):
                continue

            def made(other: float, column: str = column, before: float = value) -> tuple[bytes, ToolCall] | None:
                changed = dump.open_bytes(state)
                try:
                    changed.execute(
                        f"UPDATE {dump.quote(table)} SET {dump.quote(column)} = ? WHERE {where}",
                        (int(other) if isinstance(before, int) else other, key),
                    )
                except sqlite3.Error:
                    return None
                return changed.serialize(), refused.call

            yield f"a row of {table} with {column}", float(value), made


def _turns(beyond: str | None, at: str | None, within: str | None) -> bool:
    """Whether the app changes its mind just there."""
    return (beyond == "refused" and at != "refused") or (at == "refused" and within != "refused")


def _arguments(refused: Refused) -> Iterator[Subject]:
    given: dict[str, Any] = refused.call.arguments
    for name, value in given.items():
        if type(value) not in (int, float) or name.lower().endswith(("id", "ids")):
            continue

        def made(other: float, name: str = name, before: float = value) -> tuple[bytes | None, ToolCall] | None:
            if other < 0 <= before:
                return None
            arguments = {**given, name: int(other) if isinstance(before, int) else other}
            return refused.state, ToolCall(tool=refused.call.tool, arguments=arguments)

        yield name, float(value), made
