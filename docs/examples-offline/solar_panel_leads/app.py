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
    title="Solar Panel Leads",
    version="1.0.0",
    description=(
        "Leads with roof data, site visits, offers with options, follow-ups, won and lost deals with reasons. "
        "An equipment order has at most 8 equipment lines. A site visit can be cancelled or moved until 24 "
        "hours before it begins. A homeowner holds at most 2 site visits that are still to come. A submitted "
        "discount request is decided by one step, sales lead; above 800 in full units by 2. Nobody decides "
        "two steps of the same discount request. An offer that was sent can be signed for 30 days. An offer "
        "has at most 2 signers; it is signed with the last of them. A lead thread has at most 12 recipients, "
        "and none who is blocked. Nothing is sent in a lead thread that is archived. Nobody has more than 8 "
        "sales tasks that are in_progress at a time. A sales task becomes done from with_client only."
    ),
)

CANCEL_HOURS = 24
MAX_OPEN = 2
SECOND_OVER = 800
MAX_SIGNERS = 2
WIP_LIMIT = 8

UserRole = Literal["adviser", "planner", "sales_lead", "office"]
SolarComponentRoofKind = Literal["tile", "metal", "flat", "any"]
SolarComponentOrigin = Literal["Germany", "Austria", "Spain", "Malaysia"]
HomeownerLeadSource = Literal["website", "fair", "referral", "phone"]
EquipmentOrderStatus = Literal["draft", "ordered", "installed", "cancelled", "returned"]
SiteVisitStatus = Literal["planned", "done", "nobody_home", "called_off"]
DiscountRequestStatus = Literal["draft", "submitted", "granted", "refused", "withdrawn"]
DiscountStepName = Literal["sales lead", "management"]
DiscountStepStatus = Literal["submitted", "granted", "refused"]
OfferKind = Literal["offer", "revision", "order"]
OfferStatus = Literal["draft", "sent", "signed", "declined", "void"]
ClientSignatureStatus = Literal["sent", "signed", "declined"]
LeadThreadStatus = Literal["open", "archived"]
SalesTaskPriority = Literal["low", "normal", "high"]
SalesTaskStatus = Literal["to_do", "in_progress", "with_client", "done"]


# Tables


class Base(DeclarativeBase):
    id: Mapped[int] = mapped_column(primary_key=True)


class SalesArea(Base):
    __tablename__ = "sales_areas"

    name: Mapped[str] = mapped_column(unique=True)
    address: Mapped[str]
    phone: Mapped[str]
    is_open: Mapped[bool] = mapped_column(default=True)


class User(Base):
    __tablename__ = "users"

    full_name: Mapped[str] = mapped_column(unique=True)
    email: Mapped[str] = mapped_column(unique=True)
    role: Mapped[str]
    sales_area_id: Mapped[int | None] = mapped_column(ForeignKey("sales_areas.id"))
    is_active: Mapped[bool] = mapped_column(default=True)

    sales_area: Mapped[Optional["SalesArea"]] = relationship()

    @property
    def sales_area_name(self) -> str | None:
        return self.sales_area.name if self.sales_area is not None else None


class ComponentClass(Base):
    __tablename__ = "component_classes"

    name: Mapped[str] = mapped_column(unique=True)
    position: Mapped[int]


class SolarComponent(Base):
    __tablename__ = "solar_components"

    name: Mapped[str] = mapped_column(unique=True)
    component_class_id: Mapped[int] = mapped_column(ForeignKey("component_classes.id"))
    roof_kind: Mapped[str]
    warranty_years: Mapped[int]
    origin: Mapped[str]
    price_cents: Mapped[int]
    is_active: Mapped[bool] = mapped_column(default=True)
    created_at: Mapped[datetime]

    component_class: Mapped["ComponentClass"] = relationship()

    @property
    def component_class_name(self) -> str:
        return self.component_class.name


class Homeowner(Base):
    __tablename__ = "homeowners"

    full_name: Mapped[str] = mapped_column(unique=True)
    email: Mapped[str] = mapped_column(unique=True)
    phone: Mapped[str | None]
    lead_source: Mapped[str]
    town: Mapped[str | None]
    joined_on: Mapped[date]
    is_blocked: Mapped[bool] = mapped_column(default=False)


class EquipmentOrder(Base):
    __tablename__ = "equipment_orders"

    reference: Mapped[str] = mapped_column(unique=True)
    homeowner_id: Mapped[int] = mapped_column(ForeignKey("homeowners.id"))
    sales_area_id: Mapped[int] = mapped_column(ForeignKey("sales_areas.id"))
    status: Mapped[str] = mapped_column(default="draft")
    goods_cents: Mapped[int] = mapped_column(default=0)
    total_cents: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime]
    placed_at: Mapped[datetime | None]
    closed_at: Mapped[datetime | None]

    homeowner: Mapped["Homeowner"] = relationship()
    sales_area: Mapped["SalesArea"] = relationship()

    @property
    def homeowner_name(self) -> str:
        return self.homeowner.full_name

    @property
    def sales_area_name(self) -> str:
        return self.sales_area.name


class EquipmentLine(Base):
    __tablename__ = "equipment_lines"
    __table_args__ = (UniqueConstraint("equipment_order_id", "solar_component_id"),)

    equipment_order_id: Mapped[int] = mapped_column(ForeignKey("equipment_orders.id", ondelete="CASCADE"))
    solar_component_id: Mapped[int] = mapped_column(ForeignKey("solar_components.id"))
    quantity: Mapped[int]
    price_cents: Mapped[int]

    equipment_order: Mapped["EquipmentOrder"] = relationship()
    solar_component: Mapped["SolarComponent"] = relationship()

    @property
    def equipment_order_reference(self) -> str:
        return self.equipment_order.reference

    @property
    def solar_component_name(self) -> str:
        return self.solar_component.name


class Adviser(Base):
    __tablename__ = "advisers"

    name: Mapped[str] = mapped_column(unique=True)
    sales_area_id: Mapped[int] = mapped_column(ForeignKey("sales_areas.id"))
    capacity: Mapped[int]
    fee_cents: Mapped[int]
    is_active: Mapped[bool] = mapped_column(default=True)

    sales_area: Mapped["SalesArea"] = relationship()

    @property
    def sales_area_name(self) -> str:
        return self.sales_area.name


class VisitSlot(Base):
    __tablename__ = "visit_slots"
    __table_args__ = (UniqueConstraint("adviser_id", "starts_at"),)

    adviser_id: Mapped[int] = mapped_column(ForeignKey("advisers.id"))
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime]
    capacity: Mapped[int]
    is_open: Mapped[bool] = mapped_column(default=True)

    adviser: Mapped["Adviser"] = relationship()

    @property
    def adviser_name(self) -> str:
        return self.adviser.name


class SiteVisit(Base):
    __tablename__ = "site_visits"

    reference: Mapped[str] = mapped_column(unique=True)
    homeowner_id: Mapped[int] = mapped_column(ForeignKey("homeowners.id"))
    visit_slot_id: Mapped[int] = mapped_column(ForeignKey("visit_slots.id"))
    status: Mapped[str] = mapped_column(default="planned")
    fee_cents: Mapped[int]
    booked_at: Mapped[datetime]
    cancelled_at: Mapped[datetime | None]

    homeowner: Mapped["Homeowner"] = relationship()
    visit_slot: Mapped["VisitSlot"] = relationship()

    @property
    def homeowner_name(self) -> str:
        return self.homeowner.full_name

    @property
    def adviser_name(self) -> str:
        return self.visit_slot.adviser.name

    @property
    def starts_at(self) -> datetime:
        return self.visit_slot.starts_at


class DiscountRequest(Base):
    __tablename__ = "discount_requests"

    reference: Mapped[str] = mapped_column(unique=True)
    homeowner_id: Mapped[int] = mapped_column(ForeignKey("homeowners.id"))
    purpose: Mapped[str]
    amount_cents: Mapped[int]
    status: Mapped[str] = mapped_column(default="draft")
    created_at: Mapped[datetime]
    submitted_at: Mapped[datetime | None]
    decided_at: Mapped[datetime | None]

    homeowner: Mapped["Homeowner"] = relationship()
    discount_steps: Mapped[list["DiscountStep"]] = relationship(
        order_by="DiscountStep.id", back_populates="discount_request", passive_deletes=True
    )

    @property
    def homeowner_name(self) -> str:
        return self.homeowner.full_name


class DiscountStep(Base):
    __tablename__ = "discount_steps"
    __table_args__ = (UniqueConstraint("discount_request_id", "position"),)

    discount_request_id: Mapped[int] = mapped_column(ForeignKey("discount_requests.id", ondelete="CASCADE"))
    position: Mapped[int]
    name: Mapped[str]
    status: Mapped[str] = mapped_column(default="submitted")
    approver_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    reason: Mapped[str | None]
    decided_at: Mapped[datetime | None]

    discount_request: Mapped["DiscountRequest"] = relationship(back_populates="discount_steps")
    approver: Mapped[Optional["User"]] = relationship()

    @property
    def discount_request_reference(self) -> str:
        return self.discount_request.reference

    @property
    def approver_name(self) -> str | None:
        return self.approver.full_name if self.approver_id is not None else None


class Offer(Base):
    __tablename__ = "offers"

    reference: Mapped[str] = mapped_column(unique=True)
    title: Mapped[str]
    kind: Mapped[str]
    homeowner_id: Mapped[int] = mapped_column(ForeignKey("homeowners.id"))
    status: Mapped[str] = mapped_column(default="draft")
    created_at: Mapped[datetime]
    sent_at: Mapped[datetime | None]
    expires_on: Mapped[date | None]
    signed_at: Mapped[datetime | None]

    homeowner: Mapped["Homeowner"] = relationship()

    @property
    def homeowner_name(self) -> str:
        return self.homeowner.full_name


class ClientSignature(Base):
    __tablename__ = "client_signatures"
    __table_args__ = (UniqueConstraint("offer_id", "homeowner_id"),)

    offer_id: Mapped[int] = mapped_column(ForeignKey("offers.id", ondelete="CASCADE"))
    homeowner_id: Mapped[int] = mapped_column(ForeignKey("homeowners.id"))
    position: Mapped[int]
    status: Mapped[str] = mapped_column(default="sent")
    reason: Mapped[str | None]
    answered_at: Mapped[datetime | None]

    offer: Mapped["Offer"] = relationship()
    homeowner: Mapped["Homeowner"] = relationship()

    @property
    def homeowner_name(self) -> str:
        return self.homeowner.full_name

    @property
    def offer_reference(self) -> str:
        return self.offer.reference


class LeadThread(Base):
    __tablename__ = "lead_threads"

    subject: Mapped[str] = mapped_column(unique=True)
    status: Mapped[str] = mapped_column(default="open")
    created_at: Mapped[datetime]
    last_sent_at: Mapped[datetime | None]

    lead_thread_recipients: Mapped[list["LeadThreadRecipient"]] = relationship(
        order_by="LeadThreadRecipient.id", back_populates="lead_thread", passive_deletes=True
    )
    lead_mails: Mapped[list["LeadMail"]] = relationship(
        order_by="LeadMail.id", back_populates="lead_thread", passive_deletes=True
    )


class LeadThreadRecipient(Base):
    __tablename__ = "lead_thread_recipients"
    __table_args__ = (UniqueConstraint("lead_thread_id", "homeowner_id"),)

    lead_thread_id: Mapped[int] = mapped_column(ForeignKey("lead_threads.id", ondelete="CASCADE"))
    homeowner_id: Mapped[int] = mapped_column(ForeignKey("homeowners.id"))
    added_at: Mapped[datetime]

    lead_thread: Mapped["LeadThread"] = relationship(back_populates="lead_thread_recipients")
    homeowner: Mapped["Homeowner"] = relationship()

    @property
    def lead_thread_subject(self) -> str:
        return self.lead_thread.subject

    @property
    def homeowner_name(self) -> str:
        return self.homeowner.full_name


class LeadMail(Base):
    __tablename__ = "lead_mails"

    lead_thread_id: Mapped[int] = mapped_column(ForeignKey("lead_threads.id", ondelete="CASCADE"))
    sender_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    body: Mapped[str]
    sent_at: Mapped[datetime]

    lead_thread: Mapped["LeadThread"] = relationship(back_populates="lead_mails")
    sender: Mapped["User"] = relationship()

    @property
    def lead_thread_subject(self) -> str:
        return self.lead_thread.subject

    @property
    def sender_name(self) -> str:
        return self.sender.full_name


class LeadPipeline(Base):
    __tablename__ = "lead_pipelines"

    name: Mapped[str] = mapped_column(unique=True)
    lead_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    begins_on: Mapped[date]
    ends_on: Mapped[date]
    is_closed: Mapped[bool] = mapped_column(default=False)

    lead: Mapped["User"] = relationship()

    @property
    def lead_name(self) -> str:
        return self.lead.full_name


class SalesTask(Base):
    __tablename__ = "sales_tasks"
    __table_args__ = (UniqueConstraint("lead_pipeline_id", "title"),)

    lead_pipeline_id: Mapped[int] = mapped_column(ForeignKey("lead_pipelines.id", ondelete="CASCADE"))
    title: Mapped[str]
    assignee_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    priority: Mapped[str] = mapped_column(default="normal")
    effort: Mapped[int]
    status: Mapped[str] = mapped_column(default="to_do")
    due_on: Mapped[date | None]
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]

    lead_pipeline: Mapped["LeadPipeline"] = relationship()
    assignee: Mapped[Optional["User"]] = relationship()

    @property
    def lead_pipeline_name(self) -> str:
        return self.lead_pipeline.name

    @property
    def assignee_name(self) -> str | None:
        return self.assignee.full_name if self.assignee_id is not None else None


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


# Sales areas


class SalesAreaOut(Answer):
    id: int = Field(description="Id of the sales area")
    name: str = Field(description="Name")
    address: str = Field(description="Address")
    phone: str = Field(description="Telephone number")
    is_open: bool = Field(description="Whether it is in use")


@app.get(
    "/sales-areas",
    operation_id="list_sales_areas",
    summary="List sales areas",
    description="Answers a page of sales areas that fit the filters given; an empty one where none do.",
    tags=["sales areas"],
    response_model=Page[SalesAreaOut],
)
async def list_sales_areas(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the name or address")] = None,
    is_open: Annotated[bool | None, Query(description="Only those that are, or are not, open")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(SalesArea)
    if q is not None:
        statement = statement.where(
            or_(SalesArea.name.icontains(q, autoescape=True), SalesArea.address.icontains(q, autoescape=True))
        )
    if is_open is not None:
        statement = statement.where(SalesArea.is_open == is_open)
    return page_of(db, statement.order_by(SalesArea.name, SalesArea.id), limit, offset)


# Users


class UserOut(Answer):
    id: int = Field(description="Id of the user")
    full_name: str = Field(description="Full name")
    email: str = Field(description="E-mail address")
    role: UserRole = Field(description="Role")
    sales_area_id: int | None = Field(None, description="Sales area where they work")
    is_active: bool = Field(description="Whether they work here at present")
    sales_area_name: str | None = Field(None, description="Name of the sales area")


@app.get(
    "/users",
    operation_id="list_sales_advisers",
    summary="List sales advisers",
    description="Answers a page of users that fit the filters given; an empty one where none do.",
    tags=["users"],
    response_model=Page[UserOut],
)
async def list_sales_advisers(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the full name or email")] = None,
    role: Annotated[UserRole | None, Query(description="Only those with this role")] = None,
    sales_area_id: Annotated[Id | None, Query(description="Only those of this sales area")] = None,
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
    if sales_area_id is not None:
        statement = statement.where(User.sales_area_id == sales_area_id)
    if is_active is not None:
        statement = statement.where(User.is_active == is_active)
    return page_of(db, statement.order_by(User.full_name, User.id), limit, offset)


# Component classes


class ComponentClassOut(Answer):
    id: int = Field(description="Id of the component class")
    name: str = Field(description="Name")
    position: int = Field(description="Place in lists")


@app.get(
    "/component-classes",
    operation_id="list_component_classes",
    summary="List component classes",
    description="Answers a page of component classes that fit the filters given; an empty one where none do.",
    tags=["component classes"],
    response_model=Page[ComponentClassOut],
)
async def list_component_classes(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the name")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(ComponentClass)
    if q is not None:
        statement = statement.where(ComponentClass.name.icontains(q, autoescape=True))
    return page_of(db, statement.order_by(ComponentClass.position, ComponentClass.id), limit, offset)


# Solar components


class SolarComponentOut(Answer):
    id: int = Field(description="Id of the solar component")
    name: str = Field(description="Name")
    component_class_id: int = Field(description="Id of the component class")
    roof_kind: SolarComponentRoofKind = Field(description="Roof kind")
    warranty_years: int = Field(description="Warranty years")
    origin: SolarComponentOrigin = Field(description="Origin")
    price_cents: int = Field(description="Price of one set, in cents")
    is_active: bool = Field(description="Whether it is offered at present")
    created_at: datetime = Field(description="When it was entered")
    component_class_name: str = Field(description="Name of the component class")


@app.get(
    "/solar-components",
    operation_id="list_solar_components",
    summary="List solar components",
    description="Answers a page of solar components that fit the filters given; an empty one where none do.",
    tags=["solar components"],
    response_model=Page[SolarComponentOut],
)
async def list_solar_components(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the name")] = None,
    component_class_id: Annotated[Id | None, Query(description="Only those of this component class")] = None,
    roof_kind: Annotated[SolarComponentRoofKind | None, Query(description="Only those with this roof kind")] = None,
    min_warranty_years: Annotated[
        int | None, Query(ge=0, le=1_000_000, description="Least number of warranty years")
    ] = None,
    max_warranty_years: Annotated[
        int | None, Query(ge=0, le=1_000_000, description="Highest number of warranty years")
    ] = None,
    origin: Annotated[SolarComponentOrigin | None, Query(description="Only those with this origin")] = None,
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
    statement = select(SolarComponent)
    if q is not None:
        statement = statement.where(SolarComponent.name.icontains(q, autoescape=True))
    if component_class_id is not None:
        statement = statement.where(SolarComponent.component_class_id == component_class_id)
    if roof_kind is not None:
        statement = statement.where(SolarComponent.roof_kind == roof_kind)
    if min_warranty_years is not None:
        statement = statement.where(SolarComponent.warranty_years >= min_warranty_years)
    if max_warranty_years is not None:
        statement = statement.where(SolarComponent.warranty_years <= max_warranty_years)
    if origin is not None:
        statement = statement.where(SolarComponent.origin == origin)
    if min_price_cents is not None:
        statement = statement.where(SolarComponent.price_cents >= min_price_cents)
    if max_price_cents is not None:
        statement = statement.where(SolarComponent.price_cents <= max_price_cents)
    if is_active is not None:
        statement = statement.where(SolarComponent.is_active == is_active)
    return page_of(db, sorted_by(statement, SolarComponent, sort or "name"), limit, offset)


# Homeowners


class HomeownerOut(Answer):
    id: int = Field(description="Id of the homeowner")
    full_name: str = Field(description="Full name")
    email: str = Field(description="E-mail address")
    phone: str | None = Field(None, description="Telephone number")
    lead_source: HomeownerLeadSource = Field(description="Lead source")
    town: str | None = Field(None, description="Town")
    joined_on: date = Field(description="Since when they are known here")
    is_blocked: bool = Field(description="Whether nothing new may be entered for them")


class UpdateHomeownerIn(BaseModel):
    full_name: str | None = Field(None, min_length=1, max_length=200, description="Full name")
    email: str | None = Field(None, min_length=1, max_length=200, description="E-mail address")
    phone: str | None = Field(None, min_length=1, max_length=200, description="Telephone number")
    lead_source: HomeownerLeadSource | None = Field(None, description="Lead source")
    town: str | None = Field(None, min_length=1, max_length=200, description="Town")
    is_blocked: bool | None = Field(None, description="Whether nothing new may be entered for them")


@app.get(
    "/homeowners",
    operation_id="list_homeowners",
    summary="List homeowners",
    description="Answers a page of homeowners that fit the filters given; an empty one where none do.",
    tags=["homeowners"],
    response_model=Page[HomeownerOut],
)
async def list_homeowners(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the full name or email")] = None,
    lead_source: Annotated[HomeownerLeadSource | None, Query(description="Only those with this lead source")] = None,
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
    statement = select(Homeowner)
    if q is not None:
        statement = statement.where(
            or_(Homeowner.full_name.icontains(q, autoescape=True), Homeowner.email.icontains(q, autoescape=True))
        )
    if lead_source is not None:
        statement = statement.where(Homeowner.lead_source == lead_source)
    if town is not None:
        statement = statement.where(Homeowner.town == town)
    if is_blocked is not None:
        statement = statement.where(Homeowner.is_blocked == is_blocked)
    if joined_from is not None:
        statement = statement.where(Homeowner.joined_on >= joined_from)
    if joined_to is not None:
        statement = statement.where(Homeowner.joined_on <= joined_to)
    return page_of(db, sorted_by(statement, Homeowner, sort or "full_name"), limit, offset)


@app.patch(
    "/homeowners/{homeowner_id}",
    operation_id="update_homeowner",
    summary="Change full name, email, phone, lead source, town or is blocked of a homeowner",
    description="What is left out stays as it is. Answers the homeowner.",
    tags=["homeowners"],
    response_model=HomeownerOut,
)
async def update_homeowner(
    db: Db,
    homeowner_id: Annotated[Id, Path(description="Id of the homeowner")],
    body: UpdateHomeownerIn,
) -> Homeowner:
    homeowner = find(db, Homeowner, homeowner_id, "homeowner")
    if (
        body.full_name is not None
        and exists(db, Homeowner, Homeowner.full_name == body.full_name, Homeowner.id != homeowner.id)
    ):
        raise HTTPException(409, f"There is a homeowner with the full name {body.full_name} already; choose another.")
    if body.email is not None and exists(db, Homeowner, Homeowner.email == body.email, Homeowner.id != homeowner.id):
        raise HTTPException(409, f"There is a homeowner with the email {body.email} already; choose another.")
    given = body.model_dump(exclude_none=True)
    changes = {name: value for name, value in given.items() if getattr(homeowner, name) != value}
    if not changes:
        raise HTTPException(409, "Nothing would change: no value given differs from what is stored.")
    for name, value in changes.items():
        setattr(homeowner, name, value)
    db.commit()
    return homeowner


# Equipment orders


class EquipmentOrderOut(Answer):
    id: int = Field(description="Id of the equipment order")
    reference: str = Field(description="Reference")
    homeowner_id: int = Field(description="Id of the homeowner")
    sales_area_id: int = Field(description="Sales area that serves it")
    status: EquipmentOrderStatus = Field(description="State")
    goods_cents: int = Field(description="Value of the equipment lines, in cents")
    total_cents: int = Field(description="What is to be paid, in cents")
    created_at: datetime = Field(description="When it was entered")
    placed_at: datetime | None = Field(None, description="When it was placed")
    closed_at: datetime | None = Field(None, description="When it was fulfilled, cancelled or returned")
    homeowner_name: str = Field(description="Full name of the homeowner")
    sales_area_name: str = Field(description="Name of the sales area")


class StartEquipmentOrderIn(BaseModel):
    homeowner_id: Id = Field(description="Id of the homeowner")
    sales_area_id: Id = Field(description="Sales area that serves it")


@app.get(
    "/equipment-orders",
    operation_id="list_equipment_orders",
    summary="List equipment orders",
    description="Answers a page of equipment orders that fit the filters given; an empty one where none do.",
    tags=["equipment orders"],
    response_model=Page[EquipmentOrderOut],
)
async def list_equipment_orders(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the reference")] = None,
    homeowner_id: Annotated[Id | None, Query(description="Only those of this homeowner")] = None,
    sales_area_id: Annotated[Id | None, Query(description="Only those of this sales area")] = None,
    status: Annotated[EquipmentOrderStatus | None, Query(description="Only those with this status")] = None,
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
    statement = select(EquipmentOrder)
    if q is not None:
        statement = statement.where(EquipmentOrder.reference.icontains(q, autoescape=True))
    if homeowner_id is not None:
        statement = statement.where(EquipmentOrder.homeowner_id == homeowner_id)
    if sales_area_id is not None:
        statement = statement.where(EquipmentOrder.sales_area_id == sales_area_id)
    if status is not None:
        statement = statement.where(EquipmentOrder.status == status)
    if created_from is not None:
        statement = statement.where(EquipmentOrder.created_at >= start_of(created_from))
    if created_to is not None:
        statement = statement.where(EquipmentOrder.created_at <= end_of(created_to))
    if min_total_cents is not None:
        statement = statement.where(EquipmentOrder.total_cents >= min_total_cents)
    if max_total_cents is not None:
        statement = statement.where(EquipmentOrder.total_cents <= max_total_cents)
    return page_of(db, sorted_by(statement, EquipmentOrder, sort or "-id"), limit, offset)


@app.post(
    "/equipment-orders",
    operation_id="start_equipment_order",
    summary="Start an equipment order for a homeowner",
    description="It is empty and draft; add equipment lines, then place it.",
    tags=["equipment orders"],
    response_model=EquipmentOrderOut,
    status_code=201,
)
async def start_equipment_order(db: Db, body: StartEquipmentOrderIn) -> EquipmentOrder:
    homeowner = find(db, Homeowner, body.homeowner_id, "homeowner")
    sales_area = find(db, SalesArea, body.sales_area_id, "sales area")
    if homeowner.is_blocked:
        raise HTTPException(409, f"{homeowner.full_name} is blocked; nothing new may be entered.")
    if not sales_area.is_open:
        raise HTTPException(409, f"{sales_area.name} is not in use.")
    equipment_order = EquipmentOrder(
        homeowner_id=homeowner.id,
        sales_area_id=sales_area.id,
        reference=next_reference(db, EquipmentOrder, "O"),
        created_at=now(),
    )
    db.add(equipment_order)
    db.commit()
    return equipment_order


@app.post(
    "/equipment-orders/{equipment_order_id}/fulfil",
    operation_id="fulfil_equipment_order",
    summary="Note that an equipment order was handed over",
    description="For equipment orders that are ordered.",
    tags=["equipment orders"],
    response_model=EquipmentOrderOut,
)
async def fulfil_equipment_order(
    db: Db,
    equipment_order_id: Annotated[Id, Path(description="Id of the equipment order")],
) -> EquipmentOrder:
    equipment_order = find(db, EquipmentOrder, equipment_order_id, "equipment order")
    if equipment_order.status != "ordered":
        raise HTTPException(409, f"Equipment order {equipment_order.reference} is {equipment_order.status}.")
    equipment_order.status = "installed"
    equipment_order.closed_at = now()
    db.commit()
    return equipment_order


@app.post(
    "/equipment-orders/{equipment_order_id}/cancel",
    operation_id="cancel_equipment_order",
    summary="Cancel an equipment order",
    description="Possible until it is installed.",
    tags=["equipment orders"],
    response_model=EquipmentOrderOut,
)
async def cancel_equipment_order(
    db: Db,
    equipment_order_id: Annotated[Id, Path(description="Id of the equipment order")],
) -> EquipmentOrder:
    equipment_order = find(db, EquipmentOrder, equipment_order_id, "equipment order")
    if equipment_order.status not in ("draft", "ordered"):
        raise HTTPException(
            409,
            f"Equipment order {equipment_order.reference} is {equipment_order.status} and can't be cancelled "
            "any more.",
        )
    equipment_order.status = "cancelled"
    equipment_order.closed_at = now()
    db.commit()
    return equipment_order


# Equipment lines


class EquipmentLineOut(Answer):
    id: int = Field(description="Id of the equipment line")
    equipment_order_id: int = Field(description="Id of the equipment order")
    solar_component_id: int = Field(description="Id of the solar component")
    quantity: int = Field(description="How many")
    price_cents: int = Field(description="Price of one at that time, in cents")
    equipment_order_reference: str = Field(description="Reference of the equipment order")
    solar_component_name: str = Field(description="Name of the solar component")


@app.get(
    "/equipment-lines",
    operation_id="list_equipment_lines",
    summary="List equipment lines",
    description="Answers a page of equipment lines that fit the filters given; an empty one where none do.",
    tags=["equipment lines"],
    response_model=Page[EquipmentLineOut],
)
async def list_equipment_lines(
    db: Db,
    equipment_order_id: Annotated[Id | None, Query(description="Only those of this equipment order")] = None,
    solar_component_id: Annotated[Id | None, Query(description="Only those of this solar component")] = None,
    min_quantity: Annotated[int | None, Query(ge=0, le=1_000_000, description="Least quantity")] = None,
    max_quantity: Annotated[int | None, Query(ge=0, le=1_000_000, description="Highest quantity")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(EquipmentLine)
    if equipment_order_id is not None:
        statement = statement.where(EquipmentLine.equipment_order_id == equipment_order_id)
    if solar_component_id is not None:
        statement = statement.where(EquipmentLine.solar_component_id == solar_component_id)
    if min_quantity is not None:
        statement = statement.where(EquipmentLine.quantity >= min_quantity)
    if max_quantity is not None:
        statement = statement.where(EquipmentLine.quantity <= max_quantity)
    return page_of(db, statement.order_by(EquipmentLine.id), limit, offset)


# Advisers


class AdviserOut(Answer):
    id: int = Field(description="Id of the adviser")
    name: str = Field(description="Name")
    sales_area_id: int = Field(description="Sales area where it is")
    capacity: int = Field(description="How many it has room for")
    fee_cents: int = Field(description="What a site visit costs, in cents")
    is_active: bool = Field(description="Whether it can be booked at present")
    sales_area_name: str = Field(description="Name of the sales area")


@app.get(
    "/advisers",
    operation_id="list_advisers",
    summary="List advisers",
    description="Answers a page of advisers that fit the filters given; an empty one where none do.",
    tags=["advisers"],
    response_model=Page[AdviserOut],
)
async def list_advisers(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the name")] = None,
    sales_area_id: Annotated[Id | None, Query(description="Only those of this sales area")] = None,
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
    statement = select(Adviser)
    if q is not None:
        statement = statement.where(Adviser.name.icontains(q, autoescape=True))
    if sales_area_id is not None:
        statement = statement.where(Adviser.sales_area_id == sales_area_id)
    if min_capacity is not None:
        statement = statement.where(Adviser.capacity >= min_capacity)
    if max_capacity is not None:
        statement = statement.where(Adviser.capacity <= max_capacity)
    if is_active is not None:
        statement = statement.where(Adviser.is_active == is_active)
    return page_of(db, sorted_by(statement, Adviser, sort or "name"), limit, offset)


# Visit slots


class VisitSlotOut(Answer):
    id: int = Field(description="Id of the visit slot")
    adviser_id: int = Field(description="Id of the adviser")
    starts_at: datetime = Field(description="Beginning, UTC")
    ends_at: datetime = Field(description="End, UTC")
    capacity: int = Field(description="How many there is room for")
    is_open: bool = Field(description="Whether it takes site visits")
    adviser_name: str = Field(description="Name of the adviser")


@app.get(
    "/visit-slots",
    operation_id="list_visit_slots",
    summary="List visit slots",
    description="Answers a page of visit slots that fit the filters given; an empty one where none do.",
    tags=["visit slots"],
    response_model=Page[VisitSlotOut],
)
async def list_visit_slots(
    db: Db,
    adviser_id: Annotated[Id | None, Query(description="Only those of this adviser")] = None,
    starts_from: Annotated[Day | None, Query(description="First day (starts at)")] = None,
    starts_to: Annotated[Day | None, Query(description="Last day (starts at)")] = None,
    is_open: Annotated[bool | None, Query(description="Only those that are, or are not, open")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(VisitSlot)
    if adviser_id is not None:
        statement = statement.where(VisitSlot.adviser_id == adviser_id)
    if starts_from is not None:
        statement = statement.where(VisitSlot.starts_at >= start_of(starts_from))
    if starts_to is not None:
        statement = statement.where(VisitSlot.starts_at <= end_of(starts_to))
    if is_open is not None:
        statement = statement.where(VisitSlot.is_open == is_open)
    return page_of(db, statement.order_by(VisitSlot.starts_at, VisitSlot.id), limit, offset)


# Site visits


class SiteVisitOut(Answer):
    id: int = Field(description="Id of the site visit")
    reference: str = Field(description="Reference")
    homeowner_id: int = Field(description="Id of the homeowner")
    visit_slot_id: int = Field(description="Id of the visit slot")
    status: SiteVisitStatus = Field(description="State")
    fee_cents: int = Field(description="What it costs, in cents")
    booked_at: datetime = Field(description="When it was made")
    cancelled_at: datetime | None = Field(None, description="When it was cancelled")
    homeowner_name: str = Field(description="Full name of the homeowner")
    adviser_name: str = Field(description="Name of the adviser")
    starts_at: datetime = Field(description="When it begins, UTC")


class CreateSiteVisitIn(BaseModel):
    homeowner_id: Id = Field(description="Id of the homeowner")
    visit_slot_id: Id = Field(description="Id of the visit slot")


@app.get(
    "/site-visits",
    operation_id="list_site_visits",
    summary="List site visits",
    description="Answers a page of site visits that fit the filters given; an empty one where none do.",
    tags=["site visits"],
    response_model=Page[SiteVisitOut],
)
async def list_site_visits(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the reference")] = None,
    homeowner_id: Annotated[Id | None, Query(description="Only those of this homeowner")] = None,
    visit_slot_id: Annotated[Id | None, Query(description="Only those of this visit slot")] = None,
    status: Annotated[SiteVisitStatus | None, Query(description="Only those with this status")] = None,
    booked_from: Annotated[Day | None, Query(description="First day (booked at)")] = None,
    booked_to: Annotated[Day | None, Query(description="Last day (booked at)")] = None,
    sort: Annotated[
        Literal["booked_at", "-booked_at", "fee_cents", "-fee_cents"] | None,
        Query(description="Order of the rows, descending with -"),
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(SiteVisit)
    if q is not None:
        statement = statement.where(SiteVisit.reference.icontains(q, autoescape=True))
    if homeowner_id is not None:
        statement = statement.where(SiteVisit.homeowner_id == homeowner_id)
    if visit_slot_id is not None:
        statement = statement.where(SiteVisit.visit_slot_id == visit_slot_id)
    if status is not None:
        statement = statement.where(SiteVisit.status == status)
    if booked_from is not None:
        statement = statement.where(SiteVisit.booked_at >= start_of(booked_from))
    if booked_to is not None:
        statement = statement.where(SiteVisit.booked_at <= end_of(booked_to))
    return page_of(db, sorted_by(statement, SiteVisit, sort or "-id"), limit, offset)


@app.post(
    "/site-visits",
    operation_id="create_site_visit",
    summary="Create a new site visit",
    description="Refused where the visit slot is full, closed or over, and past 2 site visits to come.",
    tags=["site visits"],
    response_model=SiteVisitOut,
    status_code=201,
)
async def create_site_visit(db: Db, body: CreateSiteVisitIn) -> SiteVisit:
    homeowner = find(db, Homeowner, body.homeowner_id, "homeowner")
    visit_slot = find(db, VisitSlot, body.visit_slot_id, "visit slot")
    if homeowner.is_blocked:
        raise HTTPException(409, f"{homeowner.full_name} is blocked; nothing new may be entered.")
    if not visit_slot.is_open or visit_slot.starts_at <= now():
        raise HTTPException(409, f"The visit slot at {visit_slot.starts_at} takes no site visits.")
    if (
        count(db, SiteVisit, SiteVisit.visit_slot_id == visit_slot.id, SiteVisit.status == "planned") + 1
        > visit_slot.capacity
    ):
        raise HTTPException(
            409,
            f"The visit slot at {visit_slot.starts_at} has room for {visit_slot.capacity}, of which "
            f"{count(db, SiteVisit, SiteVisit.visit_slot_id == visit_slot.id, SiteVisit.status == 'planned')} "
            "are taken.",
        )
    if exists(
        db,
        SiteVisit,
        SiteVisit.homeowner_id == homeowner.id,
        SiteVisit.visit_slot_id == visit_slot.id,
        SiteVisit.status == "planned",
    ):
        raise HTTPException(409, f"{homeowner.full_name} has a site visit of this visit slot already.")
    if (
        count(
            db,
            SiteVisit,
            SiteVisit.homeowner_id == homeowner.id,
            SiteVisit.status == "planned",
            SiteVisit.visit_slot.has(VisitSlot.starts_at > now()),
        )
        >= MAX_OPEN
    ):
        raise HTTPException(409, f"{homeowner.full_name} has {MAX_OPEN} site visits to come, which is the most.")
    site_visit = SiteVisit(
        homeowner_id=homeowner.id,
        visit_slot_id=visit_slot.id,
        reference=next_reference(db, SiteVisit, "B"),
        fee_cents=visit_slot.adviser.fee_cents,
        booked_at=now(),
    )
    db.add(site_visit)
    db.commit()
    return site_visit


@app.post(
    "/site-visits/{site_visit_id}/cancel",
    operation_id="cancel_site_visit",
    summary="Cancel a site visit",
    description="Possible until 24 hours before it begins. The fee is dropped.",
    tags=["site visits"],
    response_model=SiteVisitOut,
)
async def cancel_site_visit(
    db: Db,
    site_visit_id: Annotated[Id, Path(description="Id of the site visit")],
) -> SiteVisit:
    site_visit = find(db, SiteVisit, site_visit_id, "site visit")
    if site_visit.status != "planned":
        raise HTTPException(409, f"Site visit {site_visit.reference} is {site_visit.status}.")
    if site_visit.visit_slot.starts_at < now() + timedelta(hours=CANCEL_HOURS):
        raise HTTPException(
            409,
            f"Site visit {site_visit.reference} begins at {site_visit.visit_slot.starts_at} and could be "
            f"cancelled until {CANCEL_HOURS} hours before.",
        )
    site_visit.status = 'called_off'
    site_visit.cancelled_at = now()
    site_visit.fee_cents = 0
    db.commit()
    return site_visit


@app.post(
    "/site-visits/{site_visit_id}/check-in",
    operation_id="check_in_site_visit",
    summary="Note that the homeowner came",
    description="For site visits that have begun; the status becomes done.",
    tags=["site visits"],
    response_model=SiteVisitOut,
)
async def check_in_site_visit(
    db: Db,
    site_visit_id: Annotated[Id, Path(description="Id of the site visit")],
) -> SiteVisit:
    site_visit = find(db, SiteVisit, site_visit_id, "site visit")
    if site_visit.status != "planned":
        raise HTTPException(409, f"Site visit {site_visit.reference} is {site_visit.status}.")
    if site_visit.visit_slot.starts_at > now():
        raise HTTPException(409, f"It begins at {site_visit.visit_slot.starts_at} only.")
    site_visit.status = "done"
    db.commit()
    return site_visit


@app.post(
    "/site-visits/{site_visit_id}/mark-missed",
    operation_id="mark_missed_site_visit",
    summary="Note that the homeowner did not come",
    description="For site visits that have begun; the status becomes nobody_home.",
    tags=["site visits"],
    response_model=SiteVisitOut,
)
async def mark_missed_site_visit(
    db: Db,
    site_visit_id: Annotated[Id, Path(description="Id of the site visit")],
) -> SiteVisit:
    site_visit = find(db, SiteVisit, site_visit_id, "site visit")
    if site_visit.status != "planned":
        raise HTTPException(409, f"Site visit {site_visit.reference} is {site_visit.status}.")
    if site_visit.visit_slot.starts_at > now():
        raise HTTPException(409, f"It begins at {site_visit.visit_slot.starts_at} only.")
    site_visit.status = "nobody_home"
    db.commit()
    return site_visit


# Discount requests


class DiscountRequestOut(Answer):
    id: int = Field(description="Id of the discount request")
    reference: str = Field(description="Reference")
    homeowner_id: int = Field(description="Id of the homeowner")
    purpose: str = Field(description="What it is for")
    amount_cents: int = Field(description="Amount in cents")
    status: DiscountRequestStatus = Field(description="State")
    created_at: datetime = Field(description="When it was entered")
    submitted_at: datetime | None = Field(None, description="When it was submitted")
    decided_at: datetime | None = Field(None, description="When it was decided")
    homeowner_name: str = Field(description="Full name of the homeowner")


class DiscountStepOut(Answer):
    id: int = Field(description="Id of the discount step")
    discount_request_id: int = Field(description="Id of the discount request")
    position: int = Field(description="Number of the step")
    name: DiscountStepName = Field(description="Which step it is")
    status: DiscountStepStatus = Field(description="State")
    approver_id: int | None = Field(None, description="Who decided")
    reason: str | None = Field(None, description="Why")
    decided_at: datetime | None = Field(None, description="When it was decided")
    discount_request_reference: str = Field(description="Reference of the discount request")
    approver_name: str | None = Field(None, description="Who decided")


class DraftDiscountRequestIn(BaseModel):
    homeowner_id: Id = Field(description="Id of the homeowner")
    purpose: str = Field(min_length=1, max_length=200, description="What it is for")
    amount_cents: int = Field(ge=1, le=100_000_000, description="Amount in cents")


class DiscountRequestDetail(DiscountRequestOut):
    discount_steps: list[DiscountStepOut] = Field(description="Its discount steps")


class ApproveDiscountRequestIn(BaseModel):
    approver_id: Id = Field(description="Who decides")


class RejectDiscountRequestIn(BaseModel):
    approver_id: Id = Field(description="Who decides")
    reason: str = Field(min_length=3, max_length=200, description="Why")


@app.get(
    "/discount-requests",
    operation_id="list_discount_requests",
    summary="List discount requests",
    description="Answers a page of discount requests that fit the filters given; an empty one where none do.",
    tags=["discount requests"],
    response_model=Page[DiscountRequestOut],
)
async def list_discount_requests(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the reference or purpose")] = None,
    homeowner_id: Annotated[Id | None, Query(description="Only those of this homeowner")] = None,
    status: Annotated[DiscountRequestStatus | None, Query(description="Only those with this status")] = None,
    min_amount_cents: Annotated[int | None, Query(ge=0, le=100_000_000, description="Least amount in cents")] = None,
    max_amount_cents: Annotated[int | None, Query(ge=0, le=100_000_000, description="Highest amount in cents")] = None,
    created_from: Annotated[Day | None, Query(description="First day (created at)")] = None,
    created_to: Annotated[Day | None, Query(description="Last day (created at)")] = None,
    sort: Annotated[
        Literal["amount_cents", "-amount_cents", "created_at", "-created_at"] | None,
        Query(description="Order of the rows, descending with -"),
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(DiscountRequest)
    if q is not None:
        statement = statement.where(
            or_(
                DiscountRequest.reference.icontains(q, autoescape=True),
                DiscountRequest.purpose.icontains(q, autoescape=True),
            ),
        )
    if homeowner_id is not None:
        statement = statement.where(DiscountRequest.homeowner_id == homeowner_id)
    if status is not None:
        statement = statement.where(DiscountRequest.status == status)
    if min_amount_cents is not None:
        statement = statement.where(DiscountRequest.amount_cents >= min_amount_cents)
    if max_amount_cents is not None:
        statement = statement.where(DiscountRequest.amount_cents <= max_amount_cents)
    if created_from is not None:
        statement = statement.where(DiscountRequest.created_at >= start_of(created_from))
    if created_to is not None:
        statement = statement.where(DiscountRequest.created_at <= end_of(created_to))
    return page_of(db, sorted_by(statement, DiscountRequest, sort or "-id"), limit, offset)


@app.post(
    "/discount-requests",
    operation_id="draft_discount_request",
    summary="Draft a new discount request",
    description="It stays a draft, and can be changed, until it is submitted.",
    tags=["discount requests"],
    response_model=DiscountRequestOut,
    status_code=201,
)
async def draft_discount_request(db: Db, body: DraftDiscountRequestIn) -> DiscountRequest:
    homeowner = find(db, Homeowner, body.homeowner_id, "homeowner")
    if homeowner.is_blocked:
        raise HTTPException(409, f"{homeowner.full_name} is blocked; nothing new may be entered.")
    discount_request = DiscountRequest(
        homeowner_id=homeowner.id,
        purpose=body.purpose,
        amount_cents=body.amount_cents,
        reference=next_reference(db, DiscountRequest, "R"),
        created_at=now(),
    )
    db.add(discount_request)
    db.commit()
    return discount_request


@app.post(
    "/discount-requests/{discount_request_id}/submit",
    operation_id="submit_discount_request",
    summary="Submit a discount request for decision",
    description="Makes one step, and the others too above 800 in full units.",
    tags=["discount requests"],
    response_model=DiscountRequestDetail,
)
async def submit_discount_request(
    db: Db,
    discount_request_id: Annotated[Id, Path(description="Id of the discount request")],
) -> DiscountRequest:
    discount_request = find(db, DiscountRequest, discount_request_id, "discount request")
    if discount_request.status != "draft":
        raise HTTPException(409, f"Discount request {discount_request.reference} is {discount_request.status}.")
    discount_request.status = "submitted"
    discount_request.submitted_at = now()
    db.add(DiscountStep(discount_request_id=discount_request.id, position=1, name="sales lead"))
    if discount_request.amount_cents > SECOND_OVER * 100:
        db.add(DiscountStep(discount_request_id=discount_request.id, position=2, name="management"))
    db.commit()
    return discount_request


@app.post(
    "/discount-requests/{discount_request_id}/approve",
    operation_id="approve_discount_request",
    summary="Approve the next open step of a discount request",
    description="With the last one the discount request itself becomes granted. Nobody decides two steps of it.",
    tags=["discount requests"],
    response_model=DiscountRequestDetail,
)
async def approve_discount_request(
    db: Db,
    discount_request_id: Annotated[Id, Path(description="Id of the discount request")],
    body: ApproveDiscountRequestIn,
) -> DiscountRequest:
    discount_request = find(db, DiscountRequest, discount_request_id, "discount request")
    if discount_request.status != "submitted":
        raise HTTPException(409, f"Discount request {discount_request.reference} is {discount_request.status}.")
    approver = find(db, User, body.approver_id, "user")
    if not approver.is_active:
        raise HTTPException(409, f"{approver.full_name} does not work here at present.")
    if exists(
        db,
        DiscountStep,
        DiscountStep.discount_request_id == discount_request.id,
        DiscountStep.approver_id == approver.id,
    ):
        raise HTTPException(
            409, f"{approver.full_name} has decided a step of {discount_request.reference} already; somebody else must."
        )
    discount_step = db.scalars(
        select(DiscountStep)
        .where(DiscountStep.discount_request_id == discount_request.id, DiscountStep.status == 'submitted')
        .order_by(DiscountStep.position, DiscountStep.id)
    ).first()
    discount_step.status = "granted"
    discount_step.approver_id = approver.id
    discount_step.decided_at = now()
    if not exists(
        db, DiscountStep, DiscountStep.discount_request_id == discount_request.id, DiscountStep.status == "submitted"
    ):
        discount_request.status = "granted"
        discount_request.decided_at = now()
    db.commit()
    return discount_request


@app.post(
    "/discount-requests/{discount_request_id}/reject",
    operation_id="reject_discount_request",
    summary="Reject a discount request",
    description="With the next open step the whole discount request becomes refused; steps after it stay open.",
    tags=["discount requests"],
    response_model=DiscountRequestDetail,
)
async def reject_discount_request(
    db: Db,
    discount_request_id: Annotated[Id, Path(description="Id of the discount request")],
    body: RejectDiscountRequestIn,
) -> DiscountRequest:
    discount_request = find(db, DiscountRequest, discount_request_id, "discount request")
    if discount_request.status != "submitted":
        raise HTTPException(409, f"Discount request {discount_request.reference} is {discount_request.status}.")
    approver = find(db, User, body.approver_id, "user")
    if not approver.is_active:
        raise HTTPException(409, f"{approver.full_name} does not work here at present.")
    if exists(
        db,
        DiscountStep,
        DiscountStep.discount_request_id == discount_request.id,
        DiscountStep.approver_id == approver.id,
    ):
        raise HTTPException(
            409, f"{approver.full_name} has decided a step of {discount_request.reference} already; somebody else must."
        )
    discount_step = db.scalars(
        select(DiscountStep)
        .where(DiscountStep.discount_request_id == discount_request.id, DiscountStep.status == 'submitted')
        .order_by(DiscountStep.position, DiscountStep.id)
    ).first()
    discount_step.status = "refused"
    discount_step.approver_id = approver.id
    discount_step.reason = body.reason
    discount_step.decided_at = now()
    discount_request.status = "refused"
    discount_request.decided_at = now()
    db.commit()
    return discount_request


@app.post(
    "/discount-requests/{discount_request_id}/withdraw",
    operation_id="withdraw_discount_request",
    summary="Withdraw a discount request",
    description="Possible until it is decided.",
    tags=["discount requests"],
    response_model=DiscountRequestOut,
)
async def withdraw_discount_request(
    db: Db,
    discount_request_id: Annotated[Id, Path(description="Id of the discount request")],
) -> DiscountRequest:
    discount_request = find(db, DiscountRequest, discount_request_id, "discount request")
    if discount_request.status not in ("draft", "submitted"):
        raise HTTPException(
            409,
            f"Discount request {discount_request.reference} is {discount_request.status} and can't be "
            "withdrawn any more.",
        )
    discount_request.status = "withdrawn"
    db.commit()
    return discount_request


# Offers


class OfferOut(Answer):
    id: int = Field(description="Id of the offer")
    reference: str = Field(description="Reference")
    title: str = Field(description="Title")
    kind: OfferKind = Field(description="Kind")
    homeowner_id: int = Field(description="Homeowner that it is about")
    status: OfferStatus = Field(description="State")
    created_at: datetime = Field(description="When it was entered")
    sent_at: datetime | None = Field(None, description="When it was sent")
    expires_on: date | None = Field(None, description="Last day to sign it")
    signed_at: datetime | None = Field(None, description="When the last one signed")
    homeowner_name: str = Field(description="Full name of the homeowner")


class DraftOfferIn(BaseModel):
    title: str = Field(min_length=1, max_length=200, description="Title")
    kind: OfferKind = Field(description="Kind")
    homeowner_id: Id = Field(description="Homeowner that it is about")


@app.get(
    "/offers",
    operation_id="list_offers",
    summary="List offers",
    description="Answers a page of offers that fit the filters given; an empty one where none do.",
    tags=["offers"],
    response_model=Page[OfferOut],
)
async def list_offers(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the reference or title")] = None,
    kind: Annotated[OfferKind | None, Query(description="Only those with this kind")] = None,
    homeowner_id: Annotated[Id | None, Query(description="Only those of this homeowner")] = None,
    status: Annotated[OfferStatus | None, Query(description="Only those with this status")] = None,
    expires_from: Annotated[Day | None, Query(description="First day (expires on)")] = None,
    expires_to: Annotated[Day | None, Query(description="Last day (expires on)")] = None,
    sort: Annotated[
        Literal["created_at", "-created_at", "title", "-title"] | None,
        Query(description="Order of the rows, descending with -"),
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(Offer)
    if q is not None:
        statement = statement.where(
            or_(Offer.reference.icontains(q, autoescape=True), Offer.title.icontains(q, autoescape=True))
        )
    if kind is not None:
        statement = statement.where(Offer.kind == kind)
    if homeowner_id is not None:
        statement = statement.where(Offer.homeowner_id == homeowner_id)
    if status is not None:
        statement = statement.where(Offer.status == status)
    if expires_from is not None:
        statement = statement.where(Offer.expires_on >= expires_from)
    if expires_to is not None:
        statement = statement.where(Offer.expires_on <= expires_to)
    return page_of(db, sorted_by(statement, Offer, sort or "-id"), limit, offset)


@app.post(
    "/offers",
    operation_id="draft_offer",
    summary="Draft a new offer",
    description="A draft without signers; add those, then send it.",
    tags=["offers"],
    response_model=OfferOut,
    status_code=201,
)
async def draft_offer(db: Db, body: DraftOfferIn) -> Offer:
    homeowner = find(db, Homeowner, body.homeowner_id, "homeowner")
    if homeowner.is_blocked:
        raise HTTPException(409, f"{homeowner.full_name} is blocked; nothing new may be entered.")
    offer = Offer(
        title=body.title,
        kind=body.kind,
        homeowner_id=homeowner.id,
        reference=next_reference(db, Offer, "D"),
        created_at=now(),
    )
    db.add(offer)
    db.commit()
    return offer


@app.post(
    "/offers/{offer_id}/void",
    operation_id="void_offer",
    summary="Make an offer void",
    description="Possible until it is signed or declined.",
    tags=["offers"],
    response_model=OfferOut,
)
async def void_offer(db: Db, offer_id: Annotated[Id, Path(description="Id of the offer")]) -> Offer:
    offer = find(db, Offer, offer_id, "offer")
    if offer.status not in ("draft", "sent"):
        raise HTTPException(409, f"Offer {offer.reference} is {offer.status} and can't be made void any more.")
    offer.status = "void"
    db.commit()
    return offer


# Client signatures


class ClientSignatureOut(Answer):
    id: int = Field(description="Id of the client signature")
    offer_id: int = Field(description="Id of the offer")
    homeowner_id: int = Field(description="Homeowner that is to sign")
    position: int = Field(description="Its place among the signers")
    status: ClientSignatureStatus = Field(description="State")
    reason: str | None = Field(None, description="Why it was declined")
    answered_at: datetime | None = Field(None, description="When they signed or declined")
    homeowner_name: str = Field(description="Full name of the homeowner")
    offer_reference: str = Field(description="Reference of the offer")


class AddSignerIn(BaseModel):
    offer_id: Id = Field(description="Id of the offer")
    homeowner_id: Id = Field(description="Homeowner that is to sign")


class DeclineClientSignatureIn(BaseModel):
    reason: str = Field(min_length=3, max_length=200, description="Why")


@app.get(
    "/client-signatures",
    operation_id="list_client_signatures",
    summary="List client signatures",
    description="Answers a page of client signatures that fit the filters given; an empty one where none do.",
    tags=["client signatures"],
    response_model=Page[ClientSignatureOut],
)
async def list_client_signatures(
    db: Db,
    offer_id: Annotated[Id | None, Query(description="Only those of this offer")] = None,
    homeowner_id: Annotated[Id | None, Query(description="Only those of this homeowner")] = None,
    status: Annotated[ClientSignatureStatus | None, Query(description="Only those with this status")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(ClientSignature)
    if offer_id is not None:
        statement = statement.where(ClientSignature.offer_id == offer_id)
    if homeowner_id is not None:
        statement = statement.where(ClientSignature.homeowner_id == homeowner_id)
    if status is not None:
        statement = statement.where(ClientSignature.status == status)
    return page_of(db, statement.order_by(ClientSignature.offer_id, ClientSignature.id), limit, offset)


@app.post(
    "/client-signatures",
    operation_id="add_signer",
    summary="Add a homeowner that is to sign an offer",
    description="While it is a draft, and at most 2.",
    tags=["client signatures"],
    response_model=ClientSignatureOut,
    status_code=201,
)
async def add_signer(db: Db, body: AddSignerIn) -> ClientSignature:
    offer = find(db, Offer, body.offer_id, "offer")
    homeowner = find(db, Homeowner, body.homeowner_id, "homeowner")
    if offer.status != "draft":
        raise HTTPException(409, f"Offer {offer.reference} is {offer.status}.")
    if exists(db, ClientSignature, ClientSignature.offer_id == offer.id, ClientSignature.homeowner_id == homeowner.id):
        raise HTTPException(409, f"{homeowner.full_name} is to sign it already.")
    if count(db, ClientSignature, ClientSignature.offer_id == offer.id) >= MAX_SIGNERS:
        raise HTTPException(409, f"{offer.reference} has {MAX_SIGNERS} signers, which is the most.")
    client_signature = ClientSignature(
        offer_id=offer.id,
        homeowner_id=homeowner.id,
        position=count(db, ClientSignature, ClientSignature.offer_id == offer.id) + 1,
    )
    db.add(client_signature)
    db.commit()
    return client_signature


@app.post(
    "/client-signatures/{client_signature_id}/decline",
    operation_id="decline_client_signature",
    summary="Note that a homeowner declines to sign",
    description="The whole offer becomes declined.",
    tags=["client signatures"],
    response_model=ClientSignatureOut,
)
async def decline_client_signature(
    db: Db,
    client_signature_id: Annotated[Id, Path(description="Id of the client signature")],
    body: DeclineClientSignatureIn,
) -> ClientSignature:
    client_signature = find(db, ClientSignature, client_signature_id, "client signature")
    offer = find(db, Offer, client_signature.offer_id, "offer")
    if offer.status != "sent":
        raise HTTPException(409, f"Offer {offer.reference} is {offer.status}.")
    if client_signature.status != "sent":
        raise HTTPException(409, f"{client_signature.homeowner.full_name} has answered: {client_signature.status}.")
    if offer.expires_on < today():
        raise HTTPException(409, f"Offer {offer.reference} could be signed until {offer.expires_on}.")
    client_signature.status = "declined"
    client_signature.reason = body.reason
    client_signature.answered_at = now()
    offer.status = "declined"
    db.commit()
    return client_signature


# Lead threads


class LeadThreadOut(Answer):
    id: int = Field(description="Id of the lead thread")
    subject: str = Field(description="What it is about")
    status: LeadThreadStatus = Field(description="State")
    created_at: datetime = Field(description="When it was entered")
    last_sent_at: datetime | None = Field(None, description="When something was last sent in it")


class LeadThreadRecipientOut(Answer):
    id: int = Field(description="Id of the lead thread recipient")
    lead_thread_id: int = Field(description="Id of the lead thread")
    homeowner_id: int = Field(description="Id of the homeowner")
    added_at: datetime = Field(description="Since when they take part")
    lead_thread_subject: str = Field(description="What it is about of the lead thread")
    homeowner_name: str = Field(description="Full name of the homeowner")


class LeadMailOut(Answer):
    id: int = Field(description="Id of the lead mail")
    lead_thread_id: int = Field(description="Id of the lead thread")
    sender_id: int = Field(description="Who sent it")
    body: str = Field(description="What it says")
    sent_at: datetime = Field(description="When it was sent")
    lead_thread_subject: str = Field(description="What it is about of the lead thread")
    sender_name: str = Field(description="Who sent it")


class OpenLeadThreadIn(BaseModel):
    subject: str = Field(min_length=1, max_length=200, description="What it is about")


class LeadThreadDetail(LeadThreadOut):
    lead_thread_recipients: list[LeadThreadRecipientOut] = Field(description="Its lead thread recipients")
    lead_mails: list[LeadMailOut] = Field(description="Its lead mails")


@app.get(
    "/lead-threads",
    operation_id="list_lead_threads",
    summary="List lead threads",
    description="Answers a page of lead threads that fit the filters given; an empty one where none do.",
    tags=["lead threads"],
    response_model=Page[LeadThreadOut],
)
async def list_lead_threads(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the subject")] = None,
    status: Annotated[LeadThreadStatus | None, Query(description="Only those with this status")] = None,
    created_from: Annotated[Day | None, Query(description="First day (created at)")] = None,
    created_to: Annotated[Day | None, Query(description="Last day (created at)")] = None,
    sort: Annotated[
        Literal["last_sent_at", "-last_sent_at", "created_at", "-created_at", "subject", "-subject"] | None,
        Query(description="Order of the rows, descending with -"),
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(LeadThread)
    if q is not None:
        statement = statement.where(LeadThread.subject.icontains(q, autoescape=True))
    if status is not None:
        statement = statement.where(LeadThread.status == status)
    if created_from is not None:
        statement = statement.where(LeadThread.created_at >= start_of(created_from))
    if created_to is not None:
        statement = statement.where(LeadThread.created_at <= end_of(created_to))
    return page_of(db, sorted_by(statement, LeadThread, sort or "-id"), limit, offset)


@app.post(
    "/lead-threads",
    operation_id="open_lead_thread",
    summary="Open a new lead thread",
    description="It has no recipients and nothing in it yet. Subjects are unique.",
    tags=["lead threads"],
    response_model=LeadThreadOut,
    status_code=201,
)
async def open_lead_thread(db: Db, body: OpenLeadThreadIn) -> LeadThread:
    if exists(db, LeadThread, LeadThread.subject == body.subject):
        raise HTTPException(409, f"There is a lead thread with the subject {body.subject} already; choose another.")
    lead_thread = LeadThread(subject=body.subject, created_at=now())
    db.add(lead_thread)
    db.commit()
    return lead_thread


@app.get(
    "/lead-threads/{lead_thread_id}",
    operation_id="get_lead_thread",
    summary="Show one lead thread with its lead thread recipients and lead mails",
    description="Answers the lead thread with its lead thread recipients and lead mails; 404 where there is none with this id.",
    tags=["lead threads"],
    response_model=LeadThreadDetail,
)
async def get_lead_thread(
    db: Db,
    lead_thread_id: Annotated[Id, Path(description="Id of the lead thread")],
) -> LeadThread:
    lead_thread = find(db, LeadThread, lead_thread_id, "lead thread")
    return lead_thread


@app.post(
    "/lead-threads/{lead_thread_id}/reopen",
    operation_id="reopen_lead_thread",
    summary="Open a lead thread again",
    description="Answers the lead thread.",
    tags=["lead threads"],
    response_model=LeadThreadOut,
)
async def reopen_lead_thread(
    db: Db,
    lead_thread_id: Annotated[Id, Path(description="Id of the lead thread")],
) -> LeadThread:
    lead_thread = find(db, LeadThread, lead_thread_id, "lead thread")
    if lead_thread.status != "archived":
        raise HTTPException(409, f"Lead thread {lead_thread.subject} is {lead_thread.status}.")
    lead_thread.status = "open"
    db.commit()
    return lead_thread


# Lead thread recipients


@app.get(
    "/lead-thread-recipients",
    operation_id="list_lead_thread_recipients",
    summary="List lead thread recipients",
    description="Answers a page of lead thread recipients that fit the filters given; an empty one where none do.",
    tags=["lead thread recipients"],
    response_model=Page[LeadThreadRecipientOut],
)
async def list_lead_thread_recipients(
    db: Db,
    lead_thread_id: Annotated[Id | None, Query(description="Only those of this lead thread")] = None,
    homeowner_id: Annotated[Id | None, Query(description="Only those of this homeowner")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(LeadThreadRecipient)
    if lead_thread_id is not None:
        statement = statement.where(LeadThreadRecipient.lead_thread_id == lead_thread_id)
    if homeowner_id is not None:
        statement = statement.where(LeadThreadRecipient.homeowner_id == homeowner_id)
    return page_of(db, statement.order_by(LeadThreadRecipient.id), limit, offset)


# Lead pipelines


class LeadPipelineOut(Answer):
    id: int = Field(description="Id of the lead pipeline")
    name: str = Field(description="Name")
    lead_id: int = Field(description="Who leads it")
    begins_on: date = Field(description="First day")
    ends_on: date = Field(description="Last day")
    is_closed: bool = Field(description="Whether it is over")
    lead_name: str = Field(description="Who leads it")


@app.get(
    "/lead-pipelines",
    operation_id="list_lead_pipelines",
    summary="List lead pipelines",
    description="Answers a page of lead pipelines that fit the filters given; an empty one where none do.",
    tags=["lead pipelines"],
    response_model=Page[LeadPipelineOut],
)
async def list_lead_pipelines(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the name")] = None,
    lead_id: Annotated[Id | None, Query(description="Only those of this lead")] = None,
    is_closed: Annotated[bool | None, Query(description="Only those that are, or are not, closed")] = None,
    sort: Annotated[
        Literal["ends_on", "-ends_on", "name", "-name"] | None,
        Query(description="Order of the rows, descending with -"),
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(LeadPipeline)
    if q is not None:
        statement = statement.where(LeadPipeline.name.icontains(q, autoescape=True))
    if lead_id is not None:
        statement = statement.where(LeadPipeline.lead_id == lead_id)
    if is_closed is not None:
        statement = statement.where(LeadPipeline.is_closed == is_closed)
    return page_of(db, sorted_by(statement, LeadPipeline, sort or "name"), limit, offset)


# Sales tasks


class SalesTaskOut(Answer):
    id: int = Field(description="Id of the sales task")
    lead_pipeline_id: int = Field(description="Id of the lead pipeline")
    title: str = Field(description="Title")
    assignee_id: int | None = Field(None, description="Who does it")
    priority: SalesTaskPriority = Field(description="Priority")
    effort: int = Field(description="Effort in hours")
    status: SalesTaskStatus = Field(description="State")
    due_on: date | None = Field(None, description="Day by which it should be done")
    created_at: datetime = Field(description="When it was entered")
    finished_at: datetime | None = Field(None, description="When it was done")
    lead_pipeline_name: str = Field(description="Name of the lead pipeline")
    assignee_name: str | None = Field(None, description="Who does it")


class AddSalesTaskIn(BaseModel):
    lead_pipeline_id: Id = Field(description="Id of the lead pipeline")
    title: str = Field(min_length=1, max_length=200, description="Title")
    effort: int = Field(ge=1, le=400, description="Effort in hours")
    priority: SalesTaskPriority = Field("normal", description="Priority")
    due_on: Day | None = Field(None, description="Day by which it should be done")


@app.get(
    "/sales-tasks",
    operation_id="list_sales_tasks",
    summary="List sales tasks",
    description="Answers a page of sales tasks that fit the filters given; an empty one where none do.",
    tags=["sales tasks"],
    response_model=Page[SalesTaskOut],
)
async def list_sales_tasks(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the title")] = None,
    lead_pipeline_id: Annotated[Id | None, Query(description="Only those of this lead pipeline")] = None,
    assignee_id: Annotated[Id | None, Query(description="Only those of this assignee")] = None,
    status: Annotated[SalesTaskStatus | None, Query(description="Only those with this status")] = None,
    priority: Annotated[SalesTaskPriority | None, Query(description="Only those with this priority")] = None,
    due_from: Annotated[Day | None, Query(description="First day (due on)")] = None,
    due_to: Annotated[Day | None, Query(description="Last day (due on)")] = None,
    min_effort: Annotated[int | None, Query(ge=0, le=1_000_000, description="Least effort")] = None,
    max_effort: Annotated[int | None, Query(ge=0, le=1_000_000, description="Highest effort")] = None,
    sort: Annotated[
        Literal["due_on", "-due_on", "effort", "-effort", "created_at", "-created_at"] | None,
        Query(description="Order of the rows, descending with -"),
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(SalesTask)
    if q is not None:
        statement = statement.where(SalesTask.title.icontains(q, autoescape=True))
    if lead_pipeline_id is not None:
        statement = statement.where(SalesTask.lead_pipeline_id == lead_pipeline_id)
    if assignee_id is not None:
        statement = statement.where(SalesTask.assignee_id == assignee_id)
    if status is not None:
        statement = statement.where(SalesTask.status == status)
    if priority is not None:
        statement = statement.where(SalesTask.priority == priority)
    if due_from is not None:
        statement = statement.where(SalesTask.due_on >= due_from)
    if due_to is not None:
        statement = statement.where(SalesTask.due_on <= due_to)
    if min_effort is not None:
        statement = statement.where(SalesTask.effort >= min_effort)
    if max_effort is not None:
        statement = statement.where(SalesTask.effort <= max_effort)
    return page_of(db, sorted_by(statement, SalesTask, sort or "id"), limit, offset)


@app.post(
    "/sales-tasks",
    operation_id="add_sales_task",
    summary="Add a new sales task",
    description="It is to_do, and nobody's yet. Titles are unique in a lead pipeline.",
    tags=["sales tasks"],
    response_model=SalesTaskOut,
    status_code=201,
)
async def add_sales_task(db: Db, body: AddSalesTaskIn) -> SalesTask:
    lead_pipeline = find(db, LeadPipeline, body.lead_pipeline_id, "lead pipeline")
    if lead_pipeline.is_closed:
        raise HTTPException(409, f"{lead_pipeline.name} is closed.")
    if exists(db, SalesTask, SalesTask.lead_pipeline_id == lead_pipeline.id, SalesTask.title == body.title):
        raise HTTPException(409, f"{lead_pipeline.name} has a sales task of that title already.")
    sales_task = SalesTask(
        lead_pipeline_id=lead_pipeline.id,
        title=body.title,
        effort=body.effort,
        priority=body.priority,
        due_on=body.due_on,
        created_at=now(),
    )
    db.add(sales_task)
    db.commit()
    return sales_task


@app.post(
    "/sales-tasks/{sales_task_id}/start",
    operation_id="start_sales_task",
    summary="Start a sales task",
    description="It becomes in_progress. Whoever does it may have 8 at a time.",
    tags=["sales tasks"],
    response_model=SalesTaskOut,
)
async def start_sales_task(db: Db, sales_task_id: Annotated[Id, Path(description="Id of the sales task")]) -> SalesTask:
    sales_task = find(db, SalesTask, sales_task_id, "sales task")
    if sales_task.status != "to_do":
        raise HTTPException(409, f"Sales task {sales_task.title} is {sales_task.status}.")
    if sales_task.assignee_id is None:
        raise HTTPException(409, "Nobody does it yet; assign somebody first.")
    if (
        count(db, SalesTask, SalesTask.assignee_id == sales_task.assignee_id, SalesTask.status == "in_progress")
        >= WIP_LIMIT
    ):
        raise HTTPException(
            409, f"{sales_task.assignee.full_name} has {WIP_LIMIT} sales tasks under way, which is the most."
        )
    sales_task.status = "in_progress"
    db.commit()
    return sales_task


@app.post(
    "/sales-tasks/{sales_task_id}/hand-in",
    operation_id="hand_in_sales_task",
    summary="Hand in a sales task for review",
    description="It becomes with_client.",
    tags=["sales tasks"],
    response_model=SalesTaskOut,
)
async def hand_in_sales_task(
    db: Db,
    sales_task_id: Annotated[Id, Path(description="Id of the sales task")],
) -> SalesTask:
    sales_task = find(db, SalesTask, sales_task_id, "sales task")
    if sales_task.status != "in_progress":
        raise HTTPException(409, f"Sales task {sales_task.title} is {sales_task.status}.")
    sales_task.status = "with_client"
    db.commit()
    return sales_task


@app.post(
    "/sales-tasks/{sales_task_id}/finish",
    operation_id="finish_sales_task",
    summary="Finish a sales task",
    description="After its review; it becomes done.",
    tags=["sales tasks"],
    response_model=SalesTaskOut,
)
async def finish_sales_task(
    db: Db,
    sales_task_id: Annotated[Id, Path(description="Id of the sales task")],
) -> SalesTask:
    sales_task = find(db, SalesTask, sales_task_id, "sales task")
    if sales_task.status != "with_client":
        raise HTTPException(409, f"Sales task {sales_task.title} is {sales_task.status}.")
    sales_task.status = "done"
    sales_task.finished_at = now()
    db.commit()
    return sales_task


@app.post(
    "/sales-tasks/{sales_task_id}/put-back",
    operation_id="put_back_sales_task",
    summary="Put a sales task back to the beginning",
    description="It becomes to_do and stays with whoever does it.",
    tags=["sales tasks"],
    response_model=SalesTaskOut,
)
async def put_back_sales_task(
    db: Db,
    sales_task_id: Annotated[Id, Path(description="Id of the sales task")],
) -> SalesTask:
    sales_task = find(db, SalesTask, sales_task_id, "sales task")
    if sales_task.status not in ("in_progress", "with_client"):
        raise HTTPException(409, f"Sales task {sales_task.title} is {sales_task.status}.")
    sales_task.status = "to_do"
    db.commit()
    return sales_task


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host=os.getenv("HOST", "127.0.0.1"), port=int(os.getenv("PORT", "8000")))
