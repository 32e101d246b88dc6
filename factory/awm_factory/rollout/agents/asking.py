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
_SUM: Final = re.compile(r"(?:\badd up the|\bthe sum of the|\bthe total(?! of\b)) (.*)")
_ENDS: Final = {"starts": "start", "begins": "start", "ends": "end"}
"""What a column is called in a sentence, where that differs."""
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
    summed = _SUM.search(reading.lower)
    if summed is not None:
        key = _named(summed[1], {key: value for key, value in (rows[0] if rows else {}).items() if key.endswith("_cents")})
        return f"It comes to {_spoken(key, sum(row.get(key) or 0 for row in rows))}." if key else f"There are {len(rows)}."
    row = first if first is not None else rows[0] if rows else {}
    return answer_about(reading, row)


def answer_about(reading: Reading, row: Row) -> str:
    """What the task wants to know of a row."""
    key = _asked_key(reading, row)
    return f"It is {_spoken(key, row[key])}." if key is not None else "Done."


def _asked_key(reading: Reading, row: Row) -> str | None:
    match = re.search(r"(?:tell me|let me know|look for|i need)(?: then)? (?:the |its )?(.*)", reading.lower)
    asked = re.findall(r"(?:and tell me (?:its|the) )(.*)", reading.lower)
    return _named(asked[-1] if asked else match[1] if match else "", row)


def _named(text: str, row: Row) -> str | None:
    """The key of which a text speaks first."""
    found: list[tuple[int, int, str]] = []
    for key in row:
        noun = re.sub(r"_(?:cents|at|on|id)$", "", key).replace("_", " ")
        for said in {noun, re.sub(r" (?:name|reference|title|subject)$", "", noun), _ENDS.get(noun, noun)}:
            place = text.find(said)
            if place >= 0 and row[key] is not None and key != "id" and not key.endswith("_id"):
                found.append((place, -len(said), key))
    return min(found)[2] if found else None


def _spoken(key: str | None, value: Any) -> str:
    if key is not None and key.endswith("_cents") and isinstance(value, int):
        return f"{value // 100}.{value % 100:02d}"
    return str(value).replace("T", " ") if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value) else str(value)
