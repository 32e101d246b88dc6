"""Booking: resources with timed slots of limited room, bookings of them by parties, and what may follow a booking.

Past 300 lines and one file: tables, tools and start rows of a module are read together.
"""

from datetime import datetime, timedelta

from awm_factory.llm.offline.columns import cents, choice, created, flag, moment, number, ref, text
from awm_factory.llm.offline.ir import Param, Show
from awm_factory.llm.offline.kit import NOT_BLOCKED, Kit
from awm_factory.llm.offline.seeding import Seeding
from awm_factory.llm.offline.steps import Change, Each, Field, Load, Require, ReturnTable
from awm_factory.llm.offline.values import Row

FEATURES = ("group_size", "purposes", "waitlist", "equipment", "hosts", "closures")

_HOURS = (9, 11, 14, 16, 18)


def build(m: Kit) -> None:
    m.policy = {"cancel_hours": 24, "max_open": 3} | m.policy
    m.rule("<A booking> can be cancelled or moved until {policy.cancel_hours} hours before it begins.")
    m.rule("A <party> holds at most {policy.max_open} <bookings> that are still to come.")
    _entities(m)
    _resources(m)
    _slots(m)
    _bookings(m)
    if m.has("waitlist"):
        _waitlist(m)
    if m.has("equipment"):
        _equipment(m)
    m.get("booking", children=["extra"] if m.has("equipment") else [])
    if m.has("closures"):
        _closures(m)


def _entities(m: Kit) -> None:
    m.entity(
        "resource",
        [
            text("name", "Name", unique=True),
            ref("place_id", "place", "<Place> where it is"),
            number("capacity", "How many it has room for", low=1),
            cents("fee_cents", "What <a booking> costs, in cents"),
            flag("is_active", "Whether it can be booked at present", default=True),
        ],
        label="name",
    )
    m.entity(
        "slot",
        [
            ref("resource_id", "resource"),
            moment("starts_at", "Beginning, UTC"),
            moment("ends_at", "End, UTC"),
            number("capacity", "How many there is room for", low=1),
            ref("host_id", "user", "Who looks after it", null=True) if m.has("hosts") else None,
            flag("is_open", "Whether it takes <bookings>", default=True),
        ],
        label="resource_id starts_at",
        uniques=["resource_id starts_at"],
        checks=["ends_at > starts_at"],
    )
    m.entity(
        "booking",
        [
            text("reference", "Reference", unique=True, server=True),
            ref("party_id", "party"),
            ref("slot_id", "slot"),
            number("guests", "How many come", low=1, default=1) if m.has("group_size") else None,
            choice("purpose", m.part.values.get("purposes", ["other"]), "What it is for", null=True)
            if m.has("purposes")
            else None,
            m.status("booked", "attended", "no_show", "cancelled"),
            cents("fee_cents", "What it costs, in cents", server=True),
            created("booked_at", "When it was made"),
            moment("cancelled_at", "When it was cancelled", null=True, server=True),
        ],
        label="reference",
        shows=[
            Show("resource_name", "text", "self.slot.resource.name", "Name of the <resource>"),
            Show("starts_at", "datetime", "self.slot.starts_at", "When it begins, UTC"),
        ],
    )
    m.invariant(
        "booking",
        "(self.status == state.cancelled) == (self.cancelled_at is not None)",
        "only what is cancelled has a time of it",
    )


def _taken(m: Kit, slot: str) -> str:
    """How many places of the slot are given away."""
    where = f"slot_id={slot}.id, status=state.booked"
    return f"total('booking', 'guests', {where})" if m.has("group_size") else f"count('booking', {where})"


def _resources(m: Kit) -> None:
    m.listing("resource", search="name", filters="place_id capacity is_active", sorts="name capacity fee_cents", order="name")
    m.create("resource", "name place_id capacity fee_cents", verb="add")
    m.update("resource", "capacity fee_cents is_active")
    m.report(
        "report_<resource>_use",
        "resource",
        ReturnTable(
            "resource",
            "resource",
            (
                Field("resource_id", "int", "resource.id", "Id of the <resource>"),
                Field("name", "text", "resource.name", "Name of the <resource>"),
                Field(
                    "bookings",
                    "int",
                    "count('booking', slot__resource_id=resource.id, status__ne=state.cancelled)",
                    "<Bookings> that were not cancelled",
                ),
                Field(
                    "fees_cents",
                    "money",
                    "total('booking', 'fee_cents', slot__resource_id=resource.id, status__ne=state.cancelled)",
                    "Fees of these",
                ),
            ),
            order=("-bookings", "name"),
        ),
        path="/reports/<resource>-use",
        summary="Count <bookings> and fees of each <resource>",
        description="One row for each <resource>, the most used first. Cancelled <bookings> do not count.",
    )


def _slots(m: Kit) -> None:
    m.listing("slot", filters="resource_id starts_at is_open" + (" host_id" if m.has("hosts") else ""), order="starts_at")
    m.report(
        "list_free_<slots>",
        "slot",
        ReturnTable(
            "slot",
            "slot",
            (
                Field("slot_id", "int", "slot.id", "Id of the <slot>"),
                Field("resource_name", "text", "slot.resource.name", "Name of the <resource>"),
                Field("starts_at", "datetime", "slot.starts_at", "Beginning, UTC"),
                Field("places_left", "int", f"slot.capacity - {_taken(m, 'slot')}", "Places that are still free"),
                Field("fee_cents", "money", "slot.resource.fee_cents", "What <a booking> costs, in cents"),
            ),
            where={"resource_id": "resource_id", "starts_at__gt": "now", "is_open": "True"},
            when=f"slot.capacity > {_taken(m, 'slot')}",
            order=("starts_at",),
        ),
        path="/<<all>>/free",
        params=[Param("resource_id", "ref", ref="resource", about="Which <resource>")],
        steps=[Load("resource", "resource", "resource_id")],
        summary="List <slots> of a <resource> that have room",
        description="Coming <slots> that are open and not full, the next one first, with the places left.",
    )
    m.create(
        "slot",
        "resource_id starts_at ends_at",
        values={"capacity": "resource.capacity"},
        before=[
            Require(
                "starts_at > now and ends_at > starts_at",
                422,
                "<A slot> begins in the future and ends after that.",
                "slot_in_future",
            ),
            Require("resource.is_active", 409, "{resource.name} is not in use.", "resource_active"),
            Require(
                "not exists('slot', resource_id=resource.id, starts_at__lt=ends_at, ends_at__gt=starts_at)",
                409,
                "{resource.name} has <a slot> at that time already.",
                "slot_overlap",
            ),
        ],
        verb="open",
        description="Takes over the room of the <resource>. Refused where it overlaps another one.",
    )
    m.act(
        "close",
        "slot",
        [
            Require("slot.is_open", 409, "This <slot> is closed already.", "slot_is_open"),
            Change("slot", {"is_open": "False"}),
        ],
        summary="Take no more <bookings> for <a slot>",
        description="Those that were made stay.",
    )
    if m.has("hosts"):
        m.act(
            "assign_host",
            "slot",
            [
                Load("host", "user", "host_id"),
                Require("host.is_active", 409, "{host.name} does not work here at present.", "host_active"),
                Require(
                    "not exists('slot', host_id=host.id, starts_at__lt=slot.ends_at, ends_at__gt=slot.starts_at, id__ne=slot.id)",
                    409,
                    "{host.name} looks after another <slot> at that time.",
                    "host_free",
                ),
                Change("slot", {"host_id": "host.id"}),
            ],
            params=[Param("host_id", "ref", ref="user", name="host_id", about="Who is to look after it")],
            method="PUT",
            path="/<<one>>/host",
            name=f"assign_{m.entity_of('slot').name}_host",
            action="assigned",
            summary="Put a <user> in charge of <a slot>",
            description="Refused for one who looks after another <slot> at that time.",
        )


def _bookings(m: Kit) -> None:
    size = "guests" if m.has("group_size") else "1"
    fee = "slot.resource.fee_cents * guests" if m.has("group_size") else "slot.resource.fee_cents"
    m.listing(
        "booking", search="reference", filters="party_id slot_id status booked_at", sorts="booked_at fee_cents", order="-id"
    )
    m.create(
        "booking",
        "party_id slot_id" + (" guests" if m.has("group_size") else "") + (" purpose" if m.has("purposes") else ""),
        values={"reference": "serial('booking', 'B')", "fee_cents": fee, "booked_at": "now"},
        before=[
            NOT_BLOCKED,
            *_fits(m, "slot", size),
            Require(
                "not exists('booking', party_id=party.id, slot_id=slot.id, status=state.booked)",
                409,
                "{party.name} has <a booking> of this <slot> already.",
                "booked_once",
            ),
            Require(
                "count('booking', party_id=party.id, status=state.booked, slot__starts_at__gt=now) < policy.max_open",
                409,
                "{party.name} has {policy.max_open} <bookings> to come, which is the most.",
                "max_open",
            ),
        ],
        description="Refused where the <slot> is full, closed or over, and past {policy.max_open} <bookings> to come.",
    )
    m.act(
        "cancel",
        "booking",
        [
            _still_booked(),
            _in_time("cancelled", "cancel_in_time"),
            Change("booking", {"status": "state.cancelled", "cancelled_at": "now", "fee_cents": "0"}),
        ],
        summary="Cancel <a booking>",
        description="Possible until {policy.cancel_hours} hours before it begins. The fee is dropped.",
    )
    m.act(
        "move",
        "booking",
        [
            _still_booked(),
            _in_time("moved", "move_in_time"),
            Load("target", "slot", "to_slot_id"),
            Require("target.id != booking.slot_id", 409, "It is in that <slot> already.", "other_slot"),
            *_fits(m, "target", "booking.guests" if m.has("group_size") else "1"),
            Change(
                "booking",
                {"slot_id": "target.id", "fee_cents": fee.replace("slot.", "target.", 1).replace("* guests", "* booking.guests")},
            ),
        ],
        params=[Param("to_slot_id", "ref", ref="slot", about="<Slot> to move it to")],
        summary="Move <a booking> to another <slot>",
        description="Possible until {policy.cancel_hours} hours before it begins; the fee becomes that of the new <slot>.",
    )
    for verb, state, word in (("check_in", "attended", "came"), ("mark_missed", "no_show", "did not come")):
        m.act(
            verb,
            "booking",
            [
                _still_booked(),
                Require("booking.slot.starts_at <= now", 409, "It begins at {booking.slot.starts_at} only.", "has_begun"),
                Change("booking", {"status": f"state.{state}"}),
            ],
            name=f"{verb}_{m.entity_of('booking').name}",
            action="checked in" if verb == "check_in" else "marked missed",
            summary=f"Note that the <party> {word}",
            description=f"For <bookings> that have begun; the status becomes {{state.{state}}}.",
        )


def _still_booked() -> Require:
    return Require("booking.status == state.booked", 409, "<Booking> {booking.reference} is {booking.status}.", "still_booked")


def _in_time(what: str, rule: str) -> Require:
    return Require(
        "booking.slot.starts_at >= now + hours(policy.cancel_hours)",
        409,
        f"<Booking> {{booking.reference}} begins at {{booking.slot.starts_at}} and could be {what} "
        "until {policy.cancel_hours} hours before.",
        rule,
    )


def _fits(m: Kit, slot: str, size: str) -> list[Require]:
    return [
        Require(
            f"{slot}.is_open and {slot}.starts_at > now",
            409,
            f"The <slot> at {{{slot}.starts_at}} takes no <bookings>.",
            "slot_bookable",
        ),
        Require(
            f"{_taken(m, slot)} + {size} <= {slot}.capacity",
            409,
            f"The <slot> at {{{slot}.starts_at}} has room for {{{slot}.capacity}}, of which {{{_taken(m, slot)}}} are taken.",
            "slot_has_room",
        ),
    ]


def _waitlist(m: Kit) -> None:
    m.entity(
        "waiting",
        [ref("slot_id", "slot", owned=True), ref("party_id", "party"), created("joined_at", "Since when they wait")],
        noun=("waiting list entry", "waiting list entries"),
        label="slot_id party_id",
        uniques=["slot_id party_id"],
    )
    m.listing("waiting", filters="slot_id party_id", order="joined_at")
    m.create(
        "waiting",
        "slot_id party_id",
        values={"joined_at": "now"},
        before=[
            Require("slot.starts_at > now", 409, "The <slot> at {slot.starts_at} is over.", "slot_to_come"),
            Require(f"{_taken(m, 'slot')} >= slot.capacity", 409, "The <slot> has room; make <a booking>.", "slot_is_full"),
            Require(
                "not exists('waiting', slot_id=slot.id, party_id=party.id)",
                409,
                "{party.name} waits for it already.",
                "waits_once",
            ),
        ],
        verb="join",
        name="join_waiting_list",
        action="joined",
        summary="Put a <party> on the waiting list of a full <slot>",
        description="Refused while there is room.",
    )
    m.delete("waiting", verb="leave", summary="Take a <party> off a waiting list")


def _equipment(m: Kit) -> None:
    m.entity(
        "extra",
        [
            ref("booking_id", "booking", owned=True),
            ref("item_id", "item"),
            number("quantity", "How many", low=1),
            cents("price_cents", "Price of one at that time, in cents", server=True),
        ],
        noun=("<booking> extra", "<booking> extras"),
        label="booking_id item_id",
        uniques=["booking_id item_id"],
    )
    m.listing("extra", filters="booking_id item_id")
    m.create(
        "extra",
        "booking_id item_id quantity",
        values={"price_cents": "item.price_cents"},
        before=[
            _still_booked(),
            Require("item.is_active", 409, "{item.name} is not offered at present.", "item_offered"),
            Require(
                "not exists('extra', booking_id=booking.id, item_id=item.id)", 409, "{item.name} is on it already.", "extra_once"
            ),
        ],
        verb="add",
        summary="Add <a item> to <a booking>",
        description="At the price of now. Each <item> stands there once, with its quantity.",
    )
    m.delete("extra", verb="remove", summary="Take <a item> off <a booking>")


def _closures(m: Kit) -> None:
    m.entity(
        "closure",
        [
            ref("resource_id", "resource", owned=True),
            moment("starts_at", "Beginning, UTC"),
            moment("ends_at", "End, UTC"),
            text("reason", "Why"),
        ],
        noun=("<resource> closure", "<resource> closures"),
        label="resource_id starts_at",
        checks=["ends_at > starts_at"],
    )
    m.listing("closure", filters="resource_id starts_at", order="starts_at")
    m.create(
        "closure",
        "resource_id starts_at ends_at reason",
        before=[
            Require("ends_at > starts_at", 422, "It ends after it begins.", "closure_order"),
            Require(
                "not exists('booking', slot__resource_id=resource.id, status=state.booked, "
                "slot__starts_at__lt=ends_at, slot__ends_at__gt=starts_at)",
                409,
                "There are <bookings> of {resource.name} in that time; move them first.",
                "closure_free",
            ),
        ],
        after=[
            Each(
                "slot",
                "slot",
                {"resource_id": "resource.id", "starts_at__lt": "ends_at", "ends_at__gt": "starts_at"},
                steps=(Change("slot", {"is_open": "False"}),),
            )
        ],
        verb="plan",
        action="planned",
        summary="Close a <resource> for some time",
        description="Also closes its <slots> of that time. Refused while there are <bookings> among them.",
    )


def seed(s: Seeding) -> None:
    places, users = s.rows("place"), s.rows("user", is_active=True)
    for index, name in enumerate(s.values("resource_names", "Room One", "Room Two", "Garden Room", "Studio", "Workshop")[:6]):
        s.insert(
            "resource",
            name=name,
            place_id=places[index % len(places)]["id"],
            capacity=s.number("capacity", 1, 8),
            fee_cents=s.cents("fee", 5, 30),
            is_active=index != 4,
        )
    for resource in s.rows("resource"):
        for days in sorted(s.rng.sample(range(-20, 15), 8)):
            begin = s.at(days, s.pick(_HOURS))
            s.insert(
                "slot",
                resource_id=resource["id"],
                starts_at=begin,
                ends_at=begin + timedelta(hours=2),
                capacity=resource["capacity"],
                host_id=_free_host(s, users, begin),
                is_open=resource["is_active"],
            )
    _seed_bookings(s)
    if s.has("closures"):
        for resource in s.some(s.rows("resource"), 3):
            begin = s.at(-s.between(25, 60), 8)
            s.insert(
                "closure",
                resource_id=resource["id"],
                starts_at=begin,
                ends_at=begin + timedelta(days=s.between(1, 4)),
                reason=s.pick(("Repainting", "Repair", "Yearly check")),
            )


def _free_host(s: Seeding, users: list[Row], begin: datetime) -> int | None:
    """Most slots have someone; nobody has two at once."""
    if not s.has("hosts") or s.chance(40):
        return None
    busy = {
        slot["host_id"]
        for slot in s.rows("slot", starts_at__gt=begin - timedelta(hours=2), starts_at__lt=begin + timedelta(hours=2))
    }
    free = [user["id"] for user in users if user["id"] not in busy]
    return s.pick(free) if free else None


def _seed_bookings(s: Seeding) -> None:
    parties = s.rows("party", is_blocked=False)
    drawn = []
    for slot in s.rows("slot"):
        left = slot["capacity"]
        wanted = s.between(0, min(3, left + 1))
        for party in s.some(parties, wanted):
            guests = s.between(1, min(3, left)) if left and s.has("group_size") else 1
            state = "cancelled" if s.chance(20) else "booked"
            if state == "booked" and (left < guests or not slot["is_open"]):
                continue
            left -= guests if state == "booked" else 0
            if state == "booked" and slot["starts_at"] < s.now:
                state = s.weighted(attended=6, no_show=2, booked=1)
            drawn.append(
                (
                    min(slot["starts_at"], s.now) - timedelta(days=s.between(1, 30), minutes=s.between(0, 300)),
                    slot,
                    party,
                    guests,
                    state,
                )
            )
    coming: dict[int, int] = {}
    for booked_at, slot, party, guests, state in sorted(drawn, key=lambda draw: draw[0]):
        if state == "booked" and slot["starts_at"] > s.now:
            coming[party["id"]] = coming.get(party["id"], 0) + 1
            if coming[party["id"]] > s.policy["max_open"]:
                continue
        fee = s.row("resource", slot["resource_id"])["fee_cents"] * guests
        booking = s.insert(
            "booking",
            reference=f"B-{1001 + s.world.count('booking.booking')}",
            party_id=party["id"],
            slot_id=slot["id"],
            guests=guests,
            purpose=s.pick(s.values("purposes", "other")),
            status=s.state[state],
            fee_cents=0 if state == "cancelled" else fee,
            booked_at=booked_at,
            cancelled_at=booked_at + timedelta(hours=s.between(2, 20)) if state == "cancelled" else None,
        )
        if s.has("equipment") and s.chance(30):
            for item in s.some(s.rows("item", is_active=True), s.between(1, 2)):
                s.insert(
                    "extra",
                    booking_id=booking["id"],
                    item_id=item["id"],
                    quantity=s.between(1, 3),
                    price_cents=item["price_cents"],
                )
    if s.has("waitlist"):
        for slot in s.rows("slot", starts_at__gt=s.now):
            booked = s.rows("booking", slot_id=slot["id"], status=s.state["booked"])
            if sum(row.get("guests", 1) for row in booked) >= slot["capacity"]:
                taken = {row["party_id"] for row in booked}
                for party in s.some([party for party in parties if party["id"] not in taken], 2):
                    s.insert("waiting", slot_id=slot["id"], party_id=party["id"], joined_at=s.past(1, 5))
