"""What a task says, read without grammar: its quotations, times, amounts and numbers, each with its place."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_MONTHS: Final = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_DAY: Final = rf"(?:(\d{{1,2}}) ({'|'.join(_MONTHS)}) (\d{{4}})|(\d{{4}})-(\d\d)-(\d\d))"
_TIME: Final = re.compile(rf"\b{_DAY}(?:(?: at|,)? (\d{{1,2}}):(\d\d))?", re.IGNORECASE)
_MONTH: Final = re.compile(rf"\bfor ({'|'.join(_MONTHS)}) (\d{{4}})\b", re.IGNORECASE)
"""`for January 2026`, by which people name what is kept under its first day."""
_AMOUNT: Final = re.compile(r"[$€£]\s?(\d[\d,]*\.\d\d)|(?<![\d.,])(\d[\d,]*\.\d\d) [A-Z]{3}\b")
_NUMBER: Final = re.compile(r"(?<![\w.,:+-])\d+(?![\w:]|[.,]\d)")
_QUOTE: Final = re.compile(r"\"([^\"]+)\"")
_EMAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PHONE: Final = re.compile(r"\+\d[\d ()/-]{6,}\d")


@dataclass(frozen=True)
class Spot(Generic[T]):
    value: T
    start: int
    end: int


@dataclass(frozen=True)
class Reading:
    text: str

    @cached_property
    def lower(self) -> str:
        return self.text.lower()

    @cached_property
    def quotes(self) -> list[Spot[str]]:
        return [Spot(match[1], match.start(), match.end()) for match in _QUOTE.finditer(self.text)]

    @cached_property
    def times(self) -> list[Spot[date]]:
        """Dates, and moments where an hour stands with them."""
        return list(_times(self.text))

    @cached_property
    def amounts(self) -> list[Spot[int]]:
        """In cents."""
        found = []
        for match in _AMOUNT.finditer(self.text):
            whole, _, cents = (match[1] or match[2]).replace(",", "").partition(".")
            found.append(Spot(int(whole) * 100 + int(cents), match.start(), match.end()))
        return found

    @cached_property
    def numbers(self) -> list[Spot[int]]:
        taken = [(spot.start, spot.end) for spot in self.times]
        taken += [(spot.start, spot.end) for spot in self.amounts] + [(spot.start, spot.end) for spot in self.quotes]
        return [
            Spot(int(match[0]), match.start(), match.end())
            for match in _NUMBER.finditer(self.text)
            if not any(start <= match.start() < end for start, end in taken)
        ]

    @cached_property
    def email(self) -> str | None:
        match = _EMAIL.search(self.text)
        return match[0].rstrip(".") if match else None

    @cached_property
    def phone(self) -> str | None:
        match = _PHONE.search(self.text)
        return match[0] if match else None

    def holds(self, text: str) -> int:
        """Where a text stands as whole words, hyphens and case aside; -1 where it does not."""
        words = re.escape(text.lower()).replace(r"\ ", "[ -]")
        match = re.search(rf"(?<!\w){words}(?!\w)", self.lower)
        return match.start() if match else -1

    def after(self, noun: str) -> int:
        """Where the last mention of a noun ends; -1 where there is none."""
        places = [match.end() for match in re.finditer(rf"(?<!\w){re.escape(noun.lower())}(?!\w)", self.lower)]
        return places[-1] if places else -1


def _times(text: str) -> Iterator[Spot[date]]:
    for match in _MONTH.finditer(text):
        yield Spot(date(int(match[2]), _MONTHS.index(match[1].lower()) + 1, 1), match.start(), match.end())
    for match in _TIME.finditer(text):
        if match[1]:
            year, month, day = int(match[3]), _MONTHS.index(match[2].lower()) + 1, int(match[1])
        else:
            year, month, day = int(match[4]), int(match[5]), int(match[6])
        try:
            value: date = date(year, month, day)
            if match[7]:
                value = datetime.fromisoformat(f"{value.isoformat()}T{int(match[7]):02}:{match[8]}:00")
        except ValueError:
            continue
        yield Spot(value, match.start(), match.end())


def time_of(value: object) -> date | None:
    """A stored text as the day or moment that it is."""
    if not isinstance(value, str) or not re.match(r"\d{4}-\d\d-\d\d", value):
        return None
    try:
        return date.fromisoformat(value) if len(value) == 10 else datetime.fromisoformat(value).replace(tzinfo=None)
    except ValueError:
        return None
