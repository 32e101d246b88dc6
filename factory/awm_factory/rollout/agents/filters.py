"""Filters of a list that the task's words fill: states and kinds, and bounds of figures and days."""

import re
from datetime import datetime
from typing import Any

from awm_factory.rollout.agents.matching import bounds_of
from awm_factory.rollout.agents.reading import Reading
from awm_factory.rollout.agents.tooling import Property, Tool, stem


def bounds_for(tool: Tool, reading: Reading) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in tool.properties.values():
        value = _value(one, reading)
        if value is not None and one.name not in ("sort", "limit", "offset", "q"):
            found[one.name] = value
    return found


def _value(one: Property, reading: Reading) -> Any:
    if one.enum:
        return _member(one, reading)
    if one.kind == "integer" and (match := re.fullmatch(r"(min|max)_(.*)", one.name)):
        bounds = bounds_of(match[2], reading)
        return next((value for is_least, value in bounds if is_least == (match[1] == "min")), None)
    if one.form == "date" and (match := re.fullmatch(r"(.*)_(from|to)", one.name)):
        side = "after" if match[2] == "from" else "before"
        root = stem(match[1].replace("_", " ").split()[-1])
        said = re.search(rf"\b{re.escape(root)}\w*(?: date| time)? on or {side} ", reading.lower)
        days = (spot.value for spot in reading.times if said and spot.start == said.end())
        return next(((day.date() if isinstance(day, datetime) else day).isoformat() for day in days), None)
    return None


def _member(one: Property, reading: Reading) -> Any:
    """A member of an enumeration that stands after its noun; a state may stand anywhere before the thing."""
    for value in sorted((value for value in one.enum if isinstance(value, str)), key=len, reverse=True):
        said = value.replace("_", " ").lower()
        noun = re.escape(one.noun)
        if re.search(rf"\b(?:{noun} (?:of )?{re.escape(said)}|{re.escape(said)} {noun})(?!\w)", reading.lower):
            return value
        before = re.escape(said.replace(" ", "-"))
        if one.name in ("status", "state", "stage") and re.search(
            rf"(?:\b(?:the|any|all|many|than \d+)|'s) {before} (?!on or )\w", reading.lower
        ):
            return value
    return None
