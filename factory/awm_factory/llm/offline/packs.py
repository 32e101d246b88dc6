"""Domain packs: the words, figures and values of one scenario and its variants, read from `templates/domains/<env_id>.toml`.

docs/offline-author.md says how to write one.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from awm_factory import resources
from awm_factory.errors import ConfigError
from awm_factory.ids import env_id

Noun = tuple[str, str]
"""Singular and plural."""
Range = tuple[float, float]
Names = Annotated[list[str], Field(min_length=1)]

FRAME: Final = ("staff", "party", "place", "item")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Staff(_Part):
    noun: Noun
    roles: Names


class Party(_Part):
    noun: Noun
    kind: Literal["person", "organisation"] = "person"
    names: list[str] = []
    """Of organisations; persons get names of their own."""
    groups: Names
    group_noun: str = "group"


class Place(_Part):
    noun: Noun
    names: Names


class Attribute(_Part):
    """One more column of items: one of `values`, or a whole number in `range`."""

    name: str
    values: list[str] = []
    range: Range | None = None


class Item(_Part):
    noun: Noun
    unit: str = "piece"
    price: Range
    price_noun: str = "price"
    """What the item's price is called."""
    category_noun: Noun
    names: dict[str, Names]
    """By category."""
    prices: dict[str, Range] = {}
    """By category, where they differ."""
    attributes: list[Attribute] = []


class ModulePart(_Part):
    """What a module needs to speak of its matters in the domain's words."""

    module: str
    core: bool = False
    nouns: dict[str, Noun] = {}
    states: dict[str, str] = {}
    values: dict[str, Names] = {}
    ranges: dict[str, Range] = {}
    policy: dict[str, int] = {}


class Variant(_Part):
    """Another application of the same kind: what differs from its pack."""

    name: str
    setting: str
    noun: dict[str, Noun] = {}
    items: dict[str, Names] = {}
    price: Range | None = None
    prices: dict[str, Range] = {}
    places: list[str] = []
    party_kind: Literal["person", "organisation"] | None = None
    party_names: list[str] = []
    groups: list[str] = []
    group_noun: str | None = None
    roles: list[str] = []
    """Of staff."""
    unit: str | None = None
    price_noun: str | None = None
    category_noun: Noun | None = None
    attributes: list[Attribute] | None = None
    nouns: dict[str, Noun] = {}
    """These by module and key: `booking.slot`."""
    states: dict[str, str] = {}
    values: dict[str, Names] = {}
    ranges: dict[str, Range] = {}
    policy: dict[str, int] = {}
    draw: int = 0


class Pack(_Part):
    name: str
    category: str
    description: str
    currency: str = "EUR"
    staff: Staff
    party: Party
    place: Place
    item: Item
    modules: list[ModulePart]
    variants: list[Variant] = []
    draw: int = 0
    """Which draw of modules and features it has: another where the first has made two scenarios the same but for words."""

    def part(self, module: str) -> ModulePart:
        return next(part for part in self.modules if part.module == module)

    def under(self, variant: Variant) -> "Pack":
        """The pack as this variant has it; which of the modules it keeps is the author's choice."""
        nouns = variant.noun
        item = {
            "noun": nouns.get("item"),
            "names": variant.items,
            "unit": variant.unit,
            "price_noun": variant.price_noun,
            "price": variant.price,
            "prices": variant.prices or ({} if variant.items else None),
            "category_noun": variant.category_noun or nouns.get("category"),
            "attributes": variant.attributes,
        }
        party = {
            "noun": nouns.get("party"),
            "kind": variant.party_kind,
            "names": variant.party_names,
            "groups": variant.groups,
            "group_noun": variant.group_noun,
        }
        return self.model_copy(
            update={
                "name": variant.name,
                "description": variant.setting,
                "staff": _with(self.staff, {"noun": nouns.get("staff"), "roles": variant.roles}),
                "party": _with(self.party, party),
                "place": _with(self.place, {"noun": nouns.get("place"), "names": variant.places}),
                "item": _with(self.item, item),
                "modules": [_of_variant(part, variant) for part in self.modules],
                "variants": [],
                "draw": variant.draw,
            }
        )


P = TypeVar("P", bound=_Part)


def _with(part: P, changes: Mapping[str, Any]) -> P:
    """What the variant does not say stays; an empty `prices` is said."""
    return part.model_copy(
        update={key: value for key, value in changes.items() if value or (key == "prices" and value is not None)}
    )


def _of_variant(part: ModulePart, variant: Variant) -> ModulePart:
    changes = {}
    for name in ("nouns", "states", "values", "ranges", "policy"):
        own = {key.partition(".")[2]: value for key, value in getattr(variant, name).items() if key.startswith(f"{part.module}.")}
        changes[name] = {**getattr(part, name), **own}
    return _with(part, changes)


@cache
def packs() -> Mapping[str, Pack]:
    """All packs by env_id. Raises ConfigError that names the file at fault."""
    found: dict[str, Pack] = {}
    for path in sorted((resources.templates() / "domains").glob("*.toml")):
        try:
            pack = Pack.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
        except (tomllib.TOMLDecodeError, ValidationError) as error:
            raise ConfigError(f"{path} is no domain pack: {error}; see docs/offline-author.md for the form") from error
        found[env_id(pack.name)] = pack
    return found


@cache
def scenarios() -> Mapping[str, tuple[str, Variant | None]]:
    """By env_id of every pack and variant: the env_id of its pack, and the variant."""
    found: dict[str, tuple[str, Variant | None]] = {key: (key, None) for key in packs()}
    for key, pack in packs().items():
        for variant in pack.variants:
            found.setdefault(env_id(variant.name), (key, variant))
    return found
