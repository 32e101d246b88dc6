"""Inventory: how many of each item a place has, why that changed, and what is ordered from suppliers.

Past 300 lines and one file: tables, tools and start rows of a module are read together.
"""

from datetime import timedelta

from awm_factory.llm.offline.columns import cents, choice, created, day, flag, moment, number, ref, text
from awm_factory.llm.offline.ir import Param
from awm_factory.llm.offline.kit import Kit
from awm_factory.llm.offline.people import phone
from awm_factory.llm.offline.seeding import Seeding
from awm_factory.llm.offline.steps import Change, Each, Field, Find, Insert, Let, Load, Require, ReturnTable, Step

FEATURES = ("purchase_lines", "transfers", "counts", "shelves", "reservations", "supplier_terms")

_SHELVES = ("A1", "A2", "B1", "B2", "C1", "C2", "D1")


def build(m: Kit) -> None:
    m.policy = {"max_adjust": 20} | m.policy
    m.rule("One correction changes <a stock> by at most {policy.max_adjust}.")
    _entities(m)
    _stock(m)
    _suppliers(m)
    _purchases(m)
    if m.has("transfers"):
        _transfers(m)
    if m.has("counts"):
        _counts(m)
    if m.has("reservations"):
        _reservations(m)


def _entities(m: Kit) -> None:
    m.entity(
        "stock",
        [
            ref("item_id", "item"),
            ref("place_id", "place"),
            number("quantity", "How many are there"),
            number("reorder_at", "More are wanted once there are no more than so many"),
            text("shelf", "Where it stands", null=True) if m.has("shelves") else None,
            number("reserved", "How many of them are set aside", default=0) if m.has("reservations") else None,
        ],
        label="item_id place_id",
        uniques=["item_id place_id"],
        checks=["reserved <= quantity"] if m.has("reservations") else [],
    )
    m.entity(
        "movement",
        [
            ref("stock_id", "stock", owned=True),
            number("change", "By how many; below 0 where some left", low=-1_000_000),
            choice("reason", _reasons(m), "Why"),
            ref("user_id", "user", "Who entered it", name="entered_by_id"),
            created("moved_at", "When it was entered"),
        ],
        label="stock_id moved_at",
    )
    m.entity(
        "supplier",
        [
            text("name", "Name", unique=True),
            text("email", "E-mail address", unique=True),
            text("phone", "Telephone number", null=True),
            number("lead_days", "Days from an order to its arrival", low=1, high=120),
            cents("minimum_cents", "Least order value, in cents", default=0) if m.has("supplier_terms") else None,
            flag("is_active", "Whether it is ordered from at present", default=True),
        ],
        label="name",
    )
    m.entity(
        "purchase",
        [
            text("reference", "Reference", unique=True, server=True),
            ref("supplier_id", "supplier"),
            ref("place_id", "place", "<Place> it goes to"),
            *([] if m.has("purchase_lines") else [ref("item_id", "item"), number("quantity", "How many", low=1)]),
            m.status("ordered", "received", "cancelled"),
            day("expected_on", "Day it should arrive", server=True),
            created("ordered_at", "When it was ordered"),
            moment("closed_at", "When it arrived or was cancelled", null=True, server=True),
        ],
        label="reference",
    )
    m.invariant(
        "purchase", "(self.status == state.ordered) == (self.closed_at is None)", "only what is on order has no end of it"
    )
    if m.has("purchase_lines"):
        m.entity(
            "purchase_line",
            [
                ref("purchase_id", "purchase", owned=True),
                ref("item_id", "item"),
                number("quantity", "How many", low=1),
                cents("cost_cents", "Price of one, in cents"),
            ],
            noun=("<purchase> line", "<purchase> lines"),
            label="purchase_id item_id",
            uniques=["purchase_id item_id"],
        )


def _reasons(m: Kit) -> list[str]:
    """The pack's, and those that the service enters itself."""
    own = m.part.values.get("reasons", ["damaged", "lost", "found", "miscounted"])
    return [*own, *(reason for reason in ("delivery", "transfer", "stocktake", "sale") if reason not in own)]


def _moved(m: Kit, change: str, reason: str, stock: str = "stock") -> tuple[Step, Step]:
    """The stock line changes, and an entry says why."""
    values = {"stock_id": f"{stock}.id", "change": change, "reason": reason, "user_id": "1", "moved_at": "now"}
    return (
        Change(stock, {"quantity": f"{stock}.quantity + {change}"}),
        Insert(f"{stock}_movement", "movement", values),
    )


def _free(m: Kit, stock: str = "stock") -> str:
    return f"{stock}.quantity - {stock}.reserved" if m.has("reservations") else f"{stock}.quantity"


def _stock(m: Kit) -> None:
    shelves = " shelf" if m.has("shelves") else ""
    m.listing("stock", filters="item_id place_id quantity" + shelves, sorts="quantity", order="id")
    m.get("stock", children=["movement"])
    m.report(
        "list_low_<stocks>",
        "stock",
        ReturnTable(
            "stock",
            "stock",
            (
                Field("stock_id", "int", "stock.id", "Id of the <stock>"),
                Field("item_name", "text", "stock.item.name", "Name of the <item>"),
                Field("place_name", "text", "stock.place.name", "Name of the <place>"),
                Field("quantity", "int", "stock.quantity", "How many are there"),
                Field("reorder_at", "int", "stock.reorder_at", "More are wanted once there are no more than so many"),
                Field("on_order", "int", _on_order(m), "How many are on order for this <place>"),
            ),
            when="stock.quantity <= stock.reorder_at",
            order=("quantity", "item_name"),
        ),
        path="/<<all>>/low",
        summary="List <stocks> that have come down to their mark",
        description="The scarcest first, with how many are on order already.",
    )
    m.act(
        "adjust",
        "stock",
        [
            Require("change != 0", 422, "A change of 0 changes nothing.", ""),
            Require(
                "abs(change) <= policy.max_adjust",
                422,
                "One correction changes at most {policy.max_adjust}; {change} is more.",
                "max_adjust",
            ),
            Require(
                f"{_free(m)} + change >= 0",
                409,
                f"There are {{{_free(m)}}} {'that are not set aside' if m.has('reservations') else 'of it'}; no more can leave.",
                "stock_not_negative",
            ),
            *_moved(m, "change", "reason"),
        ],
        params=[
            Param("change", "int", low=-1_000_000, high=1_000_000, about="By how many; below 0 to take some out"),
            Param("reason", "choice", choices=tuple(_reasons(m)), about="Why"),
        ],
        action="adjusted",
        summary="Correct how many there are of <a stock>",
        description="By at most {policy.max_adjust} at once, never below 0; leaves <a movement> with the reason.",
    )
    m.update("stock", "reorder_at" + shelves)
    m.listing("movement", filters="stock_id reason moved_at", order="-moved_at")


def _on_order(m: Kit) -> str:
    if m.has("purchase_lines"):
        where = "item_id=stock.item_id, purchase__place_id=stock.place_id, purchase__status=state.ordered"
        return f"total('purchase_line', 'quantity', {where})"
    return "total('purchase', 'quantity', item_id=stock.item_id, place_id=stock.place_id, status=state.ordered)"


def _suppliers(m: Kit) -> None:
    fields = "name email phone lead_days" + (" minimum_cents" if m.has("supplier_terms") else "")
    m.listing("supplier", search="name email", filters="is_active lead_days", order="name")
    m.create("supplier", fields, verb="add")
    m.update("supplier", f"{fields} is_active")


def _purchases(m: Kit) -> None:
    lines = m.has("purchase_lines")
    own = "" if lines else "item_id "
    m.listing("purchase", search="reference", filters=f"supplier_id place_id {own}status ordered_at expected_on", order="-id")
    checks: list[Step] = [
        Require("supplier.is_active", 409, "{supplier.name} is not ordered from at present.", "supplier_active"),
    ]
    values = {
        "reference": "serial('purchase', 'P')",
        "expected_on": "today + days(supplier.lead_days)",
        "ordered_at": "now",
    }
    if lines:
        m.get("purchase", children=["purchase_line"])
        m.create(
            "purchase",
            "supplier_id place_id",
            values=values,
            params=[
                Param(
                    "lines",
                    "list",
                    low=1,
                    high=20,
                    about="What is ordered",
                    items=(
                        Param("item_id", "ref", ref="item", about="Id of the <item>"),
                        Param("quantity", "int", low=1, high=10_000, about="How many"),
                        Param("cost_cents", "money", low=0, about="Price of one, in cents"),
                    ),
                )
            ],
            before=[*checks, Each("line", param="lines", steps=(Load("item", "item", "line.item_id"),)), *_minimum(m)],
            after=[
                Each(
                    "line",
                    param="lines",
                    steps=(
                        Require(
                            "not exists('purchase_line', purchase_id=purchase.id, item_id=line.item_id)",
                            422,
                            "The <item> {line.item_id} stands there twice; add the quantities.",
                            "",
                        ),
                        Insert(
                            "purchase_line",
                            "purchase_line",
                            {
                                "purchase_id": "purchase.id",
                                "item_id": "line.item_id",
                                "quantity": "line.quantity",
                                "cost_cents": "line.cost_cents",
                            },
                        ),
                    ),
                )
            ],
            verb="place",
            action="ordered",
            children=[("purchase_line", "purchase_id")],
            summary="Order from a <supplier>",
            description="Each <item> once. It arrives after the <supplier>'s usual days.",
        )
    else:
        m.get("purchase")
        m.create(
            "purchase",
            "supplier_id place_id item_id quantity",
            values=values,
            before=checks,
            verb="place",
            action="ordered",
            summary="Order <items> from a <supplier>",
            description="It arrives after the <supplier>'s usual days.",
        )
    _closing(m, lines)


def _minimum(m: Kit) -> list[Step]:
    if not m.has("supplier_terms"):
        return []
    return [
        Let("value", "0"),
        Each("line", param="lines", steps=(Let("value", "value + line.quantity * line.cost_cents"),)),
        Require(
            "value >= supplier.minimum_cents",
            409,
            "{supplier.name} takes orders from {money(supplier.minimum_cents)} on; this one is worth {money(value)}.",
            "supplier_minimum",
        ),
    ]


def _closing(m: Kit, lines: bool) -> None:
    still = Require(
        "purchase.status == state.ordered", 409, "<Purchase> {purchase.reference} is {purchase.status}.", "still_ordered"
    )
    item, quantity = ("line.item_id", "line.quantity") if lines else ("purchase.item_id", "purchase.quantity")
    found = Find("stock", "stock", {"item_id": item, "place_id": "purchase.place_id"})
    known = Require(
        "stock is not None",
        409,
        "{purchase.place.name} keeps no <stock> of what was ordered; it can't be received there.",
        "place_keeps_item",
    )
    booked = _moved(m, quantity, "'delivery'")
    steps: list[Step] = [still]
    if lines:
        each = {"purchase_id": "purchase.id"}
        steps += [
            Each("line", "purchase_line", each, steps=(found, known)),
            Each("line", "purchase_line", each, steps=(found, *booked)),
        ]
    else:
        steps += [found, known, *booked]
    m.act(
        "receive",
        "purchase",
        [*steps, Change("purchase", {"status": "state.received", "closed_at": "now"})],
        action="received",
        summary="Take in what a <supplier> has sent",
        description="Adds all of it to the <stocks> of its <place>, and leaves <a movement> for each.",
    )
    m.act(
        "cancel",
        "purchase",
        [still, Change("purchase", {"status": "state.cancelled", "closed_at": "now"})],
        summary="Cancel <a purchase> that has not arrived",
        description="Refused once it was received.",
    )


def _transfers(m: Kit) -> None:
    m.entity(
        "transfer",
        [
            ref("item_id", "item"),
            ref("from_place_id", "place", "<Place> it left"),
            ref("to_place_id", "place", "<Place> it went to"),
            number("quantity", "How many", low=1),
            ref("user_id", "user", "Who sent it", name="sent_by_id"),
            created("sent_at", "When it was sent"),
        ],
        noun=("stock transfer", "stock transfers"),
        label="item_id sent_at",
    )
    m.listing("transfer", filters="item_id from_place_id to_place_id sent_at", order="-sent_at")
    m.create(
        "transfer",
        "item_id from_place_id to_place_id quantity",
        values={"user_id": "1", "sent_at": "now"},
        before=[
            Require("from_place_id != to_place_id", 422, "It is there already: name two different <places>.", ""),
            Find("source", "stock", {"item_id": "item.id", "place_id": "from_place_id"}),
            Require(
                f"source is not None and {_free(m, 'source')} >= quantity",
                409,
                "{from_place.name} has fewer than {quantity} of {item.name} to give.",
                "transfer_in_stock",
            ),
            Find("target", "stock", {"item_id": "item.id", "place_id": "to_place_id"}),
            Require("target is not None", 409, "{to_place.name} keeps no <stock> of {item.name}.", "place_keeps_item"),
        ],
        after=[
            *_moved(m, "0 - quantity", "'transfer'", "source"),
            *_moved(m, "quantity", "'transfer'", "target"),
        ],
        verb="send",
        name="transfer_stock",
        action="sent",
        summary="Move some of <a item> from one <place> to another",
        description="Both <places> keep it already; leaves <a movement> at either.",
    )


def _counts(m: Kit) -> None:
    m.entity(
        "stocktake",
        [
            ref("stock_id", "stock", owned=True),
            number("expected", "How many there should have been"),
            number("counted", "How many there were"),
            ref("user_id", "user", "Who counted", name="counted_by_id"),
            created("counted_at", "When it was counted"),
        ],
        noun=("stocktake", "stocktakes"),
        label="stock_id counted_at",
    )
    m.listing("stocktake", filters="stock_id counted_at", order="-counted_at")
    m.create(
        "stocktake",
        "stock_id counted",
        values={"expected": "stock.quantity", "user_id": "1", "counted_at": "now"},
        before=[
            *(
                [
                    Require(
                        "counted >= stock.reserved",
                        409,
                        "{stock.reserved} of them are set aside; release some before fewer are entered.",
                        "count_covers_reserved",
                    )
                ]
                if m.has("reservations")
                else []
            )
        ],
        after=[
            Insert(
                "movement",
                "movement",
                {
                    "stock_id": "stock.id",
                    "change": "counted - stock.quantity",
                    "reason": "'stocktake'",
                    "user_id": "1",
                    "moved_at": "now",
                },
            ),
            Change("stock", {"quantity": "counted"}),
        ],
        verb="record",
        action="counted",
        summary="Enter how many of <a stock> were counted",
        description="The count becomes the quantity, and <a movement> holds the difference.",
    )


def _reservations(m: Kit) -> None:
    for verb, sign, test, refusal, rule in (
        (
            "reserve",
            "+",
            "stock.quantity - stock.reserved >= quantity",
            "Only {stock.quantity - stock.reserved} of it are free.",
            "free_stock",
        ),
        ("release", "-", "stock.reserved >= quantity", "Only {stock.reserved} of it are set aside.", "reserved_stock"),
    ):
        m.act(
            verb,
            "stock",
            [Require(test, 409, refusal, rule), Change("stock", {"reserved": f"stock.reserved {sign} quantity"})],
            params=[Param("quantity", "int", low=1, high=10_000, about="How many")],
            summary="Set some of <a stock> aside" if verb == "reserve" else "Let go what was set aside of <a stock>",
            description="Refused where fewer are free." if verb == "reserve" else "Refused where fewer are set aside.",
        )


def seed(s: Seeding) -> None:
    reasons = s.values("reasons", "damaged", "lost", "found", "miscounted")
    users = s.rows("user", is_active=True)
    for name in s.values("suppliers", "Northern Supply", "Harbour Trading", "Kellner and Sons", "Meridian Goods", "Oak Yard"):
        site = "".join(letter for letter in name.lower() if letter.isalnum())[:24]
        s.insert(
            "supplier",
            name=name,
            email=f"orders@{site}.example",
            phone=phone(s.rng),
            lead_days=s.between(2, 21),
            minimum_cents=s.pick((0, 5000, 10_000, 20_000)),
            is_active=not s.chance(12),
        )
    places = s.rows("place")
    for item in s.rows("item"):
        for place in s.some(places, s.between(1, min(3, len(places)))):
            mark = s.number("reorder_at", 2, 8)
            quantity = s.number("quantity", 0, 40) if not s.chance(20) else s.between(0, mark)
            reserved = min(quantity, s.between(1, 3)) if s.chance(25) else 0
            s.insert(
                "stock",
                item_id=item["id"],
                place_id=place["id"],
                quantity=quantity,
                reorder_at=mark,
                shelf=s.pick(_SHELVES) if not s.chance(10) else None,
                reserved=reserved,
            )
    stocks = s.rows("stock")
    for moved_at in sorted(s.past(1, 60) for _ in range(24)):
        change = s.pick((-3, -2, -1, -1, 1, 2, 4))
        s.insert(
            "movement",
            stock_id=s.pick(stocks)["id"],
            change=change,
            reason=s.pick(reasons),
            user_id=s.pick(users)["id"],
            moved_at=moved_at,
        )
    if s.has("counts"):
        for counted_at in sorted(s.past(10, 90) for _ in range(10)):
            expected = s.between(3, 30)
            s.insert(
                "stocktake",
                stock_id=s.pick(stocks)["id"],
                expected=expected,
                counted=max(0, expected + s.pick((0, 0, 0, -1, -2, 1))),
                user_id=s.pick(users)["id"],
                counted_at=counted_at,
            )
    _seed_purchases(s)
    if s.has("transfers"):
        for sent_at in sorted(s.past(3, 60) for _ in range(8)):
            stock = s.pick(stocks)
            others = [row for row in stocks if row["item_id"] == stock["item_id"] and row["id"] != stock["id"]]
            if others:
                s.insert(
                    "transfer",
                    item_id=stock["item_id"],
                    from_place_id=stock["place_id"],
                    to_place_id=s.pick(others)["place_id"],
                    quantity=s.between(1, 6),
                    user_id=s.pick(users)["id"],
                    sent_at=sent_at,
                )


def _seed_purchases(s: Seeding) -> None:
    stocks, suppliers = s.rows("stock"), s.rows("supplier")
    for ordered_at in sorted(s.past(1, 70) for _ in range(16)):
        stock, supplier = s.pick(stocks), s.pick(suppliers)
        expected = ordered_at.date() + timedelta(days=supplier["lead_days"])
        state = "ordered"
        if expected < s.today:
            state = s.weighted(received=7, cancelled=2, ordered=1)
        elif s.chance(15):
            state = "cancelled"
        arrival = s.at((expected - s.today).days, s.between(8, 16))
        closed_at = {
            "ordered": None,
            "received": arrival,
            "cancelled": min(ordered_at + timedelta(hours=s.between(2, 40)), s.now),
        }[state]
        row = s.insert(
            "purchase",
            reference=f"P-{1001 + s.world.count('inventory.purchase')}",
            supplier_id=supplier["id"],
            place_id=stock["place_id"],
            item_id=stock["item_id"],
            quantity=s.between(2, 30),
            status=s.state[state],
            expected_on=expected,
            ordered_at=ordered_at,
            closed_at=closed_at,
        )
        if s.has("purchase_lines"):
            here = [other for other in stocks if other["place_id"] == stock["place_id"]]
            for line in s.some(here, s.between(1, 3)):
                cost = max(10, s.row("item", line["item_id"])["price_cents"] * s.between(45, 70) // 1000 * 10)
                s.insert(
                    "purchase_line", purchase_id=row["id"], item_id=line["item_id"], quantity=s.between(2, 30), cost_cents=cost
                )
