"""Auction: lots that parties bid on until they end, sold to the highest bid that reaches the reserve.

Past 300 lines and one file: tables, tools and start rows of a module are read together.
"""

from datetime import timedelta

from awm_factory.llm.offline.columns import cents, choice, created, day, flag, moment, number, ref, text
from awm_factory.llm.offline.ir import Param, Show
from awm_factory.llm.offline.kit import NOT_BLOCKED, Kit
from awm_factory.llm.offline.seeding import Seeding
from awm_factory.llm.offline.steps import Change, Field, Insert, Let, Load, Require, ReturnTable
from awm_factory.llm.offline.values import Row

FEATURES = ("reserves", "watchers", "viewings", "sales", "bidder_limits", "categories")


def build(m: Kit) -> None:
    m.policy = {"max_bids": 10} | m.policy
    m.rule("<A bid> is higher than the last by the <lot>'s increment or more, and not one's own that leads already.")
    m.rule("<A party> makes at most {policy.max_bids} <bids> on <a lot>.")
    m.entity(
        "lot",
        [
            text("title", "Title"),
            number("number", "Number in the catalogue", low=1, unique=True),
            choice("condition", m.part.values.get("conditions", ["good", "fair", "poor"]), "Condition"),
            ref("category_id", "category") if m.has("categories") else None,
            ref("consignor_id", "party", "Whose it is", name="consignor_id"),
            ref("place_id", "place", "<Place> where it is kept"),
            cents("start_cents", "First <bid> that is taken, in cents", low=1),
            cents("increment_cents", "Least step between <bids>, in cents", low=1),
            cents("reserve_cents", "Sum below which it is not sold, in cents", null=True) if m.has("reserves") else None,
            moment("ends_at", "When it ends, UTC"),
            m.status("open", "sold", "unsold", "withdrawn"),
            ref("winner_id", "party", "Who got it", null=True, name="winner_id", server=True),
        ],
        label="number",
        shows=[
            Show("consignor_name", "text", "self.consignor.name", "Whose it is"),
            Show("winner_name", "text", "self.winner.name if self.winner_id is not None else None", "Who got it"),
        ],
    )
    m.entity(
        "bid",
        [
            ref("lot_id", "lot", owned=True),
            ref("party_id", "party"),
            cents("amount_cents", "Amount in cents", low=1),
            created("placed_at", "When it was made"),
        ],
        label="lot_id amount_cents",
        uniques=["lot_id amount_cents"],
        shows=[Show("lot_number", "int", "self.lot.number", "Number of the <lot>")],
    )
    m.invariant("lot", "(self.status == state.sold) == (self.winner_id is not None)", "what is sold has somebody who got it")
    if m.has("bidder_limits"):
        _limits(m)
    _lots(m)
    _bids(m)
    if m.has("watchers"):
        _watchers(m)
    if m.has("viewings"):
        _viewings(m)
    if m.has("sales"):
        _sales(m)
    parts = {"watchers": "watch", "viewings": "viewing", "sales": "sale"}
    m.get("lot", children=["bid", *(part for feature, part in parts.items() if m.has(feature))])


def _open() -> Require:
    return Require("lot.status == state.open", 409, "<Lot> {lot.number} is {lot.status}.", "lot_open")


def _lots(m: Kit) -> None:
    extra = (" category_id" if m.has("categories") else "") + (" reserve_cents" if m.has("reserves") else "")
    m.listing(
        "lot",
        search="title",
        filters="number condition consignor_id place_id status start_cents ends_at"
        + (" category_id" if m.has("categories") else ""),
        sorts="number start_cents ends_at",
        order="number",
    )
    m.create(
        "lot",
        "title number condition consignor_id place_id start_cents increment_cents ends_at" + extra,
        before=[
            Require(
                "not consignor.is_blocked", 409, "{consignor.name} is blocked; nothing new may be entered.", "party_not_blocked"
            ),
            Require("ends_at > now", 422, "It is {now} now; it ends later than that.", "ends_later"),
            *(
                [
                    Require(
                        "reserve_cents is None or reserve_cents >= start_cents",
                        422,
                        "What it is not sold below is at least what <bids> start at, {money(start_cents)}.",
                        "reserve_above_start",
                    )
                ]
                if m.has("reserves")
                else []
            ),
        ],
        verb="offer",
        action="offered",
        summary="Offer a new <lot>",
        description="It is {state.open} until its end.",
    )
    m.act(
        "extend",
        "lot",
        [
            _open(),
            Require("ends_at > lot.ends_at", 422, "It ends at {lot.ends_at}; a later moment is wanted.", "later"),
            Change("lot", {"ends_at": "ends_at"}),
        ],
        params=[Param("ends_at", "datetime", about="New end, UTC")],
        action="extended",
        summary="Let <a lot> end later",
    )
    m.act(
        "withdraw",
        "lot",
        [
            _open(),
            Require(
                "not exists('bid', lot_id=lot.id)",
                409,
                "There are <bids> on <lot> {lot.number}; it must be seen through.",
                "no_bids",
            ),
            Change("lot", {"status": "state.withdrawn"}),
        ],
        description="While nobody has made <a bid>.",
    )
    reached = (
        " and (lot.reserve_cents is None or highest('bid', 'amount_cents', lot_id=lot.id) >= lot.reserve_cents)"
        if m.has("reserves")
        else ""
    )
    m.act(
        "award",
        "lot",
        [
            Load("bid", "bid", "bid_id"),
            _open(),
            Require("lot.ends_at <= now", 409, "<Lot> {lot.number} ends at {lot.ends_at} only.", "has_ended"),
            Require("bid.lot_id == lot.id", 422, "That <bid> is for another <lot>.", "own_bid"),
            Require(
                "bid.amount_cents == highest('bid', 'amount_cents', lot_id=lot.id)",
                409,
                "{money(highest('bid', 'amount_cents', lot_id=lot.id))} was the highest for <lot> {lot.number}.",
                "highest_bid",
            ),
            *(
                [
                    Require(
                        "lot.reserve_cents is None or bid.amount_cents >= lot.reserve_cents",
                        409,
                        "<Lot> {lot.number} is not sold below {money(lot.reserve_cents)}.",
                        "reserve_reached",
                    )
                ]
                if m.has("reserves")
                else []
            ),
            Change("lot", {"status": "state.sold", "winner_id": "bid.party_id"}),
        ],
        params=[Param("bid_id", "ref", ref="bid", about="Highest <bid>")],
        action="awarded",
        summary="Sell <a lot> to the highest <bid>",
        description="After its end.",
    )
    m.act(
        "pass",
        "lot",
        [
            _open(),
            Require("lot.ends_at <= now", 409, "<Lot> {lot.number} ends at {lot.ends_at} only.", "has_ended"),
            Require(
                f"not (exists('bid', lot_id=lot.id){reached})",
                409,
                "There is <a bid> on <lot> {lot.number} that it must be sold to.",
                "nothing_to_sell",
            ),
            Change("lot", {"status": "state.unsold"}),
        ],
        action="passed",
        summary="Close <a lot> that found no buyer",
        description="After its end; it becomes {state.unsold}.",
    )
    m.report(
        "report_<lot>_standings",
        "lot",
        ReturnTable(
            "lot",
            "lot",
            (
                Field("lot_id", "int", "lot.id", "Id of the <lot>"),
                Field("number", "int", "lot.number", "Number"),
                Field("title", "text", "lot.title", "Title"),
                Field("bids", "int", "count('bid', lot_id=lot.id)", "<Bids> on it"),
                Field("highest_cents", "money", "highest('bid', 'amount_cents', lot_id=lot.id)", "The highest, in cents"),
                Field("ends_at", "datetime", "lot.ends_at", "When it ends, UTC"),
            ),
            where={"status": "state.open"},
            order=("ends_at", "number"),
        ),
        path="/reports/<lot>-standings",
        summary="List open <lots> with their highest <bid>",
        description="Those that are {state.open}, the one that ends first first.",
    )


def _bids(m: Kit) -> None:
    m.listing("bid", filters="lot_id party_id amount_cents placed_at", sorts="amount_cents placed_at", order="-id")
    limit = (
        [
            Require(
                "not exists('limit', party_id=party.id, limit_cents__lt=amount_cents)",
                409,
                "{party.name} may not go as high as {money(amount_cents)}.",
                "bidder_limit",
            )
        ]
        if m.has("bidder_limits")
        else []
    )
    m.create(
        "bid",
        "lot_id party_id amount_cents",
        values={"placed_at": "now"},
        before=[
            _open(),
            Require("lot.ends_at > now", 409, "<Lot> {lot.number} ended at {lot.ends_at}.", "not_ended"),
            NOT_BLOCKED,
            Require("party.id != lot.consignor_id", 409, "It is {party.name}'s own.", "not_own_lot"),
            Let("leading", "highest('bid', 'amount_cents', lot_id=lot.id)"),
            Require(
                "leading is not None or amount_cents >= lot.start_cents",
                409,
                "It starts at {money(lot.start_cents)}.",
                "start_reached",
            ),
            Require(
                "leading is None or amount_cents >= leading + lot.increment_cents",
                409,
                "{money(leading)} leads; {money(leading + lot.increment_cents)} is the least now.",
                "high_enough",
            ),
            Require(
                "leading is None or not exists('bid', lot_id=lot.id, amount_cents=leading, party_id=party.id)",
                409,
                "{party.name} leads already.",
                "not_leading",
            ),
            Require(
                "count('bid', lot_id=lot.id, party_id=party.id) < policy.max_bids",
                409,
                "{party.name} has made {policy.max_bids} <bids> on it, which is the most.",
                "max_bids",
            ),
            *limit,
        ],
        verb="place",
        action="placed",
        description="At least the start, or the leading one and the increment of the <lot>.",
    )


def _limits(m: Kit) -> None:
    m.entity(
        "limit",
        [ref("party_id", "party"), cents("limit_cents", "Most that they may bid, in cents", low=100), text("reason", "Why")],
        noun=("bidder limit", "bidder limits"),
        label="party_id",
        uniques=["party_id"],
    )
    m.listing("limit", filters="party_id")
    m.create(
        "limit",
        "party_id limit_cents reason",
        before=[
            Require("not exists('limit', party_id=party.id)", 409, "{party.name} has a limit already; change that.", "one_limit")
        ],
        verb="set",
        action="set",
        summary="Set the most that a <party> may bid",
    )
    m.update("limit", "limit_cents reason")
    m.delete("limit", verb="lift")


def _watchers(m: Kit) -> None:
    m.entity(
        "watch",
        [ref("lot_id", "lot", owned=True), ref("party_id", "party"), created("since", "Since when")],
        noun=("<lot> watcher", "<lot> watchers"),
        label="lot_id party_id",
        uniques=["lot_id party_id"],
    )
    m.create(
        "watch",
        "lot_id party_id",
        values={"since": "now"},
        before=[
            _open(),
            Require(
                "not exists('watch', lot_id=lot.id, party_id=party.id)", 409, "{party.name} watches it already.", "watch_once"
            ),
        ],
        verb="add",
        summary="Note that a <party> watches <a lot>",
    )
    m.listing("watch", filters="lot_id party_id")
    m.delete("watch", verb="remove")


def _viewings(m: Kit) -> None:
    m.entity(
        "viewing",
        [
            ref("lot_id", "lot", owned=True),
            ref("party_id", "party"),
            moment("at", "When, UTC", name="viewing_at"),
            flag("is_done", "Whether it took place"),
        ],
        noun=("<lot> viewing", "<lot> viewings"),
        label="lot_id party_id",
        uniques=["lot_id at"],
    )
    m.listing("viewing", filters="lot_id party_id is_done at", order="at")
    m.create(
        "viewing",
        "lot_id party_id at",
        before=[
            _open(),
            Require("at > now and at < lot.ends_at", 422, "It lies between now and the end, {lot.ends_at}.", "viewing_in_time"),
            Require("not exists('viewing', lot_id=lot.id, at=at)", 409, "Somebody else looks at it then.", "one_viewing"),
        ],
        verb="arrange",
        action="arranged",
        description="Before the <lot> ends, one <party> at a time.",
    )
    m.act(
        "hold",
        "viewing",
        [Require("not viewing.is_done", 409, "It took place already.", "not_done"), Change("viewing", {"is_done": "True"})],
        action="held",
        summary="Note that a viewing took place",
    )


def _sales(m: Kit) -> None:
    m.entity(
        "sale",
        [
            ref("lot_id", "lot"),
            text("number", "Number of the bill", unique=True, server=True),
            cents("hammer_cents", "Highest <bid>, in cents", server=True),
            cents("fee_cents", "Buyer's fee of a tenth, in cents", server=True),
            day("due_on", "Day by which it is to be paid", server=True),
            flag("is_paid", "Whether it is paid"),
        ],
        noun=("<lot> bill", "<lot> bills"),
        label="number",
        uniques=["lot_id"],
    )
    m.listing("sale", search="number", filters="lot_id is_paid due_on hammer_cents", sorts="due_on hammer_cents", order="-id")
    m.act(
        "bill",
        "lot",
        [
            Require("lot.status == state.sold", 409, "<Lot> {lot.number} is {lot.status}.", "is_sold"),
            Require("not exists('sale', lot_id=lot.id)", 409, "There is a bill for it already.", "billed_once"),
            Let("hammer", "highest('bid', 'amount_cents', lot_id=lot.id)"),
            Insert(
                "sale",
                "sale",
                {
                    "lot_id": "lot.id",
                    "number": "serial('sale', 'S')",
                    "hammer_cents": "hammer",
                    "fee_cents": "hammer // 10",
                    "due_on": "today + days(14)",
                },
            ),
        ],
        children=[("sale", "lot_id")],
        action="billed",
        summary="Bill whoever got <a lot>",
        description="The highest <bid> and a tenth of it, to be paid within 14 days.",
    )
    m.act(
        "pay",
        "sale",
        [Require("not sale.is_paid", 409, "{sale.number} is paid already.", "not_paid"), Change("sale", {"is_paid": "True"})],
        summary="Note that a bill is paid",
    )


def seed(s: Seeding) -> None:
    parties, places = s.rows("party", is_blocked=False), s.rows("place")
    conditions, categories = s.values("conditions", "good", "fair", "poor"), s.rows("category")
    titles = s.values("lot_names", "Old clock", "Oak table", "Box of books", "Silver spoons")
    if s.has("bidder_limits"):
        for party in s.some(parties, 4):
            s.insert(
                "limit", party_id=party["id"], limit_cents=10000 * s.between(30, 90), reason=s.pick(("New here", "Own wish"))
            )
    ends = sorted([s.at(-days, 18) for days in s.some(range(1, 40), 9)] + [s.at(days, 18) for days in s.some(range(2, 30), 9)])
    for turn, end in enumerate(ends):
        start = s.cents("start_price", 20, 400)
        s.insert(
            "lot",
            title=titles[turn % len(titles)],
            number=101 + turn,
            condition=s.pick(conditions),
            category_id=s.pick(categories)["id"],
            consignor_id=parties[(turn * 5) % len(parties)]["id"],
            place_id=s.pick(places)["id"],
            start_cents=start,
            increment_cents=max(100, s.cents("increment", 2, 20)),
            reserve_cents=start * s.between(11, 18) // 1000 * 100 + start if s.chance(50) else None,
            ends_at=end,
            status=s.state["open"],
        )
    _seed_bids(s, parties)
    for turn, lot in enumerate(s.rows("lot", ends_at__lt=s.now)):
        _settle(s, lot, leave_open=turn % 4 == 3)
    _seed_parts(s, parties)


def _seed_bids(s: Seeding, parties: list[Row]) -> None:
    limits = {row["party_id"]: row["limit_cents"] for row in s.rows("limit")} if s.has("bidder_limits") else {}
    drawn = []
    for lot in s.rows("lot"):
        begun = min(lot["ends_at"], s.now) - timedelta(days=6)
        amount, last = lot["start_cents"], 0
        for place in range(s.between(0, min(6, s.policy["max_bids"]))):
            able = [
                party
                for party in parties
                if party["id"] not in (last, lot["consignor_id"]) and limits.get(party["id"], amount) >= amount
            ]
            bidder = s.pick(able)
            drawn.append((begun + timedelta(hours=20 * place + s.between(0, 9), minutes=s.between(0, 50)), lot, bidder, amount))
            amount, last = amount + lot["increment_cents"] * s.between(1, 4), bidder["id"]
    for placed, lot, bidder, amount in sorted(drawn, key=lambda draw: (draw[0], draw[1]["id"])):
        s.insert("bid", lot_id=lot["id"], party_id=bidder["id"], amount_cents=amount, placed_at=placed)


def _settle(s: Seeding, lot: Row, *, leave_open: bool) -> None:
    bids = s.rows("bid", lot_id=lot["id"])
    if leave_open:
        return
    best = max(bids, key=lambda bid: bid["amount_cents"]) if bids else None
    if best is None or (lot.get("reserve_cents") or 0) > best["amount_cents"]:
        s.change("lot", lot, status=s.state["unsold"])
        return
    s.change("lot", lot, status=s.state["sold"], winner_id=best["party_id"])
    if s.has("sales") and s.chance(70):
        number_ = 1001 + s.world.count("auction.sale")
        s.insert(
            "sale",
            lot_id=lot["id"],
            number=f"S-{number_}",
            hammer_cents=best["amount_cents"],
            fee_cents=best["amount_cents"] // 10,
            due_on=lot["ends_at"].date() + timedelta(days=14),
            is_paid=s.chance(50),
        )


def _seed_parts(s: Seeding, parties: list[Row]) -> None:
    coming = s.rows("lot", ends_at__gt=s.now)
    if s.has("watchers"):
        for lot in coming:
            for party in s.some(parties, s.between(0, 2)):
                s.insert("watch", lot_id=lot["id"], party_id=party["id"], since=s.past(1, 6))
    if s.has("viewings"):
        for turn, lot in enumerate(coming[:6]):
            at = s.at(1, 9 + turn)
            s.insert("viewing", lot_id=lot["id"], party_id=s.pick(parties)["id"], at=at, is_done=False)
        for lot in s.some(s.rows("lot", ends_at__lt=s.now), 3):
            held = lot["ends_at"] - timedelta(days=2)
            s.insert("viewing", lot_id=lot["id"], party_id=s.pick(parties)["id"], at=held, is_done=True)
