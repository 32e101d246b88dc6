"""The domain packs: what authors of packs promise to the modules, and to whoever reads the environments."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
import pytest

from awm_factory import resources
from awm_factory.certify import answers
from awm_factory.ids import env_id
from awm_factory.llm.offline.catalogue import described
from awm_factory.llm.offline.packs import FRAME, Attribute, ModulePart, Pack, Range, packs, scenarios
from awm_factory.llm.offline.words import class_name, snake, variable
from awm_factory.synthesis.scenarios.local import CALIBRATED, LocalEmbedder

CHOICES: Final = ("topics", "resolutions", "kinds", "levels", "reasons", "methods", "entry_kinds", "labels")
"""Values that become members of an enumeration."""


class Needs(NamedTuple):
    """What the pack must say for a module."""

    nouns: str
    states: str
    values: Mapping[str, int]
    """List by its least number of entries."""
    ranges: str
    policy: str


MODULES: Final[Mapping[str, Needs]] = {
    "catalogue": Needs("", "draft listed retired", {"tags": 8}, "", ""),
    "inventory": Needs(
        "stock movement supplier purchase",
        "ordered received cancelled",
        {"suppliers": 5, "reasons": 4},
        "quantity reorder_at",
        "max_adjust",
    ),
    "order": Needs(
        "order line",
        "draft placed fulfilled cancelled returned",
        {"notes": 8},
        "quantity",
        "free_delivery_over return_days max_lines",
    ),
    "booking": Needs(
        "resource slot booking",
        "booked attended cancelled no_show",
        {"resource_names": 5, "purposes": 5},
        "capacity fee",
        "cancel_hours max_open",
    ),
    "ticket": Needs(
        "ticket comment",
        "open in_progress waiting resolved closed",
        {"subjects": 8, "topics": 4, "resolutions": 4},
        "",
        "reopen_days max_open",
    ),
    "ledger": Needs("account entry", "draft posted reversed", {"accounts": 8, "memos": 8}, "amount", "approve_over"),
    "approval": Needs(
        "request step",
        "draft submitted approved rejected withdrawn",
        {"purposes": 8, "step_names": 2},
        "amount",
        "second_over",
    ),
    "membership": Needs(
        "plan membership invoice",
        "active paused ended unpaid paid waived",
        {"plan_names": 3},
        "fee",
        "pause_days notice_days",
    ),
    "messaging": Needs("thread message", "open archived", {"subjects": 8, "bodies": 8}, "", "max_recipients"),
    "reviews": Needs("review reply", "pending published hidden", {"comments": 8, "replies": 4}, "", "edit_days"),
    "board": Needs(
        "project task milestone",
        "todo doing review done",
        {"project_names": 4, "task_titles": 15, "labels": 4},
        "effort",
        "wip_limit",
    ),
    "shipment": Needs(
        "shipment vehicle run",
        "planned loaded delivered failed cancelled",
        {"vehicle_names": 4, "towns": 6},
        "weight capacity",
        "max_stops",
    ),
    "enrolment": Needs(
        "course session enrolment",
        "enrolled waitlisted completed withdrawn",
        {"course_names": 8, "levels": 3},
        "capacity fee",
        "withdraw_days max_courses",
    ),
    "record": Needs(
        "subject entry",
        "active due retired",
        {"subject_names": 8, "entry_kinds": 4, "findings": 8},
        "reading",
        "interval_days",
    ),
    "document": Needs(
        "document signature",
        "draft sent signed void declined",
        {"titles": 8, "kinds": 3},
        "",
        "valid_days max_signers",
    ),
    "campaign": Needs(
        "campaign donation",
        "planned running closed pledged received refunded",
        {"campaign_names": 4, "dedications": 8},
        "amount goal",
        "refund_days minimum",
    ),
    "auction": Needs(
        "lot bid",
        "open sold unsold withdrawn",
        {"lot_names": 8, "conditions": 3},
        "start_price increment",
        "max_bids",
    ),
}
"""By the module table of docs/offline-author.md; `catalogue.bundle` alone may be left out."""

TYPES: Final = {"asset", "liability", "income", "expense", "equity"}
PLACEHOLDER: Final = re.compile(r"lorem|placeholder|\bfoo\b|\bTBD\b|^(item|name|value|thing|option|place) ?\d+$", re.I)
SEEDS: Final = {
    env_id(seed["name"]): seed
    for seed in map(json.loads, (resources.templates() / "scenarios" / "seeds.jsonl").read_text(encoding="utf-8").splitlines())
}

each_pack = pytest.mark.parametrize("key", sorted(packs()))


def _applications(pack: Pack) -> Iterator[Pack]:
    """The pack itself, and as each of its variants has it."""
    yield pack
    for variant in pack.variants:
        yield pack.under(variant)


def _repeated(words: list[str]) -> list[str]:
    return [word for word, count in Counter(word.casefold() for word in words).items() if count > 1]


def _stem(word: str) -> str:
    word = word.lower()
    return word[:-3] + "y" if word.endswith("ies") else word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from (str(key), *_strings(inner))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)


@each_pack
def test_a_pack_is_of_a_seed_and_says_what_the_seed_says(key: str) -> None:
    pack = packs()[key]
    assert {"name": pack.name, "description": pack.description, "category": pack.category} == SEEDS[key]
    assert (resources.templates() / "domains" / f"{key}.toml").is_file()


@each_pack
def test_a_pack_has_five_to_eight_modules_and_three_or_four_in_every_variant(key: str) -> None:
    modules = packs()[key].modules
    assert 5 <= len(modules) <= 8
    assert 3 <= sum(part.core for part in modules) <= 4
    assert not _repeated([part.module for part in modules])


@each_pack
def test_every_module_finds_the_roles_it_asks_for(key: str) -> None:
    for application in _applications(packs()[key]):
        for part in application.modules:
            _assert_complete(part)


def _assert_complete(part: ModulePart) -> None:
    needs = MODULES[part.module]
    assert set(part.nouns) - {"bundle"} - ({"amount"} if part.module == "approval" else set()) == set(needs.nouns.split()), (
        part.module
    )
    assert set(part.states) == set(needs.states.split()), part.module
    assert set(part.ranges) == set(needs.ranges.split()), part.module
    assert set(part.policy) == set(needs.policy.split()), part.module
    assert set(part.values) == set(needs.values), part.module
    for name, least in needs.values.items():
        assert len(part.values[name]) >= least, f"{part.module}.{name}"
        assert not _repeated(part.values[name]), f"{part.module}.{name}"
    assert not _repeated(list(part.states.values())), part.module
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", state) for state in part.states.values()), part.module
    assert all(0 <= low < high for low, high in part.ranges.values()), part.module
    assert all(limit > 0 for limit in part.policy.values()), part.module
    if part.module == "ledger":
        kinds = [account.partition(":")[2] for account in part.values["accounts"]]
        assert {"asset", "liability", "income", "expense"} <= set(kinds) <= TYPES
    if part.module == "approval":
        assert len(part.values["step_names"]) <= 3


@each_pack
def test_the_frame_has_enough_distinct_names(key: str) -> None:
    pack = packs()[key]
    for application in _applications(pack):
        own = application is pack
        assert len(application.place.names) >= 4 and not _repeated(application.place.names), application.name
        assert len(application.staff.roles) >= 2 and len(application.party.groups) >= 2, application.name
        assert application.party.kind == "person" or len(set(application.party.names)) >= 12, application.name
        items = [name for names in application.item.names.values() for name in names]
        assert (18 if own else 12) <= len(items) <= 32, application.name
        assert len(application.item.names) >= 3 and not _repeated(items), application.name
        assert 1 <= len(application.item.attributes) <= 3, application.name
        for attribute in application.item.attributes:
            _assert_attribute(attribute)


def _assert_attribute(attribute: Attribute) -> None:
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", attribute.name) and snake(attribute.name) == attribute.name
    assert bool(attribute.values) != bool(attribute.range), attribute.name
    assert attribute.range is None or 0 <= attribute.range[0] < attribute.range[1], attribute.name
    assert attribute.range or (len(attribute.values) >= 2 and not _repeated(attribute.values)), attribute.name


@each_pack
def test_prices_lie_in_the_range_of_their_pack_and_no_range_is_so_wide_that_milk_costs_as_much_as_whisky(key: str) -> None:
    for application in _applications(packs()[key]):
        item = application.item
        assert _within(item.price, item.price), application.name
        assert set(item.prices) <= set(item.names), application.name
        assert all(_within(price, item.price) for price in item.prices.values()), application.name
        assert item.prices or item.price[1] <= 25 * max(item.price[0], 0.01), application.name


def _within(price: Range, span: Range) -> bool:
    return 0 <= span[0] <= price[0] < price[1] <= span[1]


@each_pack
def test_no_two_nouns_are_the_same_and_none_is_a_word_of_sql_or_python(key: str) -> None:
    for application in _applications(packs()[key]):
        nouns = [getattr(application, part).noun for part in FRAME] + [application.item.category_noun]
        nouns += [noun for part in application.modules for noun in part.nouns.values()]
        words = [word for noun in nouns for word in dict.fromkeys(noun)]
        assert not _repeated(words), application.name
        assert all(re.fullmatch(r"[a-z]+( [a-z]+)*", word) for word in words), (application.name, words)
        assert all(_is_free(word) for word in words), (application.name, words)


def _is_free(word: str) -> bool:
    """Whether a table, a class and a tool can be called so, as it stands."""
    name = word.replace(" ", "_")
    camel = "".join(part.capitalize() for part in word.split())
    return snake(word) == variable(name) == name and class_name(name) == camel and name not in {"user", "users"}


@each_pack
def test_a_variant_has_roles_and_words_of_its_own_where_it_says_so(key: str) -> None:
    pack = packs()[key]
    variant = pack.variants[0].model_copy(update={"roles": ["warden", "helper"], "group_noun": "rank", "price_noun": "ransom"})
    own = pack.under(variant)
    assert (own.staff.roles, own.party.group_noun, own.item.price_noun) == (["warden", "helper"], "rank", "ransom")
    plain = pack.under(pack.variants[0].model_copy(update={"roles": [], "group_noun": None, "price_noun": None}))
    assert (plain.staff.roles, plain.party.group_noun) == (pack.staff.roles, pack.party.group_noun)
    assert plain.item.price_noun == pack.item.price_noun


@each_pack
def test_overrides_of_a_variant_name_something_that_the_pack_has(key: str) -> None:
    pack = packs()[key]
    for variant in pack.variants:
        assert set(variant.noun) <= {*FRAME, "category"}, variant.name
        for field in ("nouns", "states", "values", "ranges", "policy"):
            known = {f"{part.module}.{name}" for part in pack.modules for name in getattr(part, field)}
            assert set(getattr(variant, field)) <= known, f"{variant.name}: {field}"


@each_pack
def test_texts_are_ascii_without_placeholders_or_spare_blanks(key: str) -> None:
    for text in _strings(packs()[key].model_dump()):
        assert text.isascii() and text == " ".join(text.split()), text
        assert not PLACEHOLDER.search(text), text


@each_pack
def test_no_choice_is_told_by_the_clock_alone(key: str) -> None:
    """A task says it without quotation marks, and whoever reads "next year" there would ask which one."""
    for application in _applications(packs()[key]):
        said = [value for attribute in application.item.attributes for value in attribute.values]
        said += [value for part in application.modules for name in CHOICES for value in part.values.get(name, [])]
        assert [value for value in said if answers._RELATIVE.search(value)] == [], application.name


@each_pack
def test_a_variant_says_in_a_sentence_what_is_else_about_it(key: str) -> None:
    pack = packs()[key]
    assert len(pack.variants) == 9
    for variant in pack.variants:
        assert 2 <= len(variant.name.split()) <= 6
        assert len(variant.setting) >= 40 and variant.setting.endswith(".")
        assert variant.items and variant.places
        shared = _items(variant.items) & _items(pack.item.names)
        assert len(shared) <= 3, (variant.name, shared)


def _items(by_category: Mapping[str, list[str]]) -> set[str]:
    return {name for names in by_category.values() for name in names}


def test_names_of_packs_and_variants_are_distinct_even_in_other_order_and_number() -> None:
    names = [seed["name"] for seed in SEEDS.values()] + [variant.name for pack in packs().values() for variant in pack.variants]
    assert not _repeated([" ".join(sorted(map(_stem, name.split()))) for name in names])
    assert not _repeated([env_id(name) for name in names])


def test_settings_are_distinct() -> None:
    assert not _repeated([variant.setting for pack in packs().values() for variant in pack.variants])


def test_no_two_scenarios_are_near_duplicates_to_the_factorys_own_embedder() -> None:
    told = [f"{found['name']}. {found['description']}" for found in map(described, scenarios())]
    embedder = LocalEmbedder()
    points = np.stack([embedder.vector(text) for text in told])
    near = np.argwhere(np.triu(points @ points.T, k=1) > CALIBRATED.refuse_above)
    assert not [f"{told[one]} / {told[other]}" for one, other in near]
