"""One solver whose skills are switched on one after another, so that a stronger agent can do whatever a weaker one can."""

import re
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Final

from awm_factory.rollout.agents import asking
from awm_factory.rollout.agents.arguments import scalar
from awm_factory.rollout.agents.filters import bounds_for
from awm_factory.rollout.agents.matching import Row, apart, best, bounded, equals, extreme, position, score
from awm_factory.rollout.agents.protocol import Move, Scene, Script, Step, played, rows_of
from awm_factory.rollout.agents.reading import Reading
from awm_factory.rollout.agents.tooling import Property, Tool, listing_about, listing_for, side, understood, words_of
from awm_runtime.contract import ToolCall

_DEEPEST: Final = 3
_BUDGET: Final = 30
"""Calls."""
_MOST_TOOLS: Final = 4
"""That are looked at, two of which are called at most."""
_ALL: Final = re.compile(r"\ball (?:the (?!same\b)|of\b)")
_OTHERWISE: Final = re.compile(r"\b(?:instead|in place of|do the same with|refused|any)\b")
"""Words that let another row do where one is refused."""


@dataclass(frozen=True)
class Skills:
    matches: bool = False
    """Picks the row that the task's words fit, and knows what people call a tool's verb."""
    compares: bool = False
    """Bounds, superlatives, sums."""
    perseveres: bool = False
    """Several steps, all rows of a set, another way after a refusal."""


class SolvingAgent:
    def __init__(self, name: str, skills: Skills) -> None:
        self._name, self._skills = name, skills

    @property
    def name(self) -> str:
        return self._name

    def move(self, scene: Scene) -> Move:
        return played(_Solving(scene, self._skills).script(), scene.steps[: _BUDGET + 1])


Resolved = Generator[ToolCall, Step, Any]


@dataclass
class _Solving:
    scene: Scene
    skills: Skills
    calls: int = 0
    refused: list[str] = field(default_factory=list)
    told: Row = field(default_factory=dict)
    seen: dict[str, list[Row]] = field(default_factory=dict)
    narrowed: bool = False
    """Whether the last list was narrowed down by what the task says."""

    def __post_init__(self) -> None:
        self.tools = understood(self.scene.tools)
        self.whole = Reading(self.scene.instruction)

    def script(self) -> Script:
        if asking.is_question(self.whole):
            return (yield from self._answer())
        text = self.scene.instruction
        if self.skills.perseveres:
            text = yield from self._decided(text)
        for clause in self._clauses(text):
            done = yield from self._clause(Reading(clause))
            if not done:
                break
        if self.refused and not self.told and self.skills.perseveres:
            return f"It is not allowed, so I changed nothing: {self.refused[-1]}"
        return asking.answer_about(self.whole, self.told) if self.skills.matches and self.told else "Done."

    def _call(self, tool: Tool, arguments: dict[str, Any]) -> Generator[ToolCall, Step, Step]:
        self.calls += 1
        step = yield ToolCall(tool=tool.name, arguments=arguments)
        return step

    # What is to be done

    def _clauses(self, text: str) -> list[str]:
        """The task cut before each further request, if the agent works step by step."""
        if not self.skills.perseveres:
            return [text]
        verbs = {word for tool in self.tools if not tool.reads for word in words_of(tool.name.split("_")[0])}
        verbs |= {"set", "chang", "correct", "ent", "put", "tak", "get", "see", "mak", "enter", "take", "remov", "add", "sign"}
        parts = re.split(r"(?:, and (?:then )?|; besides, |; once that is done, |\. Then |\. When it is in, |, then )", text)
        clauses = [parts[0]]
        for part in parts[1:]:
            first = words_of(part)[:1]
            if first and first[0] in verbs:
                clauses.append(part)
            else:
                clauses[-1] += ", and " + part
        return clauses

    def _decided(self, text: str) -> Generator[ToolCall, Step, str]:
        """The branch that a condition on a number of rows leaves."""
        branches = asking.branches(text)
        if branches is None:
            return text
        rows = yield from self._rows_asked(Reading(branches.condition))
        return branches.then if rows is not None and len(rows) > branches.limit else branches.otherwise

    def _clause(self, reading: Reading) -> Generator[ToolCall, Step, bool]:
        writes = [tool for tool in self.tools if not tool.reads]
        ranked = sorted(writes, key=lambda tool: -tool.mentioned(reading.text, knows_synonyms=self.skills.matches))
        tried = 0
        for tool in ranked[: _MOST_TOOLS if self.skills.perseveres else 1]:
            ends = yield from self._filled(tool, reading)
            if tried == 2 or (self.skills.perseveres and not tool.required <= ends[0].keys()):
                continue
            tried += 1
            for arguments in ends:
                if self.calls >= _BUDGET:
                    return False
                step = yield from self._call(tool, arguments)
                if step.is_error:
                    self.refused.append(_detail(step))
                    if not self.skills.perseveres:
                        return True
                    if not _OTHERWISE.search(reading.lower):
                        break
                    continue
                self.told = step.content if isinstance(step.content, dict) else {}
                self.seen.clear()
                if not _ALL.search(reading.lower):
                    return True
            if self.told or asking.about_rules(self.whole):
                return bool(self.told)
        return bool(self.told)

    # Arguments

    def _filled(self, tool: Tool, reading: Reading) -> Generator[ToolCall, Step, list[dict[str, Any]]]:
        """Arguments for the tool: one set, or several where all rows are meant or another row may have to do."""
        arguments: dict[str, Any] = {}
        several: tuple[str, list[Any]] | None = None
        ids = [one for one in tool.properties.values() if one.is_id]
        for one in ids:
            said = self._said_of(one, tool, reading)
            if said is None or (not one.required and said is reading and reading.holds(one.noun) < 0):
                continue
            found = yield from self._ids(one, said, 0)
            if not found:
                continue
            same = [other.name for other in ids if _base(other.name) == _base(one.name)]
            arguments[one.name] = found[0]
            if len(same) > 1 and len(found) > 1 and self.skills.matches:
                arguments[one.name] = found[1 if one.name.startswith("to_") else 0]
            elif len(found) > 1 and self.skills.perseveres and several is None:
                several = one.name, found
        for one in tool.properties.values():
            if not one.is_id:
                value = scalar(one, reading, knows_corrections=self.skills.matches)
                if value is not None:
                    arguments[one.name] = value
        if several is None:
            return [arguments]
        return [{**arguments, several[0]: value} for value in several[1]]

    def _said_of(self, one: Property, tool: Tool, reading: Reading) -> Reading | None:
        """What the text says of one of two rows of a kind, `debiting …` and `crediting …`; None where it says nothing."""
        return side(one, tool, reading) if self.skills.matches else reading

    def _ids(self, one: Property, reading: Reading, depth: int) -> Generator[ToolCall, Step, list[Any]]:
        """Ids that may be meant, the likeliest first."""
        if re.search(r"\bme\b" if "user" in one.name else rf"\bme as the {re.escape(one.noun)}\b", reading.lower):
            return [1]
        if self.told.get("id") and re.search(rf"\bthe new {re.escape(one.noun)}\b", reading.lower):
            return [self.told["id"]]
        tool = listing_for(self.tools, one.name) or (listing_about(self.tools, one) if self.skills.matches else None)
        if tool is None:
            return []
        rows = yield from self._listed(tool, reading, depth)
        if not rows:
            return []
        key = next((key for key in ("id", one.name) if key in rows[0]), None)
        if key is None:
            return []
        return [row[key] for row in self._meant(rows, reading, one)]

    def _meant(self, rows: list[Row], reading: Reading, one: Property) -> list[Row]:
        if not self.skills.matches:
            return rows[:1]
        ranked = best(rows, reading)
        if self.skills.compares:
            fitting = rows if self.narrowed else bounded(equals(rows, reading), reading)
            found = extreme(fitting, reading)
            if found is not None:
                return [found]
            if _ALL.search(reading.lower) and fitting:
                return fitting
            if re.search(r"\bany\b", reading.lower) and fitting and score(fitting[0], reading) >= score(ranked[0], reading):
                return fitting
        telling = apart([row for row in ranked if score(row, reading) > 0], reading)[:2]
        if len(telling) == 2 and score(telling[1], reading) >= 0.75 * score(telling[0], reading):
            return sorted(telling, key=lambda row: position(row, reading))
        return ranked[:1]

    def _listed(self, tool: Tool, reading: Reading, depth: int) -> Generator[ToolCall, Step, list[Row]]:
        arguments: dict[str, Any] = {}
        for one in tool.properties.values():
            if one.required and one.is_id and depth < _DEEPEST:
                found = yield from self._ids(one, reading, depth + 1)
                if found:
                    arguments[one.name] = found[0]
        if self.skills.matches:
            if "limit" in tool.properties:
                arguments["limit"] = 100
            yield from self._filters(tool, reading, arguments, depth)
            said = bounds_for(tool, reading) if self.skills.compares else {}
            arguments |= said
            self.narrowed = bool(said)
        elif "q" in tool.properties and (names := _names(reading)):
            arguments["q"] = names[0]
        key = f"{tool.name} {sorted(arguments.items())}"
        if key not in self.seen:
            if self.calls >= _BUDGET:
                return []
            step = yield from self._call(tool, arguments)
            self.seen[key] = [] if step.is_error else rows_of(step.content)
        return self.seen[key]

    def _filters(self, tool: Tool, reading: Reading, arguments: dict[str, Any], depth: int) -> Generator[ToolCall, Step, None]:
        """Narrow a list down by rows of other kinds that the task names, as far as a tool lists those."""
        for one in tool.properties.values():
            if not one.is_id or one.required or depth >= _DEEPEST or not one.noun:
                continue
            other, said = listing_for(self.tools, one.name), self._said_of(one, tool, reading)
            if other is None or other.name == tool.name or said is None:
                continue
            is_named = "q" in other.properties
            if not is_named and not (self.skills.compares and said.holds(one.noun) >= 0):
                continue
            rows = yield from self._listed(other, said, _DEEPEST if is_named else depth + 1)
            fitting = [row for row in best(rows, said) if score(row, said) >= 1.5]
            if len(fitting) == 1 or (fitting and score(fitting[0], said) > score(fitting[1], said)):
                arguments[one.name] = fitting[0]["id"]

    # What is to be told

    def _rows_asked(self, reading: Reading) -> Generator[ToolCall, Step, list[Row] | None]:
        lists = [tool for tool in self.tools if tool.lists]
        ranked = sorted(lists, key=lambda tool: -tool.mentioned(reading.text, knows_synonyms=False))
        if not ranked:
            return None
        about = asking.about(reading, lists) if self.skills.compares else None
        rows = yield from self._listed(about or ranked[0], reading, 0)
        if not self.skills.matches:
            return rows
        fitting = rows if self.narrowed and self.skills.compares else equals(rows, reading)
        return bounded(fitting, reading) if self.skills.compares else fitting

    def _answer(self) -> Script:
        rows = yield from self._rows_asked(self.whole)
        if rows is None:
            return "I do not know."
        if self.skills.compares:
            return asking.told(self.whole, rows, extreme(rows, self.whole))
        return f"There are {len(rows)}."


def _base(name: str) -> str:
    return re.sub(r"^(?:to|from|other|new|target)_", "", name)


def _names(reading: Reading) -> list[str]:
    """Names that the task holds: quotations first, then words with capitals."""
    capitals = re.findall(r"(?<![.!?] )(?<!^)\b[A-Z][\w'-]+(?: [A-Z][\w'-]+)+", reading.text)
    return [*(re.sub(r"'s$", "", name) for name in capitals), *(spot.value for spot in reading.quotes)]


def _detail(step: Step) -> str:
    content = step.content
    if isinstance(content, dict):
        inner = content.get("detail") or content.get("error") or content
        if isinstance(inner, dict):
            inner = inner.get("message") or inner
        return str(inner)
    return str(content)
