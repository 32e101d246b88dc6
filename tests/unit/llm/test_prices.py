import re
from pathlib import Path

import pytest

from awm_factory.errors import ConfigError
from awm_factory.llm.estimate import PLAN, estimate
from awm_factory.llm.prices import Prices
from awm_factory.llm.protocol import Usage

MILLION = Usage(prompt=1_000_000, completion=1_000_000, cached=400_000)


def test_cached_tokens_have_a_price_of_their_own_and_dated_names_share_one() -> None:
    prices = Prices.load()
    assert prices.usd("gpt-4.1", MILLION) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 8)
    assert prices.usd("gpt-4.1-2025-04-14", MILLION) == prices.usd("gpt-4.1", MILLION)
    assert prices.facts("gpt-4o").most_tokens == 16384


def test_every_price_says_where_it_was_read_and_when() -> None:
    for model, facts in Prices.load().table.items():
        assert re.search(r"\S+@[0-9a-f]{12}, read \d{4}-\d\d-\d\d$", facts.source or ""), model
        assert facts.input is not None, model
        assert facts.output is not None, model


def test_an_unknown_model_has_no_price_rather_than_a_likely_one() -> None:
    prices = Prices.load()
    assert prices.usd("gpt-4.1-turbo", MILLION) is None
    assert prices.usd("my-deployment", MILLION) is None
    with pytest.raises(ConfigError, match=r"the price of my-deployment is unknown, .* --prices"):
        prices.require("my-deployment")


def test_a_users_table_wins_model_by_model(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text('["gpt-4.1"]\ninput = 1.0\noutput = 0\n[local]\ninput = 0\noutput = 0\nmost_tokens = 4096\n')
    prices = Prices.load(tmp_path / "p.toml")
    assert prices.usd("gpt-4.1", MILLION) == 1.0
    assert prices.usd("local", MILLION) == 0.0
    assert prices.known("gpt-5")
    prices.require("local")


@pytest.mark.parametrize("text", ["[a]\ninput = -1\n", "[a]\nprice = 1\n", "not toml", "[a]\ninput = 'x'\n"])
def test_a_table_that_cannot_be_read_names_its_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"p\.toml can't be read: "):
        Prices.load(tmp_path / "p.toml")


def test_an_estimate_grows_with_the_run_and_says_when_it_knows_no_price() -> None:
    prices = Prices.load()
    one, ten = (estimate(prices, "gpt-5", count) for count in (1, 10))
    assert one.usd is not None
    assert ten.usd == pytest.approx(10 * one.usd, rel=1e-3)
    assert [row.stage for row in one.rows] == [stage.stage for stage in PLAN]
    assert str(ten).startswith("10 environments with gpt-5: about 3")
    assert estimate(prices, "mine", 1).usd is None
    assert "price unknown" in str(estimate(prices, "mine", 1))
