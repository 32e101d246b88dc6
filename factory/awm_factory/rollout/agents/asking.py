"""Questions: what is asked for, and the words of an answer."""

import re
from dataclasses import dataclass
from typing import Any, Final

from awm_factory.rollout.agents.matching import Row
from awm_factory.rollout.agents.reading import Reading
from awm_factory.rollout.agents.tooling import Tool, stem, words_of

_QUESTION: Final = re.compile(
    r"^(?:how many|tell me|which|what|count|please count|add up|look for|i need (?:a count|the|one figure)"
    r"|\S+ \S+ asks how many)",
    re.IGNORECASE,
)
_BRANCHES: Final = re.compile(
    r"^(?:If|In case|Count) (?P<things>.*?)(?:: if there are)? ?more than (?P<limit>\d+)(?P<more>[^,.]*)[,.] (?P<then>.*?)"
    r"(?:; otherwise|, and if not,|\. If not,) (?P<otherwise>.*)$",
    re.DOTALL,
)


@dataclass(frozen=True)
class Branches:
    condition: str
    limit: int
    then: str
    otherwise: str


def is_question(reading: Reading) -> bool:
    return _QUESTION.match(reading.text) is not None and branches(reading.text) is None


def branches(text: str) -> Branches | None:
    match = _BRANCHES.match(text)
    if match is None:
        return None
    return Branches(f"{match['things']} {match['more']}", int(match["limit"]), match["then"], match["otherwise"])


def about(reading: Reading, lists: list[Tool]) -> Tool | None:
    """The list that a question is about: of the noun that comes first, what is asked of it left aside."""
    text = re.sub(r"(?:and tell me the (?!total)|; tell me what).*", "", reading.lower)
    text = re.sub(r"^(?:please |i need |tell me |add up |what is )*the (?:(?!how many)[\w -]+?) (?:of|over) ", "", text)
    said = words_of(text)
    found: list[tuple[int, int, Tool]] = []
    for tool in lists:
        nouns = [stem(part) for part in tool.name.split("_")[1:]]
        for place in range(len(said) - len(nouns) + 1):
            if said[place : place + len(nouns)] == nouns:
                found.append((place, -len(nouns), tool))
                break
    return min(found, key=lambda entry: entry[:2])[2] if found else None


def about_rules(reading: Reading) -> bool:
    return re.search(r"\brules?\b", reading.lower) is not None


def told(reading: Reading, rows: list[Row], first: Row | None) -> str:
    """The answer of one who counts, adds up and compares."""
    if re.search(r"\b(?:how many|count)\b", reading.lower):
        return f"There are {len(rows)}."
    if re.search(r"\b(?:total|sum|add up)\b", reading.lower):
        key = _asked_key(reading, rows[0] if rows else {}, cents_only=True)
        return f"It comes to {_spoken(key, sum(row.get(key) or 0 for row in rows))}." if key else f"There are {len(rows)}."
    row = first if first is not None else rows[0] if rows else {}
    return answer_about(reading, row)


def answer_about(reading: Reading, row: Row) -> str:
    """What the task wants to know of a row."""
    key = _asked_key(reading, row)
    return f"It is {_spoken(key, row[key])}." if key is not None else "Done."


def _asked_key(reading: Reading, row: Row, *, cents_only: bool = False) -> str | None:
    match = re.search(
        r"(?:tell me|let me know|look for|i need|add up|sum of|total)(?: then)? (?:the |its )?(?:total |sum of the )?(.*)",
        reading.lower,
    )
    asked = re.findall(r"(?:and tell me (?:its|the) )(.*)", reading.lower)
    text = asked[-1] if asked else match[1] if match else ""
    found: list[tuple[int, int, str]] = []
    for key in row:
        if cents_only and not key.endswith("_cents"):
            continue
        noun = re.sub(r"_(?:cents|at|on|id)$", "", key).replace("_", " ")
        for said in {noun, noun.removesuffix(" name"), {"starts": "start", "ends": "end"}.get(noun, noun)}:
            place = text.find(said)
            if place >= 0 and row[key] is not None and key != "id" and not key.endswith("_id"):
                found.append((place, -len(said), key))
    return min(found)[2] if found else None


def _spoken(key: str | None, value: Any) -> str:
    if key is not None and key.endswith("_cents") and isinstance(value, int):
        return f"{value // 100}.{value % 100:02d}"
    return str(value).replace("T", " ") if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value) else str(value)
