"""Campaigns: money collected for a goal, pledged first and received later.

Past 300 lines and one file: tables, tools and start rows of a module are read together.
"""

from datetime import timedelta

from awm_factory.llm.offline.columns import cents, choice, created, day, flag, moment, ref, text
from awm_factory.llm.offline.ir import Param, Show
from awm_factory.llm.offline.kit import NOT_BLOCKED, Kit
from awm_factory.llm.offline.seeding import Seeding
from awm_factory.llm.offline.steps import Change, Field, Require, ReturnTable
from awm_factory.llm.offline.values import Row

FEATURES = ("dedications", "matching", "updates", "allocations", "receipts", "places")

_METHODS = ("transfer", "card", "cash")


def build(m: Kit) -> None:
    m.policy = {"refund_days": 14, "minimum": 5} | m.policy
    m.rule("<A donation> is of {policy.minimum} in full units or more, and made while its <campaign> is {state.running}.")
    m.rule("What was received can be given back for {policy.refund_days} days.")
    m.entity(
        "campaign",
        [
            text("name", "Name", unique=True),
            ref("manager_id", "user", "Who runs it", name="manager_id"),
            ref("place_id", "place", "<Place> that it is for", null=True) if m.has("places") else None,
            cents("goal_cents", "Goal in cents", low=1),
            day("begins_on", "First day"),
            day("ends_on", "Last day"),
            m.status("planned", "running", "closed"),
        ],
        label="name",
        checks=["ends_on >= begins_on"],
        shows=[Show("manager_name", "text", "self.manager.name", "Who runs it")],
    )
    m.entity(
        "donation",
        [
            text("reference", "Reference", unique=True, server=True),
            ref("campaign_id", "campaign"),
            ref("party_id", "party"),
            cents("amount_cents", "Amount in cents", low=1),
            choice("method", _METHODS, "How it is paid"),
            text("dedication", "To whom it is dedicated", null=True) if m.has("dedications") else None,
            flag("is_anonymous", "Whether the name is kept back"),
            m.status("pledged", "received", "refunded"),
            created("pledged_at", "When it was promised"),
            moment("received_at", "When it came in", null=True, server=True),
        ],
        label="reference",
    )
    m.invariant("donation", "(self.status == state.pledged) == (self.received_at is None)", "what has come in has a time of it")
    _campaigns(m)
    _donations(m)
    if m.has("matching"):
        _matching(m)
    if m.has("updates"):
        _updates(m)
    if m.has("allocations"):
        _allocations(m)
    if m.has("receipts"):
        _receipts(m)
    parts = {"matching": "match", "updates": "update", "allocations": "allocation"}
    m.get("campaign", children=[part for feature, part in parts.items() if m.has(feature)])
    m.get("donation", children=["receipt"] if m.has("receipts") else [])


def _received(campaign: str) -> str:
    return f"total('donation', 'amount_cents', campaign_id={campaign}.id, status=state.received)"


def _running() -> Require:
    return Require(
        "campaign.status == state.running", 409, "<Campaign> {campaign.name} is {campaign.status}.", "campaign_running"
    )


def _campaigns(m: Kit) -> None:
    place = " place_id" if m.has("places") else ""
    m.listing(
        "campaign",
        search="name",
        filters="status manager_id ends_on goal_cents" + place,
        sorts="ends_on goal_cents",
        order="name",
    )
    m.create(
        "campaign",
        "name manager_id goal_cents begins_on ends_on" + place,
        before=[
            Require("manager.is_active", 409, "{manager.name} does not work here at present.", "manager_active"),
            Require(
                "begins_on >= today and ends_on >= begins_on",
                422,
                "It begins today or later and ends after that.",
                "days_to_come",
            ),
        ],
        verb="plan",
        action="planned",
    )
    m.update(
        "campaign",
        "goal_cents ends_on",
        before=[
            Require("campaign.status != state.closed", 409, "<Campaign> {campaign.name} is {campaign.status}.", "not_closed"),
            Require(
                "ends_on is None or ends_on >= campaign.begins_on", 422, "It begins on {campaign.begins_on}.", "days_in_order"
            ),
        ],
    )
    m.act(
        "launch",
        "campaign",
        [
            Require("campaign.status == state.planned", 409, "<Campaign> {campaign.name} is {campaign.status}.", "is_planned"),
            Require("campaign.begins_on <= today", 409, "It begins on {campaign.begins_on} only.", "has_begun"),
            Change("campaign", {"status": "state.running"}),
        ],
        action="launched",
        description="From its first day on; it becomes {state.running}.",
    )
    m.act(
        "close",
        "campaign",
        [
            _running(),
            Require(
                "not exists('donation', campaign_id=campaign.id, status=state.pledged)",
                409,
                "{count('donation', campaign_id=campaign.id, status=state.pledged)} <donations> of it have not come in yet.",
                "all_settled",
            ),
            Change("campaign", {"status": "state.closed"}),
        ],
        description="Once nothing that was promised is missing.",
    )
    m.report(
        "report_<campaign>_totals",
        "campaign",
        ReturnTable(
            "campaign",
            "campaign",
            (
                Field("campaign_id", "int", "campaign.id", "Id of the <campaign>"),
                Field("campaign_name", "text", "campaign.name", "The <campaign>"),
                Field("goal_cents", "money", "campaign.goal_cents", "Goal in cents"),
                Field("received_cents", "money", _received("campaign"), "What came in, in cents"),
                Field(
                    "pledged_cents",
                    "money",
                    "total('donation', 'amount_cents', campaign_id=campaign.id, status=state.pledged)",
                    "What is promised besides, in cents",
                ),
                Field("donors", "int", "count('donation', campaign_id=campaign.id, status__ne=state.refunded)", "<Donations>"),
            ),
            order=("-received_cents", "campaign_name"),
        ),
        path="/reports/<campaign>-totals",
        summary="Sum up what each <campaign> has raised",
        description="One row for each <campaign>, the highest sum first.",
    )


def _donations(m: Kit) -> None:
    m.listing(
        "donation",
        search="reference",
        filters="campaign_id party_id status method amount_cents pledged_at",
        sorts="amount_cents pledged_at",
        order="-id",
    )
    m.create(
        "donation",
        "campaign_id party_id amount_cents method is_anonymous" + (" dedication" if m.has("dedications") else ""),
        values={"reference": "serial('donation', 'G')", "pledged_at": "now"},
        before=[
            _running(),
            NOT_BLOCKED,
            Require(
                "amount_cents >= policy.minimum * 100",
                422,
                "{money(policy.minimum * 100)} is the least that is taken.",
                "minimum",
            ),
            Require("campaign.ends_on >= today", 409, "<Campaign> {campaign.name} ended on {campaign.ends_on}.", "not_over"),
        ],
        verb="pledge",
        action="pledged",
        summary="Enter <a donation> that a <party> promises",
        description="Of {policy.minimum} in full units or more, while the <campaign> is {state.running}.",
    )
    m.act(
        "receive",
        "donation",
        [
            Require("donation.status == state.pledged", 409, "{donation.reference} is {donation.status}.", "is_pledged"),
            Change("donation", {"status": "state.received", "received_at": "now"}),
        ],
        action="received",
        summary="Note that <a donation> has come in",
    )
    m.act(
        "refund",
        "donation",
        [
            Require("donation.status == state.received", 409, "{donation.reference} is {donation.status}.", "is_received"),
            Require(
                "donation.received_at >= now - days(policy.refund_days)",
                409,
                "{donation.reference} came in at {donation.received_at} and could be given back for {policy.refund_days} days.",
                "refund_in_time",
            ),
            Change("donation", {"status": "state.refunded"}),
        ],
        action="refunded",
        summary="Give back <a donation>",
        description="For {policy.refund_days} days after it came in.",
    )
    m.act(
        "change_amount",
        "donation",
        [
            Require("donation.status == state.pledged", 409, "{donation.reference} is {donation.status}.", "is_pledged"),
            Require(
                "amount_cents >= policy.minimum * 100",
                422,
                "{money(policy.minimum * 100)} is the least that is taken.",
                "minimum",
            ),
            Require("amount_cents != donation.amount_cents", 409, "{donation.reference} is {money(amount_cents)} already."),
            Change("donation", {"amount_cents": "amount_cents"}),
        ],
        params=[Param("amount_cents", "money", low=1, about="New amount in cents")],
        method="PUT",
        path="/<<one>>/amount",
        name=f"change_{m.entity_of('donation').name}_amount",
        action="changed",
        summary="Change the amount of <a donation>",
        description="Until it has come in.",
    )


def _matching(m: Kit) -> None:
    m.entity(
        "match",
        [
            ref("campaign_id", "campaign", owned=True),
            ref("party_id", "party", "<Party> that adds to it"),
            cents("limit_cents", "Most that they add, in cents", low=100),
        ],
        noun=("<campaign> matching", "<campaign> matchings"),
        label="campaign_id party_id",
        uniques=["campaign_id party_id"],
    )
    m.create(
        "match",
        "campaign_id party_id limit_cents",
        before=[
            Require("campaign.status != state.closed", 409, "<Campaign> {campaign.name} is {campaign.status}.", "not_closed"),
            Require(
                "not exists('match', campaign_id=campaign.id, party_id=party.id)", 409, "{party.name} adds to it.", "match_once"
            ),
        ],
        verb="arrange",
        action="arranged",
        summary="Note that a <party> adds the same again to <a campaign>",
        description="Up to a limit; one arrangement a <party>.",
    )
    m.update("match", "limit_cents", summary="Change the limit of a <party> that adds to <a campaign>")
    m.delete("match", verb="end")


def _updates(m: Kit) -> None:
    m.entity(
        "update",
        [
            ref("campaign_id", "campaign", owned=True),
            text("title", "Title"),
            text("body", "What it says"),
            created("posted_at", "When it was posted"),
        ],
        noun=("<campaign> news", "<campaign> news items"),
        label="campaign_id title",
    )
    m.listing("update", search="title body", filters="campaign_id posted_at", order="-id")
    m.create(
        "update",
        "campaign_id title body",
        values={"posted_at": "now"},
        before=[_running()],
        verb="post",
        action="posted",
        summary="Post news about <a campaign>",
    )
    m.delete("update", summary="Take back news about <a campaign>")


def _allocations(m: Kit) -> None:
    spent = "total('allocation', 'amount_cents', campaign_id=campaign.id)"
    m.entity(
        "allocation",
        [
            ref("campaign_id", "campaign"),
            text("purpose", "What it is spent on"),
            cents("amount_cents", "Amount in cents", low=1),
            created("allocated_at", "When"),
        ],
        noun=("<campaign> expense", "<campaign> expenses"),
        label="campaign_id purpose",
    )
    m.listing("allocation", search="purpose", filters="campaign_id amount_cents", sorts="amount_cents", order="-id")
    m.create(
        "allocation",
        "campaign_id purpose amount_cents",
        values={"allocated_at": "now"},
        before=[
            Require(
                f"{spent} + amount_cents <= {_received('campaign')}",
                409,
                f"{{money({_received('campaign')} - {spent})}} is left of what came in for {{campaign.name}}.",
                "covered",
            )
        ],
        verb="enter",
        action="entered",
        summary="Enter what money of <a campaign> is spent on",
        description="Never more than has come in.",
    )


def _receipts(m: Kit) -> None:
    m.entity(
        "receipt",
        [
            ref("donation_id", "donation", owned=True),
            text("number", "Number", unique=True, server=True),
            day("issued_on", "Day", server=True),
        ],
        noun=("<donation> receipt", "<donation> receipts"),
        label="number",
        uniques=["donation_id"],
    )
    m.create(
        "receipt",
        "donation_id",
        values={"number": "serial('receipt', 'Q')", "issued_on": "today"},
        before=[
            Require("donation.status == state.received", 409, "{donation.reference} is {donation.status}.", "is_received"),
            Require("not exists('receipt', donation_id=donation.id)", 409, "There is a receipt for it already.", "receipt_once"),
        ],
        verb="issue",
        action="issued",
        summary="Issue a receipt for <a donation>",
        description="Once it has come in; one each.",
    )
    m.listing("receipt", search="number", filters="donation_id issued_on", order="-id")


def seed(s: Seeding) -> None:
    users, places = s.rows("user", is_active=True), s.rows("place")
    states = ("running", "closed", "running", "planned", "running", "closed")
    for turn, name in enumerate(s.values("campaign_names", "Spring appeal", "New roof", "Summer camp", "Winter fund")[:6]):
        state = states[turn]
        begins = s.at(s.between(5, 40) if state == "planned" else -s.between(60, 140)).date()
        ends = s.at(-s.between(5, 20)).date() if state == "closed" else s.at(s.between(50, 120)).date()
        s.insert(
            "campaign",
            name=name,
            manager_id=users[turn % len(users)]["id"],
            place_id=s.pick(places)["id"] if s.chance(60) else None,
            goal_cents=s.cents("goal", 500, 20000),
            begins_on=begins,
            ends_on=ends,
            status=s.state[state],
        )
    _seed_donations(s)
    _seed_parts(s)


def _seed_donations(s: Seeding) -> None:
    parties = s.rows("party", is_blocked=False)
    dedications = s.values("dedications", "For my grandmother", "From the whole team")
    drawn = []
    for campaign in s.rows("campaign", status__ne=s.state["planned"]):
        last = min(s.today, campaign["ends_on"])
        span = (last - campaign["begins_on"]).days
        for _ in range(s.between(6, 10)):
            ago = (s.today - campaign["begins_on"]).days - s.between(1, max(2, span - 4))
            drawn.append((s.at(-max(1, ago), s.between(8, 20), s.pick((3, 17, 31, 44))), campaign))
    for pledged, campaign in sorted(drawn, key=lambda draw: draw[0]):
        closed = campaign["status"] == s.state["closed"]
        state = s.weighted(received=7, refunded=1) if closed else s.weighted(pledged=4, received=6, refunded=1)
        s.insert(
            "donation",
            reference=f"G-{1001 + s.world.count('campaign.donation')}",
            campaign_id=campaign["id"],
            party_id=s.pick(parties)["id"],
            amount_cents=max(s.policy["minimum"] * 100, s.cents("amount", 5, 250)),
            method=s.pick(_METHODS),
            dedication=s.pick(dedications) if s.chance(35) else None,
            is_anonymous=s.chance(15),
            status=s.state[state],
            pledged_at=pledged,
            received_at=None if state == "pledged" else pledged + timedelta(hours=s.between(1, 10)),
        )


def _seed_parts(s: Seeding) -> None:
    campaigns: list[Row] = s.rows("campaign", status__ne=s.state["planned"])
    parties = s.rows("party", is_blocked=False)
    if s.has("matching"):
        for campaign in s.some(campaigns, 3):
            s.insert("match", campaign_id=campaign["id"], party_id=s.pick(parties)["id"], limit_cents=10000 * s.between(1, 20))
    if s.has("updates"):
        for posted, campaign in sorted(((s.past(1, 30), campaign) for campaign in campaigns), key=lambda pair: pair[0]):
            s.insert(
                "update",
                campaign_id=campaign["id"],
                title=s.pick(("Half of it is there", "Thank you", "Two weeks left")),
                body=s.pick(("More of you than ever have given.", "Every amount helps.", "We show the result on the open day.")),
                posted_at=posted,
            )
    if s.has("allocations"):
        for spent, campaign in sorted(((s.past(1, 20), campaign) for campaign in campaigns), key=lambda pair: pair[0]):
            had = sum(row["amount_cents"] for row in s.rows("donation", campaign_id=campaign["id"], status=s.state["received"]))
            if had > 2000:
                purpose = s.pick(("Material", "Printing", "Transport", "First instalment"))
                amount = had // 400 * 100
                s.insert("allocation", campaign_id=campaign["id"], purpose=purpose, amount_cents=amount, allocated_at=spent)
    if s.has("receipts"):
        for donation in s.some(s.rows("donation", status=s.state["received"]), 9):
            number_ = 1001 + s.world.count("campaign.receipt")
            s.insert("receipt", donation_id=donation["id"], number=f"Q-{number_}", issued_on=donation["received_at"].date())
