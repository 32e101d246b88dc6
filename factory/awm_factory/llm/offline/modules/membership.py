"""Memberships: plans that parties hold, pause and end, and what is billed for them every month.

Past 300 lines and one file: tables, tools and start rows of a module are read together.
"""

from datetime import date, timedelta

from awm_factory.llm.offline.columns import cents, created, day, flag, number, ref, text
from awm_factory.llm.offline.expr import add_months
from awm_factory.llm.offline.ir import Param
from awm_factory.llm.offline.kit import NOT_BLOCKED, Kit
from awm_factory.llm.offline.seeding import Seeding
from awm_factory.llm.offline.steps import Change, Field, Insert, Load, Require, ReturnRecord, Step

FEATURES = ("benefits", "guests", "discounts", "pauses", "due_dates", "reminders")

_BENEFITS = ("Priority service", "Guest passes", "Newsletter by post", "Reduced fees", "Yearly gift")


def build(m: Kit) -> None:
    m.policy = {"pause_days": 60, "notice_days": 30} | m.policy
    m.rule("<A membership> ends {policy.notice_days} days after notice was given.")
    m.rule("<A membership> is paused for at most {policy.pause_days} days.")
    _entities(m)
    m.listing("plan", search="name", filters="is_offered fee_cents", order="fee_cents")
    m.update("plan", "fee_cents is_offered")
    _memberships(m)
    _invoices(m)
    if m.has("benefits"):
        _benefits(m)
    if m.has("guests"):
        _guests(m)
    if m.has("reminders"):
        _reminders(m)
    m.get("plan", children=["benefit"] if m.has("benefits") else [])
    m.get("membership", children=["invoice", "guest"] if m.has("guests") else ["invoice"])


def _entities(m: Kit) -> None:
    m.entity(
        "plan",
        [
            text("name", "Name", unique=True),
            cents("fee_cents", "What it costs a month, in cents"),
            number("months", "For how many months it runs at least", low=1, high=36),
            flag("is_offered", "Whether it can be taken out at present", default=True),
        ],
        label="name",
    )
    m.entity(
        "membership",
        [
            text("number", "Number", unique=True, server=True),
            ref("party_id", "party"),
            ref("plan_id", "plan"),
            m.status("active", "paused", "ended"),
            number("discount_percent", "By how many per cent it is cheaper", high=50, default=0) if m.has("discounts") else None,
            day("started_on", "First day"),
            day("ends_on", "Last day, where notice was given or it has ended", null=True, server=True),
            day("paused_until", "Last day of the pause", null=True, server=True) if m.has("pauses") else None,
            created(),
        ],
        label="number",
    )
    m.entity(
        "invoice",
        [
            text("number", "Number", unique=True, server=True),
            ref("membership_id", "membership", owned=True),
            day("month", "First day of the month it is for"),
            cents("amount_cents", "How much, in cents", server=True),
            m.status("unpaid", "paid", "waived"),
            day("due_on", "Day by which it is to be paid", server=True) if m.has("due_dates") else None,
            day("paid_on", "Day it was paid", null=True, server=True),
        ],
        label="number",
        uniques=["membership_id month"],
    )
    m.invariant("invoice", "(self.status == state.paid) == (self.paid_on is not None)", "what is paid has a day of it")


def _memberships(m: Kit) -> None:
    discount = " discount_percent" if m.has("discounts") else ""
    m.listing(
        "membership",
        search="number",
        filters=f"party_id plan_id status started_on{discount}",
        sorts="started_on",
        order="-started_on",
    )
    m.create(
        "membership",
        f"party_id plan_id{discount}",
        values={"number": "serial('membership', 'M')", "started_on": "today", "created_at": "now"},
        before=[
            NOT_BLOCKED,
            Require("plan.is_offered", 409, "The <plan> {plan.name} can't be taken out at present.", "plan_offered"),
            Require(
                "not exists('membership', party_id=party.id, plan_id=plan.id, status__in=(state.active, state.paused))",
                409,
                "{party.name} has <a membership> of {plan.name} already.",
                "one_of_a_plan",
            ),
        ],
        verb="take_out",
        name=f"take_out_{m.entity_of('membership').name}",
        action="taken out",
        summary="Take out <a membership> for a <party>",
        description="From today on. One of each <plan> that has not ended.",
    )
    active = Require(
        "membership.status == state.active", 409, "<Membership> {membership.number} is {membership.status}.", "membership_active"
    )
    m.act(
        "change_plan",
        "membership",
        [
            active,
            Load("plan", "plan", "plan_id"),
            Require("plan.is_offered", 409, "The <plan> {plan.name} can't be taken out at present.", "plan_offered"),
            Require("plan.id != membership.plan_id", 409, "It is of that <plan> already.", "other_plan"),
            Change("membership", {"plan_id": "plan.id"}),
        ],
        params=[Param("plan_id", "ref", ref="plan", about="<Plan> from now on")],
        method="PUT",
        path="/<<one>>/plan",
        name=f"change_plan_of_{m.entity_of('membership').name}",
        action="changed",
        summary="Put <a membership> on another <plan>",
        description="Later <invoices> are of the new fee.",
    )
    if m.has("pauses"):
        m.act(
            "pause",
            "membership",
            [
                active,
                Require("until > today", 422, "The pause ends after today, {today}.", "pause_to_come"),
                Require(
                    "until <= today + days(policy.pause_days)",
                    409,
                    "A pause takes at most {policy.pause_days} days, until {today + days(policy.pause_days)}.",
                    "pause_days",
                ),
                Change("membership", {"status": "state.paused", "paused_until": "until"}),
            ],
            params=[Param("until", "date", about="Last day of the pause")],
            summary="Pause <a membership>",
            description="For at most {policy.pause_days} days from today.",
        )
        m.act(
            "resume",
            "membership",
            [
                Require(
                    "membership.status == state.paused",
                    409,
                    "<Membership> {membership.number} is {membership.status}.",
                    "membership_paused",
                ),
                Change("membership", {"status": "state.active", "paused_until": "None"}),
            ],
            summary="Go on with <a membership> that is {state.paused}",
            description="From today on.",
        )
    m.act(
        "give_notice",
        "membership",
        [
            Require(
                "membership.status != state.ended", 409, "<Membership> {membership.number} has ended.", "membership_not_ended"
            ),
            Require("membership.ends_on is None", 409, "Notice was given; it ends on {membership.ends_on}.", "notice_once"),
            Change("membership", {"ends_on": "today + days(policy.notice_days)"}),
        ],
        path="/<<one>>/notice",
        name=f"give_notice_for_{m.entity_of('membership').name}",
        action="given notice",
        summary="Give notice for <a membership>",
        description="It ends {policy.notice_days} days from today.",
    )
    m.act(
        "end",
        "membership",
        [
            Require(
                "membership.status != state.ended", 409, "<Membership> {membership.number} has ended.", "membership_not_ended"
            ),
            Require(
                "not exists('invoice', membership_id=membership.id, status=state.unpaid)",
                409,
                "It has <invoices> that are {state.unpaid}; settle them first.",
                "nothing_unpaid",
            ),
            Change("membership", {"status": "state.ended", "ends_on": "today"}),
        ],
        action="ended",
        summary="End <a membership> at once",
        description="Refused while <a invoice> of it is {state.unpaid}.",
    )


def _invoices(m: Kit) -> None:
    due = " due_on" if m.has("due_dates") else ""
    m.listing("invoice", search="number", filters=f"membership_id month status amount_cents{due}", sorts="month", order="-month")
    amount = "membership.plan.fee_cents"
    if m.has("discounts"):
        amount = f"{amount} - membership.plan.fee_cents * membership.discount_percent // 100"
    values = {"number": "serial('invoice', 'I')", "amount_cents": amount}
    if m.has("due_dates"):
        values["due_on"] = "month + days(14)"
    m.create(
        "invoice",
        "membership_id month",
        values=values,
        before=[
            Require("is_first_of_month(month)", 422, "A month is told by its first day.", ""),
            Require(
                "membership.status == state.active",
                409,
                "<Membership> {membership.number} is {membership.status}.",
                "membership_active",
            ),
            Require(
                "not exists('invoice', membership_id=membership.id, month=month)",
                409,
                "There is <a invoice> of {membership.number} for that month already.",
                "one_a_month",
            ),
        ],
        verb="issue",
        action="issued",
        summary="Issue <a invoice> for a month of <a membership>",
        description="At the fee of the <plan>. One a month; the month is told by its first day.",
    )
    unpaid = Require("invoice.status == state.unpaid", 409, "<Invoice> {invoice.number} is {invoice.status}.", "invoice_unpaid")
    m.act(
        "pay",
        "invoice",
        [unpaid, Change("invoice", {"status": "state.paid", "paid_on": "today"})],
        action="paid",
        summary="Note that <a invoice> was paid",
        description="Today, in full.",
    )
    m.act(
        "waive",
        "invoice",
        [unpaid, Change("invoice", {"status": "state.waived"})],
        action="waived",
        summary="Let <a invoice> go",
        description="For one that is {state.unpaid}; nothing is owed for that month any more.",
    )
    m.report(
        "sum_up_<invoices>",
        "invoice",
        ReturnRecord(
            (
                Field("unpaid_cents", "money", _sum("unpaid"), "What is still owed, in cents"),
                Field("paid_cents", "money", _sum("paid"), "What was paid, in cents"),
                Field(
                    "unpaid", "int", "count('invoice', membership__party_id=party.id, status=state.unpaid)", "How many are owed"
                ),
            )
        ),
        path="/<<all>>/summary",
        params=[Param("party_id", "ref", ref="party", about="Whose")],
        steps=[Load("party", "party", "party_id")],
        summary="Sum up the <invoices> of a <party>",
        description="Over all <memberships> that the <party> has or had.",
    )


def _sum(state: str) -> str:
    return f"total('invoice', 'amount_cents', membership__party_id=party.id, status=state.{state})"


def _benefits(m: Kit) -> None:
    m.entity(
        "benefit",
        [
            ref("plan_id", "plan", owned=True),
            text("name", "What it is"),
            number("per_month", "How often a month", low=1, high=31),
        ],
        noun=("<plan> benefit", "<plan> benefits"),
        label="plan_id name",
        uniques=["plan_id name"],
    )
    m.create(
        "benefit",
        "plan_id name per_month",
        before=[
            Require("not exists('benefit', plan_id=plan.id, name=name)", 409, "{plan.name} has {name} already.", "benefit_once")
        ],
        verb="add",
        action="added",
    )
    m.delete("benefit")


def _guests(m: Kit) -> None:
    m.entity(
        "guest",
        [
            ref("membership_id", "membership", owned=True),
            text("name", "Full name", name="full_name"),
            created("added_at", "When they were entered"),
        ],
        noun=("<membership> companion", "<membership> companions"),
        label="membership_id name",
        uniques=["membership_id name"],
    )
    m.create(
        "guest",
        "membership_id name",
        values={"added_at": "now"},
        before=[
            Require(
                "membership.status != state.ended", 409, "<Membership> {membership.number} has ended.", "membership_not_ended"
            ),
            Require(
                "count('guest', membership_id=membership.id) < 3",
                409,
                "It has three companions, which is the most.",
                "most_guests",
            ),
            Require("not exists('guest', membership_id=membership.id, name=name)", 409, "{name} is on it already.", "guest_once"),
        ],
        verb="add",
        action="added",
        summary="Enter someone who comes along on <a membership>",
        description="Three at most.",
    )
    m.delete("guest", verb="remove")


def _reminders(m: Kit) -> None:
    m.entity(
        "reminder",
        [
            ref("invoice_id", "invoice", owned=True),
            number("level", "Which reminder it is", low=1, high=3),
            created("sent_at", "When it was sent"),
        ],
        noun=("payment reminder", "payment reminders"),
        label="invoice_id level",
        uniques=["invoice_id level"],
    )
    m.listing("reminder", filters="invoice_id level sent_at", order="-sent_at")
    steps: list[Step] = [
        Require("invoice.status == state.unpaid", 409, "<Invoice> {invoice.number} is {invoice.status}.", "invoice_unpaid"),
        Require(
            "count('reminder', invoice_id=invoice.id) < 3", 409, "Three reminders were sent, which is the most.", "most_reminders"
        ),
        Insert(
            "reminder",
            "reminder",
            {"invoice_id": "invoice.id", "level": "count('reminder', invoice_id=invoice.id) + 1", "sent_at": "now"},
        ),
    ]
    m.act(
        "remind",
        "invoice",
        steps,
        name=f"remind_of_{m.entity_of('invoice').name}",
        action="reminded",
        summary="Send a reminder of <a invoice>",
        description="Three at most, for one that is {state.unpaid}.",
    )


def seed(s: Seeding) -> None:
    for index, name in enumerate(s.values("plan_names", "Basic", "Plus", "Premium")):
        s.insert("plan", name=name, fee_cents=s.cents("fee", 5, 60), months=s.pick((1, 3, 6, 12)), is_offered=index != 2)
    for plan in s.rows("plan"):
        if s.has("benefits"):
            for benefit in s.some(_BENEFITS, s.between(1, 3)):
                s.insert("benefit", plan_id=plan["id"], name=benefit, per_month=s.between(1, 4))
    plans, first = s.rows("plan"), s.today.replace(day=1)
    for party in s.some(s.rows("party", is_blocked=False), 20):
        state = s.weighted(active=7, ended=2, paused=1 if s.has("pauses") else 0)
        created_at = s.past(40, 500)
        ends_on = s.at(-s.between(3, 30)).date() if state == "ended" else None
        membership = s.insert(
            "membership",
            number=f"M-{1001 + s.world.count('membership.membership')}",
            party_id=party["id"],
            plan_id=s.pick(plans)["id"],
            status=s.state[state],
            discount_percent=s.pick((0, 0, 0, 10, 20)),
            started_on=created_at.date(),
            ends_on=ends_on or (s.at(s.between(3, 25)).date() if s.chance(10) else None),
            paused_until=s.at(s.between(5, 40)).date() if state == "paused" else None,
            created_at=created_at,
        )
        _seed_invoices(s, membership["id"], add_months(first, -s.between(1, 3)), state)
        if s.has("guests") and s.chance(35):
            for guest in s.some(("Robin Ashby", "Toni Vance", "Alex Morrow", "Kim Sellars"), s.between(1, 2)):
                s.insert("guest", membership_id=membership["id"], name=guest, added_at=created_at + timedelta(days=2))


def _seed_invoices(s: Seeding, membership_id: int, month: date, state: str) -> None:
    membership = s.row("membership", membership_id)
    plan = s.row("plan", membership["plan_id"])
    while month < s.today.replace(day=1) or (state == "active" and month == s.today.replace(day=1) and s.chance(50)):
        outcome = s.weighted(paid=7, unpaid=2, waived=1) if state != "ended" else s.weighted(paid=9, waived=1)
        fee = plan["fee_cents"] - plan["fee_cents"] * membership.get("discount_percent", 0) // 100
        paid_on = min(month + timedelta(days=s.between(1, 20)), s.today) if outcome == "paid" else None
        invoice = s.insert(
            "invoice",
            number=f"I-{1001 + s.world.count('membership.invoice')}",
            membership_id=membership_id,
            month=month,
            amount_cents=fee,
            status=s.state[outcome],
            due_on=month + timedelta(days=14),
            paid_on=paid_on,
        )
        if s.has("reminders") and outcome == "unpaid" and month < s.today.replace(day=1) and s.chance(60):
            s.insert("reminder", invoice_id=invoice["id"], level=1, sent_at=s.past(1, 8))
        month = add_months(month, 1)
