"""Documents: drafted, sent to the parties that are to sign, and in force once all of them have.

Past 300 lines and one file: tables, tools and start rows of a module are read together.
"""

from datetime import timedelta

from awm_factory.llm.offline.columns import choice, created, day, flag, moment, number, ref, text
from awm_factory.llm.offline.ir import Param, Show
from awm_factory.llm.offline.kit import NOT_BLOCKED, Kit
from awm_factory.llm.offline.seeding import Seeding
from awm_factory.llm.offline.steps import Change, Field, Insert, Load, Require, ReturnTable, Step, When
from awm_factory.llm.offline.values import Row

FEATURES = ("versions", "reminders", "folders", "clauses", "countersigning", "places")


def build(m: Kit) -> None:
    m.policy = {"valid_days": 30, "max_signers": 3} | m.policy
    m.rule("<A document> that was sent can be signed for {policy.valid_days} days.")
    m.rule("<A document> has at most {policy.max_signers} signers; it is {state.signed} with the last of them.")
    if m.has("folders"):
        m.entity("folder", [text("name", "Name", unique=True)], noun=("<document> folder", "<document> folders"), label="name")
    m.entity(
        "document",
        [
            text("reference", "Reference", unique=True, server=True),
            text("title", "Title"),
            choice("kind", m.part.values.get("kinds", ["contract", "form", "letter"]), "Kind"),
            ref("party_id", "party", "<Party> that it is about"),
            ref("folder_id", "folder", "Id of its folder", null=True, name="folder_id") if m.has("folders") else None,
            ref("place_id", "place", "<Place> that it is about", null=True) if m.has("places") else None,
            m.status("draft", "sent", "signed", "declined", "void"),
            created(),
            moment("sent_at", "When it was sent", null=True, server=True),
            day("expires_on", "Last day to sign it", null=True, server=True),
            moment("signed_at", "When the last one signed", null=True, server=True),
            ref("countersigner_id", "user", "Who countersigned", null=True, name="countersigned_by_id")
            if m.has("countersigning")
            else None,
        ],
        label="reference",
    )
    m.entity(
        "signature",
        [
            ref("document_id", "document", owned=True),
            ref("party_id", "party", "<Party> that is to sign"),
            number("position", "Its place among the signers", low=1),
            m.status("sent", "signed", "declined"),
            text("reason", "Why it was declined", null=True),
            moment("answered_at", "When they signed or declined", null=True, server=True),
        ],
        label="document_id party_id",
        uniques=["document_id party_id"],
        shows=[Show("document_reference", "text", "self.document.reference", "Reference of the <document>")],
    )
    m.invariant(
        "document",
        "self.status != state.signed or not exists('signature', document_id=self.id, status__ne=state.signed)",
        "nobody's signature is missing on what is {state.signed}",
    )
    _documents(m)
    _signing(m)
    if m.has("folders"):
        _folders(m)
    if m.has("versions"):
        _versions(m)
    if m.has("clauses"):
        _clauses(m)
    if m.has("reminders"):
        _reminders(m)
    parts = {"versions": "version", "clauses": "use", "reminders": "reminder"}
    m.get("document", children=["signature", *(part for feature, part in parts.items() if m.has(feature))])


def _is(state: str) -> Require:
    return Require(
        f"document.status == state.{state}", 409, "<Document> {document.reference} is {document.status}.", f"is_{state}"
    )


def _documents(m: Kit) -> None:
    more = (" folder_id" if m.has("folders") else "") + (" place_id" if m.has("places") else "")
    m.listing(
        "document",
        search="reference title",
        filters="kind party_id status expires_on" + more,
        sorts="created_at title",
        order="-id",
    )
    m.create(
        "document",
        "title kind party_id" + more,
        values={"reference": "serial('document', 'D')", "created_at": "now"},
        before=[NOT_BLOCKED],
        verb="draft",
        description="A draft without signers; add those, then send it.",
    )
    m.update("document", "title kind" + more, before=[_is("draft")], description="While it is a draft. What is left out stays.")
    m.act(
        "send",
        "document",
        [
            _is("draft"),
            Require(
                "exists('signature', document_id=document.id)",
                409,
                "Nobody is to sign {document.reference} yet; add signers.",
                "has_signers",
            ),
            Change("document", {"status": "state.sent", "sent_at": "now", "expires_on": "today + days(policy.valid_days)"}),
        ],
        children=[("signature", "document_id")],
        action="sent",
        summary="Send <a document> to its signers",
        description="They can sign for {policy.valid_days} days.",
    )
    m.act(
        "void",
        "document",
        [
            Require(
                "document.status in (state.draft, state.sent)",
                409,
                "<Document> {document.reference} is {document.status} and can't be made void any more.",
                "not_ended",
            ),
            Change("document", {"status": "state.void"}),
        ],
        action="voided",
        summary="Make <a document> void",
        description="Possible until it is {state.signed} or {state.declined}.",
    )
    if m.has("countersigning"):
        m.act(
            "countersign",
            "document",
            [
                _is("signed"),
                Require("document.countersigner_id is None", 409, "It is countersigned already.", "not_countersigned"),
                Load("countersigner", "user", "countersigner_id"),
                Require("countersigner.is_active", 409, "{countersigner.name} does not work here.", "countersigner_active"),
                Change("document", {"countersigner_id": "countersigner.id"}),
            ],
            params=[Param("countersigner_id", "ref", ref="user", name="countersigned_by_id", about="Who countersigns")],
            action="countersigned",
            description="Once all have signed.",
        )
    m.report(
        "report_open_<documents>",
        "document",
        ReturnTable(
            "document",
            "document",
            (
                Field("document_id", "int", "document.id", "Id of the <document>"),
                Field("reference", "text", "document.reference", "Reference"),
                Field("title", "text", "document.title", "Title"),
                Field(
                    "missing",
                    "int",
                    "count('signature', document_id=document.id, status=state.sent)",
                    "Signatures that are missing",
                ),
                Field("expires_on", "date", "document.expires_on", "Last day to sign it"),
            ),
            where={"status": "state.sent"},
            order=("expires_on", "reference"),
        ),
        path="/reports/open-<documents>",
        summary="List <documents> that wait for signatures",
        description="With how many are missing; the one that ends first stands first.",
    )


def _signing(m: Kit) -> None:
    m.listing("signature", filters="document_id party_id status", order="document_id")
    m.create(
        "signature",
        "document_id party_id",
        values={"position": "count('signature', document_id=document.id) + 1"},
        before=[
            _is("draft"),
            Require(
                "not exists('signature', document_id=document.id, party_id=party.id)",
                409,
                "{party.name} is to sign it already.",
                "signs_once",
            ),
            Require(
                "count('signature', document_id=document.id) < policy.max_signers",
                409,
                "{document.reference} has {policy.max_signers} signers, which is the most.",
                "max_signers",
            ),
        ],
        verb="add",
        name="add_signer",
        summary="Add a <party> that is to sign <a document>",
        description="While it is a draft, and at most {policy.max_signers}.",
    )
    m.act(
        "sign",
        "signature",
        [
            *_answerable(),
            Change("signature", {"status": "state.signed", "answered_at": "now"}),
            When(
                "not exists('signature', document_id=document.id, status__ne=state.signed)",
                (Change("document", {"status": "state.signed", "signed_at": "now"}),),
            ),
        ],
        action="signed",
        summary="Note that a <party> has signed",
        description="With the last signature the <document> becomes {state.signed}.",
    )
    m.act(
        "decline",
        "signature",
        [
            *_answerable(),
            Change("signature", {"status": "state.declined", "reason": "reason", "answered_at": "now"}),
            Change("document", {"status": "state.declined"}),
        ],
        params=[Param("reason", "text", low=3, high=200, about="Why")],
        summary="Note that a <party> declines to sign",
        description="The whole <document> becomes {state.declined}.",
    )


def _answerable() -> list[Step]:
    return [
        Load("document", "document", "signature.document_id"),
        _is("sent"),
        Require(
            "signature.status == state.sent", 409, "{signature.party.name} has answered: {signature.status}.", "not_answered"
        ),
        Require(
            "document.expires_on >= today",
            409,
            "<Document> {document.reference} could be signed until {document.expires_on}.",
            "in_time",
        ),
    ]


def _folders(m: Kit) -> None:
    m.listing("folder", search="name", order="name", path="/<document>-folders")
    m.create("folder", "name", verb="add", path="/<document>-folders")


def _versions(m: Kit) -> None:
    m.entity(
        "version",
        [
            ref("document_id", "document", owned=True),
            number("number", "Number", low=1, server=True),
            text("change_note", "What has changed"),
            ref("user_id", "user", "Who changed it", name="author_id"),
            created(),
        ],
        noun=("<document> version", "<document> versions"),
        label="document_id number",
        uniques=["document_id number"],
    )
    m.create(
        "version",
        "document_id change_note",
        values={"number": "count('version', document_id=document.id) + 1", "user_id": "1", "created_at": "now"},
        before=[_is("draft")],
        verb="add",
        description="While it is a draft; numbers go up by one.",
    )
    m.listing("version", filters="document_id", order="document_id")


def _clauses(m: Kit) -> None:
    m.entity(
        "clause",
        [
            text("title", "Title", unique=True),
            text("wording", "What it says"),
            flag("is_active", "Whether it may be used", default=True),
        ],
        noun=("clause", "clauses"),
        label="title",
    )
    m.entity(
        "use",
        [ref("document_id", "document", owned=True), ref("clause_id", "clause", name="clause_id")],
        noun=("<document> clause", "<document> clauses"),
        label="document_id clause_id",
        uniques=["document_id clause_id"],
        shows=[Show("clause_title", "text", "self.clause.title", "Title of the clause")],
    )
    m.listing("clause", search="title wording", filters="is_active", order="title")
    m.create(
        "use",
        "document_id clause_id",
        before=[
            _is("draft"),
            Require("clause.is_active", 409, "The clause {clause.title} is not in use.", "clause_active"),
            Require(
                "not exists('use', document_id=document.id, clause_id=clause.id)",
                409,
                "{clause.title} is in it already.",
                "used_once",
            ),
        ],
        verb="add",
        summary="Put a clause into <a document>",
        description="While it is a draft.",
    )
    m.delete(
        "use",
        verb="remove",
        before=[Load("document", "document", "use.document_id"), _is("draft")],
        summary="Take a clause out of <a document>",
    )


def _reminders(m: Kit) -> None:
    m.entity(
        "reminder",
        [ref("document_id", "document", owned=True), text("body", "What it says"), created("sent_at", "When it was sent")],
        noun=("<document> reminder", "<document> reminders"),
        label="document_id sent_at",
    )
    m.act(
        "remind",
        "document",
        [
            _is("sent"),
            Require(
                "not exists('reminder', document_id=document.id, sent_at__gt=now - days(3))",
                409,
                "Its signers were reminded less than three days ago.",
                "three_days",
            ),
            Insert("reminder", "reminder", {"document_id": "document.id", "body": "body", "sent_at": "now"}),
        ],
        params=[Param("body", "text", low=3, high=200, about="What to say")],
        children=[("reminder", "document_id")],
        action="reminded",
        summary="Remind those who have not signed <a document>",
        description="At most every three days.",
    )


def seed(s: Seeding) -> None:
    if s.has("folders"):
        for name in ("Current", "Archive", "Under review", "Templates"):
            s.insert("folder", name=name)
    if s.has("clauses"):
        for title, wording in (
            ("Confidentiality", "Both sides keep to themselves what they learn."),
            ("Liability", "Each side answers for damage it causes by neglect."),
            ("Data protection", "Personal data are kept as long as the law asks."),
            ("Notice", "Either side may end it in writing."),
            ("Old venue", "Disputes go to the court of the old seat."),
        ):
            s.insert("clause", title=title, wording=wording, is_active=title != "Old venue")
    parties, users = s.rows("party", is_blocked=False), s.rows("user", is_active=True)
    places, folders = s.rows("place"), s.rows("folder") if s.has("folders") else []
    titles, kinds = s.values("titles", "Agreement", "Statement"), s.values("kinds", "contract", "form", "letter")
    for turn, begun in enumerate(sorted(s.past(1, 100) for _ in range(24))):
        party = parties[turn % len(parties)]
        state = s.weighted(draft=4, sent=6, signed=7, declined=2, void=2)
        sent = begun + timedelta(hours=s.between(1, 20)) if state in ("sent", "signed", "declined") else None
        expires = (sent + timedelta(days=s.policy["valid_days"])).date() if sent else None
        document = s.insert(
            "document",
            reference=f"D-{1001 + turn}",
            title=titles[(turn * 3) % len(titles)],
            kind=s.pick(kinds),
            party_id=party["id"],
            folder_id=s.pick(folders)["id"] if folders and s.chance(80) else None,
            place_id=s.pick(places)["id"] if s.chance(60) else None,
            status=s.state[state],
            created_at=begun,
            sent_at=sent,
            expires_on=expires,
            signed_at=sent + timedelta(hours=3) if sent and state == "signed" else None,
            countersigner_id=s.pick(users)["id"] if state == "signed" and s.chance(50) else None,
        )
        _seed_signers(s, document, state, [party, *s.some([other for other in parties if other is not party], s.between(0, 2))])
        _seed_parts(s, document, users)


def _seed_signers(s: Seeding, document: Row, state: str, signers: list[Row]) -> None:
    if state == "draft" and s.chance(40):
        return
    signers = signers[: s.policy["max_signers"]]
    answered = {"signed": len(signers), "declined": 1, "sent": s.between(0, len(signers) - 1)}.get(state, 0)
    for position, signer in enumerate(signers, start=1):
        declined = state == "declined" and position == 1
        done = position <= answered
        s.insert(
            "signature",
            document_id=document["id"],
            party_id=signer["id"],
            position=position,
            status=s.state["declined" if declined else "signed" if done else "sent"],
            reason="The figures are not those agreed." if declined else None,
            answered_at=document["sent_at"] + timedelta(hours=position) if done else None,
        )


def _seed_parts(s: Seeding, document: Row, users: list[Row]) -> None:
    if s.has("versions"):
        for version in range(1, s.between(1, 3)):
            note = s.pick(("Names corrected", "Dates moved", "Annex added"))
            s.insert(
                "version",
                document_id=document["id"],
                number=version,
                change_note=note,
                user_id=s.pick(users)["id"],
                created_at=document["created_at"] + timedelta(minutes=10 * version),
            )
    if s.has("clauses"):
        for clause in s.some(s.rows("clause", is_active=True), s.between(0, 2)):
            s.insert("use", document_id=document["id"], clause_id=clause["id"])
    if s.has("reminders") and document["status"] == s.state["sent"] and s.chance(40):
        sent_at = min(document["sent_at"] + timedelta(days=2), s.now - timedelta(hours=s.between(2, 30)))
        if sent_at > document["sent_at"]:
            s.insert("reminder", document_id=document["id"], body="Your signature is still missing.", sent_at=sent_at)
