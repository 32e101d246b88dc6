"""Arguments that are no ids: what a task says for each, by its kind and by what stands behind its noun."""

import re
from datetime import datetime
from typing import Any

from awm_factory.rollout.agents.matching import nearest
from awm_factory.rollout.agents.reading import Reading
from awm_factory.rollout.agents.tooling import Property


def scalar(one: Property, reading: Reading, *, knows_corrections: bool) -> Any:
    """None where the task says nothing that fits."""
    place = reading.after(one.noun)
    right = re.search(r"(?:should be|has to be|is really|should have) (.*)", reading.text) if knows_corrections else None
    if right is not None and (place >= 0 or one.name in ("email", "phone")):
        value = _value(one, Reading(right[1].partition(", not ")[0]), 0)
        if value is not None:
            return value
    return _value(one, reading, place)


def _value(one: Property, reading: Reading, place: int) -> Any:
    if not one.required and place < 0 and one.name not in ("email", "phone"):
        return None
    if one.enum:
        said = [value for value in one.enum if isinstance(value, str) and reading.holds(value.replace("_", " ")) >= 0]
        said.sort(key=lambda value: (abs(reading.lower.rfind(value.replace("_", " ").lower()) - place), len(value)))
        return said[0] if said else one.enum[0] if one.required else None
    if one.kind == "boolean":
        if place >= 0 and re.search(rf"\bnot {re.escape(one.noun)}$", reading.lower[:place]):
            return False
        return None if place < 0 else re.match(r"\W*(?:set )?(?:\w+ )?(?:to |is to be |be )?no\b", reading.lower[place:]) is None
    if one.form in ("date", "date-time"):
        return _time(one, reading, place)
    if one.kind in ("integer", "number"):
        spots = reading.amounts if one.is_money else reading.numbers
        return nearest(spots, place)
    if one.kind == "array":
        return None
    if one.name == "email":
        return reading.email
    if one.name == "phone":
        return reading.phone
    return nearest(reading.quotes, place)


def _time(one: Property, reading: Reading, place: int) -> str | None:
    spots = reading.times
    if not spots:
        return None
    if one.name.startswith("ends"):
        value = spots[-1].value
    elif one.name.startswith("starts") and len(spots) > 1:
        value = spots[-2].value
    else:
        value = nearest(spots, place)
    if one.form == "date":
        return (value.date() if isinstance(value, datetime) else value).isoformat()
    return value.isoformat() if isinstance(value, datetime) else f"{value.isoformat()}T00:00:00"
