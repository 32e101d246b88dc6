"""Values as people write them: dates in full, amounts with their sign, lists with an `and`."""

import re
from datetime import date, datetime
from typing import Final

from awm_factory.llm.offline.ir import Column, Domain, Field, Param, Value

SIGNS: Final = {"EUR": "€", "USD": "$", "GBP": "£"}
_ACRONYMS: Final = {"id": "ID", "url": "URL", "vat": "VAT", "iban": "IBAN", "sku": "SKU"}

ASKING: Final = re.compile(
    r"\?|\b(?:tell|give|show|send|get) me\b|\blet me know\b|\bhow (?:many|much)\b|\b(?:report|return|respond|reply|answer)\b"
    r"|\b(?:list|name|state|provide|summari[sz]e) (?:the|all|each|every|which|what|their|its)\b",
    re.IGNORECASE,
)
"""Words by which certify takes a task for a question (`certify/answers.py`); a test holds the two together."""
LEAVING_OPEN: Final = re.compile(
    r"\b(?:any|either|whichever|some|another)\b|\bone of\b|\bside by side\b|\bof your choice\b|"
    r"\ban? (?:free|available|vacant|open|suitable|different|spare|unassigned)\b",
    re.IGNORECASE,
)
"""Words by which certify takes a task to leave a choice open."""


def amount(cents: int, currency: str) -> str:
    figures = f"{abs(cents) // 100:,}.{abs(cents) % 100:02d}"
    sign = "-" if cents < 0 else ""
    return f"{sign}{SIGNS[currency]}{figures}" if currency in SIGNS else f"{sign}{figures} {currency}"


def day(value: date) -> str:
    return f"{value.day} {value:%B %Y}"


def moment(value: datetime) -> str:
    return f"{day(value)} at {value:%H:%M}"


def spoken(value: Value, kind: str, currency: str) -> str:
    """A value inside a sentence; texts as they are."""
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, date):
        return day(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if kind == "money" and isinstance(value, int):
        return amount(value, currency)
    if kind == "choice":
        return words(str(value))
    return str(value)


def words(name: str) -> str:
    """`in_progress` is `in progress`."""
    return " ".join(_ACRONYMS.get(word, word) for word in name.replace("_", " ").split())


def column_noun(column: Column | Param | Field) -> str:
    """What a column is called in a sentence: `price_cents` is the price, `due_on` the due date."""
    name = (column.name or column.key).removesuffix("_id")
    if column.kind == "money":
        name = name.removesuffix("_cents")
        name = f"{name} amount" if name in ("new", "old", "other", "least", "highest") else name
    if name.endswith("_at") and column.kind == "datetime":
        stem = name.removesuffix("_at")
        name = {"starts": "start", "ends": "end"}.get(stem, f"{stem} time")
    if name.endswith("_on") and column.kind == "date":
        stem = name.removesuffix("_on")
        name = {"starts": "start date", "ends": "end date", "born": "date of birth"}.get(stem, f"{stem} date")
    if name.endswith("_at") and column.kind == "int":
        name = f"{name.removesuffix('_at')} level"
    if column.kind == "bool":
        name = re.sub(r"^(?:is|has)_", "", name)
    name = re.sub(r"_(kg|g|km|m|cm|mm|l|ml|kw|kwh|percent|hours|minutes|degrees)$", r" in \1", _NOUNS.get(name, name))
    if column.kind == "int" and re.search(r"[^s]s$", name):
        name = f"number of {name}"
    return words(name)


_NOUNS: Final = {"body": "text", "full_name": "name", "email": "e-mail address", "phone": "phone number"}


def with_more(base: str, part: str) -> str:
    """`desk with room for 3` and `with the lowest fee` make `desk with room for 3 and the lowest fee`."""
    if part.startswith("with ") and " with " in bare(base).rpartition(" for ")[2]:
        return f"{base} and {part.removeprefix('with ')}"
    return f"{base} {part}"


_ACTIVE: Final = {"joined", "expired", "ended", "started", "arrived", "left", "began", "starts", "ends", "begins", "expires"}


def event(name: str) -> tuple[str, str] | None:
    """What a time column tells of its row: `booked_at` is ("was", "booked"), `joined_on` ("", "joined"); None for others."""
    stem = re.sub(r"_(?:at|on|to|from|until)$", "", name)
    if stem == name:
        return None
    if stem in _ACTIVE:
        return "", words(stem)
    if stem == "due":
        return "is", "due"
    return ("was", words(stem)) if re.search(r"(?:ed|sent|made|paid|held|given|sold|done|taken|seen|begun)$", stem) else None


def noun_of(domain: Domain, role: str, *, plural: bool = False) -> str:
    """What people call a row of the entity; for staff that is another word than the table's."""
    entity = domain.entity(role)
    if role == "user" and role in domain.nouns:
        return domain.nouns[role][plural]
    return entity.nouns if plural else entity.noun


def listed(items: list[str]) -> str:
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def possessive(name: str) -> str:
    return f"{name}'s"


def quoted(text: str) -> str:
    return f'"{text}"'


def capitalised(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def with_article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeio' else 'a'} {noun}"


def bare(sentence: str) -> str:
    """Without what stands in quotation marks."""
    return re.sub(r"\"[^\"]*\"", '""', sentence)


def numbers(sentence: str) -> set[str]:
    """Figures that a sentence holds, without separators."""
    return {re.sub(r"[^\d.]", "", match).rstrip(".") for match in re.findall(r"\d[\d,]*(?:\.\d+)?", sentence)}
