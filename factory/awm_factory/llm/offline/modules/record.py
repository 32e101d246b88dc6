"""Records: subjects that are looked after for years (a vehicle, a device, a patient), with a history of entries.

Past 300 lines and one file: tables, tools and start rows of a module are read together.
"""

from datetime import timedelta

from awm_factory.llm.offline.columns import cents, choice, created, day, flag, number, ref, text
from awm_factory.llm.offline.ir import Param, Show
from awm_factory.llm.offline.kit import NOT_BLOCKED, Kit
from awm_factory.llm.offline.seeding import Seeding
from awm_factory.llm.offline.steps import Change, Field, Require, ReturnTable
from awm_factory.llm.offline.values import Row

FEATURES = ("measures", "transfers", "tags", "attachments", "costs", "inspectors")


def build(m: Kit) -> None:
    m.policy = {"interval_days": 90} | m.policy
    m.rule("<A subject> is due again {policy.interval_days} days after its last <entry>.")
    m.rule("Nothing is entered for <a subject> that is {state.retired}; entries are never changed, only corrected by another.")
    kinds = m.part.values.get("entry_kinds", ["check", "repair"])
    if m.has("tags"):
        m.entity("tag", [text("name", "Name", unique=True)], noun=("<subject> tag", "<subject> tags"), label="name")
    m.entity(
        "subject",
        [
            text("name", "Name"),
            text("number", "Number by which it is known", unique=True),
            ref("party_id", "party", "<Party> that it belongs to"),
            ref("place_id", "place", "<Place> that looks after it"),
            ref("tag_id", "tag", "Id of its tag", null=True, name="tag_id") if m.has("tags") else None,
            m.status("active", "due", "retired"),
            number("reading", "Last reading", server=True),
            day("due_on", "Day on which it is due", server=True),
            created("registered_at", "When it was registered"),
        ],
        label="number",
    )
    m.entity(
        "entry",
        [
            ref("subject_id", "subject", owned=True),
            choice("kind", kinds, "What was done"),
            day("done_on", "Day"),
            number("reading", "Reading at that time"),
            text("finding", "What was found"),
            ref("inspector_id", "user", "Who did it", name="inspector_id") if m.has("inspectors") else None,
            cents("cost_cents", "What it cost, in cents") if m.has("costs") else None,
            created("entered_at"),
        ],
        label="subject_id done_on kind",
        shows=[Show("subject_number", "text", "self.subject.number", "Number of the <subject>")],
    )
    m.invariant(
        "subject",
        "not exists('entry', subject_id=self.id, reading__gt=self.reading)",
        "the last reading of <a subject> is the highest of its <entrys>",
    )
    _subjects(m)
    _entries(m)
    if m.has("measures"):
        _measures(m)
    if m.has("transfers"):
        _transfers(m)
    if m.has("attachments"):
        _attachments(m)
    parts = {"measures": "measure", "transfers": "transfer", "attachments": "attachment"}
    m.get("subject", children=["entry", *(part for feature, part in parts.items() if m.has(feature))])
    if m.has("tags"):
        m.listing("tag", search="name", order="name", path="/<subject>-tags")
        m.create("tag", "name", verb="add", path="/<subject>-tags")


def _in_use() -> Require:
    return Require("subject.status != state.retired", 409, "<Subject> {subject.number} is {subject.status}.", "not_retired")


def _subjects(m: Kit) -> None:
    tag = " tag_id" if m.has("tags") else ""
    m.listing(
        "subject",
        search="name number",
        filters="party_id place_id status due_on reading" + tag,
        sorts="due_on reading name",
        order="number",
    )
    m.create(
        "subject",
        "name number party_id place_id" + tag,
        values={"registered_at": "now", "reading": "0", "due_on": "today + days(policy.interval_days)"},
        before=[NOT_BLOCKED],
        verb="register",
        action="registered",
        description="Numbers are unique. It is due in {policy.interval_days} days.",
    )
    m.update("subject", "name place_id" + tag, before=[_in_use()])
    m.act(
        "flag",
        "subject",
        [
            Require("subject.status == state.active", 409, "<Subject> {subject.number} is {subject.status}.", "is_active"),
            Require("subject.due_on <= today", 409, "<Subject> {subject.number} is due on {subject.due_on} only.", "is_due"),
            Change("subject", {"status": "state.due"}),
        ],
        action="flagged",
        summary="Flag <a subject> as due",
        description="From its day on; it becomes {state.due}.",
    )
    m.act(
        "retire",
        "subject",
        [_in_use(), Change("subject", {"status": "state.retired"})],
        action="retired",
        description="Nothing more can be entered for it. Its history stays.",
    )
    m.report(
        "report_due_<subjects>",
        "subject",
        ReturnTable(
            "subject",
            "subject",
            (
                Field("subject_id", "int", "subject.id", "Id of the <subject>"),
                Field("number", "text", "subject.number", "Its number"),
                Field("party_name", "text", "subject.party.name", "Whose it is"),
                Field("due_on", "date", "subject.due_on", "Day on which it is due"),
                Field("entries", "int", "count('entry', subject_id=subject.id)", "<Entrys> so far"),
            ),
            where={"due_on__le": "today + days(within_days)", "status__ne": "state.retired"},
            order=("due_on", "number"),
        ),
        path="/reports/due-<subjects>",
        params=[Param("within_days", "int", required=False, default=14, low=0, high=365, about="Days to look ahead")],
        summary="List <subjects> that are due soon",
        description="Those due within so many days, or overdue, by day.",
    )


def _entries(m: Kit) -> None:
    more = (" inspector_id" if m.has("inspectors") else "") + (" cost_cents" if m.has("costs") else "")
    m.listing(
        "entry",
        search="finding",
        filters="subject_id kind done_on reading" + more,
        sorts="done_on reading",
        order="-id",
    )
    m.create(
        "entry",
        "subject_id kind done_on reading finding" + more,
        values={"entered_at": "now"},
        before=[
            _in_use(),
            Require("done_on <= today", 422, "Today is {today}; it is entered once it is done.", "not_ahead"),
            Require(
                "reading >= subject.reading",
                422,
                "The last reading of {subject.number} was {subject.reading}; it can't fall.",
                "reading_rises",
            ),
            *(
                [Require("inspector.is_active", 409, "{inspector.name} does not work here.", "inspector_active")]
                if m.has("inspectors")
                else []
            ),
        ],
        after=[
            Change(
                "subject",
                {"status": "state.active", "reading": "reading", "due_on": "done_on + days(policy.interval_days)"},
            )
        ],
        verb="enter",
        action="entered",
        summary="Enter <a entry> of <a subject>",
        description="It is {state.active} again, and due {policy.interval_days} days after it. Readings never fall.",
    )
    m.report(
        "report_<entry>_kinds",
        "entry",
        ReturnTable(
            "place",
            "place",
            (
                Field("place_id", "int", "place.id", "Id of the <place>"),
                Field("place_name", "text", "place.name", "The <place>"),
                Field(
                    "entries", "int", "count('entry', subject__place_id=place.id, done_on__ge=since_on)", "<Entrys> since then"
                ),
                Field(
                    "subjects",
                    "int",
                    "count('subject', place_id=place.id, status__ne=state.retired)",
                    "<Subjects> that it looks after",
                ),
            ),
            order=("-entries", "place_name"),
        ),
        path="/reports/<entrys>-by-<place>",
        params=[Param("since_on", "date", about="First day that counts")],
        summary="Count <entrys> of each <place> since a day",
        description="One row for each <place>, the busiest first.",
    )


def _measures(m: Kit) -> None:
    m.entity(
        "measure",
        [
            ref("subject_id", "subject", owned=True),
            text("title", "What is to be done"),
            day("due_on", "Day by which it is to be done"),
            flag("is_done", "Whether it is done"),
        ],
        noun=("<subject> measure", "<subject> measures"),
        label="subject_id title",
        uniques=["subject_id title"],
    )
    m.listing("measure", search="title", filters="subject_id due_on is_done", sorts="due_on", order="due_on")
    m.create(
        "measure",
        "subject_id title due_on",
        before=[
            _in_use(),
            Require("due_on >= today", 422, "Today is {today}; a day to come is wanted.", "day_to_come"),
            Require(
                "not exists('measure', subject_id=subject.id, title=title)",
                409,
                "That is ordered for it already.",
                "measure_once",
            ),
        ],
        verb="order",
        action="ordered",
    )
    m.act(
        "complete",
        "measure",
        [Require("not measure.is_done", 409, "It is done already.", "not_done"), Change("measure", {"is_done": "True"})],
    )


def _transfers(m: Kit) -> None:
    m.entity(
        "transfer",
        [
            ref("subject_id", "subject", owned=True),
            ref("from_party_id", "party", "Whose it was"),
            ref("to_party_id", "party", "Whose it became"),
            created("transferred_at", "When"),
        ],
        noun=("<subject> transfer", "<subject> transfers"),
        label="subject_id transferred_at",
    )
    m.listing("transfer", filters="subject_id to_party_id from_party_id", order="-id")
    m.create(
        "transfer",
        "subject_id to_party_id",
        values={"from_party_id": "subject.party_id", "transferred_at": "now"},
        before=[
            _in_use(),
            Require("to_party.id != subject.party_id", 409, "It belongs to {to_party.name} already.", "other_party"),
            Require(
                "not to_party.is_blocked", 409, "{to_party.name} is blocked; nothing new may be entered.", "party_not_blocked"
            ),
        ],
        after=[Change("subject", {"party_id": "to_party.id"})],
        verb="enter",
        action="entered",
        summary="Pass <a subject> on to another <party>",
        description="Keeps whose it was before.",
    )


def _attachments(m: Kit) -> None:
    m.entity(
        "attachment",
        [
            ref("subject_id", "subject", owned=True),
            text("title", "Title"),
            choice("kind", ("photo", "report", "invoice"), "Kind"),
            created("added_at", "When it was added"),
        ],
        noun=("<subject> paper", "<subject> papers"),
        label="subject_id title",
        uniques=["subject_id title"],
    )
    m.create(
        "attachment",
        "subject_id title kind",
        values={"added_at": "now"},
        before=[
            Require(
                "not exists('attachment', subject_id=subject.id, title=title)",
                409,
                "One of that title is there already.",
                "paper_once",
            )
        ],
        verb="add",
        summary="Note that a paper was added to <a subject>",
    )
    m.delete("attachment", verb="remove")


def seed(s: Seeding) -> None:
    for name in ("Priority", "On watch", "Standard") if s.has("tags") else ():
        s.insert("tag", name=name)
    tags = s.rows("tag") if s.has("tags") else []
    parties, places = s.rows("party", is_blocked=False), s.rows("place")
    names = s.values("subject_names", "Device One", "Device Two", "Device Three")
    for turn in range(min(18, 2 * len(names))):
        registered = s.past(200, 900)
        s.insert(
            "subject",
            name=names[turn % len(names)],
            number=f"{names[turn % len(names)][:2].upper().strip()}-{410 + 7 * turn}",
            party_id=parties[(turn * 3) % len(parties)]["id"],
            place_id=s.pick(places)["id"],
            tag_id=s.pick(tags)["id"] if tags and s.chance(70) else None,
            status=s.state["active"],
            reading=0,
            due_on=registered.date() + timedelta(days=s.policy["interval_days"]),
            registered_at=registered,
        )
    _seed_entries(s)
    for turn, subject in enumerate(s.rows("subject")):
        if turn % 9 == 4:
            s.change("subject", subject, status=s.state["retired"])
        elif subject["due_on"] < s.today and turn % 3 != 1:
            s.change("subject", subject, status=s.state["due"])
    _seed_parts(s, parties)


def _seed_entries(s: Seeding) -> None:
    kinds, findings = s.values("entry_kinds", "check", "repair"), s.values("findings", "no defects", "worn part replaced")
    users = s.rows("user", is_active=True)
    step = s.policy["interval_days"]
    drawn: list[tuple[int, Row, int]] = []
    for subject in s.rows("subject"):
        last = s.between(-step // 2, step)
        drawn += [(last + step * place, subject, place) for place in range(s.between(1, 3)) if last + step * place > 0]
    readings: dict[int, int] = {}
    low, high = (round(bound) for bound in s.kit.part.ranges.get("reading", (10, 5000)))
    for ago, subject, _ in sorted(drawn, key=lambda draw: -draw[0]):
        done = s.at(-ago, s.between(8, 16), 20)
        if done <= subject["registered_at"]:
            continue
        reading = min(high, readings.get(subject["id"], low) + s.between(1, max(2, (high - low) // 6)))
        readings[subject["id"]] = reading
        s.insert(
            "entry",
            subject_id=subject["id"],
            kind=s.pick(kinds),
            done_on=done.date(),
            reading=reading,
            finding=s.pick(findings),
            inspector_id=s.pick(users)["id"],
            cost_cents=500 * s.between(3, 60),
            entered_at=done,
        )
        s.change("subject", s.row("subject", subject["id"]), reading=reading, due_on=done.date() + timedelta(days=step))


def _seed_parts(s: Seeding, parties: list[Row]) -> None:
    subjects = s.rows("subject")
    if s.has("measures"):
        for subject in s.some(subjects, 8):
            for title in s.some(("Replace the seal", "Clean thoroughly", "Order a part", "Check once more"), s.between(1, 2)):
                due = s.at(s.between(-10, 30)).date()
                s.insert("measure", subject_id=subject["id"], title=title, due_on=due, is_done=due < s.today and s.chance(60))
    if s.has("transfers"):
        for moved, subject in sorted(((s.past(5, 150), subject) for subject in s.some(subjects, 5)), key=lambda pair: pair[0]):
            before = s.pick([party for party in parties if party["id"] != subject["party_id"]])
            s.insert(
                "transfer",
                subject_id=subject["id"],
                from_party_id=before["id"],
                to_party_id=subject["party_id"],
                transferred_at=moved,
            )
    if s.has("attachments"):
        for subject in s.some(subjects, 8):
            kind = s.pick(("photo", "report", "invoice"))
            s.insert("attachment", subject_id=subject["id"], title=f"First {kind}", kind=kind, added_at=s.past(1, 60))
