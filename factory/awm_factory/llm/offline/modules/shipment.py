"""Shipment and dispatch: loads that go out on runs of vehicles, as many and as heavy as each may carry.

Past 300 lines and one file: tables, tools and start rows of a module are read together.
"""

from datetime import timedelta

from awm_factory.llm.offline.columns import cents, choice, created, day, flag, moment, number, ref, text
from awm_factory.llm.offline.ir import Param, Show
from awm_factory.llm.offline.kit import NOT_BLOCKED, Kit
from awm_factory.llm.offline.seeding import Seeding
from awm_factory.llm.offline.steps import Change, Field, Load, Require, ReturnTable
from awm_factory.llm.offline.values import Row

FEATURES = ("drivers", "contents", "incidents", "windows", "tolls", "orders")

_WINDOWS = ("morning", "noon", "afternoon", "evening")


def build(m: Kit) -> None:
    m.policy = {"max_stops": 10} | m.policy
    m.rule("<A run> has at most {policy.max_stops} <shipments>, and never more weight than its <vehicle> carries.")
    m.rule("<A shipment> is loaded before its <run> leaves, and delivered or failed once it has.")
    _entities(m)
    _vehicles(m)
    _runs(m)
    _shipments(m)
    if m.has("contents"):
        _contents(m)
    if m.has("incidents"):
        _incidents(m)
    if m.has("tolls"):
        _tolls(m)
    parts = {"contents": "content", "incidents": "incident"}
    m.get("shipment", children=[part for feature, part in parts.items() if m.has(feature)])
    m.get("run", children=["shipment", *(["toll"] if m.has("tolls") else [])])


def _entities(m: Kit) -> None:
    m.entity(
        "vehicle",
        [
            text("name", "Name", unique=True),
            ref("place_id", "place", "<Place> where it stands"),
            number("capacity_kg", "What it carries, in kg", low=1),
            flag("is_in_service", "Whether it may go out", default=True),
        ],
        label="name",
    )
    m.entity(
        "run",
        [
            text("reference", "Reference", unique=True, server=True),
            ref("vehicle_id", "vehicle"),
            ref("driver_id", "user", "Who drives", null=True, name="driver_id") if m.has("drivers") else None,
            day("runs_on", "Day"),
            moment("left_at", "When it left", null=True, server=True),
        ],
        label="reference",
        uniques=["vehicle_id runs_on"],
    )
    m.entity(
        "shipment",
        [
            text("reference", "Reference", unique=True, server=True),
            ref("party_id", "party"),
            ref("order_id", "order.order", null=True) if m.has("orders") and m.joined("order.order") else None,
            text("town", "Town that it goes to"),
            number("weight_kg", "Weight in kg", low=1),
            choice("window", _WINDOWS, "Time of day", null=True) if m.has("windows") else None,
            ref("run_id", "run", null=True),
            m.status("planned", "loaded", "delivered", "failed", "cancelled"),
            created(),
            moment("delivered_at", "When it was delivered", null=True, server=True),
        ],
        label="reference",
        shows=[Show("run_reference", "text", "self.run.reference if self.run_id is not None else None", "Its <run>")],
    )
    m.invariant(
        "run",
        "count('shipment', run_id=self.id, status__ne=state.cancelled) <= policy.max_stops",
        "no <run> has more <shipments> than allowed",
    )
    m.invariant(
        "shipment", "(self.status == state.delivered) == (self.delivered_at is not None)", "what is delivered has a time of it"
    )


def _vehicles(m: Kit) -> None:
    m.listing("vehicle", search="name", filters="place_id capacity_kg is_in_service", sorts="capacity_kg name", order="name")
    m.create("vehicle", "name place_id capacity_kg", verb="add", action="added")
    m.update("vehicle", "place_id is_in_service")


def _on_board(run: str) -> str:
    return f"total('shipment', 'weight_kg', run_id={run}.id, status__ne=state.cancelled)"


def _not_left(run: str = "run") -> Require:
    return Require(f"{run}.left_at is None", 409, f"<Run> {{{run}.reference}} left at {{{run}.left_at}}.", "not_left")


def _runs(m: Kit) -> None:
    driver = " driver_id" if m.has("drivers") else ""
    m.listing("run", search="reference", filters="vehicle_id runs_on" + driver, sorts="runs_on", order="-runs_on")
    m.create(
        "run",
        "vehicle_id runs_on",
        values={"reference": "serial('run', 'T')"},
        before=[
            Require("vehicle.is_in_service", 409, "{vehicle.name} is not in service.", "vehicle_in_service"),
            Require("runs_on >= today", 422, "Today is {today}; a day to come is wanted.", "day_to_come"),
            Require(
                "not exists('run', vehicle_id=vehicle.id, runs_on=runs_on)",
                409,
                "{vehicle.name} goes out on that day.",
                "one_run_a_day",
            ),
        ],
        verb="plan",
        action="planned",
        description="One a day for each <vehicle> in service.",
    )
    if m.has("drivers"):
        m.act(
            "assign_driver",
            "run",
            [
                _not_left(),
                Load("driver", "user", "driver_id"),
                Require("driver.is_active", 409, "{driver.name} does not work here at present.", "driver_active"),
                Require(
                    "not exists('run', driver_id=driver.id, runs_on=run.runs_on, id__ne=run.id)",
                    409,
                    "{driver.name} drives another <run> on {run.runs_on}.",
                    "driver_free",
                ),
                Change("run", {"driver_id": "driver.id"}),
            ],
            params=[Param("driver_id", "ref", ref="user", name="driver_id", about="Who is to drive")],
            method="PUT",
            path="/<<one>>/driver",
            name=f"assign_{m.entity_of('run').name}_driver",
            action="assigned",
            summary="Say who drives <a run>",
            description="Refused for one who drives another on that day.",
        )
    m.act(
        "dispatch",
        "run",
        [
            _not_left(),
            Require("run.runs_on <= today", 409, "<Run> {run.reference} goes on {run.runs_on} only.", "its_day"),
            *([Require("run.driver_id is not None", 409, "Nobody drives it yet.", "has_driver")] if m.has("drivers") else []),
            Require("exists('shipment', run_id=run.id, status=state.loaded)", 409, "Nothing is loaded.", "something_loaded"),
            Require(
                "not exists('shipment', run_id=run.id, status=state.planned)",
                409,
                "{count('shipment', run_id=run.id, status=state.planned)} <shipments> of it are not loaded yet.",
                "all_loaded",
            ),
            Change("run", {"left_at": "now"}),
        ],
        action="dispatched",
        summary="Send off <a run>",
        description="On its day, once everything on it is loaded.",
    )
    m.report(
        "report_<run>_loads",
        "run",
        ReturnTable(
            "run",
            "run",
            (
                Field("run_id", "int", "run.id", "Id of the <run>"),
                Field("reference", "text", "run.reference", "Reference"),
                Field("vehicle_name", "text", "run.vehicle.name", "The <vehicle>"),
                Field("shipments", "int", "count('shipment', run_id=run.id, status__ne=state.cancelled)", "<Shipments> on it"),
                Field("weight_kg", "int", _on_board("run"), "Their weight in kg"),
                Field("room_kg", "int", f"run.vehicle.capacity_kg - {_on_board('run')}", "What it can carry besides, in kg"),
            ),
            where={"runs_on": "runs_on"},
            order=("reference",),
        ),
        path="/reports/<run>-loads",
        params=[Param("runs_on", "date", about="Day")],
        summary="Show how full the <runs> of a day are",
        description="One row for each <run> of that day, with the room that is left.",
    )


def _shipments(m: Kit) -> None:
    order_ = " order_id" if m.has("orders") and m.joined("order.order") else ""
    window = " window" if m.has("windows") else ""
    m.listing(
        "shipment",
        search="reference town",
        filters="party_id town status run_id weight_kg" + order_ + window,
        sorts="weight_kg created_at",
        order="-id",
    )
    m.create(
        "shipment",
        "party_id town weight_kg" + order_ + window,
        values={"reference": "serial('shipment', 'F')", "created_at": "now"},
        before=[NOT_BLOCKED],
        verb="enter",
        action="entered",
        description="It is {state.planned}, and on no <run> yet.",
    )
    m.update("shipment", "town weight_kg" + window, before=[_is("planned"), _unassigned()], description="Until it is on <a run>.")
    m.act(
        "assign",
        "shipment",
        [
            _is("planned"),
            Load("run", "run", "run_id"),
            _not_left(),
            Require(
                "shipment.run_id is None or shipment.run_id != run.id",
                409,
                "It is on <run> {run.reference} already.",
                "other_run",
            ),
            Require(
                "count('shipment', run_id=run.id, status__ne=state.cancelled) < policy.max_stops",
                409,
                "<Run> {run.reference} has {policy.max_stops} <shipments>, which is the most.",
                "max_stops",
            ),
            Require(
                f"{_on_board('run')} + shipment.weight_kg <= run.vehicle.capacity_kg",
                409,
                f"{{run.vehicle.name}} carries {{run.vehicle.capacity_kg}} kg, of which {{{_on_board('run')}}} are taken.",
                "capacity",
            ),
            Change("shipment", {"run_id": "run.id"}),
        ],
        params=[Param("run_id", "ref", ref="run", about="<Run> that it goes with")],
        method="PUT",
        path="/<<one>>/<run>",
        action="assigned",
        summary="Put <a shipment> on <a run>",
        description="Where there is room; at most {policy.max_stops} on each.",
    )
    m.act(
        "load",
        "shipment",
        [
            _is("planned"),
            Require("shipment.run_id is not None", 409, "{shipment.reference} is on no <run> yet.", "on_a_run"),
            Require("shipment.run.left_at is None", 409, "<Run> {shipment.run.reference} has left.", "not_left"),
            Change("shipment", {"status": "state.loaded"}),
        ],
        action="loaded",
        summary="Note that <a shipment> is loaded",
    )
    m.act(
        "deliver",
        "shipment",
        [*_under_way(), Change("shipment", {"status": "state.delivered", "delivered_at": "now"})],
        action="delivered",
        summary="Note that <a shipment> was delivered",
        description="Once its <run> has left.",
    )
    m.act(
        "fail",
        "shipment",
        [*_under_way(), Change("shipment", {"status": "state.failed"})],
        action="failed",
        summary="Note that <a shipment> could not be delivered",
        description="Once its <run> has left; it becomes {state.failed}.",
    )
    m.act(
        "replan",
        "shipment",
        [_is("failed"), Change("shipment", {"status": "state.planned", "run_id": "None"})],
        action="replanned",
        summary="Plan <a shipment> anew that could not be delivered",
        description="It is on no <run> then.",
    )
    m.act(
        "cancel",
        "shipment",
        [_is("planned"), Change("shipment", {"status": "state.cancelled", "run_id": "None"})],
        description="Until it is loaded.",
    )


def _is(state: str) -> Require:
    return Require(f"shipment.status == state.{state}", 409, "{shipment.reference} is {shipment.status}.", f"is_{state}")


def _unassigned() -> Require:
    return Require("shipment.run_id is None", 409, "{shipment.reference} is on a <run> already.", "on_no_run")


def _under_way() -> list[Require]:
    return [
        _is("loaded"),
        Require("shipment.run.left_at is not None", 409, "<Run> {shipment.run.reference} has not left yet.", "has_left"),
    ]


def _contents(m: Kit) -> None:
    m.entity(
        "content",
        [ref("shipment_id", "shipment", owned=True), ref("item_id", "item"), number("quantity", "How many", low=1)],
        noun=("<shipment> content", "<shipment> contents"),
        label="shipment_id item_id",
        uniques=["shipment_id item_id"],
    )
    m.listing("content", filters="shipment_id item_id")
    m.create(
        "content",
        "shipment_id item_id quantity",
        before=[
            _is("planned"),
            Require(
                "not exists('content', shipment_id=shipment.id, item_id=item.id)", 409, "{item.name} is in it.", "content_once"
            ),
        ],
        verb="pack",
        action="packed",
        summary="Pack <a item> into <a shipment>",
        description="Until it is loaded.",
    )
    m.delete("content", verb="unpack", before=[Load("shipment", "shipment", "content.shipment_id"), _is("planned")])


def _incidents(m: Kit) -> None:
    m.entity(
        "incident",
        [
            ref("shipment_id", "shipment", owned=True),
            choice("kind", ("damage", "delay", "loss", "wrong_address"), "What happened"),
            text("body", "In words"),
            flag("is_settled", "Whether somebody has dealt with it"),
            created("reported_at", "When it was reported"),
        ],
        noun=("<shipment> incident", "<shipment> incidents"),
        label="shipment_id kind",
    )
    m.listing("incident", search="body", filters="shipment_id kind is_settled", order="-id")
    m.create("incident", "shipment_id kind body", values={"reported_at": "now"}, verb="report", action="reported")
    m.act(
        "settle",
        "incident",
        [
            Require("not incident.is_settled", 409, "It is settled already.", "not_settled"),
            Change("incident", {"is_settled": "True"}),
        ],
    )


def _tolls(m: Kit) -> None:
    m.entity(
        "toll",
        [ref("run_id", "run", owned=True), text("what", "What for"), cents("amount_cents", "Amount in cents", low=1)],
        noun=("<run> expense", "<run> expenses"),
        label="run_id what",
    )
    m.listing("toll", search="what", filters="run_id amount_cents", sorts="amount_cents", order="-id")
    m.create(
        "toll",
        "run_id what amount_cents",
        before=[Require("run.left_at is not None", 409, "<Run> {run.reference} has not left yet.", "has_left")],
        verb="enter",
        action="entered",
        summary="Enter what <a run> cost on the way",
        description="Once it has left.",
    )


def seed(s: Seeding) -> None:
    places, users = s.rows("place"), s.rows("user", is_active=True)
    for turn, name in enumerate(s.values("vehicle_names", "Van One", "Van Two", "Lorry", "Cargo Bike")[:5]):
        s.insert(
            "vehicle",
            name=name,
            place_id=places[turn % len(places)]["id"],
            capacity_kg=s.number("capacity", 200, 2000) // 10 * 10,
            is_in_service=turn != 3,
        )
    vehicles = s.rows("vehicle", is_in_service=True)
    for days in (-9, -5, -2, 0, 1, 3, 6):
        drivers = s.shuffled(users)
        for turn, vehicle in enumerate(s.some(vehicles, 2)):
            s.insert(
                "run",
                reference=f"T-{1001 + s.world.count('shipment.run')}",
                vehicle_id=vehicle["id"],
                driver_id=drivers[turn]["id"] if days < 0 or s.chance(60) else None,
                runs_on=s.at(days).date(),
                left_at=s.at(days, 7, 30) if days < 0 else None,
            )
    _seed_shipments(s)


def _seed_shipments(s: Seeding) -> None:
    parties, runs = s.rows("party", is_blocked=False), s.rows("run")
    towns = s.values("towns", "Old Town", "Harbour", "Station", "West End", "Hill", "Mill Lane")
    orders = s.rows("order.order") if s.has("orders") and s.kit.joined("order.order") else []
    load: dict[int, tuple[int, int]] = {}
    for created_at in sorted(s.past(1, 14) for _ in range(40)):
        weight = s.number("weight", 5, 80)
        fitting = [
            run
            for run in runs
            if run["runs_on"] > created_at.date()
            and load.get(run["id"], (0, 0))[0] + weight <= s.row("vehicle", run["vehicle_id"])["capacity_kg"]
            and load.get(run["id"], (0, 0))[1] < s.policy["max_stops"]
        ]
        run = s.pick(fitting) if fitting and s.chance(75) else None
        state = "cancelled" if run is None and s.chance(25) else "planned"
        if run is not None:
            heavy, count = load.get(run["id"], (0, 0))
            load[run["id"]] = heavy + weight, count + 1
            if run["left_at"]:
                state = s.weighted(delivered=6, failed=2, loaded=1)
            elif run["runs_on"] == s.today:
                state = s.weighted(loaded=1, planned=1)
        shipment = s.insert(
            "shipment",
            reference=f"F-{1001 + s.world.count('shipment.shipment')}",
            party_id=s.pick(parties)["id"],
            order_id=s.pick(orders)["id"] if orders and s.chance(50) else None,
            town=s.pick(towns),
            weight_kg=weight,
            window=s.pick(_WINDOWS) if s.chance(70) else None,
            run_id=run["id"] if run else None,
            status=s.state[state],
            created_at=created_at,
            delivered_at=run["left_at"] + timedelta(minutes=s.between(20, 400)) if run and state == "delivered" else None,
        )
        _seed_parts(s, shipment, state)
    if s.has("tolls"):
        for run in s.rows("run", runs_on__lt=s.today):
            s.insert(
                "toll", run_id=run["id"], what=s.pick(("Fuel", "Bridge toll", "Parking")), amount_cents=50 * s.between(5, 90)
            )


def _seed_parts(s: Seeding, shipment: Row, state: str) -> None:
    if s.has("contents"):
        for item in s.some(s.rows("item", is_active=True), s.between(1, 2)):
            s.insert("content", shipment_id=shipment["id"], item_id=item["id"], quantity=s.between(1, 6))
    if s.has("incidents") and (state == "failed" or s.chance(8)):
        kind = "wrong_address" if state == "failed" else s.pick(("damage", "delay"))
        body = {"wrong_address": "Nobody of that name there", "damage": "One corner crushed", "delay": "Road closed"}[kind]
        reported = min(shipment["created_at"] + timedelta(days=1), s.now - timedelta(hours=1))
        s.insert("incident", shipment_id=shipment["id"], kind=kind, body=body, is_settled=s.chance(40), reported_at=reported)
