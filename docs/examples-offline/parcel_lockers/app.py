import os
from collections.abc import AsyncIterator
from datetime import date, datetime, time, timedelta, timezone
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar

from fastapi import Depends, FastAPI, HTTPException, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import ColumnElement, ForeignKey, Select, UniqueConstraint, create_engine, event, func, or_, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, sessionmaker

engine = create_engine(
    os.getenv("DATABASE_PATH", "sqlite:///./app.db"),
    connect_args={"check_same_thread": False},
)


@event.listens_for(engine, "connect")
def enforce_foreign_keys(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA foreign_keys = ON")


SessionLocal = sessionmaker(bind=engine)

app = FastAPI(
    title="Parcel Lockers",
    version="1.0.0",
    description=(
        "Locker stations with compartments by size, parcels, pickup codes, time limits, returns to depot. A "
        "postage order has at most 10 postage lines. A compartment booking can be cancelled or moved until 6 "
        "hours before it begins. A recipient holds at most 5 compartment bookings that are still to come. A "
        "depot run has at most 30 parcels, and never more weight than its delivery van carries. A parcel is "
        "loaded before its depot run leaves, and delivered or failed once it has. A recipient has at most 4 "
        "service matters that are not settled. A service matter that was settled can be taken up again within "
        "14 days. A station file is due again 30 days after its last station check. Nothing is entered for a "
        "station file that is removed; entries are never changed, only corrected by another. A notice thread "
        "has at most 15 recipients, and none who is blocked. Nothing is sent in a notice thread that is "
        "archived."
    ),
)

CANCEL_HOURS = 6
BOOKING_MAX_OPEN = 5
REOPEN_DAYS = 14
TICKET_MAX_OPEN = 4
INTERVAL_DAYS = 30

UserRole = Literal["locker_agent", "depot_clerk", "courier", "service_engineer"]
ParcelServiceCompartment = Literal["S", "M", "L", "XL", "cool"]
RecipientAccountKind = Literal["guest", "registered", "business", "family"]
PostageOrderStatus = Literal["draft", "paid", "used", "cancelled", "refunded"]
CompartmentBookingStatus = Literal["reserved", "collected", "overdue", "released"]
ParcelStatus = Literal["announced", "loaded", "delivered", "undeliverable", "recalled"]
ServiceMatterTopic = Literal["code", "door", "loss", "time", "redirect"]
ServiceMatterPriority = Literal["low", "normal", "high", "urgent"]
ServiceMatterStatus = Literal["open", "in_check", "waiting", "solved", "closed"]
ServiceMatterResolution = Literal["opened remotely", "parcel found", "paid", "redirected", "engineer sent"]
StationFileStatus = Literal["in_service", "check_due", "removed"]
StationCheckKind = Literal["round", "repair", "cleaning", "count"]
NoticeThreadStatus = Literal["open", "archived"]


# Tables


class Base(DeclarativeBase):
    id: Mapped[int] = mapped_column(primary_key=True)


class LockerStation(Base):
    __tablename__ = "locker_stations"

    name: Mapped[str] = mapped_column(unique=True)
    address: Mapped[str]
    phone: Mapped[str]
    is_open: Mapped[bool] = mapped_column(default=True)


class User(Base):
    __tablename__ = "users"

    full_name: Mapped[str] = mapped_column(unique=True)
    email: Mapped[str] = mapped_column(unique=True)
    role: Mapped[str]
    locker_station_id: Mapped[int | None] = mapped_column(ForeignKey("locker_stations.id"))
    is_active: Mapped[bool] = mapped_column(default=True)

    locker_station: Mapped[Optional["LockerStation"]] = relationship()

    @property
    def locker_station_name(self) -> str | None:
        return self.locker_station.name if self.locker_station is not None else None


class ServiceClass(Base):
    __tablename__ = "service_classes"

    name: Mapped[str] = mapped_column(unique=True)
    position: Mapped[int]


class ParcelService(Base):
    __tablename__ = "parcel_services"

    name: Mapped[str] = mapped_column(unique=True)
    service_class_id: Mapped[int] = mapped_column(ForeignKey("service_classes.id"))
    compartment: Mapped[str]
    hold_hours: Mapped[int]
    max_weight_kg: Mapped[int]
    price_cents: Mapped[int]
    is_active: Mapped[bool] = mapped_column(default=True)
    created_at: Mapped[datetime]

    service_class: Mapped["ServiceClass"] = relationship()

    @property
    def service_class_name(self) -> str:
        return self.service_class.name


class Recipient(Base):
    __tablename__ = "recipients"

    full_name: Mapped[str] = mapped_column(unique=True)
    email: Mapped[str] = mapped_column(unique=True)
    phone: Mapped[str | None]
    account_kind: Mapped[str]
    town: Mapped[str | None]
    joined_on: Mapped[date]
    is_blocked: Mapped[bool] = mapped_column(default=False)


class PostageOrder(Base):
    __tablename__ = "postage_orders"

    reference: Mapped[str] = mapped_column(unique=True)
    recipient_id: Mapped[int] = mapped_column(ForeignKey("recipients.id"))
    locker_station_id: Mapped[int] = mapped_column(ForeignKey("locker_stations.id"))
    status: Mapped[str] = mapped_column(default="draft")
    goods_cents: Mapped[int] = mapped_column(default=0)
    total_cents: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime]
    placed_at: Mapped[datetime | None]
    closed_at: Mapped[datetime | None]

    recipient: Mapped["Recipient"] = relationship()
    locker_station: Mapped["LockerStation"] = relationship()

    @property
    def recipient_name(self) -> str:
        return self.recipient.full_name

    @property
    def locker_station_name(self) -> str:
        return self.locker_station.name


class PostageLine(Base):
    __tablename__ = "postage_lines"
    __table_args__ = (UniqueConstraint("postage_order_id", "parcel_service_id"),)

    postage_order_id: Mapped[int] = mapped_column(ForeignKey("postage_orders.id", ondelete="CASCADE"))
    parcel_service_id: Mapped[int] = mapped_column(ForeignKey("parcel_services.id"))
    quantity: Mapped[int]
    price_cents: Mapped[int]

    postage_order: Mapped["PostageOrder"] = relationship()
    parcel_service: Mapped["ParcelService"] = relationship()

    @property
    def postage_order_reference(self) -> str:
        return self.postage_order.reference

    @property
    def parcel_service_name(self) -> str:
        return self.parcel_service.name


class CompartmentBank(Base):
    __tablename__ = "compartment_banks"

    name: Mapped[str] = mapped_column(unique=True)
    locker_station_id: Mapped[int] = mapped_column(ForeignKey("locker_stations.id"))
    capacity: Mapped[int]
    fee_cents: Mapped[int]
    is_active: Mapped[bool] = mapped_column(default=True)

    locker_station: Mapped["LockerStation"] = relationship()

    @property
    def locker_station_name(self) -> str:
        return self.locker_station.name


class StorageSlot(Base):
    __tablename__ = "storage_slots"
    __table_args__ = (UniqueConstraint("compartment_bank_id", "starts_at"),)

    compartment_bank_id: Mapped[int] = mapped_column(ForeignKey("compartment_banks.id"))
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime]
    capacity: Mapped[int]
    is_open: Mapped[bool] = mapped_column(default=True)

    compartment_bank: Mapped["CompartmentBank"] = relationship()

    @property
    def compartment_bank_name(self) -> str:
        return self.compartment_bank.name


class CompartmentBooking(Base):
    __tablename__ = "compartment_bookings"

    reference: Mapped[str] = mapped_column(unique=True)
    recipient_id: Mapped[int] = mapped_column(ForeignKey("recipients.id"))
    storage_slot_id: Mapped[int] = mapped_column(ForeignKey("storage_slots.id"))
    status: Mapped[str] = mapped_column(default="reserved")
    fee_cents: Mapped[int]
    booked_at: Mapped[datetime]
    cancelled_at: Mapped[datetime | None]

    recipient: Mapped["Recipient"] = relationship()
    storage_slot: Mapped["StorageSlot"] = relationship()

    @property
    def recipient_name(self) -> str:
        return self.recipient.full_name

    @property
    def compartment_bank_name(self) -> str:
        return self.storage_slot.compartment_bank.name

    @property
    def starts_at(self) -> datetime:
        return self.storage_slot.starts_at


class DeliveryVan(Base):
    __tablename__ = "delivery_vans"

    name: Mapped[str] = mapped_column(unique=True)
    locker_station_id: Mapped[int] = mapped_column(ForeignKey("locker_stations.id"))
    capacity_kg: Mapped[int]
    is_in_service: Mapped[bool] = mapped_column(default=True)

    locker_station: Mapped["LockerStation"] = relationship()

    @property
    def locker_station_name(self) -> str:
        return self.locker_station.name


class DepotRun(Base):
    __tablename__ = "depot_runs"
    __table_args__ = (UniqueConstraint("delivery_van_id", "runs_on"),)

    reference: Mapped[str] = mapped_column(unique=True)
    delivery_van_id: Mapped[int] = mapped_column(ForeignKey("delivery_vans.id"))
    runs_on: Mapped[date]
    left_at: Mapped[datetime | None]

    delivery_van: Mapped["DeliveryVan"] = relationship()

    @property
    def delivery_van_name(self) -> str:
        return self.delivery_van.name


class Parcel(Base):
    __tablename__ = "parcels"

    reference: Mapped[str] = mapped_column(unique=True)
    recipient_id: Mapped[int] = mapped_column(ForeignKey("recipients.id"))
    town: Mapped[str]
    weight_kg: Mapped[int]
    depot_run_id: Mapped[int | None] = mapped_column(ForeignKey("depot_runs.id"))
    status: Mapped[str] = mapped_column(default="announced")
    created_at: Mapped[datetime]
    delivered_at: Mapped[datetime | None]

    recipient: Mapped["Recipient"] = relationship()
    depot_run: Mapped[Optional["DepotRun"]] = relationship()

    @property
    def recipient_name(self) -> str:
        return self.recipient.full_name

    @property
    def depot_run_reference(self) -> str | None:
        return self.depot_run.reference if self.depot_run_id is not None else None


class ServiceMatter(Base):
    __tablename__ = "service_matters"

    reference: Mapped[str] = mapped_column(unique=True)
    subject: Mapped[str]
    recipient_id: Mapped[int] = mapped_column(ForeignKey("recipients.id"))
    topic: Mapped[str]
    priority: Mapped[str] = mapped_column(default="normal")
    status: Mapped[str] = mapped_column(default="open")
    assignee_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    resolution: Mapped[str | None]
    opened_at: Mapped[datetime]
    resolved_at: Mapped[datetime | None]

    recipient: Mapped["Recipient"] = relationship()
    assignee: Mapped[Optional["User"]] = relationship()

    @property
    def recipient_name(self) -> str:
        return self.recipient.full_name

    @property
    def assignee_name(self) -> str | None:
        return self.assignee.full_name if self.assignee is not None else None


class StationFile(Base):
    __tablename__ = "station_files"

    name: Mapped[str]
    number: Mapped[str] = mapped_column(unique=True)
    recipient_id: Mapped[int] = mapped_column(ForeignKey("recipients.id"))
    locker_station_id: Mapped[int] = mapped_column(ForeignKey("locker_stations.id"))
    status: Mapped[str] = mapped_column(default="in_service")
    reading: Mapped[int]
    due_on: Mapped[date]
    registered_at: Mapped[datetime]

    recipient: Mapped["Recipient"] = relationship()
    locker_station: Mapped["LockerStation"] = relationship()
    station_checks: Mapped[list["StationCheck"]] = relationship(
        order_by="StationCheck.id", back_populates="station_file", passive_deletes=True
    )

    @property
    def recipient_name(self) -> str:
        return self.recipient.full_name

    @property
    def locker_station_name(self) -> str:
        return self.locker_station.name


class StationCheck(Base):
    __tablename__ = "station_checks"

    station_file_id: Mapped[int] = mapped_column(ForeignKey("station_files.id", ondelete="CASCADE"))
    kind: Mapped[str]
    done_on: Mapped[date]
    reading: Mapped[int]
    finding: Mapped[str]
    entered_at: Mapped[datetime]

    station_file: Mapped["StationFile"] = relationship(back_populates="station_checks")

    @property
    def station_file_number(self) -> str:
        return self.station_file.number


class NoticeThread(Base):
    __tablename__ = "notice_threads"

    subject: Mapped[str] = mapped_column(unique=True)
    status: Mapped[str] = mapped_column(default="open")
    created_at: Mapped[datetime]
    last_sent_at: Mapped[datetime | None]

    notice_thread_recipients: Mapped[list["NoticeThreadRecipient"]] = relationship(
        order_by="NoticeThreadRecipient.id", back_populates="notice_thread", passive_deletes=True
    )
    notices: Mapped[list["Notice"]] = relationship(
        order_by="Notice.id", back_populates="notice_thread", passive_deletes=True
    )


class NoticeThreadRecipient(Base):
    __tablename__ = "notice_thread_recipients"
    __table_args__ = (UniqueConstraint("notice_thread_id", "recipient_id"),)

    notice_thread_id: Mapped[int] = mapped_column(ForeignKey("notice_threads.id", ondelete="CASCADE"))
    recipient_id: Mapped[int] = mapped_column(ForeignKey("recipients.id"))
    added_at: Mapped[datetime]

    notice_thread: Mapped["NoticeThread"] = relationship(back_populates="notice_thread_recipients")
    recipient: Mapped["Recipient"] = relationship()

    @property
    def notice_thread_subject(self) -> str:
        return self.notice_thread.subject

    @property
    def recipient_name(self) -> str:
        return self.recipient.full_name


class Notice(Base):
    __tablename__ = "notices"

    notice_thread_id: Mapped[int] = mapped_column(ForeignKey("notice_threads.id", ondelete="CASCADE"))
    sender_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    body: Mapped[str]
    sent_at: Mapped[datetime]

    notice_thread: Mapped["NoticeThread"] = relationship(back_populates="notices")
    sender: Mapped["User"] = relationship()

    @property
    def notice_thread_subject(self) -> str:
        return self.notice_thread.subject

    @property
    def sender_name(self) -> str:
        return self.sender.full_name


# Shared by all endpoints


async def get_session() -> AsyncIterator[Session]:
    with SessionLocal() as session:
        yield session


Db = Annotated[Session, Depends(get_session)]


Row = TypeVar("Row", bound=Base)
Item = TypeVar("Item")


def now() -> datetime:
    return datetime.now(timezone.utc).replace(tzinfo=None, microsecond=0)


def today() -> date:
    return now().date()


def start_of(day: date) -> datetime:
    return datetime.combine(day, time.min)


def end_of(day: date) -> datetime:
    return datetime.combine(day, time.max)


def find(db: Session, model: type[Row], row_id: int, noun: str) -> Row:
    row = db.get(model, row_id)
    if row is None:
        raise HTTPException(404, f"There is no {noun} with id {row_id}.")
    return row


def count(db: Session, model: type[Base], *conditions: ColumnElement[bool]) -> int:
    return db.scalar(select(func.count()).select_from(model).where(*conditions)) or 0


def exists(db: Session, model: type[Base], *conditions: ColumnElement[bool]) -> bool:
    return db.scalar(select(model.id).where(*conditions).limit(1)) is not None


def next_reference(db: Session, model: type[Base], prefix: str) -> str:
    """References count on from 1001, in the order of the ids."""
    return f"{prefix}-{1001 + (db.scalar(select(func.max(model.id))) or 0)}"


def page_of(db: Session, statement: Select[Any], limit: int, offset: int) -> dict[str, Any]:
    found = db.scalar(select(func.count()).select_from(statement.order_by(None).subquery())) or 0
    rows = db.scalars(statement.limit(limit).offset(offset)).all()
    return {"items": rows, "total": found, "limit": limit, "offset": offset}


def sorted_by(statement: Select[Any], model: type[Base], sort: str) -> Select[Any]:
    column = getattr(model, sort.removeprefix("-"))
    return statement.order_by(column.desc() if sort.startswith("-") else column, model.id)


Id = Annotated[int, Field(ge=1, le=2**31 - 1)]
Day = Annotated[date, Field(ge=date(2000, 1, 1), le=date(2100, 12, 31))]
Limit = Annotated[int, Query(ge=1, le=100, description="Rows of a page")]
Offset = Annotated[int, Query(ge=0, le=1_000_000, description="Rows to leave out before the first")]


class Answer(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class Page(Answer, Generic[Item]):
    items: list[Item] = Field(description="The rows of this page")
    total: int = Field(description="Rows on all pages together")
    limit: int = Field(description="Rows of a page")
    offset: int = Field(description="Rows left out before the first")


# Locker stations


class LockerStationOut(Answer):
    id: int = Field(description="Id of the locker station")
    name: str = Field(description="Name")
    address: str = Field(description="Address")
    phone: str = Field(description="Telephone number")
    is_open: bool = Field(description="Whether it is in use")


@app.get(
    "/locker-stations",
    operation_id="list_locker_stations",
    summary="List locker stations",
    description="Answers a page of locker stations that fit the filters given; an empty one where none do.",
    tags=["locker stations"],
    response_model=Page[LockerStationOut],
)
async def list_locker_stations(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the name or address")] = None,
    is_open: Annotated[bool | None, Query(description="Only those that are, or are not, open")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(LockerStation)
    if q is not None:
        statement = statement.where(
            or_(LockerStation.name.icontains(q, autoescape=True), LockerStation.address.icontains(q, autoescape=True))
        )
    if is_open is not None:
        statement = statement.where(LockerStation.is_open == is_open)
    return page_of(db, statement.order_by(LockerStation.name, LockerStation.id), limit, offset)


# Users


class UserOut(Answer):
    id: int = Field(description="Id of the user")
    full_name: str = Field(description="Full name")
    email: str = Field(description="E-mail address")
    role: UserRole = Field(description="Role")
    locker_station_id: int | None = Field(None, description="Locker station where they work")
    is_active: bool = Field(description="Whether they work here at present")
    locker_station_name: str | None = Field(None, description="Name of the locker station")


@app.get(
    "/users",
    operation_id="list_locker_agents",
    summary="List locker agents",
    description="Answers a page of users that fit the filters given; an empty one where none do.",
    tags=["users"],
    response_model=Page[UserOut],
)
async def list_locker_agents(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the full name or email")] = None,
    role: Annotated[UserRole | None, Query(description="Only those with this role")] = None,
    locker_station_id: Annotated[Id | None, Query(description="Only those of this locker station")] = None,
    is_active: Annotated[bool | None, Query(description="Only those that are, or are not, active")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(User)
    if q is not None:
        statement = statement.where(
            or_(User.full_name.icontains(q, autoescape=True), User.email.icontains(q, autoescape=True))
        )
    if role is not None:
        statement = statement.where(User.role == role)
    if locker_station_id is not None:
        statement = statement.where(User.locker_station_id == locker_station_id)
    if is_active is not None:
        statement = statement.where(User.is_active == is_active)
    return page_of(db, statement.order_by(User.full_name, User.id), limit, offset)


# Service classes


class ServiceClassOut(Answer):
    id: int = Field(description="Id of the service class")
    name: str = Field(description="Name")
    position: int = Field(description="Place in lists")


@app.get(
    "/service-classes",
    operation_id="list_service_classes",
    summary="List service classes",
    description="Answers a page of service classes that fit the filters given; an empty one where none do.",
    tags=["service classes"],
    response_model=Page[ServiceClassOut],
)
async def list_service_classes(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the name")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(ServiceClass)
    if q is not None:
        statement = statement.where(ServiceClass.name.icontains(q, autoescape=True))
    return page_of(db, statement.order_by(ServiceClass.position, ServiceClass.id), limit, offset)


# Parcel services


class ParcelServiceOut(Answer):
    id: int = Field(description="Id of the parcel service")
    name: str = Field(description="Name")
    service_class_id: int = Field(description="Id of the service class")
    compartment: ParcelServiceCompartment = Field(description="Compartment")
    hold_hours: int = Field(description="Hold hours")
    max_weight_kg: int = Field(description="Max weight kg")
    price_cents: int = Field(description="Price of one parcel, in cents")
    is_active: bool = Field(description="Whether it is offered at present")
    created_at: datetime = Field(description="When it was entered")
    service_class_name: str = Field(description="Name of the service class")


@app.get(
    "/parcel-services",
    operation_id="list_parcel_services",
    summary="List parcel services",
    description="Answers a page of parcel services that fit the filters given; an empty one where none do.",
    tags=["parcel services"],
    response_model=Page[ParcelServiceOut],
)
async def list_parcel_services(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the name")] = None,
    service_class_id: Annotated[Id | None, Query(description="Only those of this service class")] = None,
    compartment: Annotated[
        ParcelServiceCompartment | None, Query(description="Only those with this compartment")
    ] = None,
    min_hold_hours: Annotated[int | None, Query(ge=0, le=1_000_000, description="Least number of hold hours")] = None,
    max_hold_hours: Annotated[int | None, Query(ge=0, le=1_000_000, description="Highest number of hold hours")] = None,
    min_max_weight_kg: Annotated[int | None, Query(ge=0, le=1_000_000, description="Least max weight in kg")] = None,
    max_max_weight_kg: Annotated[int | None, Query(ge=0, le=1_000_000, description="Highest max weight in kg")] = None,
    min_price_cents: Annotated[int | None, Query(ge=0, le=100_000_000, description="Least price in cents")] = None,
    max_price_cents: Annotated[int | None, Query(ge=0, le=100_000_000, description="Highest price in cents")] = None,
    is_active: Annotated[bool | None, Query(description="Only those that are, or are not, active")] = None,
    sort: Annotated[
        Literal["name", "-name", "price_cents", "-price_cents"] | None,
        Query(description="Order of the rows, descending with -"),
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(ParcelService)
    if q is not None:
        statement = statement.where(ParcelService.name.icontains(q, autoescape=True))
    if service_class_id is not None:
        statement = statement.where(ParcelService.service_class_id == service_class_id)
    if compartment is not None:
        statement = statement.where(ParcelService.compartment == compartment)
    if min_hold_hours is not None:
        statement = statement.where(ParcelService.hold_hours >= min_hold_hours)
    if max_hold_hours is not None:
        statement = statement.where(ParcelService.hold_hours <= max_hold_hours)
    if min_max_weight_kg is not None:
        statement = statement.where(ParcelService.max_weight_kg >= min_max_weight_kg)
    if max_max_weight_kg is not None:
        statement = statement.where(ParcelService.max_weight_kg <= max_max_weight_kg)
    if min_price_cents is not None:
        statement = statement.where(ParcelService.price_cents >= min_price_cents)
    if max_price_cents is not None:
        statement = statement.where(ParcelService.price_cents <= max_price_cents)
    if is_active is not None:
        statement = statement.where(ParcelService.is_active == is_active)
    return page_of(db, sorted_by(statement, ParcelService, sort or "name"), limit, offset)


# Recipients


class RecipientOut(Answer):
    id: int = Field(description="Id of the recipient")
    full_name: str = Field(description="Full name")
    email: str = Field(description="E-mail address")
    phone: str | None = Field(None, description="Telephone number")
    account_kind: RecipientAccountKind = Field(description="Account kind")
    town: str | None = Field(None, description="Town")
    joined_on: date = Field(description="Since when they are known here")
    is_blocked: bool = Field(description="Whether nothing new may be entered for them")


class UpdateRecipientIn(BaseModel):
    full_name: str | None = Field(None, min_length=1, max_length=200, description="Full name")
    email: str | None = Field(None, min_length=1, max_length=200, description="E-mail address")
    phone: str | None = Field(None, min_length=1, max_length=200, description="Telephone number")
    account_kind: RecipientAccountKind | None = Field(None, description="Account kind")
    town: str | None = Field(None, min_length=1, max_length=200, description="Town")
    is_blocked: bool | None = Field(None, description="Whether nothing new may be entered for them")


@app.get(
    "/recipients",
    operation_id="list_recipients",
    summary="List recipients",
    description="Answers a page of recipients that fit the filters given; an empty one where none do.",
    tags=["recipients"],
    response_model=Page[RecipientOut],
)
async def list_recipients(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the full name or email")] = None,
    account_kind: Annotated[RecipientAccountKind | None, Query(description="Only those with this account kind")] = None,
    town: Annotated[str | None, Query(description="Only those with this town")] = None,
    is_blocked: Annotated[bool | None, Query(description="Only those that are, or are not, blocked")] = None,
    joined_from: Annotated[Day | None, Query(description="First day (joined on)")] = None,
    joined_to: Annotated[Day | None, Query(description="Last day (joined on)")] = None,
    sort: Annotated[
        Literal["full_name", "-full_name", "joined_on", "-joined_on"] | None,
        Query(description="Order of the rows, descending with -"),
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(Recipient)
    if q is not None:
        statement = statement.where(
            or_(Recipient.full_name.icontains(q, autoescape=True), Recipient.email.icontains(q, autoescape=True))
        )
    if account_kind is not None:
        statement = statement.where(Recipient.account_kind == account_kind)
    if town is not None:
        statement = statement.where(Recipient.town == town)
    if is_blocked is not None:
        statement = statement.where(Recipient.is_blocked == is_blocked)
    if joined_from is not None:
        statement = statement.where(Recipient.joined_on >= joined_from)
    if joined_to is not None:
        statement = statement.where(Recipient.joined_on <= joined_to)
    return page_of(db, sorted_by(statement, Recipient, sort or "full_name"), limit, offset)


@app.patch(
    "/recipients/{recipient_id}",
    operation_id="update_recipient",
    summary="Change full name, email, phone, account kind, town or is blocked of a recipient",
    description="What is left out stays as it is. Answers the recipient.",
    tags=["recipients"],
    response_model=RecipientOut,
)
async def update_recipient(
    db: Db,
    recipient_id: Annotated[Id, Path(description="Id of the recipient")],
    body: UpdateRecipientIn,
) -> Recipient:
    recipient = find(db, Recipient, recipient_id, "recipient")
    if (
        body.full_name is not None
        and exists(db, Recipient, Recipient.full_name == body.full_name, Recipient.id != recipient.id)
    ):
        raise HTTPException(409, f"There is a recipient with the full name {body.full_name} already; choose another.")
    if body.email is not None and exists(db, Recipient, Recipient.email == body.email, Recipient.id != recipient.id):
        raise HTTPException(409, f"There is a recipient with the email {body.email} already; choose another.")
    given = body.model_dump(exclude_none=True)
    changes = {name: value for name, value in given.items() if getattr(recipient, name) != value}
    if not changes:
        raise HTTPException(409, "Nothing would change: no value given differs from what is stored.")
    for name, value in changes.items():
        setattr(recipient, name, value)
    db.commit()
    return recipient


# Postage orders


class PostageOrderOut(Answer):
    id: int = Field(description="Id of the postage order")
    reference: str = Field(description="Reference")
    recipient_id: int = Field(description="Id of the recipient")
    locker_station_id: int = Field(description="Locker station that serves it")
    status: PostageOrderStatus = Field(description="State")
    goods_cents: int = Field(description="Value of the postage lines, in cents")
    total_cents: int = Field(description="What is to be paid, in cents")
    created_at: datetime = Field(description="When it was entered")
    placed_at: datetime | None = Field(None, description="When it was placed")
    closed_at: datetime | None = Field(None, description="When it was fulfilled, cancelled or returned")
    recipient_name: str = Field(description="Full name of the recipient")
    locker_station_name: str = Field(description="Name of the locker station")


class StartPostageOrderIn(BaseModel):
    recipient_id: Id = Field(description="Id of the recipient")
    locker_station_id: Id = Field(description="Locker station that serves it")


@app.get(
    "/postage-orders",
    operation_id="list_postage_orders",
    summary="List postage orders",
    description="Answers a page of postage orders that fit the filters given; an empty one where none do.",
    tags=["postage orders"],
    response_model=Page[PostageOrderOut],
)
async def list_postage_orders(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the reference")] = None,
    recipient_id: Annotated[Id | None, Query(description="Only those of this recipient")] = None,
    locker_station_id: Annotated[Id | None, Query(description="Only those of this locker station")] = None,
    status: Annotated[PostageOrderStatus | None, Query(description="Only those with this status")] = None,
    created_from: Annotated[Day | None, Query(description="First day (created at)")] = None,
    created_to: Annotated[Day | None, Query(description="Last day (created at)")] = None,
    min_total_cents: Annotated[int | None, Query(ge=0, le=100_000_000, description="Least total in cents")] = None,
    max_total_cents: Annotated[int | None, Query(ge=0, le=100_000_000, description="Highest total in cents")] = None,
    sort: Annotated[
        Literal["created_at", "-created_at", "total_cents", "-total_cents"] | None,
        Query(description="Order of the rows, descending with -"),
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(PostageOrder)
    if q is not None:
        statement = statement.where(PostageOrder.reference.icontains(q, autoescape=True))
    if recipient_id is not None:
        statement = statement.where(PostageOrder.recipient_id == recipient_id)
    if locker_station_id is not None:
        statement = statement.where(PostageOrder.locker_station_id == locker_station_id)
    if status is not None:
        statement = statement.where(PostageOrder.status == status)
    if created_from is not None:
        statement = statement.where(PostageOrder.created_at >= start_of(created_from))
    if created_to is not None:
        statement = statement.where(PostageOrder.created_at <= end_of(created_to))
    if min_total_cents is not None:
        statement = statement.where(PostageOrder.total_cents >= min_total_cents)
    if max_total_cents is not None:
        statement = statement.where(PostageOrder.total_cents <= max_total_cents)
    return page_of(db, sorted_by(statement, PostageOrder, sort or "-id"), limit, offset)


@app.post(
    "/postage-orders",
    operation_id="start_postage_order",
    summary="Start a postage order for a recipient",
    description="It is empty and draft; add postage lines, then place it.",
    tags=["postage orders"],
    response_model=PostageOrderOut,
    status_code=201,
)
async def start_postage_order(db: Db, body: StartPostageOrderIn) -> PostageOrder:
    recipient = find(db, Recipient, body.recipient_id, "recipient")
    locker_station = find(db, LockerStation, body.locker_station_id, "locker station")
    if recipient.is_blocked:
        raise HTTPException(409, f"{recipient.full_name} is blocked; nothing new may be entered.")
    if not locker_station.is_open:
        raise HTTPException(409, f"{locker_station.name} is not in use.")
    postage_order = PostageOrder(
        recipient_id=recipient.id,
        locker_station_id=locker_station.id,
        reference=next_reference(db, PostageOrder, "O"),
        created_at=now(),
    )
    db.add(postage_order)
    db.commit()
    return postage_order


@app.post(
    "/postage-orders/{postage_order_id}/place",
    operation_id="place_postage_order",
    summary="Place a postage order that is draft",
    description="Settles what is to be paid. Refused while it has no postage lines.",
    tags=["postage orders"],
    response_model=PostageOrderOut,
)
async def place_postage_order(
    db: Db,
    postage_order_id: Annotated[Id, Path(description="Id of the postage order")],
) -> PostageOrder:
    postage_order = find(db, PostageOrder, postage_order_id, "postage order")
    if postage_order.status != "draft":
        raise HTTPException(409, f"Postage order {postage_order.reference} is {postage_order.status}.")
    if not exists(db, PostageLine, PostageLine.postage_order_id == postage_order.id):
        raise HTTPException(409, f"Postage order {postage_order.reference} has no postage lines; add some first.")
    goods = postage_order.goods_cents
    postage_order.status = "paid"
    postage_order.placed_at = now()
    postage_order.total_cents = goods
    db.commit()
    return postage_order


@app.post(
    "/postage-orders/{postage_order_id}/fulfil",
    operation_id="fulfil_postage_order",
    summary="Note that a postage order was handed over",
    description="For postage orders that are paid.",
    tags=["postage orders"],
    response_model=PostageOrderOut,
)
async def fulfil_postage_order(
    db: Db,
    postage_order_id: Annotated[Id, Path(description="Id of the postage order")],
) -> PostageOrder:
    postage_order = find(db, PostageOrder, postage_order_id, "postage order")
    if postage_order.status != "paid":
        raise HTTPException(409, f"Postage order {postage_order.reference} is {postage_order.status}.")
    postage_order.status = "used"
    postage_order.closed_at = now()
    db.commit()
    return postage_order


@app.post(
    "/postage-orders/{postage_order_id}/cancel",
    operation_id="cancel_postage_order",
    summary="Cancel a postage order",
    description="Possible until it is used.",
    tags=["postage orders"],
    response_model=PostageOrderOut,
)
async def cancel_postage_order(
    db: Db,
    postage_order_id: Annotated[Id, Path(description="Id of the postage order")],
) -> PostageOrder:
    postage_order = find(db, PostageOrder, postage_order_id, "postage order")
    if postage_order.status not in ("draft", "paid"):
        raise HTTPException(
            409, f"Postage order {postage_order.reference} is {postage_order.status} and can't be cancelled any more."
        )
    postage_order.status = "cancelled"
    postage_order.closed_at = now()
    db.commit()
    return postage_order


# Postage lines


class PostageLineOut(Answer):
    id: int = Field(description="Id of the postage line")
    postage_order_id: int = Field(description="Id of the postage order")
    parcel_service_id: int = Field(description="Id of the parcel service")
    quantity: int = Field(description="How many")
    price_cents: int = Field(description="Price of one at that time, in cents")
    postage_order_reference: str = Field(description="Reference of the postage order")
    parcel_service_name: str = Field(description="Name of the parcel service")


@app.get(
    "/postage-lines",
    operation_id="list_postage_lines",
    summary="List postage lines",
    description="Answers a page of postage lines that fit the filters given; an empty one where none do.",
    tags=["postage lines"],
    response_model=Page[PostageLineOut],
)
async def list_postage_lines(
    db: Db,
    postage_order_id: Annotated[Id | None, Query(description="Only those of this postage order")] = None,
    parcel_service_id: Annotated[Id | None, Query(description="Only those of this parcel service")] = None,
    min_quantity: Annotated[int | None, Query(ge=0, le=1_000_000, description="Least quantity")] = None,
    max_quantity: Annotated[int | None, Query(ge=0, le=1_000_000, description="Highest quantity")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(PostageLine)
    if postage_order_id is not None:
        statement = statement.where(PostageLine.postage_order_id == postage_order_id)
    if parcel_service_id is not None:
        statement = statement.where(PostageLine.parcel_service_id == parcel_service_id)
    if min_quantity is not None:
        statement = statement.where(PostageLine.quantity >= min_quantity)
    if max_quantity is not None:
        statement = statement.where(PostageLine.quantity <= max_quantity)
    return page_of(db, statement.order_by(PostageLine.id), limit, offset)


# Compartment banks


class CompartmentBankOut(Answer):
    id: int = Field(description="Id of the compartment bank")
    name: str = Field(description="Name")
    locker_station_id: int = Field(description="Locker station where it is")
    capacity: int = Field(description="How many it has room for")
    fee_cents: int = Field(description="What a compartment booking costs, in cents")
    is_active: bool = Field(description="Whether it can be booked at present")
    locker_station_name: str = Field(description="Name of the locker station")


@app.get(
    "/compartment-banks",
    operation_id="list_compartment_banks",
    summary="List compartment banks",
    description="Answers a page of compartment banks that fit the filters given; an empty one where none do.",
    tags=["compartment banks"],
    response_model=Page[CompartmentBankOut],
)
async def list_compartment_banks(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the name")] = None,
    locker_station_id: Annotated[Id | None, Query(description="Only those of this locker station")] = None,
    min_capacity: Annotated[int | None, Query(ge=0, le=1_000_000, description="Least capacity")] = None,
    max_capacity: Annotated[int | None, Query(ge=0, le=1_000_000, description="Highest capacity")] = None,
    is_active: Annotated[bool | None, Query(description="Only those that are, or are not, active")] = None,
    sort: Annotated[
        Literal["name", "-name", "capacity", "-capacity", "fee_cents", "-fee_cents"] | None,
        Query(description="Order of the rows, descending with -"),
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(CompartmentBank)
    if q is not None:
        statement = statement.where(CompartmentBank.name.icontains(q, autoescape=True))
    if locker_station_id is not None:
        statement = statement.where(CompartmentBank.locker_station_id == locker_station_id)
    if min_capacity is not None:
        statement = statement.where(CompartmentBank.capacity >= min_capacity)
    if max_capacity is not None:
        statement = statement.where(CompartmentBank.capacity <= max_capacity)
    if is_active is not None:
        statement = statement.where(CompartmentBank.is_active == is_active)
    return page_of(db, sorted_by(statement, CompartmentBank, sort or "name"), limit, offset)


# Storage slots


class StorageSlotOut(Answer):
    id: int = Field(description="Id of the storage slot")
    compartment_bank_id: int = Field(description="Id of the compartment bank")
    starts_at: datetime = Field(description="Beginning, UTC")
    ends_at: datetime = Field(description="End, UTC")
    capacity: int = Field(description="How many there is room for")
    is_open: bool = Field(description="Whether it takes compartment bookings")
    compartment_bank_name: str = Field(description="Name of the compartment bank")


@app.get(
    "/storage-slots",
    operation_id="list_storage_slots",
    summary="List storage slots",
    description="Answers a page of storage slots that fit the filters given; an empty one where none do.",
    tags=["storage slots"],
    response_model=Page[StorageSlotOut],
)
async def list_storage_slots(
    db: Db,
    compartment_bank_id: Annotated[Id | None, Query(description="Only those of this compartment bank")] = None,
    starts_from: Annotated[Day | None, Query(description="First day (starts at)")] = None,
    starts_to: Annotated[Day | None, Query(description="Last day (starts at)")] = None,
    is_open: Annotated[bool | None, Query(description="Only those that are, or are not, open")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(StorageSlot)
    if compartment_bank_id is not None:
        statement = statement.where(StorageSlot.compartment_bank_id == compartment_bank_id)
    if starts_from is not None:
        statement = statement.where(StorageSlot.starts_at >= start_of(starts_from))
    if starts_to is not None:
        statement = statement.where(StorageSlot.starts_at <= end_of(starts_to))
    if is_open is not None:
        statement = statement.where(StorageSlot.is_open == is_open)
    return page_of(db, statement.order_by(StorageSlot.starts_at, StorageSlot.id), limit, offset)


# Compartment bookings


class CompartmentBookingOut(Answer):
    id: int = Field(description="Id of the compartment booking")
    reference: str = Field(description="Reference")
    recipient_id: int = Field(description="Id of the recipient")
    storage_slot_id: int = Field(description="Id of the storage slot")
    status: CompartmentBookingStatus = Field(description="State")
    fee_cents: int = Field(description="What it costs, in cents")
    booked_at: datetime = Field(description="When it was made")
    cancelled_at: datetime | None = Field(None, description="When it was cancelled")
    recipient_name: str = Field(description="Full name of the recipient")
    compartment_bank_name: str = Field(description="Name of the compartment bank")
    starts_at: datetime = Field(description="When it begins, UTC")


class CreateCompartmentBookingIn(BaseModel):
    recipient_id: Id = Field(description="Id of the recipient")
    storage_slot_id: Id = Field(description="Id of the storage slot")


@app.get(
    "/compartment-bookings",
    operation_id="list_compartment_bookings",
    summary="List compartment bookings",
    description="Answers a page of compartment bookings that fit the filters given; an empty one where none do.",
    tags=["compartment bookings"],
    response_model=Page[CompartmentBookingOut],
)
async def list_compartment_bookings(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the reference")] = None,
    recipient_id: Annotated[Id | None, Query(description="Only those of this recipient")] = None,
    storage_slot_id: Annotated[Id | None, Query(description="Only those of this storage slot")] = None,
    status: Annotated[CompartmentBookingStatus | None, Query(description="Only those with this status")] = None,
    booked_from: Annotated[Day | None, Query(description="First day (booked at)")] = None,
    booked_to: Annotated[Day | None, Query(description="Last day (booked at)")] = None,
    sort: Annotated[
        Literal["booked_at", "-booked_at", "fee_cents", "-fee_cents"] | None,
        Query(description="Order of the rows, descending with -"),
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(CompartmentBooking)
    if q is not None:
        statement = statement.where(CompartmentBooking.reference.icontains(q, autoescape=True))
    if recipient_id is not None:
        statement = statement.where(CompartmentBooking.recipient_id == recipient_id)
    if storage_slot_id is not None:
        statement = statement.where(CompartmentBooking.storage_slot_id == storage_slot_id)
    if status is not None:
        statement = statement.where(CompartmentBooking.status == status)
    if booked_from is not None:
        statement = statement.where(CompartmentBooking.booked_at >= start_of(booked_from))
    if booked_to is not None:
        statement = statement.where(CompartmentBooking.booked_at <= end_of(booked_to))
    return page_of(db, sorted_by(statement, CompartmentBooking, sort or "-id"), limit, offset)


@app.post(
    "/compartment-bookings",
    operation_id="create_compartment_booking",
    summary="Create a new compartment booking",
    description="Refused where the storage slot is full, closed or over, and past 5 compartment bookings to come.",
    tags=["compartment bookings"],
    response_model=CompartmentBookingOut,
    status_code=201,
)
async def create_compartment_booking(db: Db, body: CreateCompartmentBookingIn) -> CompartmentBooking:
    recipient = find(db, Recipient, body.recipient_id, "recipient")
    storage_slot = find(db, StorageSlot, body.storage_slot_id, "storage slot")
    if recipient.is_blocked:
        raise HTTPException(409, f"{recipient.full_name} is blocked; nothing new may be entered.")
    if not storage_slot.is_open or storage_slot.starts_at <= now():
        raise HTTPException(409, f"The storage slot at {storage_slot.starts_at} takes no compartment bookings.")
    if (
        count(
            db,
            CompartmentBooking,
            CompartmentBooking.storage_slot_id == storage_slot.id,
            CompartmentBooking.status == "reserved",
        ) + 1
        > storage_slot.capacity
    ):
        raise HTTPException(
            409,
            f"The storage slot at {storage_slot.starts_at} has room for {storage_slot.capacity}, of which "
            f"{count(db, CompartmentBooking, CompartmentBooking.storage_slot_id == storage_slot.id, CompartmentBooking.status == 'reserved')} "
            "are taken.",
        )
    if exists(
        db,
        CompartmentBooking,
        CompartmentBooking.recipient_id == recipient.id,
        CompartmentBooking.storage_slot_id == storage_slot.id,
        CompartmentBooking.status == "reserved",
    ):
        raise HTTPException(409, f"{recipient.full_name} has a compartment booking of this storage slot already.")
    if (
        count(
            db,
            CompartmentBooking,
            CompartmentBooking.recipient_id == recipient.id,
            CompartmentBooking.status == "reserved",
            CompartmentBooking.storage_slot.has(StorageSlot.starts_at > now()),
        )
        >= BOOKING_MAX_OPEN
    ):
        raise HTTPException(
            409, f"{recipient.full_name} has {BOOKING_MAX_OPEN} compartment bookings to come, which is the most."
        )
    compartment_booking = CompartmentBooking(
        recipient_id=recipient.id,
        storage_slot_id=storage_slot.id,
        reference=next_reference(db, CompartmentBooking, "B"),
        fee_cents=storage_slot.compartment_bank.fee_cents,
        booked_at=now(),
    )
    db.add(compartment_booking)
    db.commit()
    return compartment_booking


@app.post(
    "/compartment-bookings/{compartment_booking_id}/cancel",
    operation_id="cancel_compartment_booking",
    summary="Cancel a compartment booking",
    description="Possible until 6 hours before it begins. The fee is dropped.",
    tags=["compartment bookings"],
    response_model=CompartmentBookingOut,
)
async def cancel_compartment_booking(
    db: Db,
    compartment_booking_id: Annotated[Id, Path(description="Id of the compartment booking")],
) -> CompartmentBooking:
    compartment_booking = find(db, CompartmentBooking, compartment_booking_id, "compartment booking")
    if compartment_booking.status != "reserved":
        raise HTTPException(
            409, f"Compartment booking {compartment_booking.reference} is {compartment_booking.status}."
        )
    if compartment_booking.storage_slot.starts_at < now() + timedelta(hours=CANCEL_HOURS):
        raise HTTPException(
            409,
            f"Compartment booking {compartment_booking.reference} begins at "
            f"{compartment_booking.storage_slot.starts_at} and could be cancelled until {CANCEL_HOURS} hours "
            "before.",
        )
    compartment_booking.status = "released"
    compartment_booking.cancelled_at = now()
    compartment_booking.fee_cents = 0
    db.commit()
    return compartment_booking


@app.post(
    "/compartment-bookings/{compartment_booking_id}/check-in",
    operation_id="check_in_compartment_booking",
    summary="Note that the recipient came",
    description="For compartment bookings that have begun; the status becomes collected.",
    tags=["compartment bookings"],
    response_model=CompartmentBookingOut,
)
async def check_in_compartment_booking(
    db: Db,
    compartment_booking_id: Annotated[Id, Path(description="Id of the compartment booking")],
) -> CompartmentBooking:
    compartment_booking = find(db, CompartmentBooking, compartment_booking_id, "compartment booking")
    if compartment_booking.status != "reserved":
        raise HTTPException(
            409, f"Compartment booking {compartment_booking.reference} is {compartment_booking.status}."
        )
    if compartment_booking.storage_slot.starts_at > now():
        raise HTTPException(409, f"It begins at {compartment_booking.storage_slot.starts_at} only.")
    compartment_booking.status = "collected"
    db.commit()
    return compartment_booking


@app.post(
    "/compartment-bookings/{compartment_booking_id}/mark-missed",
    operation_id="mark_missed_compartment_booking",
    summary="Note that the recipient did not come",
    description="For compartment bookings that have begun; the status becomes overdue.",
    tags=["compartment bookings"],
    response_model=CompartmentBookingOut,
)
async def mark_missed_compartment_booking(
    db: Db,
    compartment_booking_id: Annotated[Id, Path(description="Id of the compartment booking")],
) -> CompartmentBooking:
    compartment_booking = find(db, CompartmentBooking, compartment_booking_id, "compartment booking")
    if compartment_booking.status != "reserved":
        raise HTTPException(
            409, f"Compartment booking {compartment_booking.reference} is {compartment_booking.status}."
        )
    if compartment_booking.storage_slot.starts_at > now():
        raise HTTPException(409, f"It begins at {compartment_booking.storage_slot.starts_at} only.")
    compartment_booking.status = "overdue"
    db.commit()
    return compartment_booking


# Delivery vans


class DeliveryVanOut(Answer):
    id: int = Field(description="Id of the delivery van")
    name: str = Field(description="Name")
    locker_station_id: int = Field(description="Locker station where it stands")
    capacity_kg: int = Field(description="What it carries, in kg")
    is_in_service: bool = Field(description="Whether it may go out")
    locker_station_name: str = Field(description="Name of the locker station")


@app.get(
    "/delivery-vans",
    operation_id="list_delivery_vans",
    summary="List delivery vans",
    description="Answers a page of delivery vans that fit the filters given; an empty one where none do.",
    tags=["delivery vans"],
    response_model=Page[DeliveryVanOut],
)
async def list_delivery_vans(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the name")] = None,
    locker_station_id: Annotated[Id | None, Query(description="Only those of this locker station")] = None,
    min_capacity_kg: Annotated[int | None, Query(ge=0, le=1_000_000, description="Least capacity in kg")] = None,
    max_capacity_kg: Annotated[int | None, Query(ge=0, le=1_000_000, description="Highest capacity in kg")] = None,
    is_in_service: Annotated[bool | None, Query(description="Only those that are, or are not, in service")] = None,
    sort: Annotated[
        Literal["capacity_kg", "-capacity_kg", "name", "-name"] | None,
        Query(description="Order of the rows, descending with -"),
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(DeliveryVan)
    if q is not None:
        statement = statement.where(DeliveryVan.name.icontains(q, autoescape=True))
    if locker_station_id is not None:
        statement = statement.where(DeliveryVan.locker_station_id == locker_station_id)
    if min_capacity_kg is not None:
        statement = statement.where(DeliveryVan.capacity_kg >= min_capacity_kg)
    if max_capacity_kg is not None:
        statement = statement.where(DeliveryVan.capacity_kg <= max_capacity_kg)
    if is_in_service is not None:
        statement = statement.where(DeliveryVan.is_in_service == is_in_service)
    return page_of(db, sorted_by(statement, DeliveryVan, sort or "name"), limit, offset)


# Depot runs


class DepotRunOut(Answer):
    id: int = Field(description="Id of the depot run")
    reference: str = Field(description="Reference")
    delivery_van_id: int = Field(description="Id of the delivery van")
    runs_on: date = Field(description="Day")
    left_at: datetime | None = Field(None, description="When it left")
    delivery_van_name: str = Field(description="Name of the delivery van")


@app.get(
    "/depot-runs",
    operation_id="list_depot_runs",
    summary="List depot runs",
    description="Answers a page of depot runs that fit the filters given; an empty one where none do.",
    tags=["depot runs"],
    response_model=Page[DepotRunOut],
)
async def list_depot_runs(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the reference")] = None,
    delivery_van_id: Annotated[Id | None, Query(description="Only those of this delivery van")] = None,
    runs_from: Annotated[Day | None, Query(description="First day (runs on)")] = None,
    runs_to: Annotated[Day | None, Query(description="Last day (runs on)")] = None,
    sort: Annotated[
        Literal["runs_on", "-runs_on"] | None, Query(description="Order of the rows, descending with -")
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(DepotRun)
    if q is not None:
        statement = statement.where(DepotRun.reference.icontains(q, autoescape=True))
    if delivery_van_id is not None:
        statement = statement.where(DepotRun.delivery_van_id == delivery_van_id)
    if runs_from is not None:
        statement = statement.where(DepotRun.runs_on >= runs_from)
    if runs_to is not None:
        statement = statement.where(DepotRun.runs_on <= runs_to)
    return page_of(db, sorted_by(statement, DepotRun, sort or "-runs_on"), limit, offset)


# Parcels


class ParcelOut(Answer):
    id: int = Field(description="Id of the parcel")
    reference: str = Field(description="Reference")
    recipient_id: int = Field(description="Id of the recipient")
    town: str = Field(description="Town that it goes to")
    weight_kg: int = Field(description="Weight in kg")
    depot_run_id: int | None = Field(None, description="Id of the depot run")
    status: ParcelStatus = Field(description="State")
    created_at: datetime = Field(description="When it was entered")
    delivered_at: datetime | None = Field(None, description="When it was delivered")
    recipient_name: str = Field(description="Full name of the recipient")
    depot_run_reference: str | None = Field(None, description="Its depot run")


class EnterParcelIn(BaseModel):
    recipient_id: Id = Field(description="Id of the recipient")
    town: str = Field(min_length=1, max_length=200, description="Town that it goes to")
    weight_kg: int = Field(ge=1, le=1_000_000, description="Weight in kg")


@app.get(
    "/parcels",
    operation_id="list_parcels",
    summary="List parcels",
    description="Answers a page of parcels that fit the filters given; an empty one where none do.",
    tags=["parcels"],
    response_model=Page[ParcelOut],
)
async def list_parcels(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the reference or town")] = None,
    recipient_id: Annotated[Id | None, Query(description="Only those of this recipient")] = None,
    town: Annotated[str | None, Query(description="Only those with this town")] = None,
    status: Annotated[ParcelStatus | None, Query(description="Only those with this status")] = None,
    depot_run_id: Annotated[Id | None, Query(description="Only those of this depot run")] = None,
    min_weight_kg: Annotated[int | None, Query(ge=0, le=1_000_000, description="Least weight in kg")] = None,
    max_weight_kg: Annotated[int | None, Query(ge=0, le=1_000_000, description="Highest weight in kg")] = None,
    sort: Annotated[
        Literal["weight_kg", "-weight_kg", "created_at", "-created_at"] | None,
        Query(description="Order of the rows, descending with -"),
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(Parcel)
    if q is not None:
        statement = statement.where(
            or_(Parcel.reference.icontains(q, autoescape=True), Parcel.town.icontains(q, autoescape=True))
        )
    if recipient_id is not None:
        statement = statement.where(Parcel.recipient_id == recipient_id)
    if town is not None:
        statement = statement.where(Parcel.town == town)
    if status is not None:
        statement = statement.where(Parcel.status == status)
    if depot_run_id is not None:
        statement = statement.where(Parcel.depot_run_id == depot_run_id)
    if min_weight_kg is not None:
        statement = statement.where(Parcel.weight_kg >= min_weight_kg)
    if max_weight_kg is not None:
        statement = statement.where(Parcel.weight_kg <= max_weight_kg)
    return page_of(db, sorted_by(statement, Parcel, sort or "-id"), limit, offset)


@app.post(
    "/parcels",
    operation_id="enter_parcel",
    summary="Enter a new parcel",
    description="It is announced, and on no depot run yet.",
    tags=["parcels"],
    response_model=ParcelOut,
    status_code=201,
)
async def enter_parcel(db: Db, body: EnterParcelIn) -> Parcel:
    recipient = find(db, Recipient, body.recipient_id, "recipient")
    if recipient.is_blocked:
        raise HTTPException(409, f"{recipient.full_name} is blocked; nothing new may be entered.")
    parcel = Parcel(
        recipient_id=recipient.id,
        town=body.town,
        weight_kg=body.weight_kg,
        reference=next_reference(db, Parcel, "F"),
        created_at=now(),
    )
    db.add(parcel)
    db.commit()
    return parcel


@app.post(
    "/parcels/{parcel_id}/load",
    operation_id="load_parcel",
    summary="Note that a parcel is loaded",
    description="Answers the parcel.",
    tags=["parcels"],
    response_model=ParcelOut,
)
async def load_parcel(db: Db, parcel_id: Annotated[Id, Path(description="Id of the parcel")]) -> Parcel:
    parcel = find(db, Parcel, parcel_id, "parcel")
    if parcel.status != "announced":
        raise HTTPException(409, f"{parcel.reference} is {parcel.status}.")
    if parcel.depot_run_id is None:
        raise HTTPException(409, f"{parcel.reference} is on no depot run yet.")
    if parcel.depot_run.left_at is not None:
        raise HTTPException(409, f"Depot run {parcel.depot_run.reference} has left.")
    parcel.status = "loaded"
    db.commit()
    return parcel


@app.post(
    "/parcels/{parcel_id}/deliver",
    operation_id="deliver_parcel",
    summary="Note that a parcel was delivered",
    description="Once its depot run has left.",
    tags=["parcels"],
    response_model=ParcelOut,
)
async def deliver_parcel(db: Db, parcel_id: Annotated[Id, Path(description="Id of the parcel")]) -> Parcel:
    parcel = find(db, Parcel, parcel_id, "parcel")
    if parcel.status != "loaded":
        raise HTTPException(409, f"{parcel.reference} is {parcel.status}.")
    if parcel.depot_run.left_at is None:
        raise HTTPException(409, f"Depot run {parcel.depot_run.reference} has not left yet.")
    parcel.status = "delivered"
    parcel.delivered_at = now()
    db.commit()
    return parcel


@app.post(
    "/parcels/{parcel_id}/fail",
    operation_id="fail_parcel",
    summary="Note that a parcel could not be delivered",
    description="Once its depot run has left; it becomes undeliverable.",
    tags=["parcels"],
    response_model=ParcelOut,
)
async def fail_parcel(db: Db, parcel_id: Annotated[Id, Path(description="Id of the parcel")]) -> Parcel:
    parcel = find(db, Parcel, parcel_id, "parcel")
    if parcel.status != "loaded":
        raise HTTPException(409, f"{parcel.reference} is {parcel.status}.")
    if parcel.depot_run.left_at is None:
        raise HTTPException(409, f"Depot run {parcel.depot_run.reference} has not left yet.")
    parcel.status = "undeliverable"
    db.commit()
    return parcel


@app.post(
    "/parcels/{parcel_id}/replan",
    operation_id="replan_parcel",
    summary="Plan a parcel anew that could not be delivered",
    description="It is on no depot run then.",
    tags=["parcels"],
    response_model=ParcelOut,
)
async def replan_parcel(db: Db, parcel_id: Annotated[Id, Path(description="Id of the parcel")]) -> Parcel:
    parcel = find(db, Parcel, parcel_id, "parcel")
    if parcel.status != "undeliverable":
        raise HTTPException(409, f"{parcel.reference} is {parcel.status}.")
    parcel.status = "announced"
    parcel.depot_run_id = None
    db.commit()
    return parcel


@app.post(
    "/parcels/{parcel_id}/cancel",
    operation_id="cancel_parcel",
    summary="Cancel a parcel",
    description="Until it is loaded.",
    tags=["parcels"],
    response_model=ParcelOut,
)
async def cancel_parcel(db: Db, parcel_id: Annotated[Id, Path(description="Id of the parcel")]) -> Parcel:
    parcel = find(db, Parcel, parcel_id, "parcel")
    if parcel.status != "announced":
        raise HTTPException(409, f"{parcel.reference} is {parcel.status}.")
    parcel.status = "recalled"
    parcel.depot_run_id = None
    db.commit()
    return parcel


# Service matters


class ServiceMatterOut(Answer):
    id: int = Field(description="Id of the service matter")
    reference: str = Field(description="Reference")
    subject: str = Field(description="What it is about, in a few words")
    recipient_id: int = Field(description="Id of the recipient")
    topic: ServiceMatterTopic = Field(description="Topic")
    priority: ServiceMatterPriority = Field(description="How soon it has to be seen to")
    status: ServiceMatterStatus = Field(description="State")
    assignee_id: int | None = Field(None, description="Who works on it")
    resolution: ServiceMatterResolution | None = Field(None, description="How it was settled")
    opened_at: datetime = Field(description="When it was reported")
    resolved_at: datetime | None = Field(None, description="When it was settled")
    recipient_name: str = Field(description="Full name of the recipient")
    assignee_name: str | None = Field(None, description="Full name of the user")


class OpenServiceMatterIn(BaseModel):
    recipient_id: Id = Field(description="Id of the recipient")
    subject: str = Field(min_length=1, max_length=120, description="What it is about, in a few words")
    topic: ServiceMatterTopic = Field(description="Topic")
    priority: ServiceMatterPriority = Field("normal", description="How soon it has to be seen to")


class AssignServiceMatterIn(BaseModel):
    assignee_id: Id = Field(description="Who is to work on it")


class ResolveServiceMatterIn(BaseModel):
    resolution: ServiceMatterResolution = Field(description="How it was settled")


@app.get(
    "/service-matters",
    operation_id="list_service_matters",
    summary="List service matters",
    description="Answers a page of service matters that fit the filters given; an empty one where none do.",
    tags=["service matters"],
    response_model=Page[ServiceMatterOut],
)
async def list_service_matters(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the reference or subject")] = None,
    recipient_id: Annotated[Id | None, Query(description="Only those of this recipient")] = None,
    topic: Annotated[ServiceMatterTopic | None, Query(description="Only those with this topic")] = None,
    priority: Annotated[ServiceMatterPriority | None, Query(description="Only those with this priority")] = None,
    status: Annotated[ServiceMatterStatus | None, Query(description="Only those with this status")] = None,
    assignee_id: Annotated[Id | None, Query(description="Only those of this assignee")] = None,
    opened_from: Annotated[Day | None, Query(description="First day (opened at)")] = None,
    opened_to: Annotated[Day | None, Query(description="Last day (opened at)")] = None,
    sort: Annotated[
        Literal["opened_at", "-opened_at"] | None, Query(description="Order of the rows, descending with -")
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(ServiceMatter)
    if q is not None:
        statement = statement.where(
            or_(
                ServiceMatter.reference.icontains(q, autoescape=True),
                ServiceMatter.subject.icontains(q, autoescape=True),
            ),
        )
    if recipient_id is not None:
        statement = statement.where(ServiceMatter.recipient_id == recipient_id)
    if topic is not None:
        statement = statement.where(ServiceMatter.topic == topic)
    if priority is not None:
        statement = statement.where(ServiceMatter.priority == priority)
    if status is not None:
        statement = statement.where(ServiceMatter.status == status)
    if assignee_id is not None:
        statement = statement.where(ServiceMatter.assignee_id == assignee_id)
    if opened_from is not None:
        statement = statement.where(ServiceMatter.opened_at >= start_of(opened_from))
    if opened_to is not None:
        statement = statement.where(ServiceMatter.opened_at <= end_of(opened_to))
    return page_of(db, sorted_by(statement, ServiceMatter, sort or "-opened_at"), limit, offset)


@app.post(
    "/service-matters",
    operation_id="open_service_matter",
    summary="Open a new service matter",
    description="Answers the new service matter with its id.",
    tags=["service matters"],
    response_model=ServiceMatterOut,
    status_code=201,
)
async def open_service_matter(db: Db, body: OpenServiceMatterIn) -> ServiceMatter:
    recipient = find(db, Recipient, body.recipient_id, "recipient")
    if (
        count(
            db,
            ServiceMatter,
            ServiceMatter.recipient_id == recipient.id,
            ServiceMatter.status.in_(("open", "in_check", "waiting")),
        )
        >= TICKET_MAX_OPEN
    ):
        raise HTTPException(
            409, f"{recipient.full_name} has {TICKET_MAX_OPEN} service matters that are not settled, which is the most."
        )
    service_matter = ServiceMatter(
        recipient_id=recipient.id,
        subject=body.subject,
        topic=body.topic,
        priority=body.priority,
        reference=next_reference(db, ServiceMatter, "T"),
        opened_at=now(),
    )
    db.add(service_matter)
    db.commit()
    return service_matter


@app.put(
    "/service-matters/{service_matter_id}/assignee",
    operation_id="assign_service_matter",
    summary="Give a service matter to a locker agent",
    description="It becomes in_check. Not for one that is settled.",
    tags=["service matters"],
    response_model=ServiceMatterOut,
)
async def assign_service_matter(
    db: Db,
    service_matter_id: Annotated[Id, Path(description="Id of the service matter")],
    body: AssignServiceMatterIn,
) -> ServiceMatter:
    service_matter = find(db, ServiceMatter, service_matter_id, "service matter")
    if service_matter.status not in ("open", "in_check", "waiting"):
        raise HTTPException(409, f"Service matter {service_matter.reference} is {service_matter.status} already.")
    assignee = find(db, User, body.assignee_id, "user")
    if not assignee.is_active:
        raise HTTPException(409, f"{assignee.full_name} does not work here at present.")
    if service_matter.assignee_id == assignee.id:
        raise HTTPException(409, f"{assignee.full_name} has it already.")
    service_matter.assignee_id = assignee.id
    service_matter.status = "in_check"
    db.commit()
    return service_matter


@app.post(
    "/service-matters/{service_matter_id}/resolve",
    operation_id="resolve_service_matter",
    summary="Settle a service matter",
    description="Says how. Refused while nobody has it.",
    tags=["service matters"],
    response_model=ServiceMatterOut,
)
async def resolve_service_matter(
    db: Db,
    service_matter_id: Annotated[Id, Path(description="Id of the service matter")],
    body: ResolveServiceMatterIn,
) -> ServiceMatter:
    service_matter = find(db, ServiceMatter, service_matter_id, "service matter")
    if service_matter.status not in ("open", "in_check", "waiting"):
        raise HTTPException(409, f"Service matter {service_matter.reference} is {service_matter.status} already.")
    if service_matter.assignee_id is None:
        raise HTTPException(409, "Nobody has it; assign it first.")
    service_matter.status = "solved"
    service_matter.resolution = body.resolution
    service_matter.resolved_at = now()
    db.commit()
    return service_matter


@app.post(
    "/service-matters/{service_matter_id}/close",
    operation_id="close_service_matter",
    summary="Close a service matter that is solved",
    description="It can't be taken up again after that.",
    tags=["service matters"],
    response_model=ServiceMatterOut,
)
async def close_service_matter(
    db: Db,
    service_matter_id: Annotated[Id, Path(description="Id of the service matter")],
) -> ServiceMatter:
    service_matter = find(db, ServiceMatter, service_matter_id, "service matter")
    if service_matter.status != "solved":
        raise HTTPException(409, f"It is {service_matter.status}; only what is {'solved'} is closed.")
    service_matter.status = "closed"
    db.commit()
    return service_matter


@app.post(
    "/service-matters/{service_matter_id}/reopen",
    operation_id="reopen_service_matter",
    summary="Take up a service matter again",
    description="Within 14 days after it was settled.",
    tags=["service matters"],
    response_model=ServiceMatterOut,
)
async def reopen_service_matter(
    db: Db,
    service_matter_id: Annotated[Id, Path(description="Id of the service matter")],
) -> ServiceMatter:
    service_matter = find(db, ServiceMatter, service_matter_id, "service matter")
    if service_matter.status != "solved":
        raise HTTPException(409, f"It is {service_matter.status}; only what is {'solved'} is taken up again.")
    if now() > service_matter.resolved_at + timedelta(days=REOPEN_DAYS):
        raise HTTPException(
            409,
            f"It was settled on {service_matter.resolved_at.date()}; it could be taken up again within "
            f"{REOPEN_DAYS} days.",
        )
    service_matter.status = "open"
    service_matter.resolution = None
    service_matter.resolved_at = None
    db.commit()
    return service_matter


# Station files


class StationFileOut(Answer):
    id: int = Field(description="Id of the station file")
    name: str = Field(description="Name")
    number: str = Field(description="Number by which it is known")
    recipient_id: int = Field(description="Recipient that it belongs to")
    locker_station_id: int = Field(description="Locker station that looks after it")
    status: StationFileStatus = Field(description="State")
    reading: int = Field(description="Last reading")
    due_on: date = Field(description="Day on which it is due")
    registered_at: datetime = Field(description="When it was registered")
    recipient_name: str = Field(description="Full name of the recipient")
    locker_station_name: str = Field(description="Name of the locker station")


class StationCheckOut(Answer):
    id: int = Field(description="Id of the station check")
    station_file_id: int = Field(description="Id of the station file")
    kind: StationCheckKind = Field(description="What was done")
    done_on: date = Field(description="Day")
    reading: int = Field(description="Reading at that time")
    finding: str = Field(description="What was found")
    entered_at: datetime = Field(description="When it was entered")
    station_file_number: str = Field(description="Number of the station file")


class RegisterStationFileIn(BaseModel):
    name: str = Field(min_length=1, max_length=200, description="Name")
    number: str = Field(min_length=1, max_length=200, description="Number by which it is known")
    recipient_id: Id = Field(description="Recipient that it belongs to")
    locker_station_id: Id = Field(description="Locker station that looks after it")


class StationFileDetail(StationFileOut):
    station_checks: list[StationCheckOut] = Field(description="Its station checks")


@app.get(
    "/station-files",
    operation_id="list_station_files",
    summary="List station files",
    description="Answers a page of station files that fit the filters given; an empty one where none do.",
    tags=["station files"],
    response_model=Page[StationFileOut],
)
async def list_station_files(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the name or number")] = None,
    recipient_id: Annotated[Id | None, Query(description="Only those of this recipient")] = None,
    locker_station_id: Annotated[Id | None, Query(description="Only those of this locker station")] = None,
    status: Annotated[StationFileStatus | None, Query(description="Only those with this status")] = None,
    due_from: Annotated[Day | None, Query(description="First day (due on)")] = None,
    due_to: Annotated[Day | None, Query(description="Last day (due on)")] = None,
    min_reading: Annotated[int | None, Query(ge=0, le=1_000_000, description="Least reading")] = None,
    max_reading: Annotated[int | None, Query(ge=0, le=1_000_000, description="Highest reading")] = None,
    sort: Annotated[
        Literal["due_on", "-due_on", "reading", "-reading", "name", "-name"] | None,
        Query(description="Order of the rows, descending with -"),
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(StationFile)
    if q is not None:
        statement = statement.where(
            or_(StationFile.name.icontains(q, autoescape=True), StationFile.number.icontains(q, autoescape=True))
        )
    if recipient_id is not None:
        statement = statement.where(StationFile.recipient_id == recipient_id)
    if locker_station_id is not None:
        statement = statement.where(StationFile.locker_station_id == locker_station_id)
    if status is not None:
        statement = statement.where(StationFile.status == status)
    if due_from is not None:
        statement = statement.where(StationFile.due_on >= due_from)
    if due_to is not None:
        statement = statement.where(StationFile.due_on <= due_to)
    if min_reading is not None:
        statement = statement.where(StationFile.reading >= min_reading)
    if max_reading is not None:
        statement = statement.where(StationFile.reading <= max_reading)
    return page_of(db, sorted_by(statement, StationFile, sort or "number"), limit, offset)


@app.post(
    "/station-files",
    operation_id="register_station_file",
    summary="Register a new station file",
    description="Numbers are unique. It is due in 30 days.",
    tags=["station files"],
    response_model=StationFileOut,
    status_code=201,
)
async def register_station_file(db: Db, body: RegisterStationFileIn) -> StationFile:
    recipient = find(db, Recipient, body.recipient_id, "recipient")
    locker_station = find(db, LockerStation, body.locker_station_id, "locker station")
    if recipient.is_blocked:
        raise HTTPException(409, f"{recipient.full_name} is blocked; nothing new may be entered.")
    if exists(db, StationFile, StationFile.number == body.number):
        raise HTTPException(409, f"There is a station file with the number {body.number} already; choose another.")
    station_file = StationFile(
        name=body.name,
        number=body.number,
        recipient_id=recipient.id,
        locker_station_id=locker_station.id,
        registered_at=now(),
        reading=0,
        due_on=today() + timedelta(days=INTERVAL_DAYS),
    )
    db.add(station_file)
    db.commit()
    return station_file


@app.post(
    "/station-files/{station_file_id}/flag",
    operation_id="flag_station_file",
    summary="Flag a station file as due",
    description="From its day on; it becomes check_due.",
    tags=["station files"],
    response_model=StationFileOut,
)
async def flag_station_file(
    db: Db,
    station_file_id: Annotated[Id, Path(description="Id of the station file")],
) -> StationFile:
    station_file = find(db, StationFile, station_file_id, "station file")
    if station_file.status != "in_service":
        raise HTTPException(409, f"Station file {station_file.number} is {station_file.status}.")
    if station_file.due_on > today():
        raise HTTPException(409, f"Station file {station_file.number} is due on {station_file.due_on} only.")
    station_file.status = "check_due"
    db.commit()
    return station_file


@app.post(
    "/station-files/{station_file_id}/retire",
    operation_id="retire_station_file",
    summary="Retire a station file",
    description="Nothing more can be entered for it. Its history stays.",
    tags=["station files"],
    response_model=StationFileOut,
)
async def retire_station_file(
    db: Db,
    station_file_id: Annotated[Id, Path(description="Id of the station file")],
) -> StationFile:
    station_file = find(db, StationFile, station_file_id, "station file")
    if station_file.status == "removed":
        raise HTTPException(409, f"Station file {station_file.number} is {station_file.status}.")
    station_file.status = "removed"
    db.commit()
    return station_file


@app.get(
    "/station-files/{station_file_id}",
    operation_id="get_station_file",
    summary="Show one station file with its station checks",
    description="Answers the station file with its station checks; 404 where there is none with this id.",
    tags=["station files"],
    response_model=StationFileDetail,
)
async def get_station_file(
    db: Db,
    station_file_id: Annotated[Id, Path(description="Id of the station file")],
) -> StationFile:
    station_file = find(db, StationFile, station_file_id, "station file")
    return station_file


# Notice threads


class NoticeThreadOut(Answer):
    id: int = Field(description="Id of the notice thread")
    subject: str = Field(description="What it is about")
    status: NoticeThreadStatus = Field(description="State")
    created_at: datetime = Field(description="When it was entered")
    last_sent_at: datetime | None = Field(None, description="When something was last sent in it")


class NoticeThreadRecipientOut(Answer):
    id: int = Field(description="Id of the notice thread recipient")
    notice_thread_id: int = Field(description="Id of the notice thread")
    recipient_id: int = Field(description="Id of the recipient")
    added_at: datetime = Field(description="Since when they take part")
    notice_thread_subject: str = Field(description="What it is about of the notice thread")
    recipient_name: str = Field(description="Full name of the recipient")


class NoticeOut(Answer):
    id: int = Field(description="Id of the notice")
    notice_thread_id: int = Field(description="Id of the notice thread")
    sender_id: int = Field(description="Who sent it")
    body: str = Field(description="What it says")
    sent_at: datetime = Field(description="When it was sent")
    notice_thread_subject: str = Field(description="What it is about of the notice thread")
    sender_name: str = Field(description="Who sent it")


class OpenNoticeThreadIn(BaseModel):
    subject: str = Field(min_length=1, max_length=200, description="What it is about")


class NoticeThreadDetail(NoticeThreadOut):
    notice_thread_recipients: list[NoticeThreadRecipientOut] = Field(description="Its notice thread recipients")
    notices: list[NoticeOut] = Field(description="Its notices")


@app.get(
    "/notice-threads",
    operation_id="list_notice_threads",
    summary="List notice threads",
    description="Answers a page of notice threads that fit the filters given; an empty one where none do.",
    tags=["notice threads"],
    response_model=Page[NoticeThreadOut],
)
async def list_notice_threads(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the subject")] = None,
    status: Annotated[NoticeThreadStatus | None, Query(description="Only those with this status")] = None,
    created_from: Annotated[Day | None, Query(description="First day (created at)")] = None,
    created_to: Annotated[Day | None, Query(description="Last day (created at)")] = None,
    sort: Annotated[
        Literal["last_sent_at", "-last_sent_at", "created_at", "-created_at", "subject", "-subject"] | None,
        Query(description="Order of the rows, descending with -"),
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(NoticeThread)
    if q is not None:
        statement = statement.where(NoticeThread.subject.icontains(q, autoescape=True))
    if status is not None:
        statement = statement.where(NoticeThread.status == status)
    if created_from is not None:
        statement = statement.where(NoticeThread.created_at >= start_of(created_from))
    if created_to is not None:
        statement = statement.where(NoticeThread.created_at <= end_of(created_to))
    return page_of(db, sorted_by(statement, NoticeThread, sort or "-id"), limit, offset)


@app.post(
    "/notice-threads",
    operation_id="open_notice_thread",
    summary="Open a new notice thread",
    description="It has no recipients and nothing in it yet. Subjects are unique.",
    tags=["notice threads"],
    response_model=NoticeThreadOut,
    status_code=201,
)
async def open_notice_thread(db: Db, body: OpenNoticeThreadIn) -> NoticeThread:
    if exists(db, NoticeThread, NoticeThread.subject == body.subject):
        raise HTTPException(409, f"There is a notice thread with the subject {body.subject} already; choose another.")
    notice_thread = NoticeThread(subject=body.subject, created_at=now())
    db.add(notice_thread)
    db.commit()
    return notice_thread


@app.get(
    "/notice-threads/{notice_thread_id}",
    operation_id="get_notice_thread",
    summary="Show one notice thread with its notice thread recipients and notices",
    description="Answers the notice thread with its notice thread recipients and notices; 404 where there is none with this id.",
    tags=["notice threads"],
    response_model=NoticeThreadDetail,
)
async def get_notice_thread(
    db: Db,
    notice_thread_id: Annotated[Id, Path(description="Id of the notice thread")],
) -> NoticeThread:
    notice_thread = find(db, NoticeThread, notice_thread_id, "notice thread")
    return notice_thread


@app.post(
    "/notice-threads/{notice_thread_id}/archive",
    operation_id="archive_notice_thread",
    summary="Archive a notice thread",
    description="Nothing more can be sent in it until it is opened again.",
    tags=["notice threads"],
    response_model=NoticeThreadOut,
)
async def archive_notice_thread(
    db: Db,
    notice_thread_id: Annotated[Id, Path(description="Id of the notice thread")],
) -> NoticeThread:
    notice_thread = find(db, NoticeThread, notice_thread_id, "notice thread")
    if notice_thread.status != "open":
        raise HTTPException(409, f"Notice thread {notice_thread.subject} is {notice_thread.status}.")
    notice_thread.status = "archived"
    db.commit()
    return notice_thread


@app.post(
    "/notice-threads/{notice_thread_id}/reopen",
    operation_id="reopen_notice_thread",
    summary="Open a notice thread again",
    description="Answers the notice thread.",
    tags=["notice threads"],
    response_model=NoticeThreadOut,
)
async def reopen_notice_thread(
    db: Db,
    notice_thread_id: Annotated[Id, Path(description="Id of the notice thread")],
) -> NoticeThread:
    notice_thread = find(db, NoticeThread, notice_thread_id, "notice thread")
    if notice_thread.status != "archived":
        raise HTTPException(409, f"Notice thread {notice_thread.subject} is {notice_thread.status}.")
    notice_thread.status = "open"
    db.commit()
    return notice_thread


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host=os.getenv("HOST", "127.0.0.1"), port=int(os.getenv("PORT", "8000")))
