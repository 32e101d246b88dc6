"""Messaging: threads with parties that take part in them, and the messages sent to all of them.

Past 300 lines and one file: tables, tools and start rows of a module are read together.
"""

from datetime import timedelta

from awm_factory.llm.offline.columns import created, flag, moment, ref, text
from awm_factory.llm.offline.ir import Param, Show
from awm_factory.llm.offline.kit import Kit
from awm_factory.llm.offline.seeding import Seeding
from awm_factory.llm.offline.steps import Change, Field, Insert, Let, Load, Require, ReturnTable

FEATURES = ("labels", "pins", "templates", "schedules", "receipts", "owners")


def build(m: Kit) -> None:
    m.policy = {"max_recipients": 20} | m.policy
    m.rule("<A thread> has at most {policy.max_recipients} recipients, and none who is blocked.")
    m.rule("Nothing is sent in <a thread> that is {state.archived}.")
    if m.has("labels"):
        m.entity("label", [text("name", "Name", unique=True)], noun=("<thread> label", "<thread> labels"), label="name")
    m.entity(
        "thread",
        [
            text("subject", "What it is about", unique=True),
            m.status("open", "archived"),
            ref("label_id", "label", "Id of its label", null=True, name="label_id") if m.has("labels") else None,
            ref("owner_id", "user", "Who looks after it") if m.has("owners") else None,
            flag("is_pinned", "Whether it is shown first") if m.has("pins") else None,
            created(),
            moment("last_sent_at", "When something was last sent in it", null=True, server=True),
        ],
        label="subject",
    )
    m.entity(
        "recipient",
        [
            ref("thread_id", "thread", owned=True),
            ref("party_id", "party"),
            created("added_at", "Since when they take part"),
            moment("read_at", "When they last read it", null=True, server=True) if m.has("receipts") else None,
        ],
        noun=("<thread> recipient", "<thread> recipients"),
        label="thread_id party_id",
        uniques=["thread_id party_id"],
    )
    m.entity(
        "message",
        [
            ref("thread_id", "thread", owned=True),
            ref("sender_id", "user", "Who sent it", name="sender_id"),
            text("body", "What it says"),
            created("sent_at", "When it was sent"),
        ],
        label="thread_id sent_at",
        shows=[Show("sender_name", "text", "self.sender.name", "Who sent it")],
    )
    m.invariant(
        "thread", "count('recipient', thread_id=self.id) <= policy.max_recipients", "no <thread> has more recipients than allowed"
    )
    _threads(m)
    _recipients(m)
    _messages(m)
    if m.has("labels"):
        _labels(m)
    if m.has("templates"):
        _templates(m)
    if m.has("schedules"):
        _schedules(m)


def _threads(m: Kit) -> None:
    extra = (" label_id" if m.has("labels") else "") + (" owner_id" if m.has("owners") else "")
    m.listing(
        "thread",
        search="subject",
        filters="status created_at" + extra + (" is_pinned" if m.has("pins") else ""),
        sorts="last_sent_at created_at subject",
        order="-id",
    )
    m.get("thread", children=["recipient", "message"])
    m.create(
        "thread",
        "subject" + extra,
        values={"created_at": "now"},
        verb="open",
        description="It has no recipients and nothing in it yet. Subjects are unique.",
    )
    m.update("thread", "subject" + extra)
    m.act(
        "archive",
        "thread",
        [_open(), Change("thread", {"status": "state.archived"})],
        description="Nothing more can be sent in it until it is opened again.",
    )
    m.act(
        "reopen",
        "thread",
        [
            Require("thread.status == state.archived", 409, "<Thread> {thread.subject} is {thread.status}.", "is_archived"),
            Change("thread", {"status": "state.open"}),
        ],
        summary="Open <a thread> again",
        action="reopened",
    )
    if m.has("pins"):
        m.act(
            "pin",
            "thread",
            [
                Require("not thread.is_pinned", 409, "It is shown first already.", "not_pinned"),
                Require(
                    "count('thread', is_pinned=True) < 3",
                    409,
                    "Three are shown first already; take one of them off.",
                    "three_pins",
                ),
                Change("thread", {"is_pinned": "True"}),
            ],
            summary="Show <a thread> first",
            description="At most three at a time.",
        )
        m.act(
            "unpin",
            "thread",
            [Require("thread.is_pinned", 409, "It is not shown first.", "is_pinned"), Change("thread", {"is_pinned": "False"})],
            summary="Show <a thread> first no more",
        )


def _open() -> Require:
    return Require("thread.status == state.open", 409, "<Thread> {thread.subject} is {thread.status}.", "thread_open")


def _recipients(m: Kit) -> None:
    m.listing("recipient", filters="thread_id party_id")
    m.create(
        "recipient",
        "thread_id party_id",
        values={"added_at": "now"},
        before=[
            _open(),
            Require("not party.is_blocked", 409, "{party.name} is blocked; nothing is sent to them.", "party_not_blocked"),
            Require(
                "not exists('recipient', thread_id=thread.id, party_id=party.id)",
                409,
                "{party.name} is among the recipients already.",
                "recipient_once",
            ),
            Require(
                "count('recipient', thread_id=thread.id) < policy.max_recipients",
                409,
                "<Thread> {thread.subject} has {policy.max_recipients} recipients, which is the most.",
                "max_recipients",
            ),
        ],
        verb="add",
        name="add_recipient",
        summary="Add a <party> to <a thread>",
        description="Refused past {policy.max_recipients}, and for one who is blocked.",
    )
    m.delete("recipient", verb="remove", summary="Take a <party> out of <a thread>", description="What was sent stays.")
    if m.has("receipts"):
        m.act(
            "note_read",
            "recipient",
            [
                Require("recipient.thread.last_sent_at is not None", 409, "Nothing has been sent in it yet.", "something_sent"),
                Change("recipient", {"read_at": "now"}),
            ],
            action="noted as read",
            summary="Note that a recipient has read everything",
            description="Answers the recipient.",
        )


def _messages(m: Kit) -> None:
    m.listing("message", search="body", filters="thread_id sender_id sent_at", order="-id")
    m.create(
        "message",
        "thread_id body",
        values={"sender_id": "1", "sent_at": "now"},
        before=[_open(), _somebody()],
        after=[Change("thread", {"last_sent_at": "now"})],
        verb="send",
        action="sent",
        summary="Send <a message> to all recipients of <a thread>",
        description="In the name of the one signed in. Refused where nobody would get it.",
    )
    m.report(
        "report_<thread>_traffic",
        "thread",
        ReturnTable(
            "thread",
            "thread",
            (
                Field("thread_id", "int", "thread.id", "Id of the <thread>"),
                Field("subject", "text", "thread.subject", "What it is about"),
                Field("recipients", "int", "count('recipient', thread_id=thread.id)", "How many get it"),
                Field("messages", "int", "count('message', thread_id=thread.id)", "How much was sent"),
            ),
            order=("-messages", "subject"),
        ),
        path="/reports/<thread>-traffic",
        summary="Count recipients and <messages> of each <thread>",
        description="One row a <thread>, the busiest first.",
    )


def _somebody() -> Require:
    return Require(
        "exists('recipient', thread_id=thread.id)",
        409,
        "<Thread> {thread.subject} has no recipients; add some first.",
        "has_recipients",
    )


def _labels(m: Kit) -> None:
    m.listing("label", search="name", order="name", path="/<thread>-labels")
    m.create("label", "name", verb="add", path="/<thread>-labels")


def _templates(m: Kit) -> None:
    m.entity(
        "template",
        [
            text("title", "Title", unique=True),
            text("body", "What it says"),
            flag("is_active", "Whether it may be used", default=True),
        ],
        noun=("<message> template", "<message> templates"),
        label="title",
    )
    m.listing("template", search="title body", filters="is_active", order="title")
    m.create("template", "title body", verb="add")
    m.update("template", "body is_active")
    m.act(
        "send_template",
        "thread",
        [
            Load("template", "template", "template_id"),
            _open(),
            _somebody(),
            Require("template.is_active", 409, "The template {template.title} is not in use.", "template_active"),
            Insert("message", "message", {"thread_id": "thread.id", "sender_id": "1", "body": "template.body", "sent_at": "now"}),
            Change("thread", {"last_sent_at": "now"}),
        ],
        params=[Param("template_id", "ref", ref="template", about="Which template")],
        name="send_template",
        action="sent",
        children=[("message", "thread_id")],
        summary="Send a template's text in <a thread>",
        description="Answers the <thread> with all that was sent in it.",
    )


def _schedules(m: Kit) -> None:
    m.entity(
        "scheduled",
        [
            ref("thread_id", "thread", owned=True),
            text("body", "What it says"),
            moment("send_at", "When it is to be sent, UTC"),
            flag("is_cancelled", "Whether it will not be sent after all"),
        ],
        noun=("scheduled <message>", "scheduled <messages>"),
        label="thread_id send_at",
        uniques=["thread_id send_at"],
    )
    m.listing("scheduled", filters="thread_id send_at is_cancelled", order="send_at")
    m.create(
        "scheduled",
        "thread_id body send_at",
        before=[
            _open(),
            Require("send_at > now", 422, "It is {now} now; a later moment is wanted.", "send_later"),
            Require(
                "not exists('scheduled', thread_id=thread.id, send_at=send_at)",
                409,
                "Something is planned in it for that moment already.",
                "one_at_a_time",
            ),
        ],
        verb="schedule",
        name=f"schedule_{m.entity_of('message').name}",
        summary="Plan <a message> for later",
        description="At a moment to come, one at a time in <a thread>.",
    )
    m.act(
        "cancel",
        "scheduled",
        [
            Let("is_due", "scheduled.send_at <= now"),
            Require("not scheduled.is_cancelled and not is_due", 409, "It is cancelled or sent already.", "still_planned"),
            Change("scheduled", {"is_cancelled": "True"}),
        ],
        description="Possible until it is sent.",
    )


def seed(s: Seeding) -> None:
    users, parties = s.rows("user", is_active=True), s.rows("party", is_blocked=False)
    for name in ("Urgent", "Season", "Routine", "Follow up") if s.has("labels") else ():
        s.insert("label", name=name)
    labels = s.rows("label") if s.has("labels") else []
    bodies = s.values("bodies", "Please confirm by Friday.", "Thank you for your patience.")
    for number, (begun, subject) in enumerate(zip(sorted(s.past(3, 110) for _ in range(12)), _subjects(s), strict=False)):
        sent = [begun + timedelta(hours=3 * place + s.between(1, 2)) for place in range(s.between(0, 5))]
        thread = s.insert(
            "thread",
            subject=subject,
            status=s.state["archived" if number % 4 == 3 else "open"],
            label_id=s.pick(labels)["id"] if labels and s.chance(75) else None,
            owner_id=s.pick(users)["id"],
            is_pinned=number in (1, 5),
            created_at=begun,
            last_sent_at=sent[-1] if sent else None,
        )
        most = min(7, s.policy["max_recipients"])
        for party in s.some(parties, s.between(1 if sent else 0, most)):
            s.insert(
                "recipient",
                thread_id=thread["id"],
                party_id=party["id"],
                added_at=begun,
                read_at=sent[-1] + timedelta(minutes=s.between(5, 50)) if sent and s.chance(60) else None,
            )
        for place, moment_ in enumerate(sent):
            s.insert(
                "message",
                thread_id=thread["id"],
                sender_id=s.pick(users)["id"],
                body=bodies[(number + place) % len(bodies)],
                sent_at=moment_,
            )
    if s.has("templates"):
        for title, body in zip(("Reminder", "Welcome", "Closing days", "Thanks"), s.shuffled(bodies), strict=False):
            s.insert("template", title=title, body=body, is_active=title != "Closing days")
    if s.has("schedules"):
        for thread in s.some(s.rows("thread", status=s.state["open"]), 4):
            s.insert(
                "scheduled",
                thread_id=thread["id"],
                body=s.pick(bodies),
                send_at=s.at(s.between(1, 14), s.pick((8, 12, 17))),
                is_cancelled=s.chance(25),
            )


def _subjects(s: Seeding) -> list[str]:
    """Each of the pack's, and some once more with a year, so that a lazy search finds two."""
    subjects = s.values("subjects", "News of the month", "Opening times", "New prices")
    return [*subjects[:9], *(f"{subject} {s.today.year - 1}" for subject in subjects[:3])]
