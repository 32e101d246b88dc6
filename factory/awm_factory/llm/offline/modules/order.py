"""Orders: a party's lines of items, from draft to fulfilled, cancelled or returned.

Past 300 lines and one file: tables, tools and start rows of a module are read together.
"""

from datetime import datetime, timedelta

from awm_factory.llm.offline.columns import cents, choice, created, flag, moment, number, ref, text
from awm_factory.llm.offline.ir import Param
from awm_factory.llm.offline.kit import NOT_BLOCKED, Kit
from awm_factory.llm.offline.seeding import Seeding
from awm_factory.llm.offline.steps import Change, Each, Field, Find, Insert, Let, Load, Require, ReturnRecord, ReturnTable, Step

FEATURES = ("delivery", "discounts", "payments", "returns", "gift_notes", "stock_check")

_METHODS = ("card", "cash", "transfer")


def build(m: Kit) -> None:
    m.policy = {"free_delivery_over": 100, "return_days": 14, "max_lines": 8} | m.policy
    m.rule("<A order> has at most {policy.max_lines} <lines>.")
    _entities(m)
    _reading(m)
    _drafts(m)
    _progress(m)
    if m.has("payments"):
        _payments(m)
    if m.has("discounts"):
        _discounts(m)
    if m.has("returns"):
        _returns(m)


def _checks_stock(m: Kit) -> bool:
    """Whether fulfilling takes the items out of the place's stock."""
    return m.has("stock_check") and m.joined("inventory.stock")


def _entities(m: Kit) -> None:
    if m.has("discounts"):
        m.entity(
            "discount",
            [
                text("code", "Code", unique=True, high=20),
                number("percent", "By how many per cent the <lines> become cheaper", low=1, high=60),
                cents("minimum_cents", "Least value of the <lines> it is given on, in cents"),
                flag("is_active", "Whether it is given at present", default=True),
            ],
            noun=("discount code", "discount codes"),
            label="code",
        )
    m.entity(
        "order",
        [
            text("reference", "Reference", unique=True, server=True),
            ref("party_id", "party"),
            ref("place_id", "place", "<Place> that serves it"),
            m.status("draft", "placed", "fulfilled", "cancelled", "returned"),
            ref("discount_id", "discount", null=True) if m.has("discounts") else None,
            cents("goods_cents", "Value of the <lines>, in cents", server=True, default=0),
            cents("delivery_cents", "Price of the delivery, in cents", server=True, default=0) if m.has("delivery") else None,
            cents("total_cents", "What is to be paid, in cents", server=True, default=0),
            flag("is_delivered", "Whether it is brought rather than fetched") if m.has("delivery") else None,
            text("note", "A note with it", null=True) if m.has("gift_notes") else None,
            created(),
            moment("placed_at", "When it was placed", null=True, server=True),
            moment("closed_at", "When it was fulfilled, cancelled or returned", null=True, server=True),
        ],
        label="reference",
    )
    m.entity(
        "line",
        [
            ref("order_id", "order", owned=True),
            ref("item_id", "item"),
            number("quantity", "How many", low=1, high=1000),
            cents("price_cents", "Price of one at that time, in cents", server=True),
        ],
        label="order_id item_id",
        uniques=["order_id item_id"],
    )
    if m.has("payments"):
        m.entity(
            "payment",
            [
                ref("order_id", "order", owned=True),
                cents("amount_cents", "How much, in cents", low=1),
                choice("method", _METHODS, "How"),
                ref("user_id", "user", "Who took it", name="taken_by_id"),
                created("paid_at", "When it was paid"),
            ],
            noun=("<order> payment", "<order> payments"),
            label="order_id paid_at",
        )


def _reading(m: Kit) -> None:
    delivered = " is_delivered" if m.has("delivery") else ""
    m.listing(
        "order",
        search="reference",
        filters=f"party_id place_id status created_at total_cents{delivered}",
        sorts="created_at total_cents",
        order="-id",
    )
    m.get("order", children=["line", *(["payment"] if m.has("payments") else [])])
    m.listing("line", filters="order_id item_id quantity")
    m.report(
        "report_<item>_sales",
        "line",
        ReturnTable(
            "item",
            "item",
            (
                Field("item_id", "int", "item.id", "Id of the <item>"),
                Field("name", "text", "item.name", "Name of the <item>"),
                Field("quantity", "int", f"total('line', 'quantity', {_counted()})", "How many were sold"),
                Field("orders", "int", f"count('line', {_counted()})", "In how many <orders>"),
            ),
            when=f"exists('line', {_counted()})",
            order=("-quantity", "name"),
        ),
        path="/reports/<item>-sales",
        summary="Count how many of each <item> were sold",
        description="Over all <orders> that are {state.placed} or {state.fulfilled}, most sold first.",
    )
    m.report(
        "summarize_<orders>",
        "order",
        ReturnRecord(
            (
                Field(
                    "orders",
                    "int",
                    "count('order', party_id=party.id, status__in=(state.placed, state.fulfilled))",
                    "<Orders> that stand",
                ),
                Field(
                    "total_cents",
                    "money",
                    "total('order', 'total_cents', party_id=party.id, status__in=(state.placed, state.fulfilled))",
                    "What they come to, in cents",
                ),
                Field(
                    "cancelled", "int", "count('order', party_id=party.id, status=state.cancelled)", "Those that were cancelled"
                ),
            )
        ),
        path="/<<all>>/summary",
        params=[Param("party_id", "ref", ref="party", about="Whose")],
        steps=[Load("party", "party", "party_id")],
        summary="Sum up the <orders> of a <party>",
        description="Counts those that are {state.placed} or {state.fulfilled}, and the cancelled ones apart.",
    )


def _counted() -> str:
    return "item_id=item.id, order__status__in=(state.placed, state.fulfilled)"


def _is(state: str, rule: str) -> Require:
    return Require(f"order.status == state.{state}", 409, "<Order> {order.reference} is {order.status}.", rule)


def _drafts(m: Kit) -> None:
    own = " is_delivered" if m.has("delivery") else ""
    note = " note" if m.has("gift_notes") else ""
    m.create(
        "order",
        f"party_id place_id{own}{note}",
        values={"reference": "serial('order', 'O')", "created_at": "now"},
        before=[
            NOT_BLOCKED,
            Require("place.is_open", 409, "{place.name} is not in use.", "place_open"),
        ],
        verb="start",
        action="started",
        summary="Start <a order> for a <party>",
        description="It is empty and {state.draft}; add <lines>, then place it.",
    )
    if own or note:
        m.update("order", f"{own}{note}", before=[_is("draft", "still_draft")])
    total = [_summed()]
    m.create(
        "line",
        "order_id item_id quantity",
        values={"price_cents": "item.price_cents"},
        before=[
            _is("draft", "still_draft"),
            Require("item.is_active", 409, "{item.name} is not offered at present.", "item_offered"),
            Require(
                "not exists('line', order_id=order.id, item_id=item.id)",
                409,
                "{item.name} is on it already; change that <line>.",
                "line_once",
            ),
            Require(
                "count('line', order_id=order.id) < policy.max_lines",
                409,
                "It has {policy.max_lines} <lines>, which is the most.",
                "max_lines",
            ),
        ],
        after=[Change("order", {"goods_cents": "order.goods_cents + quantity * item.price_cents"}), *total],
        verb="add",
        action="added",
        summary="Add <a item> to <a order>",
        description="At the price of now. Each <item> stands there once, and at most {policy.max_lines} <lines> do.",
    )
    m.act(
        "change",
        "line",
        [
            Let("order", "line.order"),
            _is("draft", "still_draft"),
            Require("quantity != line.quantity", 409, "The quantity is {quantity} already."),
            Change("order", {"goods_cents": "order.goods_cents + (quantity - line.quantity) * line.price_cents"}),
            *total,
            Change("line", {"quantity": "quantity"}),
        ],
        params=[Param("quantity", "int", low=1, high=1000, about="How many from now on")],
        method="PUT",
        path="/<<one>>/quantity",
        name=f"change_{m.entity_of('line').name}",
        action="changed",
        summary="Change the quantity of <a line>",
        description="While its <order> is {state.draft}.",
    )
    m.delete(
        "line",
        before=[
            Let("order", "line.order"),
            _is("draft", "still_draft"),
            Change("order", {"goods_cents": "order.goods_cents - line.quantity * line.price_cents"}),
            *total,
        ],
        verb="remove",
        summary="Take <a line> off its <order>",
        description="While the <order> is {state.draft}.",
    )


def _summed() -> Step:
    return Change("order", {"total_cents": "order.goods_cents"})


def _discounted(m: Kit) -> str:
    """What the goods cost, less the discount."""
    if not m.has("discounts"):
        return "order.goods_cents"
    less = "order.goods_cents - order.goods_cents * order.discount.percent // 100"
    return f"{less} if order.discount is not None else order.goods_cents"


def _progress(m: Kit) -> None:
    steps: list[Step] = [
        _is("draft", "still_draft"),
        Require(
            "exists('line', order_id=order.id)",
            409,
            "<Order> {order.reference} has no <lines>; add some first.",
            "order_not_empty",
        ),
        Let("goods", _discounted(m)),
    ]
    values = {"status": "state.placed", "placed_at": "now", "total_cents": "goods"}
    if m.has("delivery"):
        steps.append(Let("delivery", "490 if order.is_delivered and goods < policy.free_delivery_over * 100 else 0"))
        values |= {"delivery_cents": "delivery", "total_cents": "goods + delivery"}
        m.rule("Delivery is free for goods worth {policy.free_delivery_over}.00 or more and costs 4.90 below that.")
    m.act(
        "place",
        "order",
        [*steps, Change("order", values)],
        action="placed",
        summary="Place <a order> that is {state.draft}",
        description="Settles what is to be paid. Refused while it has no <lines>.",
    )
    m.act(
        "fulfil",
        "order",
        _fulfilling(m),
        action="fulfilled",
        summary="Note that <a order> was handed over",
        description=_fulfil_description(m),
    )
    m.act(
        "cancel",
        "order",
        [
            Require(
                "order.status in (state.draft, state.placed)",
                409,
                "<Order> {order.reference} is {order.status} and can't be cancelled any more.",
                "cancellable",
            ),
            Change("order", {"status": "state.cancelled", "closed_at": "now"}),
        ],
        summary="Cancel <a order>",
        description="Possible until it is {state.fulfilled}.",
    )


def _fulfil_description(m: Kit) -> str:
    paid = "Refused while it is not paid in full. " if m.has("payments") else ""
    return paid + (
        "Takes its <items> out of the <stocks> of its <place>." if _checks_stock(m) else "For <orders> that are {state.placed}."
    )


def _fulfilling(m: Kit) -> list[Step]:
    steps: list[Step] = [_is("placed", "is_placed")]
    if m.has("payments"):
        steps += [
            Let("paid", "total('payment', 'amount_cents', order_id=order.id)"),
            Require(
                "paid >= order.total_cents", 409, "{money(order.total_cents - paid)} of it are still to be paid.", "order_paid"
            ),
        ]
    if _checks_stock(m):
        found = Find("stock", "inventory.stock", {"item_id": "line.item_id", "place_id": "order.place_id"})
        steps += [
            Each(
                "line",
                "line",
                {"order_id": "order.id"},
                steps=(
                    found,
                    Require(
                        "stock is not None and stock.quantity >= line.quantity",
                        409,
                        "{order.place.name} has fewer than {line.quantity} of {line.item.name}.",
                        "order_in_stock",
                    ),
                ),
            ),
            Each(
                "line",
                "line",
                {"order_id": "order.id"},
                steps=(
                    found,
                    Change("stock", {"quantity": "stock.quantity - line.quantity"}),
                    Insert(
                        "movement",
                        "inventory.movement",
                        {
                            "stock_id": "stock.id",
                            "change": "0 - line.quantity",
                            "reason": "'sale'",
                            "user_id": "1",
                            "moved_at": "now",
                        },
                    ),
                ),
            ),
        ]
    return [*steps, Change("order", {"status": "state.fulfilled", "closed_at": "now"})]


def _payments(m: Kit) -> None:
    m.listing("payment", filters="order_id method paid_at amount_cents", order="-paid_at")
    m.create(
        "payment",
        "order_id amount_cents method",
        values={"user_id": "1", "paid_at": "now"},
        before=[
            _is("placed", "is_placed"),
            Let("due", "order.total_cents - total('payment', 'amount_cents', order_id=order.id)"),
            Require("amount_cents <= due", 409, "Only {money(due)} of it are still to be paid.", "not_overpaid"),
        ],
        verb="take",
        action="paid",
        summary="Enter a payment for <a order>",
        description="Not more than what is still due.",
    )


def _discounts(m: Kit) -> None:
    m.listing("discount", search="code", filters="is_active percent", order="code")
    m.create("discount", "code percent minimum_cents", verb="add")
    m.update("discount", "percent minimum_cents is_active")
    m.act(
        "apply_discount",
        "order",
        [
            _is("draft", "still_draft"),
            Load("discount", "discount", "discount_id"),
            Require("discount.is_active", 409, "The code {discount.code} is not given at present.", "discount_active"),
            Require(
                "order.goods_cents >= discount.minimum_cents",
                409,
                "The code {discount.code} is for goods worth {money(discount.minimum_cents)} or more.",
                "discount_minimum",
            ),
            Change("order", {"discount_id": "discount.id"}),
        ],
        params=[Param("discount_id", "ref", ref="discount", about="Id of the discount code")],
        method="PUT",
        path="/<<one>>/discount",
        name=f"apply_discount_to_{m.entity_of('order').name}",
        action="discounted",
        summary="Give a discount on <a order>",
        description="Taken off when the <order> is placed. Refused below the code's least value.",
    )


def _returns(m: Kit) -> None:
    m.rule("What was handed over can be brought back within {policy.return_days} days.")
    m.act(
        "return",
        "order",
        [
            _is("fulfilled", "is_fulfilled"),
            Require(
                "now <= order.closed_at + days(policy.return_days)",
                409,
                "It was handed over on {day(order.closed_at)}; it could be returned within {policy.return_days} days.",
                "return_in_time",
            ),
            Change("order", {"status": "state.returned", "closed_at": "now"}),
        ],
        action="returned",
        summary="Take back all of <a order>",
        description="Within {policy.return_days} days after it was handed over.",
    )


def seed(s: Seeding) -> None:
    if s.has("discounts"):
        for code, percent, least in (("WELCOME10", 10, 0), ("SPRING15", 15, 5000), ("TEAM20", 20, 10_000), ("SPRING5", 5, 0)):
            s.insert("discount", code=code, percent=percent, minimum_cents=least, is_active=code != "TEAM20")
    parties, places = s.rows("party", is_blocked=False), s.rows("place")
    for created_at in sorted([s.past(1, 60) for _ in range(28)] + [s.past(1, 4) for _ in range(8)]):
        age = (s.now - created_at).days
        state = (
            s.weighted(draft=4, placed=4, cancelled=1) if age < 6 else s.weighted(fulfilled=8, cancelled=2, returned=2, placed=1)
        )
        if state == "returned" and not s.has("returns"):
            state = "fulfilled"
        _seed_order(s, state, created_at, s.pick(parties)["id"], s.pick(places)["id"])


def _seed_order(s: Seeding, state: str, created_at: datetime, party_id: int, place_id: int) -> None:
    items = s.some(s.rows("item", is_active=True), s.between(1, 4))
    quantities = [s.number("quantity", 1, 4) for _ in items]
    goods = sum(item["price_cents"] * quantity for item, quantity in zip(items, quantities, strict=True))
    placed = state != "draft" and not (state == "cancelled" and s.chance(50))
    placed_at = created_at + timedelta(minutes=s.between(3, 50)) if placed else None
    closed_at = None
    if state in ("fulfilled", "returned", "cancelled"):
        closed_at = min(created_at + timedelta(days=s.between(1, 4), hours=1), s.now - timedelta(minutes=s.between(10, 600)))
        closed_at = max(closed_at, (placed_at or created_at) + timedelta(minutes=2))
    discount = s.pick(s.rows("discount", is_active=True)) if s.has("discounts") and s.chance(30) else None
    if discount is not None and goods < discount["minimum_cents"]:
        discount = None
    is_delivered = s.chance(50)
    to_pay = goods - goods * discount["percent"] // 100 if discount and placed else goods
    delivery = 490 if s.has("delivery") and placed and is_delivered and to_pay < s.policy["free_delivery_over"] * 100 else 0
    order = s.insert(
        "order",
        reference=f"O-{1001 + s.world.count('order.order')}",
        party_id=party_id,
        place_id=place_id,
        status=s.state[state],
        discount_id=discount["id"] if discount else None,
        goods_cents=goods,
        delivery_cents=delivery,
        total_cents=to_pay + delivery,
        is_delivered=is_delivered,
        note=s.pick(s.values("notes", "Please call before.")) if s.chance(35) else None,
        created_at=created_at,
        placed_at=placed_at,
        closed_at=closed_at,
    )
    for item, quantity in zip(items, quantities, strict=True):
        s.insert("line", order_id=order["id"], item_id=item["id"], quantity=quantity, price_cents=item["price_cents"])
    if s.has("payments") and placed_at is not None:
        whole = state in ("fulfilled", "returned")
        amount = order["total_cents"] if whole or s.chance(30) else order["total_cents"] // 200 * 100
        if amount:
            user = s.pick(s.rows("user", is_active=True))
            paid_at = placed_at + timedelta(minutes=s.between(1, 2))
            s.insert(
                "payment", order_id=order["id"], amount_cents=amount, method=s.pick(_METHODS), user_id=user["id"], paid_at=paid_at
            )
