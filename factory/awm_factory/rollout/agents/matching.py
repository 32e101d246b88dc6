"""Which of the rows that a tool lists a task means: by the words it shares with them, by bounds, by what has the most."""

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Any, Final

from awm_factory.rollout.agents.reading import Reading, Spot, time_of

Row = dict[str, Any]
_NAMING: Final = re.compile(r"(?:^|_)(?:name|title|subject|reference)$")
_LEAST: Final = 3
"""Shorter texts stand in a task by accident."""


def score(row: Row, reading: Reading) -> float:
    """How much of the row the task speaks of."""
    return sum(_value_score(key, value, reading) for key, value in scalars(row))


def scalars(row: Row) -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if not isinstance(value, (dict, list)) and value is not None and key != "id" and not key.endswith("_id"):
            yield key, value


def _value_score(key: str, value: Any, reading: Reading) -> float:
    moment = time_of(value)
    if moment is not None:
        if any(spot.value == moment for spot in reading.times):
            return 4.0 if isinstance(moment, datetime) else 2.0
        return 0.0
    if isinstance(value, str) and len(value) >= _LEAST:
        text = value.replace("_", " ")
        worth = 1.0 + 0.5 * len(text.split()) if reading.holds(text) >= 0 else 0.0
        return 2 * worth if _NAMING.search(key) else worth
    if key.endswith("_cents") and isinstance(value, int) and any(spot.value == value for spot in reading.amounts):
        return 0.3
    return 0.0


def position(row: Row, reading: Reading) -> int:
    """Where the task speaks of the row: the place of its most telling value."""
    best, place = 0.0, len(reading.text)
    for key, value in scalars(row):
        worth = _value_score(key, value, reading)
        if worth > best:
            moment = time_of(value)
            spots = [spot.start for spot in reading.times if spot.value == moment]
            best, place = worth, spots[0] if spots else reading.holds(str(value).replace("_", " "))
    return place


def best(rows: Sequence[Row], reading: Reading) -> list[Row]:
    """Rows by how well they fit, the best first; in their own order where they fit equally."""
    return sorted(rows, key=lambda row: -score(row, reading))


def equals(rows: Sequence[Row], reading: Reading) -> list[Row]:
    """The rows that fit best, all of them that fit equally well; dates are left to bounds."""
    if not rows:
        return []
    worths = [sum(_value_score(key, value, reading) for key, value in scalars(row) if time_of(value) is None) for row in rows]
    return [row for row, worth in zip(rows, worths, strict=True) if worth == max(worths)]


def bounded(rows: Sequence[Row], reading: Reading) -> list[Row]:
    """Rows within the bounds that the task sets: `with price at least €20.00`, `booked on or after 3 March 2026`."""
    kept = list(rows)
    for key in dict.fromkeys(key for row in rows for key, _ in scalars(row)):
        for is_least, limit in _bounds(key, reading):
            kept = [row for row in kept if row.get(key) is not None and _within(row[key], limit, is_least)]
    return kept


def _bounds(key: str, reading: Reading) -> Iterator[tuple[bool, Any]]:
    noun = re.sub(r"_(?:cents|at|on)$", "", key).replace("_", " ")
    verbs = {"starts": "starting", "ends": "ending", "begins": "beginning", "expires": "expiring"}
    yield from bounds_of(key, reading)
    said = verbs.get(noun, noun)
    for match in re.finditer(rf"\b{re.escape(said)}(?: (?:time|date))? on or (after|before) ", reading.lower):
        for time in reading.times:
            if time.start == match.end():
                yield match[1] == "after", time.value


def bounds_of(key: str, reading: Reading) -> Iterator[tuple[bool, int]]:
    """Whether at least or at most, and how much: `a price of at least €20.00`, `a weight of at most 8 kg`, `at most 3 guests`."""
    noun = re.escape(figure_noun(key))
    for spot in reading.amounts if key.endswith("_cents") else reading.numbers:
        before, after = reading.lower[: spot.start], reading.lower[spot.end :]
        side = re.search(rf"(?:\b{noun}(?: level)? of )?\bat (least|most) $", before)
        if side is not None and (" of at " in side[0] or re.match(rf" {noun}\b", after)):
            yield side[1] == "least", spot.value


def figure_noun(key: str) -> str:
    """What a figure is called, its unit left aside."""
    return re.sub(r"_(?:cents|at|on|kg|g|km|m|cm|mm|l|ml|kw|kwh|kmh|sqm|eur|celsius|percent|plato)$", "", key).replace("_", " ")


def _within(value: Any, limit: Any, is_least: bool) -> bool:
    if isinstance(limit, date):
        moment = time_of(value)
        if moment is None:
            return False
        day = moment.date() if isinstance(moment, datetime) else moment
        wanted = limit.date() if isinstance(limit, datetime) else limit
        return day >= wanted if is_least else day <= wanted
    return isinstance(value, (int, float)) and (value >= limit if is_least else value <= limit)


def extreme(rows: Sequence[Row], reading: Reading) -> Row | None:
    """The row that has the most or least of what the task compares by; None where it compares nothing."""
    for key in dict.fromkeys(key for row in rows for key, _ in scalars(row)):
        highest = _compared(key, reading)
        if highest is None:
            continue
        having = [row for row in rows if row.get(key) is not None]
        if having:
            return sorted(having, key=lambda row, key=key: row[key], reverse=highest)[0]  # type: ignore[misc]
    return None


def _compared(key: str, reading: Reading) -> bool | None:
    noun = re.sub(r"_(?:cents|at|on)$", "", key).replace("_", " ")
    match = re.search(rf"\b(highest|lowest|latest|earliest|most|fewest) {re.escape(figure_noun(key))}\b", reading.lower)
    if match:
        return match[1] in ("highest", "latest", "most")
    match = re.search(rf"\bthat (?:was |is )?{re.escape(noun)} (first|last)\b", reading.lower)
    return match[1] == "last" if match else None


def apart(rows: Sequence[Row], reading: Reading) -> list[Row]:
    """Without rows that only share the beginning of a name that another one has in full: the first at each place stays."""
    places: set[int] = set()
    kept = []
    for row in rows:
        place = position(row, reading)
        if place not in places:
            places.add(place)
            kept.append(row)
    return kept


def nearest(spots: Sequence[Spot[Any]], place: int) -> Any:
    """What stands next after a place; the last of all where nothing does."""
    later = [spot for spot in spots if spot.start >= place]
    return later[0].value if later and place >= 0 else spots[-1].value if spots else None
