"""Final answers: other dress for the same content, and other content in the same dress. Read from the text alone."""

import json
import re
from typing import Final

_NUMBER: Final = re.compile(
    r"(?<![\w.,/-])(?:[$€£]\s?)?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w/-])|"
    r"(?<![\w.,/:-])\d+(?:\.\d+)?(?![\w/:-]|\.\d|,\d)"
)
_ASKS: Final = re.compile(
    r"\?|\b(?:tell|give|show|send|get) me\b|\blet me know\b|\bhow (?:many|much)\b|\b(?:report|return|respond|reply|answer)\b"
    r"|\b(?:list|name|state|provide|summari[sz]e) (?:the|all|each|every|which|what|their|its)\b",
    re.IGNORECASE,
)
_MAY_ASK: Final = re.compile(
    _ASKS.pattern + r"|\b(?:list|which|what|when|who|find|retrieve|fetch|view|check|compare|calculate|compute|count|generate"
    r"|export|confirm|explain|describe|look up|get|display|search|determine|include|identify|show|output|note)\b",
    re.IGNORECASE,
)
_STRICT_FORM: Final = re.compile(
    r"\b(?:json|csv|exactly|format|only the|comma-separated|one per line|nothing else|markdown)\b", re.IGNORECASE
)
_OPEN: Final = re.compile(
    r"\b(?:any|either|whichever|some|another)\b|\bone of\b|\bside by side\b|\bof your choice\b|"
    r"\ban? (?:free|available|vacant|open|suitable|different|spare|unassigned)\b",
    re.IGNORECASE,
)
_RELATIVE: Final = re.compile(
    r"\b(today|tonight|tomorrow|yesterday|"
    r"(this|next|last|coming) (week|month|year|quarter|(mon|tues|wednes|thurs|fri|satur|sun)day)|"
    r"\d+ (days|weeks|months) ago|(past|last|next) \d+ (days|weeks|months))\b",
    re.IGNORECASE,
)
_DATE: Final = re.compile(r"\b\d{4}-\d{2}-\d{2}\b|\b(19|20)\d{2}\b")
_QUOTED: Final = re.compile(r"[\"\u201c][^\"\u201c\u201d]*[\"\u201d]")
_HEAD: Final = 2
"""Words behind which a noun belongs to something else."""
_FRACTION: Final = re.compile(r"(?<![\w.,$€£/:-])(?<![$€£] )\d+\.\d(?![\w.,/:%-])")
"""One decimal, so that a second says the same."""
_AMOUNT: Final = re.compile(r"(?<![\w.,])([$€£])\s?(\d[\d,]*(?:\.\d{2})?)(?![\w])(?!\.\d)")


def asks_for_answer(instruction: str) -> bool:
    """Whether a task surely wants to be told something."""
    return _ASKS.search(instruction) is not None


def may_ask(instruction: str) -> bool:
    """Whether a task perhaps wants to be told something; what is between the two is tested neither way."""
    return _MAY_ASK.search(instruction) is not None


def leaves_open(instruction: str) -> str | None:
    """The words that leave a choice to the agent ("any free slot"), so that another choice is no near miss."""
    match = _OPEN.search(instruction)
    return match[0] if match else None


def leaves_open_what(instruction: str, nouns: set[str]) -> bool:
    """Whether words that leave a choice open speak of one of these nouns: "any day of next week"."""
    following = (instruction[match.end() :].split(".")[0].lower() for match in _OPEN.finditer(instruction))
    heads = (re.findall(r"[a-z]+", text)[:_HEAD] for text in following)
    within = [re.findall(r"[a-z]+", match[0].lower()) for match in _OPEN.finditer(instruction)]
    return any(word.removesuffix("s") in nouns for words in (*heads, *within) for word in words)


def relative_day(instruction: str) -> str | None:
    """Words that say a day by the clock, `last 30 days`, where no date stands beside them."""
    found = _RELATIVE.search(_QUOTED.sub("", instruction))
    return found[0] if found and not _DATE.search(instruction) else None


def wrong(answer: str, instruction: str) -> dict[str, str]:
    """Answers that must not pass for this one, by what is wrong with them."""
    found = {"no answer": "", "an answer that says nothing": "Done."}
    told = {_digits(match[0]) for match in _NUMBER.finditer(instruction)}
    changed = _NUMBER.sub(lambda match: match[0] if _digits(match[0]) in told else _one_more(match[0]), answer)
    if changed != answer:
        found["every figure one too high"] = changed
    return {what: text for what, text in found.items() if text != answer}


def other_dress(answer: str, instruction: str) -> dict[str, str]:
    """The same answer in other words or figures, by what differs."""
    found: dict[str, str] = {}
    if not _is_json(answer) and _STRICT_FORM.search(instruction) is None and "\n" not in answer.strip():
        found["words around it"] = f"I have done what you asked for. {answer} Please let me know if you need anything else."
    with_commas = _NUMBER.sub(lambda match: _grouped(match[0]), answer)
    found["thousands set off by commas"] = with_commas
    found["thousands not set off"] = _NUMBER.sub(lambda match: match[0].replace(",", ""), answer)
    found["a figure with one more decimal"] = _FRACTION.sub(lambda match: f"{match[0]}0", answer)
    found["no currency sign"] = _AMOUNT.sub(lambda match: f"{match[2]} {_CURRENCIES[match[1]]}", answer)
    if _is_json(answer):
        found = {}
    return {what: text for what, text in found.items() if text != answer}


_CURRENCIES: Final = {"$": "dollars", "€": "euros", "£": "pounds"}


def _digits(text: str) -> str:
    return re.sub(r"[^\d.]", "", text)


def _one_more(text: str) -> str:
    """1,250.00 to 1,251.00."""
    match = re.fullmatch(r"(\D*)([\d,]+)((?:\.\d+)?)", text)
    if match is None:
        return text
    whole = int(match[2].replace(",", "")) + 1
    return f"{match[1]}{whole:,}{match[3]}" if "," in match[2] else f"{match[1]}{whole}{match[3]}"


def _grouped(text: str) -> str:
    match = re.fullmatch(r"(\D*)(\d+)((?:\.\d+)?)", text)
    return text if match is None or (len(match[2]) < 5 and not match[3]) else f"{match[1]}{int(match[2]):,}{match[3]}"


def _is_json(answer: str) -> bool:
    try:
        return isinstance(json.loads(answer), (dict, list))
    except ValueError:
        return False
