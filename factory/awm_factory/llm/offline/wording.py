"""Values as people write them: dates in full, amounts with their sign, lists with an `and`."""

import re
from datetime import date, datetime
from typing import Final

from awm_factory.llm.offline.ir import Column, Domain, Param
from awm_factory.llm.offline.steps import Field
from awm_factory.llm.offline.values import Value
from awm_factory.llm.offline.words import article

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


def named_place(name: str, noun: str) -> str:
    """Both, and what they share once: the `Phone Intake office`, an intake office; the `Blue Tent`, a training tent."""
    said, kind = name.lower(), noun.lower().split()
    if said.endswith(kind[-1]):
        return name
    shared = max((count for count in range(1, len(kind)) if said.split()[-count:] == kind[:count]), default=0)
    return " ".join([name, *noun.split()[shared:]])


def column_noun(column: Column | Param | Field) -> str:
    """What a column is called in a sentence: `price_cents` is the price, `due_on` the due date."""
    name = (column.name or column.key).removesuffix("_id")
    if column.kind == "money":
        name = name.removesuffix("_cents")
        name = _AMOUNTS.get(name, f"{name} amount" if name in ("new", "old", "other", "least", "highest") else name)
    if name.endswith("_at") and column.kind == "datetime":
        stem = name.removesuffix("_at")
        name = {"starts": "start", "ends": "end"}.get(stem, f"{stem} time")
    if name.endswith("_on") and column.kind == "date":
        stem = name.removesuffix("_on")
        name = _DATES.get(stem, f"{stem} date")
    if name.endswith("_at") and column.kind == "int":
        name = f"{name.removesuffix('_at')} level"
    if column.kind == "bool":
        name = re.sub(r"^(?:is|has)_", "", name)
    name = _NOUNS.get(name, name)
    if column.kind == "int":
        if (measured := _MEASURED.fullmatch(name)) is not None:
            return f"{words(measured[1])} in {_UNITS[measured[2]]}"
        if _is_counted(name):
            name = f"number of {name}"
    return words(name)


_NOUNS: Final = {"body": "text", "full_name": "name", "email": "e-mail address", "phone": "phone number"}
_AMOUNTS: Final = {"goods": "value of the goods", "paid": "amount paid", "minimum": "minimum amount"}
_DATES: Final = {
    "starts": "start date",
    "begins": "start date",
    "started": "start date",
    "ends": "end date",
    "expires": "expiry date",
    "born": "date of birth",
    "joined": "date of joining",
    "dated": "date",
    "worked": "date",
    "done": "date",
    "paid": "payment date",
    "runs": "date",
}
_UNITS: Final = {
    **{unit: unit for unit in ("kg", "g", "km", "m", "cm", "mm", "l", "ml", "percent", "plato")},
    "kw": "kW",
    "kwh": "kWh",
    "kmh": "km/h",
    "sqm": "m²",
    "eur": "EUR",
    "celsius": "°C",
}
_MEASURED: Final = re.compile(rf"(\w+)_({'|'.join(_UNITS)})")
_ORDINAL: Final = re.compile(r"(?:^|_)(?:position|number|rank|level|grade|year|class|code|no|week)$")


def _is_counted(name: str) -> bool:
    """Whether a figure counts things: `guests`, `notice_days`, `days_to_make`, `seats_planned`."""
    return re.search(r"[^s]s$", name) is not None or re.match(r"(?:days|hours|minutes|weeks|sessions|seats)_", name) is not None


def figure(column: Column | Param | Field, said: str, bound: str = "") -> str:
    """A figure as it follows `with`: `a weight of at least 8 kg`, `3 guests`, `at most 36 notice days`, `the position 2`."""
    name = column.name or column.key
    bound = f"{bound} " if bound else ""
    if column.kind == "money":
        noun = column_noun(column)
        return f"{article(noun)} {noun} of {bound}{said}"
    if (measured := _MEASURED.fullmatch(name)) is not None:
        noun = words(measured[1])
        return f"{article(noun)} {noun} of {bound}{said} {_UNITS[measured[2]]}"
    noun = column_noun(column).removeprefix("number of ")
    if _is_counted(name):
        return f"{bound}{said} {_singular(noun) if said == '1' else noun}"
    if name.endswith("ed") or name.startswith("per_") or name == "percent":
        return f"{bound}{said} {noun}"
    if _ORDINAL.search(name) and not bound:
        return f"the {noun} {said}"
    return f"{article(noun)} {noun} of {bound}{said}"


def _singular(noun: str) -> str:
    first, *rest = noun.split() if re.match(r"(?:days|hours|minutes|weeks|sessions|seats) ", noun) else [noun]
    first = f"{first[:-3]}y" if first.endswith("ies") else first.removesuffix("s")
    return " ".join([first, *rest])


def superlative(column: Column, *, highest: bool) -> str:
    """`the highest price`, `the fewest guests`."""
    name = column.name or column.key
    if column.kind == "int" and (measured := _MEASURED.fullmatch(name)) is not None:
        return f"the {'highest' if highest else 'lowest'} {words(measured[1])}"
    if column.kind == "int" and _is_counted(name):
        return f"the {'most' if highest else 'fewest'} {words(name)}"
    return f"the {'highest' if highest else 'lowest'} {column_noun(column)}"


def option(column: Column | Param, said: str) -> str:
    """One of several values as it follows `with`: `urgent priority`, `the topic noise`."""
    noun = column_noun(column)
    return f"{said} {noun}" if noun.endswith("priority") else f"the {noun} {said}"


def quality(column: Column, said: str) -> str:
    """The same as it follows a noun: `of the kind contract`, `on the topic of noise`, `given by the owner`."""
    name = column.name or column.key
    if name == "kind":
        return f"of the kind {said}"
    if name == "topic":
        return f"on the topic of {said}"
    if _FOLLOWED.search(name):
        return f"{words(name)} {said}"
    return f"with {option(column, said)}"


_FOLLOWED: Final = re.compile(r"(?:ed|_(?:by|from|at|in|on|to|for|with))$")
"""Names that their value follows."""


def narrowed(column: Column) -> str:
    """By what a list is narrowed to one value: `with this kind`, `made for this`, `of this member`."""
    name = column.name or column.key
    if column.kind == "bool":
        return f"that are, or are not, {words(name.removeprefix('is_'))}"
    if column.kind == "ref":
        return f"of this {words(name.removesuffix('_id'))}"
    if column.kind == "choice" and _FOLLOWED.search(name):
        return f"{words(name)} this"
    return f"with this {column_noun(column)}{' id' if name.endswith('_id') else ''}"


def bounded(column: Column) -> str:
    """What a bound is of: `weight in g`, `price in cents`, `number of guests`."""
    return f"{column_noun(column)} in cents" if column.kind == "money" else column_noun(column)


def attributive(state: str) -> str:
    """A state before its noun: `in_progress` is `in-progress`."""
    return words(state).replace(" ", "-")


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


def there_are(count: int) -> str:
    return f"There {'is' if count == 1 else 'are'} {count}"


def possessive(name: str) -> str:
    return f"{name}'s"


def quoted(text: str) -> str:
    return f'"{text}"'


def capitalised(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def bare(sentence: str) -> str:
    """Without what stands in quotation marks."""
    return re.sub(r"\"[^\"]*\"", '""', sentence)


def numbers(sentence: str) -> set[str]:
    """Figures that a sentence holds, without separators."""
    return {re.sub(r"[^\d.]", "", match).rstrip(".") for match in re.findall(r"\d[\d,]*(?:\.\d+)?", sentence)}
