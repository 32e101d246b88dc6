import math
import os
from datetime import date, datetime, timedelta, timezone
from typing import Annotated, List, Literal, Optional

from fastapi import FastAPI, HTTPException, Path, Query, Request
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel, Field, StringConstraints
from sqlalchemy import Boolean, CheckConstraint, Date, ForeignKey, Index, Integer, String, UniqueConstraint, create_engine, event, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, sessionmaker

engine = create_engine(
    os.getenv("DATABASE_PATH") or "sqlite:///regional_courier_dispatch_desk.db", connect_args={"check_same_thread": False}
)


@event.listens_for(engine, "connect")
def on_connect(connection, record):
    connection.execute("PRAGMA foreign_keys = ON")


SessionLocal = sessionmaker(bind=engine, expire_on_commit=False)

app = FastAPI(
    title="Regional Courier Dispatch Desk",
    version="1.0.0",
    description="Shipments, routes, drivers, vehicles and claims of a courier that serves one region from three depots.",
)

CURRENT_USER_ID = 1
ID_MAX = 2**31 - 1

ShipmentStatus = Literal["booked", "assigned", "out_for_delivery", "delivered", "failed", "cancelled"]
RouteStatus = Literal["planned", "dispatched", "completed", "cancelled"]
StopStatus = Literal["pending", "delivered", "failed"]
VehicleKind = Literal["van", "truck"]
VehicleStatus = Literal["in_service", "workshop"]
AccountStatus = Literal["active", "on_hold"]
ClaimKind = Literal["damage", "loss", "delay"]
ClaimStatus = Literal["open", "approved", "rejected"]


# Tables: moments are stored as ISO 8601 text in UTC with a trailing Z, days as dates.


class Base(DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "users"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    full_name: Mapped[str] = mapped_column(String, nullable=False)
    email: Mapped[str] = mapped_column(String, nullable=False, unique=True)
    role: Mapped[str] = mapped_column(String, nullable=False)
    refund_limit_cents: Mapped[int] = mapped_column(Integer, nullable=False)


class Depot(Base):
    __tablename__ = "depots"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    code: Mapped[str] = mapped_column(String, nullable=False, unique=True)
    name: Mapped[str] = mapped_column(String, nullable=False, unique=True)
    town: Mapped[str] = mapped_column(String, nullable=False)


class Zone(Base):
    __tablename__ = "zones"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    name: Mapped[str] = mapped_column(String, nullable=False, unique=True)
    depot_id: Mapped[int] = mapped_column(ForeignKey("depots.id"), nullable=False)
    surcharge_cents: Mapped[int] = mapped_column(Integer, nullable=False)


class ServiceLevel(Base):
    __tablename__ = "service_levels"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    code: Mapped[str] = mapped_column(String, nullable=False, unique=True)
    base_cents: Mapped[int] = mapped_column(Integer, nullable=False)
    per_kg_cents: Mapped[int] = mapped_column(Integer, nullable=False)
    max_weight_g: Mapped[int] = mapped_column(Integer, nullable=False)
    days: Mapped[int] = mapped_column(Integer, nullable=False)


class Customer(Base):
    __tablename__ = "customers"
    __table_args__ = (CheckConstraint("account_status IN ('active', 'on_hold')"),)
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    name: Mapped[str] = mapped_column(String, nullable=False, unique=True)
    email: Mapped[str] = mapped_column(String, nullable=False)
    phone: Mapped[Optional[str]] = mapped_column(String)
    account_status: Mapped[str] = mapped_column(String, nullable=False)
    addresses: Mapped[List["Address"]] = relationship(order_by="Address.id")


class Address(Base):
    __tablename__ = "addresses"
    __table_args__ = (UniqueConstraint("customer_id", "label"),)
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    customer_id: Mapped[int] = mapped_column(ForeignKey("customers.id"), nullable=False)
    label: Mapped[str] = mapped_column(String, nullable=False)
    street: Mapped[str] = mapped_column(String, nullable=False)
    town: Mapped[str] = mapped_column(String, nullable=False)
    zone_id: Mapped[int] = mapped_column(ForeignKey("zones.id"), nullable=False)
    zone: Mapped[Zone] = relationship()


class Vehicle(Base):
    __tablename__ = "vehicles"
    __table_args__ = (CheckConstraint("kind IN ('van', 'truck')"), CheckConstraint("status IN ('in_service', 'workshop')"))
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    plate: Mapped[str] = mapped_column(String, nullable=False, unique=True)
    kind: Mapped[str] = mapped_column(String, nullable=False)
    depot_id: Mapped[int] = mapped_column(ForeignKey("depots.id"), nullable=False)
    max_load_g: Mapped[int] = mapped_column(Integer, nullable=False)
    is_refrigerated: Mapped[bool] = mapped_column(Boolean, nullable=False)
    status: Mapped[str] = mapped_column(String, nullable=False)


class Driver(Base):
    __tablename__ = "drivers"
    __table_args__ = (CheckConstraint("licence IN ('van', 'truck')"),)
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    full_name: Mapped[str] = mapped_column(String, nullable=False)
    phone: Mapped[str] = mapped_column(String, nullable=False)
    depot_id: Mapped[int] = mapped_column(ForeignKey("depots.id"), nullable=False)
    licence: Mapped[str] = mapped_column(String, nullable=False)


class DriverAbsence(Base):
    __tablename__ = "driver_absences"
    __table_args__ = (CheckConstraint("ends_on >= starts_on"), Index("idx_driver_absences_driver", "driver_id"))
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    driver_id: Mapped[int] = mapped_column(ForeignKey("drivers.id"), nullable=False)
    starts_on: Mapped[date] = mapped_column(Date, nullable=False)
    ends_on: Mapped[date] = mapped_column(Date, nullable=False)
    reason: Mapped[str] = mapped_column(String, nullable=False)


class Shipment(Base):
    __tablename__ = "shipments"
    __table_args__ = (
        CheckConstraint("status IN ('booked', 'assigned', 'out_for_delivery', 'delivered', 'failed', 'cancelled')"),
        CheckConstraint("weight_g > 0"),
        Index("idx_shipments_customer", "customer_id"),
    )
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    tracking_code: Mapped[str] = mapped_column(String, nullable=False, unique=True)
    customer_id: Mapped[int] = mapped_column(ForeignKey("customers.id"), nullable=False)
    address_id: Mapped[int] = mapped_column(ForeignKey("addresses.id"), nullable=False)
    service_level_id: Mapped[int] = mapped_column(ForeignKey("service_levels.id"), nullable=False)
    weight_g: Mapped[int] = mapped_column(Integer, nullable=False)
    needs_cooling: Mapped[bool] = mapped_column(Boolean, nullable=False)
    price_cents: Mapped[int] = mapped_column(Integer, nullable=False)
    status: Mapped[str] = mapped_column(String, nullable=False)
    promised_on: Mapped[date] = mapped_column(Date, nullable=False)
    delivered_at: Mapped[Optional[str]] = mapped_column(String)
    created_at: Mapped[str] = mapped_column(String, nullable=False)
    customer: Mapped[Customer] = relationship()
    address: Mapped[Address] = relationship()
    service_level: Mapped[ServiceLevel] = relationship()


class ShipmentEvent(Base):
    __tablename__ = "shipment_events"
    __table_args__ = (Index("idx_shipment_events_shipment", "shipment_id"),)
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    shipment_id: Mapped[int] = mapped_column(ForeignKey("shipments.id"), nullable=False)
    kind: Mapped[str] = mapped_column(String, nullable=False)
    note: Mapped[Optional[str]] = mapped_column(String)
    happened_at: Mapped[str] = mapped_column(String, nullable=False)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), nullable=False)


class DeliveryRoute(Base):
    __tablename__ = "delivery_routes"
    __table_args__ = (
        CheckConstraint("status IN ('planned', 'dispatched', 'completed', 'cancelled')"),
        Index("idx_delivery_routes_day", "run_date"),
    )
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    depot_id: Mapped[int] = mapped_column(ForeignKey("depots.id"), nullable=False)
    run_date: Mapped[date] = mapped_column(Date, nullable=False)
    driver_id: Mapped[int] = mapped_column(ForeignKey("drivers.id"), nullable=False)
    vehicle_id: Mapped[int] = mapped_column(ForeignKey("vehicles.id"), nullable=False)
    status: Mapped[str] = mapped_column(String, nullable=False)
    depot: Mapped[Depot] = relationship()
    driver: Mapped[Driver] = relationship()
    vehicle: Mapped[Vehicle] = relationship()
    stops: Mapped[List["RouteStop"]] = relationship(back_populates="route", order_by="RouteStop.position")


class RouteStop(Base):
    __tablename__ = "route_stops"
    __table_args__ = (
        CheckConstraint("status IN ('pending', 'delivered', 'failed')"),
        Index("idx_route_stops_route", "route_id"),
        Index("idx_route_stops_shipment", "shipment_id"),
    )
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    route_id: Mapped[int] = mapped_column(ForeignKey("delivery_routes.id"), nullable=False)
    shipment_id: Mapped[int] = mapped_column(ForeignKey("shipments.id"), nullable=False)
    position: Mapped[int] = mapped_column(Integer, nullable=False)
    status: Mapped[str] = mapped_column(String, nullable=False)
    note: Mapped[Optional[str]] = mapped_column(String)
    route: Mapped[DeliveryRoute] = relationship(back_populates="stops")
    shipment: Mapped[Shipment] = relationship()


class Claim(Base):
    __tablename__ = "claims"
    __table_args__ = (
        CheckConstraint("kind IN ('damage', 'loss', 'delay')"),
        CheckConstraint("status IN ('open', 'approved', 'rejected')"),
        CheckConstraint("amount_cents > 0"),
    )
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    shipment_id: Mapped[int] = mapped_column(ForeignKey("shipments.id"), nullable=False)
    kind: Mapped[str] = mapped_column(String, nullable=False)
    amount_cents: Mapped[int] = mapped_column(Integer, nullable=False)
    status: Mapped[str] = mapped_column(String, nullable=False)
    opened_at: Mapped[str] = mapped_column(String, nullable=False)
    decision_note: Mapped[Optional[str]] = mapped_column(String)
    decided_by: Mapped[Optional[int]] = mapped_column(ForeignKey("users.id"))
    shipment: Mapped[Shipment] = relationship()


class Credit(Base):
    __tablename__ = "credits"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    customer_id: Mapped[int] = mapped_column(ForeignKey("customers.id"), nullable=False)
    claim_id: Mapped[int] = mapped_column(ForeignKey("claims.id"), nullable=False, unique=True)
    amount_cents: Mapped[int] = mapped_column(Integer, nullable=False)
    created_at: Mapped[str] = mapped_column(String, nullable=False)


Base.metadata.create_all(engine)


# Requests


def this_century(value: date) -> date:
    if not 2000 <= value.year <= 2099:
        raise ValueError("the year must lie between 2000 and 2099")
    return value


Day = Annotated[date, AfterValidator(this_century)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]
Id = Annotated[int, Field(ge=1, le=ID_MAX)]
PathId = Annotated[int, Path(ge=1, le=ID_MAX, description="Id of the row")]
OnlyId = Annotated[Optional[int], Query(ge=1, le=ID_MAX, description="Only rows with this id")]
Limit = Annotated[int, Query(ge=1, le=200, description="How many to return at most")]
Offset = Annotated[int, Query(ge=0, le=100_000, description="How many to skip")]
Grams = Annotated[int, Field(ge=1, le=5_000_000)]
Cents = Annotated[int, Field(ge=1, le=10_000_000)]


class AddressIn(BaseModel):
    label: Text = Field(description="Name of the address within the customer's list", examples=["Annexe"])
    street: Text = Field(description="Street and number", examples=["4 Mill Lane"])
    town: Text = Field(description="Town", examples=["Harrow"])
    zone_id: Id = Field(description="Delivery zone", examples=[2])


class ShipmentIn(BaseModel):
    customer_id: Id = Field(description="Customer who sends it", examples=[3])
    address_id: Id = Field(description="Delivery address, one of the customer's list", examples=[5])
    service_level_id: Id = Field(description="Service level", examples=[2])
    weight_g: Grams = Field(description="Weight in grams", examples=[2500])
    needs_cooling: bool = Field(False, description="Whether it must be kept cold", examples=[False])


class ShipmentPatch(BaseModel):
    address_id: Id = Field(description="New delivery address, one of the customer's list", examples=[6])


class CancelIn(BaseModel):
    reason: Text = Field(description="Why it is cancelled", examples=["Customer's wish"])


class AbsenceIn(BaseModel):
    starts_on: Day = Field(description="First day away", examples=["2026-01-12"])
    ends_on: Day = Field(description="Last day away, included", examples=["2026-01-14"])
    reason: Text = Field(description="Reason", examples=["Training"])


class VehicleStatusIn(BaseModel):
    status: VehicleStatus = Field(description="New status", examples=["workshop"])


class RouteIn(BaseModel):
    depot_id: Id = Field(description="Depot it starts from", examples=[1])
    run_date: Day = Field(description="Day it runs", examples=["2026-01-06"])
    driver_id: Id = Field(description="Driver", examples=[2])
    vehicle_id: Id = Field(description="Vehicle", examples=[3])


class CrewIn(BaseModel):
    driver_id: Optional[Id] = Field(None, description="New driver", examples=[4])
    vehicle_id: Optional[Id] = Field(None, description="New vehicle", examples=[2])


class StopIn(BaseModel):
    shipment_id: Id = Field(description="Shipment to put on the route", examples=[15])
    position: Optional[Annotated[int, Field(ge=1, le=200)]] = Field(
        None, description="Place in the order of stops, from 1; at the end if left out", examples=[1]
    )


class MoveStopIn(BaseModel):
    position: Annotated[int, Field(ge=1, le=200)] = Field(description="New place in the order of stops, from 1", examples=[2])


class OutcomeIn(BaseModel):
    outcome: Literal["delivered", "failed"] = Field(description="What became of the stop", examples=["delivered"])
    note: Optional[Text] = Field(None, description="What the driver said; needed when failed", examples=["Gate locked"])


class ClaimIn(BaseModel):
    shipment_id: Id = Field(description="Shipment that is claimed for", examples=[3])
    kind: ClaimKind = Field(description="What went wrong", examples=["damage"])
    amount_cents: Cents = Field(description="Amount asked for, in euro cents", examples=[1250])


class DecisionIn(BaseModel):
    decision: Literal["approve", "reject"] = Field(description="Approving grants the whole amount as a credit", examples=["reject"])
    note: Text = Field(description="Reason, as the customer will read it", examples=["Packed too thinly"])


# Replies


class UserOut(BaseModel):
    id: int
    full_name: str
    email: str
    role: str
    refund_limit_cents: int


class DepotOut(BaseModel):
    id: int
    code: str
    name: str
    town: str


class DepotList(BaseModel):
    items: List[DepotOut]
    total: int


class ZoneOut(BaseModel):
    id: int
    name: str
    depot_id: int
    surcharge_cents: int


class ZoneList(BaseModel):
    items: List[ZoneOut]
    total: int


class ServiceLevelOut(BaseModel):
    id: int
    code: str
    base_cents: int
    per_kg_cents: int
    max_weight_g: int
    days: int


class ServiceLevelList(BaseModel):
    items: List[ServiceLevelOut]
    total: int


class CustomerOut(BaseModel):
    id: int
    name: str
    email: str
    phone: Optional[str]
    account_status: AccountStatus


class CustomerList(BaseModel):
    items: List[CustomerOut]
    total: int


class AddressOut(BaseModel):
    id: int
    customer_id: int
    label: str
    street: str
    town: str
    zone_id: int
    zone_name: str


class CustomerDetail(CustomerOut):
    addresses: List[AddressOut]


class QuoteOut(BaseModel):
    price_cents: int
    promised_on: date


class ShipmentOut(BaseModel):
    id: int
    tracking_code: str
    customer_id: int
    customer_name: str
    address_id: int
    address_label: str
    zone_id: int
    zone_name: str
    service_code: str
    weight_g: int
    needs_cooling: bool
    price_cents: int
    status: ShipmentStatus
    promised_on: date
    delivered_at: Optional[str]


class ShipmentList(BaseModel):
    items: List[ShipmentOut]
    total: int


class EventOut(BaseModel):
    kind: str
    note: Optional[str]
    happened_at: str
    user_id: int


class ShipmentDetail(ShipmentOut):
    route_id: Optional[int]
    events: List[EventOut]


class DriverOut(BaseModel):
    id: int
    full_name: str
    phone: str
    depot_id: int
    licence: VehicleKind
    absent: bool


class DriverList(BaseModel):
    items: List[DriverOut]
    total: int


class VehicleOut(BaseModel):
    id: int
    plate: str
    kind: VehicleKind
    depot_id: int
    max_load_g: int
    is_refrigerated: bool
    status: VehicleStatus


class VehicleList(BaseModel):
    items: List[VehicleOut]
    total: int


class RouteOut(BaseModel):
    id: int
    depot_id: int
    depot_name: str
    run_date: date
    driver_id: int
    driver_name: str
    vehicle_id: int
    plate: str
    vehicle_kind: VehicleKind
    is_refrigerated: bool
    load_g: int
    room_g: int
    status: RouteStatus


class RouteList(BaseModel):
    items: List[RouteOut]
    total: int


class StopOut(BaseModel):
    id: int
    position: int
    shipment_id: int
    tracking_code: str
    customer_name: str
    town: str
    weight_g: int
    status: StopStatus
    note: Optional[str]


class RouteDetail(RouteOut):
    stops: List[StopOut]


class AbsenceOut(BaseModel):
    id: int
    driver_id: int
    starts_on: date
    ends_on: date
    reason: str
    routes_without_driver: List[RouteOut]


class ClaimOut(BaseModel):
    id: int
    shipment_id: int
    tracking_code: str
    customer_id: int
    kind: ClaimKind
    amount_cents: int
    status: ClaimStatus
    opened_at: str
    decision_note: Optional[str]


class ClaimList(BaseModel):
    items: List[ClaimOut]
    total: int


class CreditOut(BaseModel):
    id: int
    customer_id: int
    claim_id: int
    amount_cents: int
    created_at: str


class CreditList(BaseModel):
    items: List[CreditOut]
    total: int


# Rules of the desk


def utc_now() -> datetime:
    return datetime.now(timezone.utc)


def stamp() -> str:
    return utc_now().strftime("%Y-%m-%dT%H:%M:%SZ")


def today() -> date:
    return utc_now().date()


def missing(what: str, row_id: int) -> HTTPException:
    return HTTPException(status_code=404, detail=f"{what} {row_id} does not exist.")


def conflict(detail: str) -> HTTPException:
    return HTTPException(status_code=409, detail=detail)


def get_row(session: Session, model, row_id: int, what: str):
    row = session.get(model, row_id)
    if row is None:
        raise missing(what, row_id)
    return row


def listing(session: Session, statement, limit: int, offset: int):
    total = session.scalar(select(func.count()).select_from(statement.order_by(None).subquery())) or 0
    return session.scalars(statement.limit(limit).offset(offset)).all(), total


def columns_of(row) -> dict:
    return {column.name: getattr(row, column.name) for column in row.__table__.columns}


def pick(model, row, **more):
    """The reply model filled from a row's columns, with what is computed on top."""
    values = {**columns_of(row), **more}
    return model(**{name: values[name] for name in model.model_fields})


def price_of(service: ServiceLevel, zone: Zone, weight_g: int) -> int:
    return service.base_cents + service.per_kg_cents * math.ceil(weight_g / 1000) + zone.surcharge_cents


def note_event(session: Session, shipment: Shipment, kind: str, note: Optional[str] = None) -> None:
    session.add(ShipmentEvent(shipment_id=shipment.id, kind=kind, note=note, happened_at=stamp(), user_id=CURRENT_USER_ID))


def check_service(service: ServiceLevel, weight_g: int) -> None:
    if weight_g > service.max_weight_g:
        raise conflict(f"{service.code} takes {service.max_weight_g} g at most.")


def own_address(session: Session, customer: Customer, address_id: int) -> Address:
    address = get_row(session, Address, address_id, "Address")
    if address.customer_id != customer.id:
        raise conflict(f"Address {address_id} is not one of {customer.name}'s.")
    return address


def load_of(route: DeliveryRoute) -> int:
    return sum(stop.shipment.weight_g for stop in route.stops)


def is_absent(session: Session, driver_id: int, day: date) -> bool:
    statement = select(DriverAbsence.id).where(
        DriverAbsence.driver_id == driver_id, DriverAbsence.starts_on <= day, DriverAbsence.ends_on >= day
    )
    return session.scalars(statement).first() is not None


def check_crew(session: Session, route_id: int, depot_id: int, day: date, driver: Driver, vehicle: Vehicle, stops: list) -> None:
    """Refuses a driver or vehicle that can't run a route on a day with these stops."""
    if driver.depot_id != depot_id:
        raise conflict(f"{driver.full_name} works for another depot.")
    if vehicle.depot_id != depot_id:
        raise conflict(f"{vehicle.plate} belongs to another depot.")
    if vehicle.status != "in_service":
        raise conflict(f"{vehicle.plate} is in the workshop.")
    if vehicle.kind == "truck" and driver.licence != "truck":
        raise conflict(f"{driver.full_name} has no licence for a truck.")
    if is_absent(session, driver.id, day):
        raise conflict(f"{driver.full_name} is absent on {day}.")
    same_day = session.scalars(
        select(DeliveryRoute).where(
            DeliveryRoute.run_date == day, DeliveryRoute.status != "cancelled", DeliveryRoute.id != route_id
        )
    ).all()
    for other in same_day:
        if other.driver_id == driver.id:
            raise conflict(f"{driver.full_name} drives route {other.id} on {day}.")
        if other.vehicle_id == vehicle.id:
            raise conflict(f"{vehicle.plate} is used for route {other.id} on {day}.")
    load = sum(stop.shipment.weight_g for stop in stops)
    if load > vehicle.max_load_g:
        raise conflict(f"The load of {load} g is too much for {vehicle.plate}, which takes {vehicle.max_load_g} g.")
    if any(stop.shipment.needs_cooling for stop in stops) and not vehicle.is_refrigerated:
        raise conflict(f"The route has a chilled shipment, and {vehicle.plate} is not refrigerated.")


def renumber(stops: list) -> None:
    for number, stop in enumerate(stops, start=1):
        stop.position = number


def address_out(address: Address) -> AddressOut:
    return pick(AddressOut, address, zone_name=address.zone.name)


def shipment_fields(shipment: Shipment) -> dict:
    return {
        **columns_of(shipment),
        "customer_name": shipment.customer.name,
        "address_label": shipment.address.label,
        "zone_id": shipment.address.zone_id,
        "zone_name": shipment.address.zone.name,
        "service_code": shipment.service_level.code,
    }


def shipment_out(shipment: Shipment) -> ShipmentOut:
    return pick(ShipmentOut, shipment, **shipment_fields(shipment))


def route_fields(route: DeliveryRoute) -> dict:
    load = load_of(route)
    return {
        "depot_name": route.depot.name,
        "driver_name": route.driver.full_name,
        "plate": route.vehicle.plate,
        "vehicle_kind": route.vehicle.kind,
        "is_refrigerated": route.vehicle.is_refrigerated,
        "load_g": load,
        "room_g": route.vehicle.max_load_g - load,
    }


def route_out(route: DeliveryRoute) -> RouteOut:
    return pick(RouteOut, route, **route_fields(route))


def stop_out(stop: RouteStop) -> StopOut:
    shipment = stop.shipment
    return pick(
        StopOut,
        stop,
        tracking_code=shipment.tracking_code,
        customer_name=shipment.customer.name,
        town=shipment.address.town,
        weight_g=shipment.weight_g,
    )


def route_detail(route: DeliveryRoute) -> RouteDetail:
    stops = sorted(route.stops, key=lambda stop: stop.position)
    return pick(RouteDetail, route, **route_fields(route), stops=[stop_out(stop) for stop in stops])


def claim_out(claim: Claim) -> ClaimOut:
    return pick(ClaimOut, claim, tracking_code=claim.shipment.tracking_code, customer_id=claim.shipment.customer_id)


@app.exception_handler(IntegrityError)
async def refuse_broken_constraint(request: Request, error: IntegrityError) -> JSONResponse:
    return JSONResponse(status_code=409, content={"detail": f"This breaks a constraint of the database: {error.orig}."})


# Desk


@app.get(
    "/api/me",
    operation_id="get_current_user",
    summary="Show the signed-in dispatcher",
    description="The signed-in user, with the largest claim they may approve.",
    tags=["desk"],
    response_model=UserOut,
)
async def get_current_user() -> UserOut:
    with SessionLocal() as session:
        return pick(UserOut, get_row(session, User, CURRENT_USER_ID, "User"))


@app.get(
    "/api/depots",
    operation_id="list_depots",
    summary="List depots",
    description="Depots with their code and town.",
    tags=["desk"],
    response_model=DepotList,
)
async def list_depots() -> DepotList:
    with SessionLocal() as session:
        rows = session.scalars(select(Depot).order_by(Depot.id)).all()
        return DepotList(items=[pick(DepotOut, row) for row in rows], total=len(rows))


@app.get(
    "/api/zones",
    operation_id="list_zones",
    summary="List delivery zones",
    description="Zones with the depot that serves them and the surcharge on each shipment.",
    tags=["desk"],
    response_model=ZoneList,
)
async def list_zones() -> ZoneList:
    with SessionLocal() as session:
        rows = session.scalars(select(Zone).order_by(Zone.id)).all()
        return ZoneList(items=[pick(ZoneOut, row) for row in rows], total=len(rows))


@app.get(
    "/api/service_levels",
    operation_id="list_service_levels",
    summary="List service levels and their prices",
    description="Service levels with base price, price for each started kilogram, largest weight and days to delivery.",
    tags=["desk"],
    response_model=ServiceLevelList,
)
async def list_service_levels() -> ServiceLevelList:
    with SessionLocal() as session:
        rows = session.scalars(select(ServiceLevel).order_by(ServiceLevel.id)).all()
        return ServiceLevelList(items=[pick(ServiceLevelOut, row) for row in rows], total=len(rows))


# Customers


@app.get(
    "/api/customers",
    operation_id="list_customers",
    summary="Search customers",
    description="Customers by part of their name and by account status.",
    tags=["customers"],
    response_model=CustomerList,
)
async def list_customers(
    q: Annotated[Optional[str], Query(max_length=100, description="Part of the name")] = None,
    account_status: Annotated[Optional[AccountStatus], Query(description="Only this account status")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> CustomerList:
    with SessionLocal() as session:
        statement = select(Customer).order_by(Customer.id)
        if q:
            statement = statement.where(Customer.name.icontains(q, autoescape=True))
        if account_status is not None:
            statement = statement.where(Customer.account_status == account_status)
        rows, total = listing(session, statement, limit, offset)
        return CustomerList(items=[pick(CustomerOut, row) for row in rows], total=total)


@app.get(
    "/api/customers/{customer_id}",
    operation_id="get_customer",
    summary="Show a customer with their addresses",
    description="A customer and the list of delivery addresses, each with its label and zone.",
    tags=["customers"],
    response_model=CustomerDetail,
)
async def get_customer(customer_id: PathId) -> CustomerDetail:
    with SessionLocal() as session:
        customer = get_row(session, Customer, customer_id, "Customer")
        return pick(CustomerDetail, customer, addresses=[address_out(row) for row in customer.addresses])


@app.post(
    "/api/customers/{customer_id}/addresses",
    operation_id="add_address",
    summary="Add a delivery address to a customer's list",
    description="Adds an address under a label that the customer doesn't use yet.",
    tags=["customers"],
    response_model=AddressOut,
    status_code=201,
)
async def add_address(customer_id: PathId, body: AddressIn) -> AddressOut:
    with SessionLocal() as session:
        customer = get_row(session, Customer, customer_id, "Customer")
        get_row(session, Zone, body.zone_id, "Zone")
        if any(row.label.lower() == body.label.lower() for row in customer.addresses):
            raise conflict(f"{customer.name} has an address labelled {body.label} already.")
        address = Address(customer_id=customer.id, **body.model_dump())
        session.add(address)
        session.flush()
        result = address_out(address)
        session.commit()
        return result


# Shipments


@app.get(
    "/api/quotes",
    operation_id="quote_shipment",
    summary="Work out the price of a shipment without booking it",
    description="Base price, plus a price for each started kilogram, plus the zone's surcharge; and the promised day.",
    tags=["shipments"],
    response_model=QuoteOut,
)
async def quote_shipment(
    service_level_id: Annotated[int, Query(ge=1, le=ID_MAX, description="Service level")],
    address_id: Annotated[int, Query(ge=1, le=ID_MAX, description="Delivery address")],
    weight_g: Annotated[int, Query(ge=1, le=5_000_000, description="Weight in grams")],
) -> QuoteOut:
    with SessionLocal() as session:
        service = get_row(session, ServiceLevel, service_level_id, "Service level")
        address = get_row(session, Address, address_id, "Address")
        check_service(service, weight_g)
        return QuoteOut(
            price_cents=price_of(service, address.zone, weight_g), promised_on=today() + timedelta(days=service.days)
        )


@app.get(
    "/api/shipments",
    operation_id="list_shipments",
    summary="Search shipments",
    description="Shipments by tracking code, customer, zone and status, in order of id. 'booked' ones are on no route.",
    tags=["shipments"],
    response_model=ShipmentList,
)
async def list_shipments(
    tracking_code: Annotated[Optional[str], Query(max_length=20, description="Exactly this code")] = None,
    customer_id: OnlyId = None,
    zone_id: OnlyId = None,
    status: Annotated[Optional[ShipmentStatus], Query(description="Only this status")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> ShipmentList:
    with SessionLocal() as session:
        statement = select(Shipment).join(Address).order_by(Shipment.id)
        if tracking_code:
            statement = statement.where(Shipment.tracking_code == tracking_code.strip().upper())
        if customer_id is not None:
            statement = statement.where(Shipment.customer_id == customer_id)
        if zone_id is not None:
            statement = statement.where(Address.zone_id == zone_id)
        if status is not None:
            statement = statement.where(Shipment.status == status)
        rows, total = listing(session, statement, limit, offset)
        return ShipmentList(items=[shipment_out(row) for row in rows], total=total)


@app.post(
    "/api/shipments",
    operation_id="create_shipment",
    summary="Book a shipment",
    description="Books a shipment at today's price for a customer whose account is active.",
    tags=["shipments"],
    response_model=ShipmentOut,
    status_code=201,
)
async def create_shipment(body: ShipmentIn) -> ShipmentOut:
    with SessionLocal() as session:
        customer = get_row(session, Customer, body.customer_id, "Customer")
        service = get_row(session, ServiceLevel, body.service_level_id, "Service level")
        address = own_address(session, customer, body.address_id)
        if customer.account_status != "active":
            raise conflict(f"The account of {customer.name} is on hold; nothing can be booked on it.")
        check_service(service, body.weight_g)
        newest = session.scalar(select(func.max(Shipment.id))) or 0
        shipment = Shipment(
            tracking_code=f"RC{100001 + newest}",
            **body.model_dump(),
            price_cents=price_of(service, address.zone, body.weight_g),
            status="booked",
            promised_on=today() + timedelta(days=service.days),
            created_at=stamp(),
        )
        session.add(shipment)
        session.flush()
        note_event(session, shipment, "booked")
        session.flush()
        result = shipment_out(shipment)
        session.commit()
        return result


@app.get(
    "/api/shipments/{shipment_id}",
    operation_id="get_shipment",
    summary="Show a shipment with its history",
    description="A shipment, the route it is on or was last on, and its events in order of time.",
    tags=["shipments"],
    response_model=ShipmentDetail,
)
async def get_shipment(shipment_id: PathId) -> ShipmentDetail:
    with SessionLocal() as session:
        shipment = get_row(session, Shipment, shipment_id, "Shipment")
        events = session.scalars(
            select(ShipmentEvent)
            .where(ShipmentEvent.shipment_id == shipment_id)
            .order_by(ShipmentEvent.happened_at, ShipmentEvent.id)
        ).all()
        stop = session.scalars(select(RouteStop).where(RouteStop.shipment_id == shipment_id).order_by(RouteStop.id.desc())).first()
        return pick(
            ShipmentDetail,
            shipment,
            **shipment_fields(shipment),
            route_id=stop.route_id if stop else None,
            events=[pick(EventOut, row) for row in events],
        )


@app.patch(
    "/api/shipments/{shipment_id}",
    operation_id="redirect_shipment",
    summary="Change a shipment's delivery address",
    description="Redirects a shipment that is on no route yet to another of the customer's addresses; the price stays.",
    tags=["shipments"],
    response_model=ShipmentOut,
)
async def redirect_shipment(shipment_id: PathId, body: ShipmentPatch) -> ShipmentOut:
    with SessionLocal() as session:
        shipment = get_row(session, Shipment, shipment_id, "Shipment")
        address = own_address(session, shipment.customer, body.address_id)
        if shipment.status != "booked":
            raise conflict(f"{shipment.tracking_code} is {shipment.status.replace('_', ' ')}; only a booked one can be redirected.")
        if address.id == shipment.address_id:
            raise conflict(f"{shipment.tracking_code} goes to {address.label} already.")
        shipment.address = address
        note_event(session, shipment, "redirected", f"To {address.label}")
        session.flush()
        result = shipment_out(shipment)
        session.commit()
        return result


@app.post(
    "/api/shipments/{shipment_id}/cancel",
    operation_id="cancel_shipment",
    summary="Cancel a shipment",
    description="Cancels a shipment that is booked and on no route.",
    tags=["shipments"],
    response_model=ShipmentOut,
)
async def cancel_shipment(shipment_id: PathId, body: CancelIn) -> ShipmentOut:
    with SessionLocal() as session:
        shipment = get_row(session, Shipment, shipment_id, "Shipment")
        if shipment.status != "booked":
            raise conflict(f"{shipment.tracking_code} is {shipment.status.replace('_', ' ')}; only a booked one can be cancelled.")
        shipment.status = "cancelled"
        note_event(session, shipment, "cancelled", body.reason)
        session.flush()
        result = shipment_out(shipment)
        session.commit()
        return result


# Drivers and vehicles


@app.get(
    "/api/drivers",
    operation_id="list_drivers",
    summary="List drivers",
    description="Drivers by name and depot, with licence, and whether they are absent on the day asked about (today if left out).",
    tags=["fleet"],
    response_model=DriverList,
)
async def list_drivers(
    q: Annotated[Optional[str], Query(max_length=100, description="Part of the name")] = None,
    depot_id: OnlyId = None,
    on: Annotated[Optional[Day], Query(description="Day for which absence is told")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> DriverList:
    with SessionLocal() as session:
        statement = select(Driver).order_by(Driver.id)
        if q:
            statement = statement.where(Driver.full_name.icontains(q, autoescape=True))
        if depot_id is not None:
            statement = statement.where(Driver.depot_id == depot_id)
        rows, total = listing(session, statement, limit, offset)
        day = on or today()
        return DriverList(items=[pick(DriverOut, row, absent=is_absent(session, row.id, day)) for row in rows], total=total)


@app.post(
    "/api/drivers/{driver_id}/absences",
    operation_id="record_absence",
    summary="Record that a driver is away",
    description="Records an absence and returns the planned routes that are left with nobody to drive them.",
    tags=["fleet"],
    response_model=AbsenceOut,
    status_code=201,
)
async def record_absence(driver_id: PathId, body: AbsenceIn) -> AbsenceOut:
    with SessionLocal() as session:
        driver = get_row(session, Driver, driver_id, "Driver")
        if body.ends_on < body.starts_on:
            raise HTTPException(status_code=400, detail="ends_on lies before starts_on.")
        overlap = session.scalars(
            select(DriverAbsence).where(
                DriverAbsence.driver_id == driver_id,
                DriverAbsence.starts_on <= body.ends_on,
                DriverAbsence.ends_on >= body.starts_on,
            )
        ).first()
        if overlap is not None:
            raise conflict(f"{driver.full_name} is absent from {overlap.starts_on} to {overlap.ends_on} already.")
        absence = DriverAbsence(driver_id=driver_id, **body.model_dump())
        session.add(absence)
        session.flush()
        routes = session.scalars(
            select(DeliveryRoute)
            .where(
                DeliveryRoute.driver_id == driver_id,
                DeliveryRoute.status == "planned",
                DeliveryRoute.run_date >= body.starts_on,
                DeliveryRoute.run_date <= body.ends_on,
            )
            .order_by(DeliveryRoute.run_date, DeliveryRoute.id)
        ).all()
        result = pick(AbsenceOut, absence, routes_without_driver=[route_out(route) for route in routes])
        session.commit()
        return result


@app.get(
    "/api/vehicles",
    operation_id="list_vehicles",
    summary="List vehicles",
    description="Vehicles by depot and status, with kind, largest load and refrigeration.",
    tags=["fleet"],
    response_model=VehicleList,
)
async def list_vehicles(
    depot_id: OnlyId = None,
    status: Annotated[Optional[VehicleStatus], Query(description="Only this status")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> VehicleList:
    with SessionLocal() as session:
        statement = select(Vehicle).order_by(Vehicle.id)
        if depot_id is not None:
            statement = statement.where(Vehicle.depot_id == depot_id)
        if status is not None:
            statement = statement.where(Vehicle.status == status)
        rows, total = listing(session, statement, limit, offset)
        return VehicleList(items=[pick(VehicleOut, row) for row in rows], total=total)


@app.post(
    "/api/vehicles/{vehicle_id}/status",
    operation_id="set_vehicle_status",
    summary="Send a vehicle to the workshop or take it back",
    description="Changes a vehicle's status; one with a planned or running route can't go to the workshop.",
    tags=["fleet"],
    response_model=VehicleOut,
)
async def set_vehicle_status(vehicle_id: PathId, body: VehicleStatusIn) -> VehicleOut:
    with SessionLocal() as session:
        vehicle = get_row(session, Vehicle, vehicle_id, "Vehicle")
        if vehicle.status == body.status:
            raise conflict(f"{vehicle.plate} is {body.status.replace('_', ' ')} already.")
        used = session.scalars(
            select(DeliveryRoute).where(
                DeliveryRoute.vehicle_id == vehicle_id, DeliveryRoute.status.in_(["planned", "dispatched"])
            )
        ).first()
        if body.status == "workshop" and used is not None:
            raise conflict(f"{vehicle.plate} is needed for route {used.id} on {used.run_date}.")
        vehicle.status = body.status
        session.flush()
        result = pick(VehicleOut, vehicle)
        session.commit()
        return result


# Routes


@app.get(
    "/api/routes",
    operation_id="list_routes",
    summary="List routes",
    description="Routes by depot, driver, day and status, in order of day, with their load and the room left.",
    tags=["routes"],
    response_model=RouteList,
)
async def list_routes(
    depot_id: OnlyId = None,
    driver_id: OnlyId = None,
    on: Annotated[Optional[Day], Query(description="Only this day")] = None,
    status: Annotated[Optional[RouteStatus], Query(description="Only this status")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> RouteList:
    with SessionLocal() as session:
        statement = select(DeliveryRoute).order_by(DeliveryRoute.run_date, DeliveryRoute.id)
        if depot_id is not None:
            statement = statement.where(DeliveryRoute.depot_id == depot_id)
        if driver_id is not None:
            statement = statement.where(DeliveryRoute.driver_id == driver_id)
        if on is not None:
            statement = statement.where(DeliveryRoute.run_date == on)
        if status is not None:
            statement = statement.where(DeliveryRoute.status == status)
        rows, total = listing(session, statement, limit, offset)
        return RouteList(items=[route_out(row) for row in rows], total=total)


@app.post(
    "/api/routes",
    operation_id="create_route",
    summary="Plan a route",
    description="Plans an empty route with a driver and a vehicle that are free that day.",
    tags=["routes"],
    response_model=RouteDetail,
    status_code=201,
)
async def create_route(body: RouteIn) -> RouteDetail:
    with SessionLocal() as session:
        depot = get_row(session, Depot, body.depot_id, "Depot")
        driver = get_row(session, Driver, body.driver_id, "Driver")
        vehicle = get_row(session, Vehicle, body.vehicle_id, "Vehicle")
        if body.run_date < today():
            raise HTTPException(status_code=400, detail="run_date lies in the past.")
        check_crew(session, 0, depot.id, body.run_date, driver, vehicle, [])
        route = DeliveryRoute(**body.model_dump(), status="planned")
        session.add(route)
        session.flush()
        result = route_detail(route)
        session.commit()
        return result


@app.get(
    "/api/routes/{route_id}",
    operation_id="get_route",
    summary="Show a route with its stops",
    description="A route with driver, vehicle, load and every stop in order.",
    tags=["routes"],
    response_model=RouteDetail,
)
async def get_route(route_id: PathId) -> RouteDetail:
    with SessionLocal() as session:
        return route_detail(get_row(session, DeliveryRoute, route_id, "Route"))


@app.patch(
    "/api/routes/{route_id}",
    operation_id="change_route_crew",
    summary="Give a route another driver or vehicle",
    description="Changes driver, vehicle or both of a planned route, if they are free and fit for its load.",
    tags=["routes"],
    response_model=RouteDetail,
)
async def change_route_crew(route_id: PathId, body: CrewIn) -> RouteDetail:
    with SessionLocal() as session:
        route = get_row(session, DeliveryRoute, route_id, "Route")
        if body.driver_id is None and body.vehicle_id is None:
            raise HTTPException(status_code=400, detail="Nothing to change: give driver_id or vehicle_id.")
        if route.status != "planned":
            raise conflict(f"Route {route_id} is {route.status}.")
        driver = get_row(session, Driver, body.driver_id, "Driver") if body.driver_id else route.driver
        vehicle = get_row(session, Vehicle, body.vehicle_id, "Vehicle") if body.vehicle_id else route.vehicle
        if driver.id == route.driver_id and vehicle.id == route.vehicle_id:
            raise conflict(f"Route {route_id} has this driver and vehicle already.")
        check_crew(session, route.id, route.depot_id, route.run_date, driver, vehicle, route.stops)
        route.driver = driver
        route.vehicle = vehicle
        session.flush()
        result = route_detail(route)
        session.commit()
        return result


@app.post(
    "/api/routes/{route_id}/stops",
    operation_id="assign_shipment",
    summary="Put a shipment on a route",
    description="Adds a booked shipment to a planned route of its zone's depot, if weight and cooling allow.",
    tags=["routes"],
    response_model=RouteDetail,
    status_code=201,
)
async def assign_shipment(route_id: PathId, body: StopIn) -> RouteDetail:
    with SessionLocal() as session:
        route = get_row(session, DeliveryRoute, route_id, "Route")
        shipment = get_row(session, Shipment, body.shipment_id, "Shipment")
        if route.status != "planned":
            raise conflict(f"Route {route_id} is {route.status}.")
        if shipment.status != "booked":
            raise conflict(f"{shipment.tracking_code} is {shipment.status.replace('_', ' ')}; only a booked one can be assigned.")
        if shipment.address.zone.depot_id != route.depot_id:
            raise conflict(f"{shipment.tracking_code} goes to {shipment.address.zone.name}, which another depot serves.")
        room = route.vehicle.max_load_g - load_of(route)
        if shipment.weight_g > room:
            raise conflict(f"{shipment.tracking_code} weighs {shipment.weight_g} g; {route.vehicle.plate} has room for {room} g.")
        if shipment.needs_cooling and not route.vehicle.is_refrigerated:
            raise conflict(f"{shipment.tracking_code} must be kept cold, and {route.vehicle.plate} is not refrigerated.")
        stops = sorted(route.stops, key=lambda row: row.position)
        stop = RouteStop(shipment=shipment, position=0, status="pending")
        stops.insert(len(stops) if body.position is None else min(body.position - 1, len(stops)), stop)
        renumber(stops)
        route.stops.append(stop)
        shipment.status = "assigned"
        note_event(session, shipment, "assigned", f"Route {route.id}")
        session.flush()
        result = route_detail(route)
        session.commit()
        return result


def planned_stop(session: Session, stop_id: int) -> RouteStop:
    stop = get_row(session, RouteStop, stop_id, "Stop")
    if stop.route.status != "planned":
        raise conflict(f"Route {stop.route_id} is {stop.route.status}; its stops can't be changed any more.")
    return stop


@app.patch(
    "/api/stops/{stop_id}",
    operation_id="move_stop",
    summary="Change the order of a route's stops",
    description="Moves a stop of a planned route to another place; the others close up.",
    tags=["routes"],
    response_model=RouteDetail,
)
async def move_stop(stop_id: PathId, body: MoveStopIn) -> RouteDetail:
    with SessionLocal() as session:
        stop = planned_stop(session, stop_id)
        others = sorted((row for row in stop.route.stops if row.id != stop_id), key=lambda row: row.position)
        place = min(body.position - 1, len(others))
        if place == stop.position - 1:
            raise conflict(f"This stop is at position {stop.position} already.")
        others.insert(place, stop)
        renumber(others)
        session.flush()
        result = route_detail(stop.route)
        session.commit()
        return result


@app.delete(
    "/api/stops/{stop_id}",
    operation_id="remove_stop",
    summary="Take a shipment off a planned route",
    description="Removes a stop; its shipment is booked again and the later stops close up.",
    tags=["routes"],
    response_model=RouteDetail,
)
async def remove_stop(stop_id: PathId) -> RouteDetail:
    with SessionLocal() as session:
        stop = planned_stop(session, stop_id)
        route = stop.route
        stop.shipment.status = "booked"
        note_event(session, stop.shipment, "unassigned", f"Route {route.id}")
        session.delete(stop)
        session.flush()
        session.expire(route, ["stops"])
        renumber(sorted(route.stops, key=lambda row: row.position))
        session.flush()
        result = route_detail(route)
        session.commit()
        return result


@app.post(
    "/api/routes/{route_id}/dispatch",
    operation_id="dispatch_route",
    summary="Send a route out",
    description="Starts today's planned route, if it has stops and its driver is not absent; its shipments go out for delivery.",
    tags=["routes"],
    response_model=RouteDetail,
)
async def dispatch_route(route_id: PathId) -> RouteDetail:
    with SessionLocal() as session:
        route = get_row(session, DeliveryRoute, route_id, "Route")
        if route.status != "planned":
            raise conflict(f"Route {route_id} is {route.status}.")
        if route.run_date != today():
            raise conflict(f"Route {route_id} runs on {route.run_date}, not today.")
        if not route.stops:
            raise conflict(f"Route {route_id} has no stops.")
        check_crew(session, route.id, route.depot_id, route.run_date, route.driver, route.vehicle, route.stops)
        route.status = "dispatched"
        for stop in route.stops:
            stop.shipment.status = "out_for_delivery"
            note_event(session, stop.shipment, "out_for_delivery", f"Route {route.id}")
        session.flush()
        result = route_detail(route)
        session.commit()
        return result


@app.post(
    "/api/stops/{stop_id}/outcome",
    operation_id="record_stop_outcome",
    summary="Record a delivery or a failed attempt",
    description="Settles a pending stop of a dispatched route; the route is completed with its last stop.",
    tags=["routes"],
    response_model=RouteDetail,
)
async def record_stop_outcome(stop_id: PathId, body: OutcomeIn) -> RouteDetail:
    with SessionLocal() as session:
        stop = get_row(session, RouteStop, stop_id, "Stop")
        if stop.route.status != "dispatched":
            raise conflict(f"Route {stop.route_id} is {stop.route.status}.")
        if stop.status != "pending":
            raise conflict(f"This stop is {stop.status} already.")
        if body.outcome == "failed" and body.note is None:
            raise HTTPException(status_code=400, detail="Say in note why the delivery failed.")
        stop.status = body.outcome
        stop.note = body.note
        stop.shipment.status = body.outcome
        if body.outcome == "delivered":
            stop.shipment.delivered_at = stamp()
        note_event(session, stop.shipment, body.outcome, body.note)
        if all(row.status != "pending" for row in stop.route.stops):
            stop.route.status = "completed"
        session.flush()
        result = route_detail(stop.route)
        session.commit()
        return result


# Claims


@app.get(
    "/api/claims",
    operation_id="list_claims",
    summary="List claims",
    description="Claims by kind and status, the oldest first.",
    tags=["claims"],
    response_model=ClaimList,
)
async def list_claims(
    kind: Annotated[Optional[ClaimKind], Query(description="Only this kind")] = None,
    status: Annotated[Optional[ClaimStatus], Query(description="Only this status")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> ClaimList:
    with SessionLocal() as session:
        statement = select(Claim).order_by(Claim.opened_at, Claim.id)
        if kind is not None:
            statement = statement.where(Claim.kind == kind)
        if status is not None:
            statement = statement.where(Claim.status == status)
        rows, total = listing(session, statement, limit, offset)
        return ClaimList(items=[claim_out(row) for row in rows], total=total)


@app.post(
    "/api/claims",
    operation_id="open_claim",
    summary="Open a claim for a shipment",
    description="Opens a claim for a shipment that was delivered or failed and has no open claim.",
    tags=["claims"],
    response_model=ClaimOut,
    status_code=201,
)
async def open_claim(body: ClaimIn) -> ClaimOut:
    with SessionLocal() as session:
        shipment = get_row(session, Shipment, body.shipment_id, "Shipment")
        if shipment.status not in ("delivered", "failed"):
            raise conflict(f"{shipment.tracking_code} is {shipment.status.replace('_', ' ')}; there is nothing to claim yet.")
        if session.scalars(select(Claim).where(Claim.shipment_id == shipment.id, Claim.status == "open")).first() is not None:
            raise conflict(f"{shipment.tracking_code} has an open claim already.")
        claim = Claim(**body.model_dump(), status="open", opened_at=stamp())
        session.add(claim)
        session.flush()
        result = claim_out(claim)
        session.commit()
        return result


@app.post(
    "/api/claims/{claim_id}/decision",
    operation_id="decide_claim",
    summary="Approve or reject a claim",
    description="Decides an open claim. Approving grants a credit and needs a refund limit of at least the amount.",
    tags=["claims"],
    response_model=ClaimOut,
)
async def decide_claim(claim_id: PathId, body: DecisionIn) -> ClaimOut:
    with SessionLocal() as session:
        claim = get_row(session, Claim, claim_id, "Claim")
        user = get_row(session, User, CURRENT_USER_ID, "User")
        if claim.status != "open":
            raise conflict(f"Claim {claim_id} is {claim.status} already.")
        if body.decision == "approve" and claim.amount_cents > user.refund_limit_cents:
            raise HTTPException(
                status_code=403,
                detail=f"The claim of {claim.amount_cents} cents is above your limit of {user.refund_limit_cents}; ask a supervisor.",
            )
        claim.status = "approved" if body.decision == "approve" else "rejected"
        claim.decision_note = body.note
        claim.decided_by = CURRENT_USER_ID
        if body.decision == "approve":
            session.add(
                Credit(
                    customer_id=claim.shipment.customer_id,
                    claim_id=claim.id,
                    amount_cents=claim.amount_cents,
                    created_at=stamp(),
                )
            )
        session.flush()
        result = claim_out(claim)
        session.commit()
        return result


@app.get(
    "/api/credits",
    operation_id="list_credits",
    summary="List credits granted to customers",
    description="Credits by customer, the oldest first.",
    tags=["claims"],
    response_model=CreditList,
)
async def list_credits(customer_id: OnlyId = None, limit: Limit = 50, offset: Offset = 0) -> CreditList:
    with SessionLocal() as session:
        statement = select(Credit).order_by(Credit.created_at, Credit.id)
        if customer_id is not None:
            statement = statement.where(Credit.customer_id == customer_id)
        rows, total = listing(session, statement, limit, offset)
        return CreditList(items=[pick(CreditOut, row) for row in rows], total=total)


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host=os.getenv("HOST", "127.0.0.1"), port=int(os.getenv("PORT", "8000")))
