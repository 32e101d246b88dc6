"""What every goal stands on: the world, draws, and how a draft of a task is put together and checked."""

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from awm_factory.bundle import Variant
from awm_factory.llm.offline.arguments import Refusal
from awm_factory.llm.offline.choosing import Chooser
from awm_factory.llm.offline.effects import outcome
from awm_factory.llm.offline.ir import Domain, Operation, Param
from awm_factory.llm.offline.locate import locate
from awm_factory.llm.offline.mention import Mention, mention
from awm_factory.llm.offline.outcome import Told, Wanted
from awm_factory.llm.offline.phrase import Sentence, imperative
from awm_factory.llm.offline.state import Result, World
from awm_factory.llm.offline.trace import Arguments, Given, Trace, tool_call
from awm_factory.llm.offline.wording import ASKING, LEAVING_OPEN, bare, numbers
from awm_runtime.contract import ToolCall

Kind = Literal["act", "find", "ask", "conditional", "several", "repair", "open", "policy"]

_UNFIT: Final = re.compile(
    r"\b(log|sign)(ging|s|ed)?[ -]?(in|out)\b|\bpasswords?\b"
    r"|\b(click|tap|scroll|drag|hover|dropdown|the (page|screen|button|tab|menu|homepage))\b"
    r"|\b(upload|download|attach(ed|ment|ing)?|print|export|pdf|csv|spreadsheet|screenshot|photo)\b"
    r"|\b(previous(ly)? (task|created|added|made)|(just|you) (created|added|made)|the above|as above|earlier task)\b"
    r"|\[[A-Za-z_ ]{2,40}\]|<[A-Za-z_ ]{2,40}>|\{[A-Za-z_ ]{2,40}\}|\bTBD\b|\bX{3,}\b|\bNone\b",
    re.IGNORECASE,
)
"""Words that the synthesis refuses in a task (`synthesis/checks/tasks.py`)."""
_LONGEST: Final = 620
_DESCRIBED: Final = 0.65
"""Share of rows with a reference of their own (`B-1004`) that are spoken of by whose they are and when."""
NAMING: Final = re.compile(r"(^|_)(name|title|code|label|subject|slug|sku|number|reference)$", re.I)
"""Columns by whose text a thing is called, so that a new one needs a new text."""


@dataclass(frozen=True)
class Draft:
    """A task that holds together."""

    kind: Kind
    signature: tuple[object, ...]
    """Goal and rows: no two tasks of an environment share it."""
    way: tuple[object, ...]
    """The phrasing, whatever its slots hold."""
    instruction: str
    trace: Trace
    wanted: Wanted
    answer: str
    alternatives: tuple[Variant, ...] = ()
    near_misses: tuple[Variant, ...] = ()
    mentions: tuple[Mention, ...] = ()
    constraints: int = 0
    """Conditions of the sentence beyond the rows that it names."""
    made: tuple[str, ...] = ()
    """Texts that it has stored, which no other task may speak of."""
    expected: str = ""
    """What is right, in words, for a judge."""


@dataclass
class Ground:
    world: World
    rng: random.Random
    _mentions: dict[tuple[str, int], Mention | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chooser = Chooser(self.world, self.rng)

    @property
    def domain(self) -> Domain:
        return self.world.domain

    @property
    def currency(self) -> str:
        return self.domain.currency

    def mention(self, role: str, row_id: int) -> Mention | None:
        key = role, row_id
        if key not in self._mentions:
            self._mentions[key] = mention(self.world, role, row_id, described=self.rng.random() < _DESCRIBED)
        return self._mentions[key]

    def writes(self, *kinds: str) -> list[Operation]:
        """Operations that change something, in a drawn order."""
        found = [op for op in self.domain.operations.values() if op.writes and (not kinds or op.kind in kinds)]
        self.rng.shuffle(found)
        return found

    def first_of(self, *ways: "Callable[[Ground], Draft | None]") -> Draft | None:
        """The first draft that any of the ways brings, in a drawn order."""
        drawn = list(ways)
        self.rng.shuffle(drawn)
        return next((draft for way in drawn if (draft := way(self)) is not None), None)

    def try_out(self, operation: Operation, arguments: Mapping[str, Any], world: World | None = None) -> Result | Refusal:
        return (world or self.world).copy().run(operation.key, arguments)

    def changes(self, operation: Operation, arguments: Mapping[str, Any], world: World | None = None) -> bool:
        """Whether the call is carried out and leaves another state, its own log aside."""
        before = world or self.world
        after = before.copy()
        result = after.run(operation.key, arguments)
        if isinstance(result, Refusal):
            return False
        return any(
            edit.role != "activity"
            and (edit.before is None or edit.after is None or beyond_times(self.domain, edit.role, edit.columns))
            for edit in before.difference(after)
        )

    def needed(self, operation: Operation, arguments: dict[str, Any], world: World | None = None) -> dict[str, Any]:
        """Without optional arguments that make no difference."""
        before = world or self.world
        kept = dict(arguments)
        for param in operation.params:
            if param.required or param.key not in kept:
                continue
            less = {key: value for key, value in kept.items() if key != param.key}
            if _end(before, operation, less) == _end(before, operation, kept):
                kept = less
        return kept

    def named(self, operation: Operation, arguments: Mapping[str, Any], skip: Iterable[str] = ()) -> dict[str, Mention] | None:
        """Mentions for all rows among the arguments, `lines[0].item_id` for those in a list; None where one can't be named."""
        found: dict[str, Mention] = {}
        for path, param, value in rows_among(operation.params, arguments):
            if path in skip:
                continue
            one = self.mention(param.ref, value)
            if one is None:
                return None
            found[path] = one
        return found

    def spoken(
        self,
        operation: Operation,
        arguments: Mapping[str, Any],
        mentions: Mapping[str, Mention],
        instead: Mapping[str, str] | None = None,
    ) -> Sentence | None:
        return imperative(self.domain, operation, arguments, mentions, self.rng, instead)

    def given(
        self,
        trace: Trace,
        operation: Operation,
        arguments: Mapping[str, Any],
        mentions: Mapping[str, Mention],
        instead: Mapping[str, Given] | None = None,
    ) -> Arguments | None:
        """Arguments with their sources, after the look-ups that they take; None where the tools don't show an id."""
        return _given(trace, operation.params, arguments, mentions, dict(instead or {}), "")


def beyond_times(domain: Domain, role: str, columns: Sequence[str]) -> bool:
    """Whether any of the columns is other than a time that the service sets."""
    entity = domain.entity(role)
    return any(not (entity.column(key).server and entity.column(key).kind == "datetime") for key in columns)


def _end(before: World, operation: Operation, arguments: Mapping[str, Any]) -> object:
    after = before.copy()
    result = after.run(operation.key, arguments)
    return result.detail if isinstance(result, Refusal) else before.difference(after)


def rows_among(params: Sequence[Param], arguments: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Param, int]]:
    for param in params:
        value = arguments.get(param.key)
        if value is None:
            continue
        if param.kind == "ref":
            yield f"{prefix}{param.key}", param, int(value)
        elif param.kind == "list":
            for number, line in enumerate(value):
                yield from rows_among(param.items, line, f"{prefix}{param.key}[{number}].")


def _given(
    trace: Trace,
    params: Sequence[Param],
    arguments: Mapping[str, Any],
    mentions: Mapping[str, Mention],
    instead: dict[str, Given],
    prefix: str,
) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    for param in params:
        if param.key not in arguments:
            continue
        value, path = arguments[param.key], f"{prefix}{param.key}"
        if path in instead:
            found[param.key] = instead[path]
        elif param.kind == "ref" and value is not None:
            located = locate(trace, mentions[path])
            if located is None:
                return None
            found[param.key] = located
        elif param.kind == "list":
            lines = []
            for number, line in enumerate(value):
                made = _given(trace, param.items, line, mentions, instead, f"{path}[{number}].")
                if made is None:
                    return None
                lines.append(made)
            found[param.key] = lines
        else:
            found[param.key] = Given(value)
    return found


def drafted(
    ground: Ground,
    kind: Kind,
    *,
    instruction: str,
    signature: tuple[object, ...],
    way: tuple[object, ...],
    trace: Trace,
    answer: str,
    told: tuple[Told, ...] = (),
    wanted: Wanted | None = None,
    alternatives: Sequence[Variant] = (),
    near_misses: Sequence[Variant] = (),
    mentions: Sequence[Mention] = (),
    constraints: int = 0,
    made: Sequence[str] = (),
    expected: str = "",
    is_open: bool = False,
) -> Draft | None:
    """None where the sentence would be misread, or where nothing would have to be done and nothing to be said."""
    if wanted is None:
        found = outcome(ground.world, trace)
        if found is None:
            return None
        wanted = Wanted(found, told)
    asks = ASKING.search(instruction) is not None
    if asks != bool(wanted.told) or (wanted.outcome.nothing and not wanted.told):
        return None
    if (LEAVING_OPEN.search(instruction) is not None) != is_open:
        return None
    if _UNFIT.search(bare(instruction)) or len(instruction) > _LONGEST or '""' in instruction:
        return None
    if _tells_itself(ground, instruction, wanted.told):
        return None
    return Draft(
        kind=kind,
        signature=signature,
        way=way,
        instruction=instruction,
        trace=trace,
        wanted=wanted,
        answer=answer,
        alternatives=tuple(alternatives),
        near_misses=tuple(near_misses),
        mentions=tuple(mentions),
        constraints=constraints,
        made=tuple(made),
        expected=expected or answer,
    )


def _tells_itself(ground: Ground, instruction: str, told: Sequence[Told]) -> bool:
    """Whether the sentence holds the answer already."""
    figures = numbers(instruction)
    for one in told:
        if one.kind == "count" and str(one.value) in figures:
            return True
        if one.kind == "amount" and isinstance(one.value, int):
            whole, cents = divmod(one.value, 100)
            if f"{whole}.{cents:02d}" in figures or (cents == 0 and str(whole) in figures):
                return True
        if one.kind == "name" and str(one.value).lower() in instruction.lower():
            return True
        if one.kind in ("day", "moment") and f"{one.value:%-d %B %Y}" in instruction:
            return True
    return False


def variant(domain: Domain, why: str, calls: Sequence[ToolCall], answer: str) -> Variant:
    return Variant(why=why, calls=list(calls), final_answer=answer)


def calls_with(trace: Trace, last: tuple[str, Arguments]) -> list[ToolCall]:
    """The calls of a trace, with the last one replaced."""
    return [*trace.tool_calls()[:-1], tool_call(trace.domain, *last)]
