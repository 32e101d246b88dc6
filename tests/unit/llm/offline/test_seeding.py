"""Start data: what reads as made by somebody who knows the trade."""

from awm_factory.llm.offline.author import Author
from awm_factory.llm.offline.seeding import graded


def test_the_larger_of_two_things_alike_is_the_dearer_one() -> None:
    names = ["Battery 10 kWh", "Battery 5 kWh", "Cable", "Battery 7.5 kWh", "Wallbox 11 kW", "Battery 7.5 kWh black"]
    assert graded(names, [100, 700, 3, 400, 50, 1]) == [700, 100, 3, 400, 50, 1]


def test_start_data_keep_to_it() -> None:
    items = Author("solar_panel_leads", count=1).world.all("item")
    prices = {str(row["name"]): int(str(row["price_cents"])) for row in items}
    sizes = ("5", "7.5", "10", "15")
    assert [prices[f"Battery {size} kWh"] for size in sizes] == sorted(prices[f"Battery {size} kWh"] for size in sizes)
