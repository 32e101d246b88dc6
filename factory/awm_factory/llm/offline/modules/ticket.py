"""Tickets: what parties report, who works on it, what was said, and how it ended.

Past 300 lines and one file: tables, tools and start rows of a module are read together.
"""

from datetime import datetime, timedelta

from awm_factory.llm.offline.columns import choice, created, day, flag, moment, number, ref, text
from awm_factory.llm.offline.ir import Param
from awm_factory.llm.offline.kit import Kit
from awm_factory.llm.offline.seeding import Seeding
from awm_factory.llm.offline.steps import Change, Field, Insert, Load, Require, ReturnTable, Step

FEATURES = ("comments", "due_dates", "escalations", "items", "worklog", "orders")

_PRIORITIES = ("low", "normal", "high", "urgent")
_DAYS = {"low": 14, "normal": 7, "high": 3, "urgent": 1}


def build(m: Kit) -> None:
    m.policy = {"reopen_days": 14, "max_open": 3} | m.policy
    m.rule("A <party> has at most {policy.max_open} <tickets> that are not settled.")
    m.rule("<A ticket> that was settled can be taken up again within {policy.reopen_days} days.")
    _entities(m)
    _reading(m)
    _opening(m)
    _work(m)
    if m.has("comments"):
        _comments(m)
    if m.has("worklog"):
        _worklog(m)
    if m.has("escalations"):
        _escalations(m)


def _linked(m: Kit) -> bool:
    return m.has("orders") and m.joined("order.order")


def _topics(m: Kit) -> list[str]:
    return m.part.values.get("topics", ["question", "complaint", "fault", "other"])


def _entities(m: Kit) -> None:
    m.entity(
        "ticket",
        [
            text("reference", "Reference", unique=True, server=True),
            text("subject", "What it is about, in a few words", high=120),
            ref("party_id", "party"),
            choice("topic", _topics(m), "Topic"),
            choice("priority", _PRIORITIES, "How soon it has to be seen to", default="normal"),
            m.status("open", "in_progress", "waiting", "resolved", "closed"),
            ref("assignee_id", "user", "Who works on it", null=True, server=True),
            ref("item_id", "item", null=True) if m.has("items") else None,
            ref("order_id", "order.order", null=True) if _linked(m) else None,
            day("due_on", "Day by which it is to be settled", server=True) if m.has("due_dates") else None,
            choice("resolution", _resolutions(m), "How it was settled", null=True, server=True),
            created("opened_at", "When it was reported"),
            moment("resolved_at", "When it was settled", null=True, server=True),
        ],
        label="reference",
    )
    m.invariant(
        "ticket",
        "(self.status in (state.resolved, state.closed)) == (self.resolved_at is not None)",
        "what is settled has a time of it, and nothing else",
    )
    if m.has("comments"):
        m.entity(
            "comment",
            [
                ref("ticket_id", "ticket", owned=True),
                ref("user_id", "user", "Who wrote it", name="author_id"),
                text("body", "What it says", high=500),
                flag("is_internal", "Whether the <party> does not see it"),
                created("written_at", "When it was written"),
            ],
            label="ticket_id body",
        )


def _resolutions(m: Kit) -> list[str]:
    return m.part.values.get("resolutions", ["fixed", "explained", "replaced", "declined"])


def _reading(m: Kit) -> None:
    own = (" due_on" if m.has("due_dates") else "") + (" item_id" if m.has("items") else "") + (" order_id" if _linked(m) else "")
    m.listing(
        "ticket",
        search="reference subject",
        filters=f"party_id topic priority status assignee_id opened_at{own}",
        sorts="opened_at",
        order="-opened_at",
    )
    m.report(
        "report_<ticket>_load",
        "ticket",
        ReturnTable(
            "user",
            "user",
            (
                Field("user_id", "int", "user.id", "Id of the <user>"),
                Field("name", "text", "user.name", "Name of the <user>"),
                Field("unsettled", "int", f"count('ticket', assignee_id=user.id, {_UNSETTLED})", "<Tickets> in hand"),
                Field(
                    "urgent",
                    "int",
                    f"count('ticket', assignee_id=user.id, priority='urgent', {_UNSETTLED})",
                    "Those of them that are urgent",
                ),
            ),
            where={"is_active": "True"},
            order=("-unsettled", "name"),
        ),
        path="/reports/<ticket>-load",
        summary="Count the <tickets> that each <user> has in hand",
        description="Active <users> only, those with most of them first.",
    )


_UNSETTLED = "status__in=(state.open, state.in_progress, state.waiting)"


def _opening(m: Kit) -> None:
    fields = "party_id subject topic priority" + (" item_id" if m.has("items") else "") + (" order_id" if _linked(m) else "")
    values = {"reference": "serial('ticket', 'T')", "opened_at": "now"}
    if m.has("due_dates"):
        days = "1 if priority == 'urgent' else 3 if priority == 'high' else 7 if priority == 'normal' else 14"
        values["due_on"] = f"today + days({days})"
        m.rule("<A ticket> is due after 1 day where it is urgent, after 3, 7 or 14 where its priority is high, normal or low.")
    before: list[Step] = [
        Require(
            f"count('ticket', party_id=party.id, {_UNSETTLED}) < policy.max_open",
            409,
            "{party.name} has {policy.max_open} <tickets> that are not settled, which is the most.",
            "max_open",
        )
    ]
    if _linked(m):
        before.append(
            Require(
                "order_id is None or order.party_id == party.id",
                409,
                "That <order.order> is not one of {party.name}.",
                "order_of_party",
            )
        )
    m.create("ticket", fields, values=values, before=before, verb="open", action="opened")


def _work(m: Kit) -> None:
    unsettled = Require(
        "ticket.status in (state.open, state.in_progress, state.waiting)",
        409,
        "<Ticket> {ticket.reference} is {ticket.status} already.",
        "unsettled",
    )
    m.act(
        "assign",
        "ticket",
        [
            unsettled,
            Load("assignee", "user", "assignee_id"),
            Require("assignee.is_active", 409, "{assignee.name} does not work here at present.", "assignee_active"),
            Require("ticket.assignee_id != assignee.id", 409, "{assignee.name} has it already.", "other_assignee"),
            Change("ticket", {"assignee_id": "assignee.id", "status": "state.in_progress"}),
        ],
        params=[Param("assignee_id", "ref", ref="user", name="assignee_id", about="Who is to work on it")],
        method="PUT",
        path="/<<one>>/assignee",
        action="assigned",
        summary="Give <a ticket> to a <user>",
        description="It becomes {state.in_progress}. Not for one that is settled.",
    )
    m.act(
        "set_priority",
        "ticket",
        [
            unsettled,
            Require("priority != ticket.priority", 409, "<Ticket> {ticket.reference} has the priority {priority} already."),
            Change("ticket", {"priority": "priority"}),
        ],
        params=[Param("priority", "choice", choices=_PRIORITIES, about="How soon it has to be seen to")],
        method="PUT",
        path="/<<one>>/priority",
        name=f"set_{m.entity_of('ticket').name}_priority",
        action="reprioritized",
        summary="Set the priority of <a ticket>",
        description="Not for one that is settled.",
    )
    m.act(
        "hold",
        "ticket",
        [
            Require("ticket.status == state.in_progress", 409, "<Ticket> {ticket.reference} is {ticket.status}.", "in_progress"),
            Change("ticket", {"status": "state.waiting"}),
        ],
        action="put on hold",
        summary="Let <a ticket> wait",
        description="For one that is {state.in_progress}; it becomes {state.waiting}.",
    )
    m.act(
        "resolve",
        "ticket",
        [
            unsettled,
            Require("ticket.assignee_id is not None", 409, "Nobody has it; assign it first.", "has_assignee"),
            Change("ticket", {"status": "state.resolved", "resolution": "resolution", "resolved_at": "now"}),
        ],
        params=[Param("resolution", "choice", choices=tuple(_resolutions(m)), about="How it was settled")],
        action="resolved",
        summary="Settle <a ticket>",
        description="Says how. Refused while nobody has it.",
    )
    m.act(
        "close",
        "ticket",
        [
            Require(
                "ticket.status == state.resolved",
                409,
                "It is {ticket.status}; only what is {state.resolved} is closed.",
                "resolved",
            ),
            Change("ticket", {"status": "state.closed"}),
        ],
        action="closed",
        summary="Close <a ticket> that is {state.resolved}",
        description="It can't be taken up again after that.",
    )
    m.act(
        "reopen",
        "ticket",
        [
            Require(
                "ticket.status == state.resolved",
                409,
                "It is {ticket.status}; only what is {state.resolved} is taken up again.",
                "resolved",
            ),
            Require(
                "now <= ticket.resolved_at + days(policy.reopen_days)",
                409,
                "It was settled on {day(ticket.resolved_at)}; it could be taken up again within {policy.reopen_days} days.",
                "reopen_in_time",
            ),
            Change("ticket", {"status": "state.open", "resolution": "None", "resolved_at": "None"}),
        ],
        action="reopened",
        summary="Take up <a ticket> again",
        description="Within {policy.reopen_days} days after it was settled.",
    )
    children = [child for child in ("comment",) if m.has("comments")]
    m.get("ticket", children=children)


def _comments(m: Kit) -> None:
    m.listing("comment", filters="ticket_id is_internal written_at", order="-written_at")
    m.create(
        "comment",
        "ticket_id body is_internal",
        values={"user_id": "1", "written_at": "now"},
        before=[Require("ticket.status != state.closed", 409, "<Ticket> {ticket.reference} is {ticket.status}.", "not_closed")],
        verb="write",
        action="written",
        summary="Write <a comment> on <a ticket>",
        description="Not on one that is {state.closed}.",
    )


def _worklog(m: Kit) -> None:
    m.entity(
        "work",
        [
            ref("ticket_id", "ticket", owned=True),
            ref("user_id", "user", "Who did it", name="worker_id"),
            number("minutes", "How long it took", low=5, high=600),
            text("what", "What was done", high=200),
            day("worked_on", "Day it was done"),
        ],
        noun=("work entry", "work entries"),
        label="ticket_id worked_on",
    )
    m.listing("work", filters="ticket_id worked_on minutes", order="-worked_on")
    m.create(
        "work",
        "ticket_id minutes what worked_on",
        values={"user_id": "1"},
        before=[
            Require("worked_on <= today", 422, "It can't have been done after today, {today}.", "worked_before_now"),
            Require("ticket.status != state.closed", 409, "<Ticket> {ticket.reference} is {ticket.status}.", "not_closed"),
        ],
        verb="log",
        action="logged",
        summary="Enter time worked on <a ticket>",
        description="In minutes, for today or a day before.",
    )


def _escalations(m: Kit) -> None:
    m.entity(
        "escalation",
        [
            ref("ticket_id", "ticket", owned=True),
            ref("to_user_id", "user", "Who is to decide", name="decider_id"),
            text("reason", "Why", high=200),
            flag("is_settled", "Whether it was decided"),
            created("raised_at", "When it was raised"),
        ],
        noun=("escalation", "escalations"),
        label="ticket_id raised_at",
    )
    m.listing("escalation", filters="ticket_id to_user_id is_settled", order="-raised_at")
    m.act(
        "escalate",
        "ticket",
        [
            Require(
                "ticket.status in (state.in_progress, state.waiting)",
                409,
                "<Ticket> {ticket.reference} is {ticket.status}; only what is worked on can be escalated.",
                "worked_on",
            ),
            Load("decider", "user", "decider_id"),
            Require("decider.is_active", 409, "{decider.name} does not work here at present.", "decider_active"),
            Require(
                "not exists('escalation', ticket_id=ticket.id, is_settled=False)",
                409,
                "It is escalated already.",
                "escalated_once",
            ),
            Insert(
                "escalation",
                "escalation",
                {"ticket_id": "ticket.id", "to_user_id": "decider.id", "reason": "reason", "raised_at": "now"},
            ),
            Change("ticket", {"priority": "'urgent'"}),
        ],
        params=[
            Param("decider_id", "ref", ref="user", name="decider_id", about="Who is to decide"),
            Param("reason", "text", low=1, high=200, about="Why"),
        ],
        action="escalated",
        summary="Lay <a ticket> before a <user> who decides",
        description="It becomes urgent. Once, until it is decided.",
    )
    m.act(
        "settle",
        "escalation",
        [
            Require("not escalation.is_settled", 409, "It is decided already.", "escalation_open"),
            Change("escalation", {"is_settled": "True"}),
        ],
        action="settled",
        summary="Note that an escalation was decided",
        description="The priority stays.",
    )


def seed(s: Seeding) -> None:
    parties, users = s.rows("party"), s.rows("user", is_active=True)
    subjects = s.values("subjects", "Question about the bill", "Wrong address", "Broken on arrival", "No answer by phone")
    unsettled: dict[int, int] = {}
    for index, opened_at in enumerate(sorted(s.past(1, 45) for _ in range(34))):
        age = (s.now - opened_at).days
        state = s.weighted(open=3, in_progress=4, waiting=2) if age < 12 else s.weighted(resolved=5, closed=5, in_progress=1)
        party = s.pick(parties)
        if state in ("open", "in_progress", "waiting"):
            if unsettled.get(party["id"], 0) >= s.policy["max_open"]:
                state = "closed"
            else:
                unsettled[party["id"]] = unsettled.get(party["id"], 0) + 1
        settled = state in ("resolved", "closed")
        resolved_at = min(opened_at + timedelta(days=s.between(1, 20), hours=2), s.now - timedelta(hours=s.between(2, 30)))
        _seed_ticket(
            s, index, state, party["id"], s.pick(subjects), opened_at, resolved_at if settled else None, s.pick(users)["id"]
        )


def _seed_ticket(
    s: Seeding,
    index: int,
    state: str,
    party_id: int,
    subject: str,
    opened_at: datetime,
    resolved_at: datetime | None,
    user_id: int,
) -> None:
    if resolved_at is not None:
        resolved_at = max(resolved_at, opened_at + timedelta(hours=1))
    priority = s.weighted(low=2, normal=5, high=2, urgent=1)
    orders = s.world.where("order.order", party_id=party_id) if _has_orders(s) else []
    ticket = s.insert(
        "ticket",
        reference=f"T-{1001 + index}",
        subject=subject,
        party_id=party_id,
        topic=s.pick(_topics(s.kit)),
        priority=priority,
        status=s.state[state],
        assignee_id=None if state == "open" else user_id,
        item_id=s.pick(s.rows("item"))["id"] if s.chance(60) else None,
        order_id=s.pick(orders)["id"] if orders and s.chance(70) else None,
        due_on=opened_at.date() + timedelta(days=_DAYS[priority]),
        resolution=s.pick(_resolutions(s.kit)) if resolved_at else None,
        opened_at=opened_at,
        resolved_at=resolved_at,
    )
    if s.has("comments") and s.chance(55):
        bodies = (
            "Called and left a message.",
            "Waiting for an answer.",
            "Photos received by post.",
            "Spoke with a colleague about it.",
        )
        s.insert(
            "comment",
            ticket_id=ticket["id"],
            user_id=user_id,
            body=s.pick(bodies),
            is_internal=s.chance(40),
            written_at=opened_at + timedelta(minutes=s.between(20, 59)),
        )
    if s.has("worklog") and state != "open":
        s.insert(
            "work",
            ticket_id=ticket["id"],
            user_id=user_id,
            minutes=s.between(2, 24) * 5,
            what=s.pick(("Looked into it", "Talked it over", "Tried a remedy", "Wrote a report")),
            worked_on=opened_at.date(),
        )
    if s.has("escalations") and state in ("in_progress", "waiting", "resolved") and s.chance(25):
        s.insert(
            "escalation",
            ticket_id=ticket["id"],
            to_user_id=s.pick(s.rows("user", is_active=True))["id"],
            reason=s.pick(("Takes too long", "Costs more than agreed", "Complained twice")),
            is_settled=state == "resolved" or s.chance(40),
            raised_at=opened_at + timedelta(minutes=s.between(60, 90)),
        )


def _has_orders(s: Seeding) -> bool:
    return s.has("orders") and "order.order" in s.world.domain.entities
