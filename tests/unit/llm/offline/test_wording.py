"""Words for values, as they follow a noun, and sentences put together of them."""

import random
from datetime import date, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from awm_factory.llm.offline.goals.ask import adds_up
from awm_factory.llm.offline.ir import Column, Domain, Entity, Operation, Param
from awm_factory.llm.offline.mention import Mention, describe
from awm_factory.llm.offline.phrase import imperative
from awm_factory.llm.offline.state import World
from awm_factory.llm.offline.steps import ReturnRow
from awm_factory.llm.offline.values import Kind
from awm_factory.llm.offline.wording import (
    attributive,
    bounded,
    column_noun,
    figure,
    named_place,
    narrowed,
    option,
    quality,
    superlative,
    there_are,
)
from awm_factory.rollout.agents.matching import bounds_of
from awm_factory.rollout.agents.reading import Reading


@pytest.mark.parametrize(
    ("key", "kind", "said", "exact", "bounded"),
    [
        ("weight_kg", "int", "8", "a weight of 8 kg", "a weight of at most 8 kg"),
        ("storage_temperature_celsius", "int", "8", "a storage temperature of 8 °C", "a storage temperature of at most 8 °C"),
        ("price_cents", "money", "€3.00", "a price of €3.00", "a price of at most €3.00"),
        ("amount_cents", "money", "€3.00", "an amount of €3.00", "an amount of at most €3.00"),
        ("guests", "int", "3", "3 guests", "at most 3 guests"),
        ("guests", "int", "1", "1 guest", "at most 1 guest"),
        ("notice_days", "int", "36", "36 notice days", "at most 36 notice days"),
        ("days_to_make", "int", "1", "1 day to make", "at most 1 day to make"),
        ("counted", "int", "7", "7 counted", "at most 7 counted"),
        ("percent", "int", "15", "15 percent", "at most 15 percent"),
        ("reorder_at", "int", "5", "a reorder level of 5", "a reorder level of at most 5"),
        ("position", "int", "2", "the position 2", "a position of at most 2"),
        ("quantity", "int", "4", "a quantity of 4", "a quantity of at most 4"),
    ],
)
def test_a_figure_is_said_as_people_say_it(key: str, kind: Kind, said: str, exact: str, bounded: str) -> None:
    column = Column(key, kind)
    assert (figure(column, said), figure(column, said, "at most")) == (exact, bounded)
    if "°" not in said and kind == "int" and key != "counted":
        assert list(bounds_of(key, Reading(f"Cancel the thing with {bounded}."))) == [(False, int(said))] or said == "1"


def test_the_most_of_something_has_no_unit_and_things_are_counted() -> None:
    assert superlative(Column("weight_kg", "int"), highest=True) == "the highest weight"
    assert superlative(Column("guests", "int"), highest=False) == "the fewest guests"
    assert superlative(Column("goods_cents", "money"), highest=True) == "the highest value of the goods"
    assert column_noun(Column("daily_limit_eur", "int")) == "daily limit in EUR"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("kind", "contract", "of the kind contract"),
        ("topic", "noise", "on the topic of noise"),
        ("priority", "urgent", "with urgent priority"),
        ("pay_grade", "intern", "with the pay grade intern"),
        ("given_by", "owner", "given by owner"),
        ("adjusted", "yearly", "adjusted yearly"),
    ],
)
def test_one_of_several_values_follows_its_noun(key: str, value: str, words: str) -> None:
    assert quality(Column(key, "choice"), value) == words


def test_a_filter_says_what_it_filters() -> None:
    assert narrowed(Column("made_for", "choice")) == "made for this"
    assert narrowed(Column("kind", "choice")) == "with this kind"
    assert [bounded(Column(key, "int")) for key in ("weight_g", "guests", "position")] == [
        "weight in g",
        "number of guests",
        "position",
    ]
    assert bounded(Column("price_cents", "money")) == "price in cents"


def test_one_is_counted_in_the_singular() -> None:
    assert [there_are(count) for count in (0, 1, 2)] == ["There are 0", "There is 1", "There are 2"]


def test_a_reason_among_arguments_has_its_article_and_a_state_before_a_noun_its_hyphen() -> None:
    assert option(Column("reason", "choice"), "wrong item") == "the reason wrong item"
    assert attributive("in_progress") == "in-progress"


ENTRY = Entity("books.entry", "account_entry", "account_entries", (Column("reference", "text"),), ("reference",))
ACCOUNT = Entity("account", "account", "accounts", (Column("name", "text"),), ("name",))
BARE = Entity("item", "item", "items", (Column("price_cents", "money"),), ("id",))
UPDATE = Operation(
    "books.update",
    "act",
    "account",
    "PATCH",
    "/accounts/{account_id}",
    "Update",
    "Update",
    params=(
        Param("account_id", "ref", "path", ref="account"),
        Param("is_open", "bool", required=False),
        Param("months", "int", required=False),
    ),
    returns=ReturnRow("account"),
)
DRAFT = Operation(
    "books.draft",
    "create",
    "books.entry",
    "POST",
    "/entries",
    "Draft an account entry",
    "Draft",
    name="draft_account_entry",
    params=(
        Param("debit_account_id", "ref", ref="account"),
        Param("credit_account_id", "ref", ref="account"),
        Param("dated_on", "date"),
        Param("is_pinned", "bool"),
        Param("reason", "choice", choices=("wrong_item",)),
    ),
    returns=ReturnRow("entry"),
)


def said(operation: Operation, arguments: dict[str, Any], **names: str) -> set[str]:
    domain = Domain(
        name="",
        description="",
        category="",
        currency="EUR",
        world_time=datetime.fromisoformat("2026-01-01"),
        modules=(),
        entities={"account": ACCOUNT, "books.entry": ENTRY},
        operations={},
        states={},
        policies={},
        nouns={},
    )
    mentions = {key: Mention("account", 1, text, {}) for key, text in names.items()}
    found = [imperative(domain, operation, arguments, mentions, random.Random(seed)) for seed in range(20)]
    return {sentence.text for sentence in found if sentence is not None}


def test_a_bill_is_for_a_month_and_an_entry_is_dated() -> None:
    bill = Entity(
        "bill", "bill", "bills", (Column("month", "date"), Column("dated_on", "date"), Column("runs_on", "date")), ("month",)
    )
    world = SimpleNamespace(domain=SimpleNamespace(currency="EUR", entity=lambda role: bill, nouns={}))
    facts = {"month": date(2026, 1, 1), "dated_on": date(2026, 1, 4)}
    assert describe(cast(World, world), bill, facts) == "the bill for January 2026 dated 4 January 2026"
    assert describe(cast(World, world), bill, {"runs_on": date(2026, 1, 4)}) == "the bill on 4 January 2026"
    assert [spot.value for spot in Reading("Waive the bill for January 2026.").times] == [date(2026, 1, 1)]


def test_unit_prices_of_lines_are_not_added_up() -> None:
    line = Entity("line", "line", "lines", (Column("quantity", "int"), Column("price_cents", "money")), ("id",))
    assert not adds_up(line, line.column("price_cents"))
    assert adds_up(line, Column("amount_cents", "money")) and adds_up(BARE, BARE.column("price_cents"))


def test_a_mark_is_set_in_words_and_never_to_yes() -> None:
    assert said(UPDATE, {"account_id": 1, "is_open": False}, account_id="Cash") == {"mark Cash as not open"}
    assert "set the number of months of Cash to 3, and mark it as open" in said(
        UPDATE, {"account_id": 1, "is_open": True, "months": 3}, account_id="Cash"
    )


def test_an_account_entry_names_the_two_accounts_by_their_sides() -> None:
    arguments = {"debit_account_id": 1, "credit_account_id": 2, "dated_on": date(2026, 1, 4), "is_pinned": True}
    arguments["reason"] = "wrong_item"
    texts = said(DRAFT, arguments, debit_account_id="Cash", credit_account_id="Rent")
    assert {text.partition("entry ")[2] for text in texts} == {
        "debiting Cash and crediting Rent dated 4 January 2026 with the reason wrong item, marked as pinned"
    }


@pytest.mark.parametrize(
    ("name", "noun", "said"),
    [
        ("Harbour", "tool library", "Harbour tool library"),
        ("Phone Intake", "intake office", "Phone Intake office"),
        ("Blue Tent", "training tent", "Blue Tent"),
        ("Old Bookstore", "store", "Old Bookstore"),
        ("Youth Court", "court house", "Youth Court house"),
    ],
)
def test_a_place_and_its_kind_say_no_word_twice(name: str, noun: str, said: str) -> None:
    assert named_place(name, noun) == said
