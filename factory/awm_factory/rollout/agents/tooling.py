"""Tools as an agent can understand them: by their names, descriptions and schemas."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from awm_factory.llm.protocol import ToolSpec
from awm_factory.rollout.agents.reading import Reading

_READING: Final = {"list", "get", "search", "find", "report", "count", "sum", "summarize", "describe", "view"}
_IRREGULAR: Final = {
    "held": "hold",
    "sent": "send",
    "given": "give",
    "withdrawn": "withdraw",
    "taken": "take",
    "paid": "pay",
    "sold": "sell",
    "hidden": "hide",
    "begun": "begin",
    "made": "make",
    "lent": "lend",
    "written": "write",
    "kept": "keep",
    "built": "build",
}
_PLAIN: Final = {"to", "from", "other", "new", "target"}
"""First words of ids that say no more than which of two comes second."""
_VERBS: Final = {
    "update": ("set", "change", "correct", "update", "wrong", "slip"),
    "create": ("create", "enter", "set up", "make", "new", "book"),
    "add": ("add", "enter", "put in", "new"),
    "assign": ("assign", "give", "hand"),
    "register": ("register", "sign up", "enter", "new"),
    "record": ("record", "enter", "note", "new"),
    "open": ("open", "set up", "start", "new"),
    "delete": ("delete", "remove", "off the books"),
    "remove": ("remove", "take", "delete"),
}
"""How people say what a tool's first word means."""


def stem(word: str) -> str:
    """`cancelled` and `cancel`, `bookings` and `booking` are one."""
    word = word.lower()
    word = _IRREGULAR.get(word, word)
    if word.endswith("ies") and len(word) > 4:
        word = f"{word[:-3]}y"
    elif word.endswith("s") and not word.endswith("ss") and len(word) > 3:
        word = word[:-1]
    for ending in ("ation", "ing", "ied", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            if word[-1] == word[-2] and word[-1] in "bdglmnprt":
                word = word[:-1]
            break
    return word[:-1] if len(word) > 3 and word[-1] in "ey" else word


def words_of(text: str) -> list[str]:
    return [stem(word) for word in re.findall(r"[a-zA-Z]+", text.replace("_", " "))]


@dataclass(frozen=True)
class Property:
    name: str
    schema: dict[str, Any]
    required: bool

    @cached_property
    def options(self) -> list[dict[str, Any]]:
        return [one for one in (self.schema, *self.schema.get("anyOf", ())) if one.get("type") not in (None, "null")]

    @property
    def kind(self) -> str:
        return str(self.options[0]["type"]) if self.options else "string"

    @property
    def form(self) -> str:
        return next((str(one["format"]) for one in self.options if "format" in one), "")

    @property
    def enum(self) -> list[Any]:
        return next((list(one["enum"]) for one in self.options if "enum" in one), [])

    @property
    def is_id(self) -> bool:
        return self.name.endswith("_id")

    @property
    def noun(self) -> str:
        return re.sub(r"^is_|_(?:id|cents|at|on)$", "", self.name).replace("_", " ")

    @property
    def is_money(self) -> bool:
        return self.name.endswith("_cents")


@dataclass(frozen=True)
class Tool:
    spec: ToolSpec

    @property
    def name(self) -> str:
        return self.spec.name

    @cached_property
    def properties(self) -> dict[str, Property]:
        schemas: Any = self.spec.parameters.get("properties", {})
        required: Any = self.spec.parameters.get("required", [])
        return {name: Property(name, schema, name in required) for name, schema in schemas.items()}

    @cached_property
    def required(self) -> set[str]:
        return {one.name for one in self.properties.values() if one.required}

    @property
    def reads(self) -> bool:
        return self.name.split("_")[0] in _READING

    @property
    def lists(self) -> bool:
        return self.name.startswith(("list_", "search_", "find_"))

    @cached_property
    def summary(self) -> str:
        return self.spec.description.strip().partition("\n")[0]

    def _early(self, said: list[str], noun: list[str]) -> float:
        """Up to 1.5 for the thing that the text speaks of first."""
        for place in range(len(said) - len(noun) + 1):
            if said[place : place + len(noun)] == noun:
                return 1.5 * (1 - place / len(said))
        return 0.0

    def mentioned(self, text: str, *, knows_synonyms: bool) -> float:
        """How much of the tool's name the text speaks of."""
        said = set(words_of(text))
        first, *rest = self.name.split("_")
        score = 0.0
        for word in rest:
            score += 1.0 if stem(word) in said else -0.4
        verbs = _VERBS.get(first, ()) if knows_synonyms else ()
        if stem(first) in said or any(re.search(rf"\b{verb}\b", text.lower()) for verb in verbs):
            score += 2.0
        if knows_synonyms:
            mine = [word for word in words_of(self.summary) if len(word) > 2]
            score += 1.5 * sum(word in said for word in mine) / max(1, len(mine))
            score += self._early(words_of(text), [stem(word) for word in rest])
        return score


def understood(specs: tuple[ToolSpec, ...]) -> list[Tool]:
    return [Tool(spec) for spec in specs]


def listing_for(tools: list[Tool], name: str) -> Tool | None:
    """The tool that lists what an id such as `to_booking_slot_id` stands for."""
    parts = name.removesuffix("_id").split("_")
    for start in range(len(parts)):
        wanted = {stem(part) for part in parts[start:]}
        for tool in tools:
            if tool.lists and {stem(part) for part in tool.name.split("_")[1:]} == wanted:
                return tool
    for start in range(len(parts)):
        last = stem(parts[-1]) if start == 0 else stem(parts[start])
        for tool in tools:
            if tool.lists and last in {stem(part) for part in tool.name.split("_")[1:]}:
                return tool
    return None


def listing_about(tools: list[Tool], one: Property) -> Tool | None:
    """The same by what the schema says of the id, where its name tells nothing (`assignee_id`)."""
    said = words_of(str(one.schema.get("description", "")))
    known = [tool for tool in tools if tool.lists and all(stem(part) in said for part in tool.name.split("_")[1:])]
    if known:
        return max(known, key=lambda tool: len(tool.name))
    # Who does something is one of the staff, who alone have roles.
    return next((tool for tool in tools if tool.lists and "role" in tool.properties), None)


def side(one: Property, tool: Tool, reading: Reading) -> Reading | None:
    """What a text says of one of two ids of a kind, `debiting … crediting …`; all of it where there is one, None for nothing."""
    first, _, rest = one.name.partition("_")
    sides = {
        stem(other.name.partition("_")[0])
        for other in tool.properties.values()
        if other.is_id and other.name.partition("_")[2] == rest and rest != "id"
    } - _PLAIN
    if len(sides) < 2 or stem(first) not in sides:
        return reading
    places = [(stem(word[0]), word.start()) for word in re.finditer(r"[A-Za-z]+", reading.text) if stem(word[0]) in sides]
    start = next((start for said, start in places if said == stem(first)), None)
    if start is None:
        return None
    end = min((other for said, other in places if other > start and said != stem(first)), default=len(reading.text))
    return Reading(reading.text[start:end])
