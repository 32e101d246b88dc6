"""Approval: requests that one or more people decide on, step by step, nobody twice.

Past 300 lines and one file: tables, tools and start rows of a module are read together.
"""

from datetime import timedelta

from awm_factory.llm.offline.columns import cents, choice, created, day, moment, number, ref, text
from awm_factory.llm.offline.ir import Param, Show
from awm_factory.llm.offline.kit import NOT_BLOCKED, Kit
from awm_factory.llm.offline.seeding import Seeding
from awm_factory.llm.offline.steps import Change, Field, Find, Insert, Load, Require, ReturnTable, Step, When
from awm_factory.llm.offline.values import Row
from awm_factory.llm.offline.words import snake

FEATURES = ("remarks", "places", "handlers", "deadlines", "budgets", "stand_ins")


def build(m: Kit) -> None:
    m.policy = {"second_over": 1000} | m.policy
    names = _step_names(m)
    m.rule(
        f"A submitted <request> is decided by one step, {names[0]}; above {{policy.second_over}} in full units by {len(names)}."
    )
    m.rule("Nobody decides two steps of the same <request>.")
    _entities(m, names)
    if m.has("budgets"):
        _budgets(m)
    _drafting(m)
    _deciding(m, names)
    if m.has("remarks"):
        _remarks(m)
    m.get("request", children=["step", *(["remark"] if m.has("remarks") else [])])
    if m.has("stand_ins"):
        _stand_ins(m)
    m.report(
        "report_<request>_amounts",
        "request",
        ReturnTable(
            "party",
            "party",
            (
                Field("party_id", "int", "party.id", "Id of the <party>"),
                Field("party_name", "text", "party.name", "The <party>"),
                Field("waiting", "int", "count('request', party_id=party.id, status=state.submitted)", "<Requests> to decide on"),
                Field(
                    "approved_cents",
                    "money",
                    "total('request', 'amount_cents', party_id=party.id, status=state.approved)",
                    "Sum of those approved, in cents",
                ),
            ),
            when="exists('request', party_id=party.id)",
            order=("-approved_cents", "party_name"),
        ),
        path="/reports/<request>-amounts",
        summary="Sum up <requests> by <party>",
        description="One row for each <party> that has made any, the highest approved sum first.",
    )


def _step_names(m: Kit) -> list[str]:
    return m.part.values.get("step_names", ["first", "second"])


def _entities(m: Kit, names: list[str]) -> None:
    amount = m.part.nouns.get("amount", ("amount",))[0]
    m.entity(
        "request",
        [
            text("reference", "Reference", unique=True, server=True),
            ref("party_id", "party"),
            text("purpose", "What it is for"),
            cents("amount_cents", f"{amount.capitalize()} in cents", low=1, name=f"{snake(amount)}_cents"),
            ref("place_id", "place", "<Place> that it concerns") if m.has("places") or m.has("budgets") else None,
            ref("handler_id", "user", "Who prepares it", null=True) if m.has("handlers") else None,
            day("due_on", "Day by which it should be decided", null=True) if m.has("deadlines") else None,
            m.status("draft", "submitted", "approved", "rejected", "withdrawn"),
            created(),
            moment("submitted_at", "When it was submitted", null=True, server=True),
            moment("decided_at", "When it was decided", null=True, server=True),
        ],
        label="reference",
    )
    m.entity(
        "step",
        [
            ref("request_id", "request", owned=True),
            number("position", "Number of the step", low=1),
            choice("name", names, "Which step it is"),
            m.status("submitted", "approved", "rejected"),
            ref("approver_id", "user", "Who decided", null=True),
            text("reason", "Why", null=True),
            moment("decided_at", "When it was decided", null=True, server=True),
        ],
        label="request_id position",
        uniques=["request_id position"],
        shows=[Show("approver_name", "text", "self.approver.name if self.approver_id is not None else None", "Who decided")],
    )
    m.invariant(
        "request",
        "self.status != state.approved or not exists('step', request_id=self.id, status__ne=state.approved)",
        "an approved <request> has no step that is not",
    )


def _fields(m: Kit) -> str:
    place = " place_id" if m.has("places") or m.has("budgets") else ""
    return "party_id purpose amount_cents" + place + (" due_on" if m.has("deadlines") else "")


def _drafting(m: Kit) -> None:
    m.listing(
        "request",
        search="reference purpose",
        filters="party_id status amount_cents created_at"
        + (" place_id" if m.has("places") or m.has("budgets") else "")
        + (" handler_id" if m.has("handlers") else "")
        + (" due_on" if m.has("deadlines") else ""),
        sorts="amount_cents created_at" + (" due_on" if m.has("deadlines") else ""),
        order="-id",
    )
    m.create(
        "request",
        _fields(m),
        values={"reference": "serial('request', 'R')", "created_at": "now"},
        before=[
            NOT_BLOCKED,
            *_future("due_on", m.has("deadlines")),
        ],
        verb="draft",
        description="It stays a draft, and can be changed, until it is submitted.",
    )
    m.update("request", "purpose amount_cents" + (" due_on" if m.has("deadlines") else ""), before=[_is("draft")])
    if m.has("handlers"):
        m.act(
            "assign",
            "request",
            [
                Load("handler", "user", "handler_id"),
                Require("handler.is_active", 409, "{handler.name} does not work here at present.", "handler_active"),
                Change("request", {"handler_id": "handler.id"}),
            ],
            params=[Param("handler_id", "ref", ref="user", name="handler_id", about="Who is to prepare it")],
            method="PUT",
            path="/<<one>>/handler",
            summary="Put somebody in charge of <a request>",
        )
    if m.has("deadlines"):
        m.act(
            "extend",
            "request",
            [
                Require(
                    "request.status in (state.draft, state.submitted)", 409, "<Request> {request.reference} is {request.status}."
                ),
                Require(
                    "request.due_on is None or due_on > request.due_on",
                    422,
                    "It is due on {request.due_on} now; a later day is wanted.",
                    "later_day",
                ),
                Change("request", {"due_on": "due_on"}),
            ],
            params=[Param("due_on", "date", about="New day")],
            summary="Give <a request> a later day",
            description="Only later than the present one, and while it is not decided.",
        )


def _deciding(m: Kit, names: list[str]) -> None:
    more: list[Step] = [
        Insert(f"step_{number}", "step", {"request_id": "request.id", "position": str(number), "name": repr(name)})
        for number, name in enumerate(names[1:], start=2)
    ]
    m.act(
        "submit",
        "request",
        [
            _is("draft"),
            *_within_budget(m),
            Change("request", {"status": "state.submitted", "submitted_at": "now"}),
            Insert("step", "step", {"request_id": "request.id", "position": "1", "name": repr(names[0])}),
            When("request.amount_cents > policy.second_over * 100", tuple(more)),
        ],
        children=[("step", "request_id")],
        action="submitted",
        summary="Submit <a request> for decision",
        description="Makes one step, and the others too above {policy.second_over} in full units.",
    )
    m.act(
        "approve",
        "request",
        [
            _is("submitted"),
            *_decider(),
            Find("step", "step", {"request_id": "request.id", "status": "state.submitted"}, order="position"),
            Change("step", {"status": "state.approved", "approver_id": "approver.id", "decided_at": "now"}),
            When(
                "not exists('step', request_id=request.id, status=state.submitted)",
                (Change("request", {"status": "state.approved", "decided_at": "now"}),),
            ),
        ],
        params=[_approver()],
        children=[("step", "request_id")],
        summary="Approve the next open step of <a request>",
        description="With the last one the <request> itself becomes {state.approved}. Nobody decides two steps of it.",
    )
    m.act(
        "reject",
        "request",
        [
            _is("submitted"),
            *_decider(),
            Find("step", "step", {"request_id": "request.id", "status": "state.submitted"}, order="position"),
            Change("step", {"status": "state.rejected", "approver_id": "approver.id", "reason": "reason", "decided_at": "now"}),
            Change("request", {"status": "state.rejected", "decided_at": "now"}),
        ],
        params=[_approver(), Param("reason", "text", low=3, high=200, about="Why")],
        children=[("step", "request_id")],
        summary="Reject <a request>",
        description="With the next open step the whole <request> becomes {state.rejected}; steps after it stay open.",
    )
    m.act(
        "withdraw",
        "request",
        [
            Require(
                "request.status in (state.draft, state.submitted)",
                409,
                "<Request> {request.reference} is {request.status} and can't be withdrawn any more.",
                "not_decided",
            ),
            Change("request", {"status": "state.withdrawn"}),
        ],
        summary="Withdraw <a request>",
        description="Possible until it is decided.",
    )
    m.listing("step", filters="request_id status name approver_id", order="request_id")


def _is(state: str) -> Require:
    return Require(f"request.status == state.{state}", 409, "<Request> {request.reference} is {request.status}.", f"is_{state}")


def _future(key: str, wanted: bool) -> list[Require]:
    about = "It is to be decided by a day that has passed; today is {today}."
    return [Require(f"{key} is None or {key} >= today", 422, about, f"{key}_to_come")] if wanted else []


def _approver() -> Param:
    return Param("approver_id", "ref", ref="user", name="approver_id", about="Who decides")


def _decider() -> list[Step]:
    return [
        Load("approver", "user", "approver_id"),
        Require("approver.is_active", 409, "{approver.name} does not work here at present.", "approver_active"),
        Require(
            "not exists('step', request_id=request.id, approver_id=approver.id)",
            409,
            "{approver.name} has decided a step of {request.reference} already; somebody else must.",
            "nobody_twice",
        ),
    ]


def _budgets(m: Kit) -> None:
    m.entity(
        "budget",
        [ref("place_id", "place"), cents("limit_cents", "Most that may be approved, in cents", low=1)],
        noun=("<request> budget", "<request> budgets"),
        label="place_id",
        uniques=["place_id"],
    )
    m.listing("budget", filters="place_id")
    m.update(
        "budget",
        "limit_cents",
        before=[
            Require(
                "limit_cents is None or limit_cents >= "
                "total('request', 'amount_cents', place_id=budget.place_id, status=state.approved)",
                409,
                "{money(total('request', 'amount_cents', place_id=budget.place_id, status=state.approved))} is approved already.",
                "budget_covers",
            )
        ],
        description="Not below what is approved already.",
    )


def _within_budget(m: Kit) -> list[Step]:
    if not m.has("budgets"):
        return []
    approved = "total('request', 'amount_cents', place_id=request.place_id, status=state.approved)"
    return [
        Find("budget", "budget", {"place_id": "request.place_id"}),
        Require(
            f"budget is None or {approved} + request.amount_cents <= budget.limit_cents",
            409,
            f"{{money({approved})}} of {{money(budget.limit_cents)}} is approved for {{request.place.name}}; "
            "{money(request.amount_cents)} more is too much.",
            "within_budget",
        ),
    ]


def _remarks(m: Kit) -> None:
    m.entity(
        "remark",
        [
            ref("request_id", "request", owned=True),
            ref("user_id", "user", "Who wrote it", name="author_id"),
            text("body", "What it says"),
            created(),
        ],
        noun=("<request> remark", "<request> remarks"),
        label="request_id body",
    )
    m.create("remark", "request_id body", values={"user_id": "1", "created_at": "now"}, verb="add")
    m.delete(
        "remark",
        before=[Require("remark.user_id == 1", 403, "{remark.user.name} wrote it; only they may take it back.", "own_remark")],
        description="Only one's own. Answers the id of what is gone.",
    )


def _stand_ins(m: Kit) -> None:
    m.entity(
        "stand_in",
        [
            ref("absent_id", "user", "Who is away", name="absent_id"),
            ref("deputy_id", "user", "Who decides instead", name="deputy_id"),
            day("from_on", "First day"),
            day("until_on", "Last day"),
        ],
        noun=("stand in", "stand ins"),
        label="absent_id from_on",
        checks=["until_on >= from_on"],
        shows=[
            Show("absent_name", "text", "self.absent.name", "Who is away"),
            Show("deputy_name", "text", "self.deputy.name", "Who decides instead"),
        ],
    )
    m.listing("stand_in", filters="absent_id deputy_id from_on", order="from_on")
    m.create(
        "stand_in",
        "absent_id deputy_id from_on until_on",
        before=[
            Require("absent.id != deputy.id", 422, "Nobody stands in for themselves.", "other_person"),
            Require("until_on >= from_on", 422, "The last day is not before the first.", "stand_in_order"),
            Require("deputy.is_active", 409, "{deputy.name} does not work here at present.", "deputy_active"),
            Require(
                "not exists('stand_in', absent_id=absent.id, from_on__le=until_on, until_on__ge=from_on)",
                409,
                "{absent.name} has somebody for these days already.",
                "one_stand_in",
            ),
        ],
        verb="name",
        description="Refused where the days overlap with what is arranged for the same person.",
    )
    m.delete("stand_in", verb="end", description="Answers the id of what is gone.")


def seed(s: Seeding) -> None:
    if s.has("budgets"):
        for place in s.rows("place"):
            s.insert("budget", place_id=place["id"], limit_cents=s.cents("amount", 500, 5000) * 6)
    users = s.rows("user", is_active=True)
    names = _step_names(s.kit)
    parties, places = s.rows("party", is_blocked=False), s.rows("place")
    purposes = s.values("purposes", "New equipment", "Training", "Repair", "Travel")
    for turn, begun in enumerate(sorted(s.past(1, 90) for _ in range(26))):
        state = s.weighted(draft=4, submitted=7, approved=7, rejected=3, withdrawn=2)
        submitted = begun + timedelta(hours=s.between(1, 20)) if state not in ("draft", "withdrawn") else None
        decided = submitted + timedelta(hours=s.between(2, 24)) if submitted and state in ("approved", "rejected") else None
        request = s.insert(
            "request",
            reference=f"R-{1001 + s.world.count('approval.request')}",
            party_id=parties[turn % len(parties)]["id"],
            purpose=purposes[(turn * 5) % len(purposes)],
            amount_cents=s.cents("amount", 50, 2500),
            place_id=s.pick(places)["id"],
            handler_id=s.pick(users)["id"] if s.chance(70) else None,
            due_on=(begun + timedelta(days=s.between(20, 60))).date() if s.chance(70) else None,
            status=s.state[state],
            created_at=begun,
            submitted_at=submitted,
            decided_at=decided,
        )
        if submitted:
            _seed_steps(s, request, state, users, names)
        if s.has("remarks") and s.chance(30):
            body = s.pick(
                ("Offer is in the folder.", "Asked for a second price.", "Spoke on the telephone.", "Needs the old invoice.")
            )
            s.insert(
                "remark",
                request_id=request["id"],
                user_id=s.pick(users)["id"],
                body=body,
                created_at=begun + timedelta(minutes=40),
            )
    if s.has("stand_ins"):
        for index, days in enumerate((-20, 3, 10)):
            begin = s.at(days).date()
            s.insert(
                "stand_in",
                absent_id=users[index]["id"],
                deputy_id=users[index + 1]["id"],
                from_on=begin,
                until_on=begin + timedelta(days=s.between(2, 9)),
            )


def _seed_steps(s: Seeding, request: Row, state: str, users: list[Row], names: list[str]) -> None:
    count = len(names) if request["amount_cents"] > s.policy["second_over"] * 100 else 1
    deciders = s.some(users, count)
    done = {"approved": count, "rejected": s.between(1, count), "submitted": s.between(0, count - 1)}[state]
    for place in range(count):
        decided = place < done
        last = state == "rejected" and place == done - 1
        s.insert(
            "step",
            request_id=request["id"],
            position=place + 1,
            name=names[place],
            status=s.state["rejected" if last else "approved" if decided else "submitted"],
            approver_id=deciders[place]["id"] if decided else None,
            reason="Not this year." if last else None,
            decided_at=request["decided_at"] or request["submitted_at"] + timedelta(hours=1) if decided else None,
        )
