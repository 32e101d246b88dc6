"""Enrolment: courses with sessions of limited places, who takes part in them, and who waits.

Past 300 lines and one file: tables, tools and start rows of a module are read together.
"""

from datetime import timedelta

from awm_factory.llm.offline.columns import cents, choice, created, day, flag, number, ref, text
from awm_factory.llm.offline.ir import Param, Show
from awm_factory.llm.offline.kit import NOT_BLOCKED, Kit
from awm_factory.llm.offline.seeding import Seeding
from awm_factory.llm.offline.steps import Change, Field, Load, Require, ReturnTable
from awm_factory.llm.offline.values import Row

FEATURES = ("teachers", "attendance", "grades", "requirements", "discounts", "materials")


def build(m: Kit) -> None:
    m.policy = {"withdraw_days": 7, "max_courses": 3} | m.policy
    m.rule("<An enrolment> can be withdrawn until {policy.withdraw_days} days before its <session> begins.")
    m.rule("<A party> is enrolled in at most {policy.max_courses} <sessions> that are not over.")
    _entities(m)
    _courses(m)
    _sessions(m)
    _enrolments(m)
    if m.has("attendance"):
        _attendance(m)
    if m.has("requirements"):
        _requirements(m)
    if m.has("discounts"):
        _discounts(m)
    if m.has("materials"):
        _materials(m)
    m.get("enrolment", children=["presence"] if m.has("attendance") else [])
    parts = {"requirements": "requirement", "materials": "material"}
    m.get("course", children=["session", *(part for feature, part in parts.items() if m.has(feature))])


def _entities(m: Kit) -> None:
    m.entity(
        "course",
        [
            text("name", "Name", unique=True),
            choice("level", m.part.values.get("levels", ["beginner", "advanced"]), "Level"),
            cents("fee_cents", "Fee in cents"),
            number("lessons", "Number of lessons", low=1, high=60),
            flag("is_offered", "Whether it is offered at present", default=True),
        ],
        label="name",
    )
    m.entity(
        "session",
        [
            ref("course_id", "course"),
            ref("place_id", "place"),
            ref("teacher_id", "user", "Who teaches", null=True, name="teacher_id") if m.has("teachers") else None,
            day("begins_on", "First day"),
            day("ends_on", "Last day"),
            number("capacity", "Places", low=1),
            flag("is_cancelled", "Whether it does not take place"),
        ],
        label="course_id begins_on",
        uniques=["course_id place_id begins_on"],
        checks=["ends_on >= begins_on"],
    )
    m.entity(
        "enrolment",
        [
            text("reference", "Reference", unique=True, server=True),
            ref("session_id", "session"),
            ref("party_id", "party"),
            m.status("enrolled", "waitlisted", "completed", "withdrawn"),
            cents("fee_cents", "Fee in cents", server=True),
            number("grade", "Grade from 1, best, to 6", low=1, high=6, null=True) if m.has("grades") else None,
            created("enrolled_at", "When it was entered"),
        ],
        label="reference",
        shows=[
            Show("course_name", "text", "self.session.course.name", "Name of the <course>"),
            Show("begins_on", "date", "self.session.begins_on", "First day"),
        ],
    )
    m.invariant(
        "session",
        "count('enrolment', session_id=self.id, status__in=(state.enrolled, state.completed)) <= self.capacity",
        "no <session> has more <enrolments> than places",
    )


def _courses(m: Kit) -> None:
    m.listing("course", search="name", filters="level is_offered fee_cents lessons", sorts="fee_cents name", order="name")
    m.create("course", "name level fee_cents lessons", verb="add", action="added")
    m.update("course", "fee_cents lessons is_offered", description="Fees that were agreed before stay as they are.")


def _taken(session: str) -> str:
    return f"count('enrolment', session_id={session}.id, status__in=(state.enrolled, state.completed))"


def _sessions(m: Kit) -> None:
    teacher = " teacher_id" if m.has("teachers") else ""
    m.listing(
        "session",
        filters="course_id place_id begins_on is_cancelled capacity" + teacher,
        sorts="begins_on capacity",
        order="begins_on",
    )
    m.create(
        "session",
        "course_id place_id begins_on ends_on capacity",
        before=[
            Require("course.is_offered", 409, "{course.name} is not offered at present.", "course_offered"),
            Require("place.is_open", 409, "{place.name} is not in use.", "place_open"),
            Require(
                "begins_on > today and ends_on >= begins_on", 422, "It begins after today and ends after that.", "days_to_come"
            ),
            Require(
                "not exists('session', course_id=course.id, place_id=place.id, begins_on=begins_on)",
                409,
                "{course.name} begins there on that day already.",
                "session_once",
            ),
        ],
        verb="schedule",
        action="scheduled",
    )
    m.act(
        "cancel",
        "session",
        [
            Require("not session.is_cancelled", 409, "It is cancelled already.", "not_cancelled"),
            Require("session.begins_on > today", 409, "It began on {session.begins_on}.", "not_begun"),
            Require(
                "not exists('enrolment', session_id=session.id, status__in=(state.enrolled, state.waitlisted))",
                409,
                "{count('enrolment', session_id=session.id, status__in=(state.enrolled, state.waitlisted))} take part or wait; "
                "move or withdraw them first.",
                "nobody_left",
            ),
            Change("session", {"is_cancelled": "True"}),
        ],
        description="Before it begins, and once nobody takes part or waits.",
    )
    if m.has("teachers"):
        m.act(
            "assign_teacher",
            "session",
            [
                Load("teacher", "user", "teacher_id"),
                Require("teacher.is_active", 409, "{teacher.name} does not work here at present.", "teacher_active"),
                Require(
                    "not exists('session', teacher_id=teacher.id, begins_on__le=session.ends_on, ends_on__ge=session.begins_on, "
                    "is_cancelled=False, id__ne=session.id)",
                    409,
                    "{teacher.name} teaches another <session> in these days.",
                    "teacher_free",
                ),
                Change("session", {"teacher_id": "teacher.id"}),
            ],
            params=[Param("teacher_id", "ref", ref="user", name="teacher_id", about="Who is to teach")],
            method="PUT",
            path="/<<one>>/teacher",
            name=f"assign_{m.entity_of('session').name}_teacher",
            action="assigned",
            summary="Say who teaches <a session>",
            description="Refused for one who teaches another in these days.",
        )
    m.report(
        "list_open_<sessions>",
        "session",
        ReturnTable(
            "session",
            "session",
            (
                Field("session_id", "int", "session.id", "Id of the <session>"),
                Field("course_name", "text", "session.course.name", "Name of the <course>"),
                Field("place_name", "text", "session.place.name", "Where"),
                Field("begins_on", "date", "session.begins_on", "First day"),
                Field("places_left", "int", f"session.capacity - {_taken('session')}", "Places that are free"),
                Field("waiting", "int", "count('enrolment', session_id=session.id, status=state.waitlisted)", "How many wait"),
                Field("fee_cents", "money", "session.course.fee_cents", "Fee in cents"),
            ),
            where={"begins_on__gt": "today", "is_cancelled": "False"},
            order=("begins_on", "course_name"),
        ),
        path="/<<all>>/open",
        summary="List coming <sessions> with places left",
        description="Those that have not begun, full ones too, the next one first.",
    )


def _enrolments(m: Kit) -> None:
    fee = "session.course.fee_cents"
    if m.has("discounts"):
        fee = f"{fee} - {fee} * total('discount', 'percent', group=party.group) // 100"
    m.listing(
        "enrolment",
        search="reference",
        filters="session_id party_id status enrolled_at" + (" grade" if m.has("grades") else ""),
        sorts="enrolled_at fee_cents",
        order="-id",
    )
    may_come = [
        NOT_BLOCKED,
        Require("not session.is_cancelled", 409, "It does not take place.", "takes_place"),
        Require("session.begins_on > today", 409, "It began on {session.begins_on}.", "not_begun"),
        Require(
            "not exists('enrolment', session_id=session.id, party_id=party.id, status__in=(state.enrolled, state.waitlisted))",
            409,
            "{party.name} takes part or waits already.",
            "enrolled_once",
        ),
    ]
    m.create(
        "enrolment",
        "session_id party_id",
        values={"reference": "serial('enrolment', 'E')", "fee_cents": fee, "enrolled_at": "now"},
        before=[
            *may_come,
            Require(
                f"{_taken('session')} < session.capacity",
                409,
                "All {session.capacity} places are taken; put them on the waiting list.",
                "place_left",
            ),
            Require(
                "count('enrolment', party_id=party.id, status=state.enrolled, session__ends_on__ge=today) < policy.max_courses",
                409,
                "{party.name} takes part in {policy.max_courses} <sessions>, which is the most.",
                "max_courses",
            ),
            *_qualified(m),
        ],
        verb="enter",
        action="entered",
        description="Refused where all places are taken, and past {policy.max_courses} <sessions> at a time.",
    )
    m.create(
        "enrolment",
        "session_id party_id",
        values={
            "reference": "serial('enrolment', 'E')",
            "status": "state.waitlisted",
            "fee_cents": "0",
            "enrolled_at": "now",
        },
        before=[
            *may_come,
            Require(f"{_taken('session')} >= session.capacity", 409, "There are places left; enter them.", "session_full"),
        ],
        verb="waitlist",
        path="/<<all>>/waiting",
        action="put on the waiting list",
        summary="Put a <party> on the waiting list of a full <session>",
        description="Refused while there are places left.",
    )
    m.act(
        "admit",
        "enrolment",
        [
            Require("enrolment.status == state.waitlisted", 409, "{enrolment.reference} is {enrolment.status}.", "is_waiting"),
            Load("session", "session", "enrolment.session_id"),
            Require(f"{_taken('session')} < session.capacity", 409, "All {session.capacity} places are taken.", "place_left"),
            Change("enrolment", {"status": "state.enrolled", "fee_cents": "session.course.fee_cents"}),
        ],
        action="admitted",
        summary="Admit somebody who waits",
        description="Once there is a place; at the full fee.",
    )
    m.act(
        "withdraw",
        "enrolment",
        [
            Require(
                "enrolment.status in (state.enrolled, state.waitlisted)",
                409,
                "{enrolment.reference} is {enrolment.status}.",
                "takes_part",
            ),
            Require(
                "enrolment.status == state.waitlisted or enrolment.session.begins_on >= today + days(policy.withdraw_days)",
                409,
                "It begins on {enrolment.session.begins_on} and could be withdrawn until {policy.withdraw_days} days before.",
                "withdraw_in_time",
            ),
            Change("enrolment", {"status": "state.withdrawn", "fee_cents": "0"}),
        ],
        description="Until {policy.withdraw_days} days before it begins; from the waiting list at any time.",
    )
    m.act(
        "complete",
        "enrolment",
        [
            Require("enrolment.status == state.enrolled", 409, "{enrolment.reference} is {enrolment.status}.", "is_enrolled"),
            Require("enrolment.session.ends_on <= today", 409, "It ends on {enrolment.session.ends_on} only.", "has_ended"),
            Change("enrolment", {"status": "state.completed"} | ({"grade": "grade"} if m.has("grades") else {})),
        ],
        params=[Param("grade", "int", low=1, high=6, about="Grade from 1, best, to 6")] if m.has("grades") else [],
        summary="Note that somebody has completed <a session>",
        description="After its last day.",
    )


def _qualified(m: Kit) -> list[Require]:
    if not m.has("requirements"):
        return []
    needed = "exists('requirement', course_id=session.course_id)"
    return [
        Require(
            f"not {needed} or exists('enrolment', party_id=party.id, status=state.completed)",
            409,
            "{session.course.name} is for those who have completed something before.",
            "qualified",
        )
    ]


def _attendance(m: Kit) -> None:
    m.entity(
        "presence",
        [
            ref("enrolment_id", "enrolment", owned=True),
            day("held_on", "Day of the lesson"),
            flag("was_there", "Whether they came"),
        ],
        noun=("<session> attendance", "<session> attendances"),
        label="enrolment_id held_on",
        uniques=["enrolment_id held_on"],
    )
    m.listing("presence", filters="enrolment_id held_on was_there", order="-held_on")
    m.create(
        "presence",
        "enrolment_id held_on was_there",
        before=[
            Require("enrolment.status == state.enrolled", 409, "{enrolment.reference} is {enrolment.status}.", "is_enrolled"),
            Require(
                "held_on >= enrolment.session.begins_on and held_on <= today",
                422,
                "A lesson that was held is meant.",
                "lesson_held",
            ),
            Require(
                "not exists('presence', enrolment_id=enrolment.id, held_on=held_on)",
                409,
                "It is noted for that day.",
                "once_a_day",
            ),
        ],
        verb="note",
        action="noted",
        summary="Note whether somebody came to a lesson",
    )


def _requirements(m: Kit) -> None:
    m.entity(
        "requirement",
        [ref("course_id", "course", owned=True), text("wording", "What is asked of those who take part")],
        noun=("<course> requirement", "<course> requirements"),
        label="course_id wording",
    )
    m.create("requirement", "course_id wording", verb="add")
    m.delete("requirement", verb="drop")


def _discounts(m: Kit) -> None:
    groups = m.entity_of("party").column("group").choices
    m.entity(
        "discount",
        [choice("group", groups, "For whom it is", unique=True), number("percent", "Per cent", low=1, high=90)],
        noun=("<course> discount", "<course> discounts"),
        label="group",
    )
    m.listing("discount", filters="group")
    m.update("discount", "percent", description="<Enrolments> made before keep their fee.")


def _materials(m: Kit) -> None:
    m.entity(
        "material",
        [
            ref("course_id", "course", owned=True),
            ref("item_id", "item"),
            number("quantity", "How many each needs", low=1, default=1),
        ],
        noun=("<course> material", "<course> materials"),
        label="course_id item_id",
        uniques=["course_id item_id"],
    )
    m.listing("material", filters="course_id item_id")
    m.create(
        "material",
        "course_id item_id quantity",
        before=[
            Require("not exists('material', course_id=course.id, item_id=item.id)", 409, "{item.name} is on it.", "material_once")
        ],
        verb="add",
        summary="Add <a item> to what <a course> needs",
    )
    m.update("material", "quantity")
    m.delete("material", verb="remove")


def seed(s: Seeding) -> None:
    levels = s.values("levels", "beginner", "advanced")
    for turn, name in enumerate(s.values("course_names", "First Steps", "Going Further", "Master Class")[:9]):
        s.insert(
            "course",
            name=name,
            level=levels[turn % len(levels)],
            fee_cents=s.cents("fee", 30, 240),
            lessons=s.between(4, 16),
            is_offered=turn != 6,
        )
    if s.has("discounts"):
        for turn, group in enumerate(s.kit.entity_of("party").column("group").choices):
            s.insert("discount", group=group, percent=5 * (turn + 1))
    if s.has("requirements"):
        for course in s.some(s.rows("course", level=levels[-1]), 2):
            s.insert("requirement", course_id=course["id"], wording="One completed before")
    _seed_sessions(s)
    _seed_enrolments(s)
    if s.has("materials"):
        for course in s.some(s.rows("course"), 5):
            for item in s.some(s.rows("item", is_active=True), s.between(1, 2)):
                s.insert("material", course_id=course["id"], item_id=item["id"], quantity=s.between(1, 3))


def _seed_sessions(s: Seeding) -> None:
    places, users = s.rows("place"), s.rows("user", is_active=True)
    for turn, course in enumerate(s.rows("course")):
        for days in (-s.between(70, 90), -s.between(5, 20), s.between(4, 12), s.between(20, 45)):
            begins = s.at(days).date()
            ends = begins + timedelta(days=s.between(21, 35))
            busy = {
                other["teacher_id"]
                for other in (s.rows("session") if s.has("teachers") else [])
                if other["begins_on"] <= ends and other["ends_on"] >= begins
            }
            free = [user["id"] for user in users if user["id"] not in busy]
            s.insert(
                "session",
                course_id=course["id"],
                place_id=places[(turn + days) % len(places)]["id"],
                teacher_id=s.pick(free) if free and s.chance(80) else None,
                begins_on=begins,
                ends_on=ends,
                capacity=max(2, s.number("capacity", 3, 12)),
                is_cancelled=False,
            )


def _seed_enrolments(s: Seeding) -> None:
    parties = s.rows("party", is_blocked=False)
    drawn = []
    for session in s.rows("session"):
        wanted = session["capacity"] + s.between(-2, 1) if s.chance(30) else s.between(1, 4)
        for party in s.some(parties, min(wanted, 7)):
            first = min(s.today, session["begins_on"])
            at = s.at((first - s.today).days - s.between(1, 25), s.between(8, 20), s.pick((4, 16, 28, 52)))
            drawn.append((at, session, party))
    running: dict[int, int] = {}
    full: dict[int, int] = {}
    for at, session, party in sorted(drawn, key=lambda draw: draw[0]):
        over = session["ends_on"] < s.today
        state = s.weighted(completed=6, withdrawn=1) if over else s.weighted(enrolled=8, withdrawn=1)
        if state == "enrolled":
            if running.get(party["id"], 0) >= s.policy["max_courses"]:
                continue
            running[party["id"]] = running.get(party["id"], 0) + 1
        if state != "withdrawn":
            full[session["id"]] = full.get(session["id"], 0) + 1
            if full[session["id"]] > session["capacity"]:
                if over or session["begins_on"] <= s.today:
                    continue
                state = "waitlisted"
        fee = s.row("course", session["course_id"])["fee_cents"]
        enrolment = s.insert(
            "enrolment",
            reference=f"E-{1001 + s.world.count('enrolment.enrolment')}",
            session_id=session["id"],
            party_id=party["id"],
            status=s.state[state],
            fee_cents=0 if state in ("withdrawn", "waitlisted") else fee,
            grade=s.between(1, 5) if state == "completed" and s.chance(70) else None,
            enrolled_at=at,
        )
        _seed_presence(s, enrolment, session, state)


def _seed_presence(s: Seeding, enrolment: Row, session: Row, state: str) -> None:
    if s.has("attendance") and state == "enrolled" and session["begins_on"] <= s.today:
        for week in range((s.today - session["begins_on"]).days // 7 + 1):
            held = session["begins_on"] + timedelta(days=7 * week)
            s.insert("presence", enrolment_id=enrolment["id"], held_on=held, was_there=s.chance(85))
