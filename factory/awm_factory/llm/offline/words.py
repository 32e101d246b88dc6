"""Names in domain words: nouns in texts, and identifiers that neither SQL nor Python take for their own."""

import keyword
import re
from collections.abc import Mapping, Sequence
from typing import Final

_SQL: Final = frozenset(  # what SQLite takes for no identifier, sqlite.org/lang_keywords.html
    """add all alter and as autoincrement between case check collate column commit constraint create cross current_date
    current_time current_timestamp default deferrable delete distinct drop else escape except exists foreign from full group
    having if in index inner insert intersect into is isnull join left like limit natural not notnull null on or order outer
    primary references returning right select set table then to transaction union unique update using values when where
    """.split()  # noqa: SIM905 - a list of them would take a page
)
_ORM: Final = frozenset({"metadata", "registry", "id"})
_CLASSES: Final = frozenset(
    {"Session", "Base", "BaseModel", "Field", "Page", "Query", "Path", "Depends", "HTTPException", "ForeignKey", "Literal"}
    | {"Annotated", "Any", "Mapped", "DeclarativeBase", "Select", "Row", "Body", "UniqueConstraint", "ConfigDict", "FastAPI"}
)
_VARIABLES: Final = frozenset(
    {"db", "body", "now", "today", "app", "engine", "date", "datetime", "time", "timedelta", "statement", "limit", "offset"}
    | {"sort", "select", "func", "find", "page", "count", "total", "money", "or_", "event", "os", "uvicorn", "list", "type"}
    | {"range", "set", "min", "max", "sum", "str", "int", "bool", "id", "next", "filter", "format", "input", "record", "q"}
    | {"given", "changes"}
)


def snake(words: str) -> str:
    """`Tool type` is `tool_type`; a word of SQL or Python gets a trailing underscore."""
    name = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")
    return f"{name}_" if name in _SQL or name in _ORM or keyword.iskeyword(name) else name


def camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_") if part)


def class_name(name: str) -> str:
    plain = camel(name)
    return f"{plain}Record" if plain in _CLASSES else plain


def variable(name: str) -> str:
    return f"{name}_" if name in _VARIABLES or keyword.iskeyword(name) else name


def article(noun: str) -> str:
    """By the sound that English spelling suggests: an hour, a unit, an order."""
    lower = noun.lower()
    if re.match(r"(uni|use|usa|utility|euro|one\b|once)", lower):
        return "a"
    return "an" if re.match(r"([aeiou]|hour|honou?r|heir)", lower) else "a"


_NOUN: Final = re.compile(r"<(an? )?([A-Za-z_]+(?:\.[a-z_]+)?)>", re.I)


def domain_text(text: str, nouns: Mapping[str, tuple[str, str]]) -> str:
    """`<Booking>`, `<bookings>` and `<a booking>` in domain words. Raises ValueError for a noun that nobody declared."""

    def replaced(match: re.Match[str]) -> str:
        with_article, key = match[1], match[2]
        lower = key.lower()
        if lower in nouns:
            word = nouns[lower][0]
        elif one := next((one for one in _singulars(lower) if one in nouns), None):
            word = nouns[one][1]
        else:
            raise ValueError(f"{text!r} speaks of <{key}>, and there is no such noun among {', '.join(sorted(nouns))}")
        if with_article:
            word = f"{article(word)} {word}"
            return word[0].upper() + word[1:] if with_article[0].isupper() else word
        return word[0].upper() + word[1:] if key[0].isupper() else word

    return _NOUN.sub(replaced, text)


def _singulars(plural: str) -> list[str]:
    """Of a key, by English spelling: `entries` and `entrys` are both of `entry`."""
    found = [plural[:-1]] if plural.endswith("s") else []
    return found + ([f"{plural[:-3]}y"] if plural.endswith("ies") else [])


def listed(words: Sequence[str], joint: str = "and") -> str:
    return "".join(words) if len(words) < 2 else f"{', '.join(words[:-1])} {joint} {words[-1]}"


MOST_SUMMARY: Final = 80
"""Characters; the checks of the API refuse longer ones."""


def fitting(*summaries: str) -> str:
    """The first that is short enough for a summary."""
    return next((summary for summary in summaries if len(summary) <= MOST_SUMMARY), summaries[-1])


def with_article(noun: str) -> str:
    return f"{article(noun)} {noun}"


_IRREGULAR: Final = {"send": "sent", "sell": "sold", "withdraw": "withdrawn", "pay": "paid", "hold": "held", "begin": "begun"}


def past(verb: str) -> str:
    """`cancel` is `cancelled`, `mark_missed` is `marked_missed`."""
    first, _, rest = verb.partition("_")
    if first in _IRREGULAR:
        past = _IRREGULAR[first]
    elif first.endswith("e"):
        past = f"{first}d"
    elif first.endswith("y") and first[-2:-1] not in "aeiou":
        past = f"{first[:-1]}ied"
    elif re.search(r"[^aeiou][aeiou][bdglmnprt]\Z", first) and first not in ("order", "enter", "offer", "open", "deliver"):
        past = f"{first}{first[-1]}ed"
    else:
        past = f"{first}ed"
    return f"{past}_{rest}" if rest else past
