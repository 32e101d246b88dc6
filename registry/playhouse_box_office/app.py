"""Box office of Harbour Lane Playhouse, a theatre with two stages in Galway.

The signed-in user is user 1. Money is in euro cents. Times are UTC, which is Galway's own time until 29 March 2026.
House rules that the management may change (time limits, fees, allowances) are rows of `policies`; the code reads them there.
"""

import os
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar, get_args

from fastapi import Depends, FastAPI, HTTPException, Path, Query
from pydantic import BaseModel, Field, StringConstraints
from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    Index,
    Select,
    Text,
    UniqueConstraint,
    create_engine,
    event,
    func,
    or_,
    select,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, joinedload, mapped_column, relationship, selectinload, sessionmaker

engine = create_engine(
    os.getenv("DATABASE_PATH") or "sqlite:///playhouse_box_office.db",
    connect_args={"check_same_thread": False},
)


@event.listens_for(engine, "connect")
def enforce_foreign_keys(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA foreign_keys = ON")


SessionLocal = sessionmaker(bind=engine, expire_on_commit=False)

app = FastAPI(
    title="Playhouse Box Office",
    version="1.0.0",
    description="Sells and changes theatre tickets: bookings, refunds, memberships, vouchers, waiting lists, volunteer shifts.",
)

CURRENT_USER_ID = 1
MAX_ID = 2**31 - 1

Role = Literal["clerk", "supervisor", "house_manager"]
PolicyUnit = Literal["minutes", "hours", "days", "years", "cents", "tickets"]
SeatKind = Literal["standard", "restricted_view", "wheelchair", "companion"]
Genre = Literal["drama", "comedy", "musical", "family", "concert", "thriller"]
PerformanceKind = Literal["evening", "matinee", "relaxed", "captioned"]
PricedType = Literal["adult", "concession", "child"]
TicketType = Literal["adult", "concession", "child", "companion"]
BookingStatus = Literal["held", "confirmed", "released", "refunded"]
TicketStatus = Literal["held", "sold", "released", "exchanged", "refunded"]
TillMethod = Literal["card", "cash"]
SettleMethod = Literal["card", "cash", "credit"]
PaymentMethod = Literal["card", "cash", "voucher", "credit"]
RefundMethod = Literal["original", "credit"]
RefundReason = Literal["customer_request", "performance_cancelled", "exchange_difference", "type_correction", "hold_released"]
RefundChannel = Literal["counter", "web"]
RefundStatus = Literal["pending", "paid", "rejected"]
CreditReason = Literal["refund", "spent", "goodwill"]
WaitlistStatus = Literal["waiting", "offered", "fulfilled", "expired", "withdrawn"]
Duty = Literal["door", "programmes", "bar", "first_aid"]


# Tables


class Base(DeclarativeBase):
    pass


def one_of(column: str, choices: Any) -> CheckConstraint:
    return CheckConstraint(f"{column} IN ({', '.join(repr(choice) for choice in get_args(choices))})")


class User(Base):
    __tablename__ = "users"
    __table_args__ = (one_of("role", Role), CheckConstraint("refund_limit_cents >= 0"))

    id: Mapped[int] = mapped_column(primary_key=True)
    full_name: Mapped[str]
    email: Mapped[str] = mapped_column(unique=True)
    role: Mapped[str]
    refund_limit_cents: Mapped[int]
    is_active: Mapped[bool]


class Policy(Base):
    __tablename__ = "policies"
    __table_args__ = (one_of("unit", PolicyUnit),)

    key: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[int]
    unit: Mapped[str]
    description: Mapped[str]


class Stage(Base):
    __tablename__ = "stages"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    floor: Mapped[str]
    has_hearing_loop: Mapped[bool]

    sections: Mapped[list["Section"]] = relationship(back_populates="stage", order_by="Section.id")


class Section(Base):
    __tablename__ = "sections"
    __table_args__ = (UniqueConstraint("stage_id", "name"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    stage_id: Mapped[int] = mapped_column(ForeignKey("stages.id", ondelete="CASCADE"))
    name: Mapped[str]

    stage: Mapped[Stage] = relationship(back_populates="sections")
    seats: Mapped[list["Seat"]] = relationship(back_populates="section", order_by="Seat.row_letter, Seat.number")


class Seat(Base):
    __tablename__ = "seats"
    __table_args__ = (
        UniqueConstraint("section_id", "row_letter", "number"),
        CheckConstraint("number > 0"),
        one_of("kind", SeatKind),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    section_id: Mapped[int] = mapped_column(ForeignKey("sections.id", ondelete="CASCADE"))
    row_letter: Mapped[str]
    number: Mapped[int]
    kind: Mapped[str]
    out_of_service_reason: Mapped[Optional[str]]

    section: Mapped[Section] = relationship(back_populates="seats")

    @property
    def label(self) -> str:
        return f"{self.row_letter}{self.number}"

    @property
    def full_label(self) -> str:
        return f"{self.section.name} {self.label}"


class Show(Base):
    __tablename__ = "shows"
    __table_args__ = (one_of("genre", Genre), CheckConstraint("running_minutes > 0"), CheckConstraint("minimum_age >= 0"))

    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(unique=True)
    company: Mapped[str]
    genre: Mapped[str]
    running_minutes: Mapped[int]
    minimum_age: Mapped[int]
    synopsis: Mapped[str] = mapped_column(Text)

    prices: Mapped[list["Price"]] = relationship(back_populates="show", order_by="Price.id")


class Performance(Base):
    __tablename__ = "performances"
    __table_args__ = (
        UniqueConstraint("stage_id", "starts_at"),
        one_of("kind", PerformanceKind),
        CheckConstraint("sales_open_at < starts_at"),
        CheckConstraint("(cancelled_at IS NULL) = (cancellation_reason IS NULL)"),
        Index("ix_performances_show_id", "show_id"),
        Index("ix_performances_starts_at", "starts_at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    show_id: Mapped[int] = mapped_column(ForeignKey("shows.id", ondelete="RESTRICT"))
    stage_id: Mapped[int] = mapped_column(ForeignKey("stages.id", ondelete="RESTRICT"))
    starts_at: Mapped[datetime]
    kind: Mapped[str]
    sales_open_at: Mapped[datetime]
    sales_paused: Mapped[bool]
    cancelled_at: Mapped[Optional[datetime]]
    cancellation_reason: Mapped[Optional[str]]

    show: Mapped[Show] = relationship()
    stage: Mapped[Stage] = relationship()

    @property
    def label(self) -> str:
        return f"{self.show.title} on {when(self.starts_at)}"


class Price(Base):
    __tablename__ = "prices"
    __table_args__ = (
        UniqueConstraint("show_id", "section_id", "ticket_type"),
        one_of("ticket_type", PricedType),
        CheckConstraint("amount_cents >= 0"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    show_id: Mapped[int] = mapped_column(ForeignKey("shows.id", ondelete="CASCADE"))
    section_id: Mapped[int] = mapped_column(ForeignKey("sections.id", ondelete="CASCADE"))
    ticket_type: Mapped[str]
    amount_cents: Mapped[int]

    show: Mapped[Show] = relationship(back_populates="prices")
    section: Mapped[Section] = relationship()


class Customer(Base):
    __tablename__ = "customers"
    __table_args__ = (Index("ix_customers_full_name", "full_name"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    full_name: Mapped[str]
    email: Mapped[str] = mapped_column(unique=True)
    phone: Mapped[Optional[str]]
    town: Mapped[Optional[str]]
    needs_wheelchair_space: Mapped[bool]
    created_at: Mapped[datetime]

    memberships: Mapped[list["Membership"]] = relationship(back_populates="customer", order_by="Membership.starts_on")
    credit_entries: Mapped[list["CreditEntry"]] = relationship(back_populates="customer", order_by="CreditEntry.id")

    @property
    def credit_cents(self) -> int:
        return sum(entry.amount_cents for entry in self.credit_entries)

    def membership_on(self, day: date) -> Optional["Membership"]:
        return next((term for term in self.memberships if term.starts_on <= day <= term.ends_on), None)


class MembershipTier(Base):
    __tablename__ = "membership_tiers"
    __table_args__ = (
        CheckConstraint("annual_fee_cents > 0"),
        CheckConstraint("discount_percent BETWEEN 0 AND 100"),
        CheckConstraint("discounted_tickets >= 0"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    annual_fee_cents: Mapped[int]
    discount_percent: Mapped[int]
    discounted_tickets: Mapped[int]
    free_exchanges: Mapped[bool]


class Membership(Base):
    __tablename__ = "memberships"
    __table_args__ = (
        UniqueConstraint("customer_id", "starts_on"),
        CheckConstraint("fee_paid_cents >= 0"),
        one_of("paid_by", TillMethod),
        CheckConstraint("starts_on < ends_on"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    customer_id: Mapped[int] = mapped_column(ForeignKey("customers.id", ondelete="CASCADE"))
    tier_id: Mapped[int] = mapped_column(ForeignKey("membership_tiers.id", ondelete="RESTRICT"))
    starts_on: Mapped[date]
    ends_on: Mapped[date]
    fee_paid_cents: Mapped[int]
    paid_by: Mapped[str]
    created_at: Mapped[datetime]

    customer: Mapped[Customer] = relationship(back_populates="memberships")
    tier: Mapped[MembershipTier] = relationship()


class Promotion(Base):
    __tablename__ = "promotions"
    __table_args__ = (
        CheckConstraint("percent_off BETWEEN 1 AND 100"),
        CheckConstraint("min_tickets > 0"),
        CheckConstraint("max_bookings > 0"),
        CheckConstraint("valid_from <= valid_to"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    code: Mapped[str] = mapped_column(unique=True)
    description: Mapped[str]
    percent_off: Mapped[int]
    show_id: Mapped[Optional[int]] = mapped_column(ForeignKey("shows.id", ondelete="CASCADE"))
    valid_from: Mapped[date]
    valid_to: Mapped[date]
    min_tickets: Mapped[int]
    max_bookings: Mapped[Optional[int]]

    show: Mapped[Optional[Show]] = relationship()


class Voucher(Base):
    __tablename__ = "vouchers"
    __table_args__ = (
        CheckConstraint("initial_cents > 0"),
        one_of("paid_by", TillMethod),
        CheckConstraint("balance_cents BETWEEN 0 AND initial_cents"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    code: Mapped[str] = mapped_column(unique=True)
    purchaser_id: Mapped[Optional[int]] = mapped_column(ForeignKey("customers.id", ondelete="SET NULL"))
    recipient_name: Mapped[str]
    initial_cents: Mapped[int]
    balance_cents: Mapped[int]
    paid_by: Mapped[str]
    issued_at: Mapped[datetime]
    expires_on: Mapped[date]

    purchaser: Mapped[Optional[Customer]] = relationship()


class Booking(Base):
    __tablename__ = "bookings"
    __table_args__ = (
        one_of("status", BookingStatus),
        CheckConstraint("fee_cents >= 0"),
        CheckConstraint("(status = 'held') = (hold_expires_at IS NOT NULL)"),
        Index("ix_bookings_customer_id", "customer_id"),
        Index("ix_bookings_performance_id", "performance_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    reference: Mapped[str] = mapped_column(unique=True)
    customer_id: Mapped[int] = mapped_column(ForeignKey("customers.id", ondelete="RESTRICT"))
    performance_id: Mapped[int] = mapped_column(ForeignKey("performances.id", ondelete="RESTRICT"))
    promotion_id: Mapped[Optional[int]] = mapped_column(ForeignKey("promotions.id", ondelete="SET NULL"))
    status: Mapped[str]
    fee_cents: Mapped[int]
    hold_expires_at: Mapped[Optional[datetime]]
    created_by_id: Mapped[Optional[int]] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    created_at: Mapped[datetime]
    confirmed_at: Mapped[Optional[datetime]]

    customer: Mapped[Customer] = relationship()
    performance: Mapped[Performance] = relationship()
    promotion: Mapped[Optional[Promotion]] = relationship()
    tickets: Mapped[list["Ticket"]] = relationship(back_populates="booking", order_by="Ticket.id")
    payments: Mapped[list["Payment"]] = relationship(back_populates="booking", order_by="Payment.id")
    refunds: Mapped[list["Refund"]] = relationship(back_populates="booking", order_by="Refund.id")

    @property
    def live_tickets(self) -> list["Ticket"]:
        return [ticket for ticket in self.tickets if ticket.status in ("held", "sold")]

    @property
    def total_cents(self) -> int:
        """What the tickets still standing and the fees cost."""
        return sum(ticket.net_cents for ticket in self.live_tickets) + self.fee_cents

    @property
    def paid_cents(self) -> int:
        return sum(payment.amount_cents for payment in self.payments)

    @property
    def refunded_cents(self) -> int:
        return sum(refund.amount_cents for refund in self.refunds if refund.status == "paid")

    @property
    def due_cents(self) -> int:
        """What is still to be paid; nothing can be due on a booking that was given up."""
        return 0 if self.status == "released" else self.total_cents - self.paid_cents + self.refunded_cents


class Refund(Base):
    __tablename__ = "refunds"
    __table_args__ = (
        CheckConstraint("amount_cents > 0"),
        one_of("method", RefundMethod),
        one_of("reason", RefundReason),
        one_of("channel", RefundChannel),
        one_of("status", RefundStatus),
        CheckConstraint("(status = 'pending') = (decided_at IS NULL)"),
        Index("ix_refunds_booking_id", "booking_id"),
        Index("ix_refunds_status", "status"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    booking_id: Mapped[int] = mapped_column(ForeignKey("bookings.id", ondelete="RESTRICT"))
    amount_cents: Mapped[int]
    method: Mapped[str]
    reason: Mapped[str]
    channel: Mapped[str]
    status: Mapped[str]
    note: Mapped[Optional[str]]
    requested_by_id: Mapped[Optional[int]] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    requested_at: Mapped[datetime]
    decided_by_id: Mapped[Optional[int]] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    decided_at: Mapped[Optional[datetime]]

    booking: Mapped[Booking] = relationship(back_populates="refunds")
    requested_by: Mapped[Optional[User]] = relationship(foreign_keys=requested_by_id)
    decided_by: Mapped[Optional[User]] = relationship(foreign_keys=decided_by_id)
    tickets: Mapped[list["Ticket"]] = relationship(back_populates="refund", order_by="Ticket.id")


class Ticket(Base):
    __tablename__ = "tickets"
    __table_args__ = (
        one_of("ticket_type", TicketType),
        CheckConstraint("price_cents >= 0"),
        CheckConstraint("discount_percent BETWEEN 0 AND 100"),
        one_of("status", TicketStatus),
        Index("ix_tickets_booking_id", "booking_id"),
        Index("uq_tickets_live_seat", "performance_id", "seat_id", unique=True, sqlite_where=text("status IN ('held', 'sold')")),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    booking_id: Mapped[int] = mapped_column(ForeignKey("bookings.id", ondelete="CASCADE"))
    performance_id: Mapped[int] = mapped_column(ForeignKey("performances.id", ondelete="RESTRICT"))
    seat_id: Mapped[int] = mapped_column(ForeignKey("seats.id", ondelete="RESTRICT"))
    ticket_type: Mapped[str]
    price_cents: Mapped[int]
    discount_percent: Mapped[int]
    status: Mapped[str]
    refund_id: Mapped[Optional[int]] = mapped_column(ForeignKey("refunds.id", ondelete="SET NULL"))

    booking: Mapped[Booking] = relationship(back_populates="tickets")
    seat: Mapped[Seat] = relationship()
    refund: Mapped[Optional[Refund]] = relationship(back_populates="tickets")

    @property
    def net_cents(self) -> int:
        """Price less discount; half a cent of discount goes to the customer."""
        return self.price_cents - (self.price_cents * self.discount_percent + 50) // 100


class Payment(Base):
    __tablename__ = "payments"
    __table_args__ = (
        one_of("method", PaymentMethod),
        CheckConstraint("amount_cents > 0"),
        CheckConstraint("(method = 'voucher') = (voucher_id IS NOT NULL)"),
        Index("ix_payments_booking_id", "booking_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    booking_id: Mapped[int] = mapped_column(ForeignKey("bookings.id", ondelete="RESTRICT"))
    method: Mapped[str]
    amount_cents: Mapped[int]
    voucher_id: Mapped[Optional[int]] = mapped_column(ForeignKey("vouchers.id", ondelete="RESTRICT"))
    taken_by_id: Mapped[Optional[int]] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    taken_at: Mapped[datetime]

    booking: Mapped[Booking] = relationship(back_populates="payments")
    voucher: Mapped[Optional[Voucher]] = relationship()


class CreditEntry(Base):
    __tablename__ = "credit_entries"
    __table_args__ = (
        CheckConstraint("amount_cents <> 0"),
        one_of("reason", CreditReason),
        Index("ix_credit_entries_customer_id", "customer_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    customer_id: Mapped[int] = mapped_column(ForeignKey("customers.id", ondelete="CASCADE"))
    booking_id: Mapped[Optional[int]] = mapped_column(ForeignKey("bookings.id", ondelete="SET NULL"))
    amount_cents: Mapped[int]
    reason: Mapped[str]
    note: Mapped[Optional[str]]
    created_by_id: Mapped[Optional[int]] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    created_at: Mapped[datetime]

    customer: Mapped[Customer] = relationship(back_populates="credit_entries")
    booking: Mapped[Optional[Booking]] = relationship()


class WaitlistEntry(Base):
    __tablename__ = "waitlist_entries"
    __table_args__ = (
        CheckConstraint("seats_wanted > 0"),
        one_of("status", WaitlistStatus),
        Index("uq_waitlist_waiting", "performance_id", "customer_id", unique=True, sqlite_where=text("status = 'waiting'")),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    performance_id: Mapped[int] = mapped_column(ForeignKey("performances.id", ondelete="CASCADE"))
    section_id: Mapped[int] = mapped_column(ForeignKey("sections.id", ondelete="CASCADE"))
    customer_id: Mapped[int] = mapped_column(ForeignKey("customers.id", ondelete="CASCADE"))
    seats_wanted: Mapped[int]
    status: Mapped[str]
    booking_id: Mapped[Optional[int]] = mapped_column(ForeignKey("bookings.id", ondelete="SET NULL"))
    joined_at: Mapped[datetime]

    performance: Mapped[Performance] = relationship()
    section: Mapped[Section] = relationship()
    customer: Mapped[Customer] = relationship()
    booking: Mapped[Optional[Booking]] = relationship()


class Volunteer(Base):
    __tablename__ = "volunteers"
    __table_args__ = (CheckConstraint("max_shifts_per_week > 0"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    full_name: Mapped[str]
    email: Mapped[str] = mapped_column(unique=True)
    first_aid_valid_to: Mapped[Optional[date]]
    max_shifts_per_week: Mapped[int]
    is_active: Mapped[bool]

    shifts: Mapped[list["Shift"]] = relationship(back_populates="volunteer", order_by="Shift.starts_at")


class Shift(Base):
    __tablename__ = "shifts"
    __table_args__ = (
        UniqueConstraint("performance_id", "duty"),
        one_of("duty", Duty),
        CheckConstraint("starts_at < ends_at"),
        Index("ix_shifts_volunteer_id", "volunteer_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    performance_id: Mapped[int] = mapped_column(ForeignKey("performances.id", ondelete="CASCADE"))
    duty: Mapped[str]
    volunteer_id: Mapped[Optional[int]] = mapped_column(ForeignKey("volunteers.id", ondelete="SET NULL"))
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime]

    performance: Mapped[Performance] = relationship()
    volunteer: Mapped[Optional[Volunteer]] = relationship(back_populates="shifts")


class Activity(Base):
    __tablename__ = "activity_log"
    __table_args__ = (Index("ix_activity_log_created_at", "created_at"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[Optional[int]] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    action: Mapped[str]
    entity: Mapped[str]
    entity_id: Mapped[int]
    detail: Mapped[str]
    created_at: Mapped[datetime]

    user: Mapped[Optional[User]] = relationship()


Base.metadata.create_all(engine)


# Shared by all endpoints


async def get_session() -> AsyncIterator[Session]:
    with SessionLocal() as session:
        yield session


SessionDep = Annotated[Session, Depends(get_session)]


async def get_current_user_row(session: SessionDep) -> User:
    user = session.get(User, CURRENT_USER_ID)
    if user is None or not user.is_active:
        raise refusal(403, "The signed-in user is not active staff.", allowed="Nothing; ask the house manager.")
    return user


UserDep = Annotated[User, Depends(get_current_user_row)]


def refusal(status: int, problem: str, *, state: Any = None, allowed: str) -> HTTPException:
    """An answer the caller can act on: what is wrong, how things stand, what would be accepted instead."""
    return HTTPException(status, detail={"problem": problem, "state": state, "allowed": allowed})


Row = TypeVar("Row", bound=Base)


def find(session: Session, model: type[Row], row_id: int, noun: str, tool: str, *parts: Any) -> Row:
    row = session.get(model, row_id, options=parts)
    if row is None:
        raise refusal(404, f"There is no {noun} with id {row_id}.", allowed=f"Look the id up with {tool}.")
    return row


def now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None, microsecond=0)


def when(moment: datetime) -> str:
    return moment.strftime("%a %Y-%m-%d %H:%M UTC")


def euros(cents: int) -> str:
    return f"€{cents // 100}.{cents % 100:02d}"


def policy(session: Session, key: str) -> int:
    return session.get_one(Policy, key).value


def record(session: Session, user: User, action: str, row: Any, detail: str) -> None:
    """One line of the activity log; every write leaves one."""
    session.flush()
    session.add(
        Activity(user_id=user.id, action=action, entity=row.__tablename__, entity_id=row.id, detail=detail, created_at=now())
    )


Item = TypeVar("Item")


class Listing(BaseModel, Generic[Item]):
    items: list[Item] = Field(description="The rows of this page")
    total: int = Field(description="Rows on all pages together", examples=[42])
    page: int = Field(description="This page, counted from 1", examples=[1])
    page_size: int = Field(description="Rows a page holds at most", examples=[20])


PageNumber = Annotated[int, Query(ge=1, le=10_000, description="Page to return, counted from 1", examples=[1])]
PageSize = Annotated[int, Query(ge=1, le=100, description="Rows on a page", examples=[20])]


def page_of(
    session: Session, statement: Select[Any], page: int, page_size: int, *parts: Any
) -> tuple[Sequence[Any], dict[str, int]]:
    """Rows of one page, with the parts of them that are shown; fetching those row by row would take a query each."""
    total = session.scalar(select(func.count()).select_from(statement.order_by(None).subquery())) or 0
    rows = session.scalars(statement.limit(page_size).offset((page - 1) * page_size).options(*parts)).all()
    return rows, {"total": total, "page": page, "page_size": page_size}


def day_start(day: date) -> datetime:
    return datetime.combine(day, time.min)


def day_end(day: date) -> datetime:
    return datetime.combine(day, time.max)


def a_year_later(day: date) -> date:
    try:
        return day.replace(year=day.year + 1)
    except ValueError:  # 29 February
        return date(day.year + 1, 2, 28)


def path_id(noun: str, example: int) -> Any:
    return Path(ge=1, le=MAX_ID, description=f"Id of the {noun}", examples=[example])


def query_id(description: str, example: int) -> Any:
    return Query(ge=1, le=MAX_ID, description=description, examples=[example])


def body_id(description: str, example: int) -> Any:
    return Field(ge=1, le=MAX_ID, description=description, examples=[example])


Note = Annotated[str, StringConstraints(strip_whitespace=True, min_length=5, max_length=300)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=2, max_length=120)]
Email = Annotated[
    str, StringConstraints(strip_whitespace=True, to_lower=True, max_length=120, pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$")
]
Phone = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^\+?[0-9][0-9 ]{5,19}$")]


# House: who works here, by which rules, and what was done


class UserOut(BaseModel):
    id: int = Field(description="User id", examples=[1])
    full_name: str = Field(description="Name of the member of staff", examples=["Aoife Brennan"])
    email: str = Field(description="Work address", examples=["aoife.brennan@harbourlane.example"])
    role: Role = Field(description="What the member of staff may decide", examples=["supervisor"])
    refund_limit_cents: int = Field(description="Largest refund they may pay out or approve", examples=[12000])
    is_active: bool = Field(description="Whether they still work here", examples=[True])

    @classmethod
    def of(cls, user: User) -> "UserOut":
        return cls.model_validate(user, from_attributes=True)


class PolicyOut(BaseModel):
    key: str = Field(description="Name of the rule", examples=["refund_cutoff_hours"])
    value: int = Field(description="Its value", examples=[48])
    unit: PolicyUnit = Field(description="Unit of the value", examples=["hours"])
    description: str = Field(description="The rule in words")


class PoliciesOut(BaseModel):
    policies: list[PolicyOut] = Field(description="All house rules")


class ActivityOut(BaseModel):
    id: int = Field(description="Id of the line", examples=[12])
    user_name: Optional[str] = Field(None, description="Who did it", examples=["Aoife Brennan"])
    action: str = Field(description="What was done", examples=["payment_taken"])
    entity: str = Field(description="Kind of record it was done to", examples=["bookings"])
    entity_id: int = Field(description="Id of that record", examples=[7])
    detail: str = Field(description="The change in words")
    created_at: datetime = Field(description="When, UTC", examples=["2026-03-08T16:20:00"])


@app.get(
    "/api/staff/me",
    operation_id="get_current_user",
    summary="Show the signed-in member of staff",
    description="Name, role and refund limit of the user who makes these calls.",
    tags=["house"],
    response_model=UserOut,
)
async def get_current_user(user: UserDep) -> UserOut:
    return UserOut.of(user)


@app.get(
    "/api/staff",
    operation_id="list_staff",
    summary="List the staff of the box office",
    description="Staff with their roles and refund limits, by name.",
    tags=["house"],
    response_model=Listing[UserOut],
)
async def list_staff(
    session: SessionDep,
    role: Annotated[Optional[Role], Query(description="Only staff with this role", examples=["supervisor"])] = None,
    page: PageNumber = 1,
    page_size: PageSize = 20,
) -> Listing[UserOut]:
    statement = select(User).order_by(User.full_name, User.id)
    if role is not None:
        statement = statement.where(User.role == role)
    users, paging = page_of(session, statement, page, page_size)
    return Listing(items=[UserOut.of(user) for user in users], **paging)


@app.get(
    "/api/policies",
    operation_id="list_policies",
    summary="List the house rules",
    description="Time limits for exchanges and refunds, fees, allowances. The other tools enforce these values.",
    tags=["house"],
    response_model=PoliciesOut,
)
async def list_policies(session: SessionDep) -> PoliciesOut:
    rows = session.scalars(select(Policy).order_by(Policy.key))
    return PoliciesOut(policies=[PolicyOut.model_validate(row, from_attributes=True) for row in rows])


@app.get(
    "/api/activity",
    operation_id="list_activity",
    summary="List what was done at the box office",
    description="The activity log, newest first, by kind of record, record or day.",
    tags=["house"],
    response_model=Listing[ActivityOut],
)
async def list_activity(
    session: SessionDep,
    entity: Annotated[
        Optional[str], Query(max_length=40, description="Only this kind of record (its table)", examples=["bookings"])
    ] = None,
    entity_id: Annotated[Optional[int], query_id("Only the record with this id", 7)] = None,
    on_date: Annotated[Optional[date], Query(description="Only this day, UTC", examples=["2026-03-08"])] = None,
    page: PageNumber = 1,
    page_size: PageSize = 20,
) -> Listing[ActivityOut]:
    statement = select(Activity).order_by(Activity.created_at.desc(), Activity.id.desc())
    if entity is not None:
        statement = statement.where(Activity.entity == entity)
    if entity_id is not None:
        statement = statement.where(Activity.entity_id == entity_id)
    if on_date is not None:
        statement = statement.where(Activity.created_at.between(day_start(on_date), day_end(on_date)))
    lines, paging = page_of(session, statement, page, page_size)
    items = [
        ActivityOut(
            id=line.id,
            user_name=line.user.full_name if line.user else None,
            action=line.action,
            entity=line.entity,
            entity_id=line.entity_id,
            detail=line.detail,
            created_at=line.created_at,
        )
        for line in lines
    ]
    return Listing(items=items, **paging)


# Programme: shows, performances, seats


class PriceOut(BaseModel):
    section_id: int = Field(description="Section id", examples=[1])
    section: str = Field(description="Section", examples=["Stalls"])
    ticket_type: PricedType = Field(description="Kind of ticket", examples=["adult"])
    amount_cents: int = Field(description="Price before any discount", examples=[3200])


class ShowOut(BaseModel):
    id: int = Field(description="Show id", examples=[2])
    title: str = Field(description="Title", examples=["A Winter Tide"])
    company: str = Field(description="Producing company", examples=["Druid's Well Theatre"])
    genre: Genre = Field(description="Genre", examples=["drama"])
    running_minutes: int = Field(description="Length with interval", examples=[135])
    minimum_age: int = Field(description="Youngest age admitted", examples=[8])
    synopsis: str = Field(description="What it is about")

    @classmethod
    def of(cls, show: Show) -> "ShowOut":
        return cls.model_validate(show, from_attributes=True)


class ShowDetailOut(ShowOut):
    prices: list[PriceOut] = Field(description="Prices by section and kind of ticket")


class SectionOut(BaseModel):
    id: int = Field(description="Section id", examples=[1])
    name: str = Field(description="Section", examples=["Stalls"])
    seats: int = Field(description="Number of seats", examples=[28])


class StageOut(BaseModel):
    id: int = Field(description="Stage id", examples=[1])
    name: str = Field(description="Stage", examples=["Main House"])
    floor: str = Field(description="Where it is in the building", examples=["Ground floor"])
    has_hearing_loop: bool = Field(description="Whether there is a hearing loop", examples=[True])
    sections: list[SectionOut] = Field(description="Sections of the auditorium")


class StagesOut(BaseModel):
    stages: list[StageOut] = Field(description="All stages")


PerformanceState = Literal["upcoming", "past", "cancelled"]


class PerformanceOut(BaseModel):
    id: int = Field(description="Performance id", examples=[7])
    show_id: int = Field(description="Show id", examples=[2])
    show_title: str = Field(description="Title of the show", examples=["A Winter Tide"])
    stage: str = Field(description="Stage", examples=["Main House"])
    starts_at: datetime = Field(description="Start, UTC", examples=["2026-03-13T19:30:00"])
    weekday: str = Field(description="Day of the week", examples=["Friday"])
    kind: PerformanceKind = Field(description="Kind of performance", examples=["evening"])
    state: PerformanceState = Field(description="Whether it is still to come", examples=["upcoming"])
    sales_open_at: datetime = Field(description="When public sale starts, UTC", examples=["2026-01-12T09:00:00"])
    sales_paused: bool = Field(description="Whether sale is paused", examples=[False])
    cancellation_reason: Optional[str] = Field(None, description="Why it was cancelled", examples=["Storm warning"])
    seats_available: int = Field(
        description="Seats that can be booked now, wheelchair and companion spaces included", examples=[17]
    )


class SectionSeatsOut(BaseModel):
    section_id: int = Field(description="Section id", examples=[1])
    section: str = Field(description="Section", examples=["Stalls"])
    available: int = Field(description="Standard and restricted-view seats that can be booked", examples=[9])
    wheelchair_available: int = Field(description="Wheelchair spaces that can be booked", examples=[2])
    held: int = Field(description="Seats on hold", examples=[2])
    sold: int = Field(description="Seats sold", examples=[14])
    out_of_service: int = Field(description="Seats that can't be used", examples=[1])


class PerformanceDetailOut(PerformanceOut):
    sections: list[SectionSeatsOut] = Field(description="Seats by section")


SeatState = Literal["available", "held", "sold", "out_of_service"]


class SeatOut(BaseModel):
    seat_id: int = Field(description="Seat id", examples=[11])
    section: str = Field(description="Section", examples=["Stalls"])
    row: str = Field(description="Row", examples=["B"])
    number: int = Field(description="Number in the row; consecutive numbers are neighbours", examples=[3])
    label: str = Field(description="Row and number", examples=["B3"])
    kind: SeatKind = Field(description="Kind of seat", examples=["standard"])
    state: SeatState = Field(description="State at this performance", examples=["available"])
    booking_reference: Optional[str] = Field(None, description="Booking that has the seat", examples=["HL-4012"])
    hold_expires_at: Optional[datetime] = Field(
        None, description="End of the hold, UTC; an expired hold keeps the seat until released", examples=["2026-03-09T09:20:00"]
    )
    out_of_service_reason: Optional[str] = Field(None, description="Why it can't be used", examples=["Broken arm rest"])


class TypeSalesOut(BaseModel):
    ticket_type: TicketType = Field(description="Kind of ticket", examples=["adult"])
    tickets_sold: int = Field(description="Tickets sold", examples=[12])
    net_cents: int = Field(description="What they cost after discounts", examples=[36800])


class SalesOut(BaseModel):
    performance_id: int = Field(description="Performance id", examples=[7])
    show_title: str = Field(description="Title of the show", examples=["A Winter Tide"])
    starts_at: datetime = Field(description="Start, UTC", examples=["2026-03-13T19:30:00"])
    tickets_sold: int = Field(description="Tickets sold and not given back", examples=[14])
    net_cents: int = Field(description="What they cost after discounts, fees not counted", examples=[41200])
    tickets_held: int = Field(description="Tickets on hold, not in the sums above", examples=[2])
    by_type: list[TypeSalesOut] = Field(description="The sums by kind of ticket")


class SalesSwitchIn(BaseModel):
    sales: Literal["open", "paused"] = Field(description="Whether tickets may be sold", examples=["paused"])
    note: Note = Field(description="Reason, for the activity log", examples=["Lighting rig under inspection"])


class SeatServiceIn(BaseModel):
    in_service: bool = Field(description="Whether the seat may be sold", examples=[False])
    reason: Optional[Note] = Field(None, description="Why it can't be used; needed to take it out", examples=["Broken arm rest"])


def performance_state(performance: Performance) -> PerformanceState:
    if performance.cancelled_at is not None:
        return "cancelled"
    return "past" if performance.starts_at <= now() else "upcoming"


def live_tickets_by_seat(session: Session, performance: Performance) -> dict[int, Ticket]:
    tickets = session.scalars(select(Ticket).where(Ticket.performance_id == performance.id, Ticket.status.in_(("held", "sold"))))
    return {ticket.seat_id: ticket for ticket in tickets}


def seat_state(seat: Seat, taken: dict[int, Ticket]) -> SeatState:
    if seat.id in taken:
        return "held" if taken[seat.id].status == "held" else "sold"
    return "available" if seat.out_of_service_reason is None else "out_of_service"


def seats_of(performance: Performance) -> list[Seat]:
    return [seat for section in performance.stage.sections for seat in section.seats]


def open_seats(session: Session, performance: Performance, section: Section) -> list[Seat]:
    """Seats of a section that anyone may book: wheelchair spaces and companion seats are kept for those who need them."""
    taken = live_tickets_by_seat(session, performance)
    ordinary = (seat for seat in section.seats if seat.kind in ("standard", "restricted_view"))
    return [seat for seat in ordinary if seat_state(seat, taken) == "available"]


PERFORMANCE_PARTS = (
    joinedload(Performance.show),
    joinedload(Performance.stage).selectinload(Stage.sections).selectinload(Section.seats),
)


def performance_fields(session: Session, performance: Performance) -> dict[str, Any]:
    taken = live_tickets_by_seat(session, performance)
    return {
        "id": performance.id,
        "show_id": performance.show_id,
        "show_title": performance.show.title,
        "stage": performance.stage.name,
        "starts_at": performance.starts_at,
        "weekday": performance.starts_at.strftime("%A"),
        "kind": performance.kind,
        "state": performance_state(performance),
        "sales_open_at": performance.sales_open_at,
        "sales_paused": performance.sales_paused,
        "cancellation_reason": performance.cancellation_reason,
        "seats_available": sum(seat_state(seat, taken) == "available" for seat in seats_of(performance)),
    }


def performance_detail(session: Session, performance: Performance) -> PerformanceDetailOut:
    taken = live_tickets_by_seat(session, performance)
    sections = []
    for section in performance.stage.sections:
        states = [(seat.kind, seat_state(seat, taken)) for seat in section.seats]
        sections.append(
            SectionSeatsOut(
                section_id=section.id,
                section=section.name,
                available=sum(state == "available" and kind in ("standard", "restricted_view") for kind, state in states),
                wheelchair_available=sum(state == "available" and kind == "wheelchair" for kind, state in states),
                held=sum(state == "held" for _, state in states),
                sold=sum(state == "sold" for _, state in states),
                out_of_service=sum(state == "out_of_service" for _, state in states),
            )
        )
    return PerformanceDetailOut(**performance_fields(session, performance), sections=sections)


def seat_out(seat: Seat, taken: dict[int, Ticket]) -> SeatOut:
    booking = taken[seat.id].booking if seat.id in taken else None
    return SeatOut(
        seat_id=seat.id,
        section=seat.section.name,
        row=seat.row_letter,
        number=seat.number,
        label=seat.label,
        kind=seat.kind,
        state=seat_state(seat, taken),
        booking_reference=booking.reference if booking else None,
        hold_expires_at=booking.hold_expires_at if booking else None,
        out_of_service_reason=seat.out_of_service_reason,
    )


@app.get(
    "/api/shows",
    operation_id="search_shows",
    summary="Search shows by title, company or genre",
    description="Shows of the season. The text matches any part of title, company or synopsis.",
    tags=["programme"],
    response_model=Listing[ShowOut],
)
async def search_shows(
    session: SessionDep,
    text_query: Annotated[
        Optional[str], Query(alias="q", max_length=80, description="Part of title, company or synopsis", examples=["tide"])
    ] = None,
    genre: Annotated[Optional[Genre], Query(description="Only this genre", examples=["drama"])] = None,
    suitable_for_age: Annotated[
        Optional[int], Query(ge=0, le=120, description="Only shows that admit someone of this age", examples=[9])
    ] = None,
    sort: Annotated[
        Literal["title", "-title", "running_minutes", "-running_minutes"], Query(description="Order; minus is descending")
    ] = "title",
    page: PageNumber = 1,
    page_size: PageSize = 20,
) -> Listing[ShowOut]:
    column = Show.title if sort.endswith("title") else Show.running_minutes
    statement = select(Show).order_by(column.desc() if sort.startswith("-") else column, Show.id)
    if text_query is not None:
        fields = (Show.title, Show.company, Show.synopsis)
        statement = statement.where(or_(*(field.icontains(text_query, autoescape=True) for field in fields)))
    if genre is not None:
        statement = statement.where(Show.genre == genre)
    if suitable_for_age is not None:
        statement = statement.where(Show.minimum_age <= suitable_for_age)
    shows, paging = page_of(session, statement, page, page_size)
    return Listing(items=[ShowOut.of(show) for show in shows], **paging)


@app.get(
    "/api/shows/{show_id}",
    operation_id="get_show",
    summary="Show one show with its prices",
    description="A show with its ticket prices by section and kind of ticket, before discounts.",
    tags=["programme"],
    response_model=ShowDetailOut,
)
async def get_show(session: SessionDep, show_id: Annotated[int, path_id("show", 2)]) -> ShowDetailOut:
    show = find(session, Show, show_id, "show", "search_shows", selectinload(Show.prices).joinedload(Price.section))
    prices = [
        PriceOut(
            section_id=price.section_id,
            section=price.section.name,
            ticket_type=price.ticket_type,
            amount_cents=price.amount_cents,
        )
        for price in show.prices
    ]
    return ShowDetailOut(**ShowOut.of(show).model_dump(), prices=prices)


@app.get(
    "/api/stages",
    operation_id="list_stages",
    summary="List the stages and their sections",
    description="Both stages with the sections of their auditoriums and the number of seats in each.",
    tags=["programme"],
    response_model=StagesOut,
)
async def list_stages(session: SessionDep) -> StagesOut:
    stages = [
        StageOut(
            id=stage.id,
            name=stage.name,
            floor=stage.floor,
            has_hearing_loop=stage.has_hearing_loop,
            sections=[SectionOut(id=section.id, name=section.name, seats=len(section.seats)) for section in stage.sections],
        )
        for stage in session.scalars(select(Stage).order_by(Stage.id))
    ]
    return StagesOut(stages=stages)


@app.get(
    "/api/performances",
    operation_id="list_performances",
    summary="List performances by show, stage, day and state",
    description="Performances in order of time, with the number of seats still to be had. Days are inclusive.",
    tags=["programme"],
    response_model=Listing[PerformanceOut],
)
async def list_performances(
    session: SessionDep,
    show_id: Annotated[Optional[int], query_id("Only this show", 2)] = None,
    stage_id: Annotated[Optional[int], query_id("Only this stage", 1)] = None,
    kind: Annotated[Optional[PerformanceKind], Query(description="Only this kind", examples=["evening"])] = None,
    state: Annotated[Optional[PerformanceState], Query(description="Only this state", examples=["upcoming"])] = None,
    date_from: Annotated[Optional[date], Query(description="First day", examples=["2026-03-13"])] = None,
    date_to: Annotated[Optional[date], Query(description="Last day", examples=["2026-03-14"])] = None,
    sort: Annotated[Literal["starts_at", "-starts_at"], Query(description="Order; minus is descending")] = "starts_at",
    page: PageNumber = 1,
    page_size: PageSize = 20,
) -> Listing[PerformanceOut]:
    column = Performance.starts_at
    statement = select(Performance).order_by(column.desc() if sort.startswith("-") else column, Performance.id)
    if show_id is not None:
        statement = statement.where(Performance.show_id == show_id)
    if stage_id is not None:
        statement = statement.where(Performance.stage_id == stage_id)
    if kind is not None:
        statement = statement.where(Performance.kind == kind)
    if state == "cancelled":
        statement = statement.where(Performance.cancelled_at.is_not(None))
    elif state is not None:
        past = column <= now()
        statement = statement.where(Performance.cancelled_at.is_(None), past if state == "past" else ~past)
    if date_from is not None:
        statement = statement.where(column >= day_start(date_from))
    if date_to is not None:
        statement = statement.where(column <= day_end(date_to))
    performances, paging = page_of(session, statement, page, page_size, *PERFORMANCE_PARTS)
    items = [PerformanceOut(**performance_fields(session, performance)) for performance in performances]
    return Listing(items=items, **paging)


@app.get(
    "/api/performances/{performance_id}",
    operation_id="get_performance",
    summary="Show one performance with its seats by section",
    description="A performance with seats available, held, sold and out of service in each section.",
    tags=["programme"],
    response_model=PerformanceDetailOut,
)
async def get_performance(session: SessionDep, performance_id: Annotated[int, path_id("performance", 7)]) -> PerformanceDetailOut:
    performance = find(session, Performance, performance_id, "performance", "list_performances")
    return performance_detail(session, performance)


@app.get(
    "/api/performances/{performance_id}/seats",
    operation_id="list_seats",
    summary="List the seats of a performance",
    description="Seats with their state at this performance, in order of section, row and number.",
    tags=["programme"],
    response_model=Listing[SeatOut],
)
async def list_seats(
    session: SessionDep,
    performance_id: Annotated[int, path_id("performance", 7)],
    section: Annotated[Optional[str], Query(max_length=40, description="Only this section", examples=["Stalls"])] = None,
    row: Annotated[Optional[str], Query(max_length=2, description="Only this row", examples=["B"])] = None,
    kind: Annotated[Optional[SeatKind], Query(description="Only this kind of seat", examples=["standard"])] = None,
    state: Annotated[Optional[SeatState], Query(description="Only seats in this state", examples=["available"])] = None,
    page: PageNumber = 1,
    page_size: PageSize = 50,
) -> Listing[SeatOut]:
    performance = find(session, Performance, performance_id, "performance", "list_performances")
    sections = [part.name for part in performance.stage.sections]
    if section is not None and section.lower() not in [name.lower() for name in sections]:
        raise refusal(
            404, f"{performance.stage.name} has no section {section!r}.", allowed=f"Sections here: {', '.join(sections)}."
        )
    taken = live_tickets_by_seat(session, performance)
    seats = [
        seat_out(seat, taken)
        for seat in seats_of(performance)
        if (section is None or seat.section.name.lower() == section.lower())
        and (row is None or seat.row_letter.lower() == row.lower())
        and (kind is None or seat.kind == kind)
        and (state is None or seat_state(seat, taken) == state)
    ]
    first = (page - 1) * page_size
    return Listing(items=seats[first : first + page_size], total=len(seats), page=page, page_size=page_size)


@app.get(
    "/api/performances/{performance_id}/sales",
    operation_id="get_performance_sales",
    summary="Sum up the tickets sold for a performance",
    description="Tickets sold and what they cost after discounts, by kind of ticket. Fees and holds are not counted.",
    tags=["programme"],
    response_model=SalesOut,
)
async def get_performance_sales(session: SessionDep, performance_id: Annotated[int, path_id("performance", 7)]) -> SalesOut:
    performance = find(session, Performance, performance_id, "performance", "list_performances")
    tickets = list(live_tickets_by_seat(session, performance).values())
    sold = [ticket for ticket in tickets if ticket.status == "sold"]
    by_type = []
    for ticket_type in get_args(TicketType):
        of_type = [ticket.net_cents for ticket in sold if ticket.ticket_type == ticket_type]
        if of_type:
            by_type.append(TypeSalesOut(ticket_type=ticket_type, tickets_sold=len(of_type), net_cents=sum(of_type)))
    return SalesOut(
        performance_id=performance.id,
        show_title=performance.show.title,
        starts_at=performance.starts_at,
        tickets_sold=len(sold),
        net_cents=sum(ticket.net_cents for ticket in sold),
        tickets_held=len(tickets) - len(sold),
        by_type=by_type,
    )


@app.put(
    "/api/performances/{performance_id}/sales-switch",
    operation_id="set_performance_sales",
    summary="Pause or reopen the sale of a performance",
    description="Stops new holds, waiting-list offers and exchanges into an upcoming performance, or allows them again.",
    tags=["programme"],
    response_model=PerformanceDetailOut,
)
async def set_performance_sales(
    session: SessionDep, user: UserDep, performance_id: Annotated[int, path_id("performance", 7)], body: SalesSwitchIn
) -> PerformanceDetailOut:
    performance = find(session, Performance, performance_id, "performance", "list_performances")
    state = performance_state(performance)
    if state != "upcoming":
        raise refusal(
            409,
            f"{performance.label} is {state}; its sale can't be switched.",
            state=state,
            allowed="Upcoming performances only.",
        )
    paused = body.sales == "paused"
    if performance.sales_paused == paused:
        raise refusal(
            409, f"The sale of {performance.label} is already {body.sales}.", state=body.sales, allowed="The other value."
        )
    performance.sales_paused = paused
    record(session, user, f"sales_{body.sales}", performance, body.note)
    session.commit()
    return performance_detail(session, performance)


@app.put(
    "/api/seats/{seat_id}/service",
    operation_id="set_seat_service",
    summary="Take a seat out of service, or put it back",
    description="A seat out of service can't be booked at any performance. Seats with upcoming tickets can't be taken out.",
    tags=["programme"],
    response_model=SeatOut,
)
async def set_seat_service(
    session: SessionDep, user: UserDep, seat_id: Annotated[int, path_id("seat", 11)], body: SeatServiceIn
) -> SeatOut:
    seat = find(session, Seat, seat_id, "seat", "list_seats")
    if not body.in_service and body.reason is None:
        raise refusal(422, "A seat is taken out of service for a reason.", allowed="Give a reason of at least 5 characters.")
    if (seat.out_of_service_reason is None) == body.in_service:
        stands = "in service" if body.in_service else f"out of service ({seat.out_of_service_reason})"
        raise refusal(409, f"Seat {seat.full_label} is already {stands}.", state=stands, allowed="The other value.")
    if not body.in_service:
        booked = session.scalars(
            select(Booking.reference)
            .join(Ticket, Ticket.booking_id == Booking.id)
            .join(Performance, Performance.id == Ticket.performance_id)
            .where(Ticket.seat_id == seat.id, Ticket.status.in_(("held", "sold")))
            .where(Performance.starts_at > now(), Performance.cancelled_at.is_(None))
            .order_by(Booking.reference)
        ).all()
        if booked:
            raise refusal(
                409,
                f"Seat {seat.full_label} has tickets for upcoming performances.",
                state={"bookings": booked},
                allowed="Move these bookings to other seats first (exchange_booking), or release the ones on hold.",
            )
    seat.out_of_service_reason = None if body.in_service else body.reason
    record(session, user, "seat_service_changed", seat, seat.out_of_service_reason or "Back in service")
    session.commit()
    return seat_out(seat, {})


# Customers and their credit


class CustomerIn(BaseModel):
    full_name: Name = Field(description="First name and surname", examples=["Orla Tiernan"])
    email: Email = Field(description="Address; no two customers share one", examples=["orla.tiernan@corribmail.example"])
    phone: Optional[Phone] = Field(None, description="Phone number", examples=["+353 20 915 0147"])
    town: Optional[Name] = Field(None, description="Town", examples=["Athenry"])
    needs_wheelchair_space: bool = Field(False, description="Whether they may book wheelchair spaces", examples=[False])


class CustomerChangeIn(BaseModel):
    full_name: Optional[Name] = Field(None, description="New name", examples=["Orla Tiernan-Walsh"])
    email: Optional[Email] = Field(None, description="New address", examples=["orla.walsh@corribmail.example"])
    phone: Optional[Phone] = Field(None, description="New phone number", examples=["+353 20 915 0148"])
    town: Optional[Name] = Field(None, description="New town", examples=["Oranmore"])
    needs_wheelchair_space: Optional[bool] = Field(None, description="Whether they may book wheelchair spaces", examples=[True])


class CustomerOut(BaseModel):
    id: int = Field(description="Customer id", examples=[7])
    full_name: str = Field(description="Name", examples=["Orla Tiernan"])
    email: str = Field(description="Address", examples=["orla.tiernan@corribmail.example"])
    phone: Optional[str] = Field(None, description="Phone number", examples=["+353 20 915 0147"])
    town: Optional[str] = Field(None, description="Town", examples=["Athenry"])
    needs_wheelchair_space: bool = Field(description="Whether they may book wheelchair spaces", examples=[False])
    created_at: datetime = Field(description="When they were registered, UTC", examples=["2024-09-02T10:15:00"])
    membership_tier: Optional[str] = Field(None, description="Tier of today's membership", examples=["Friend"])
    credit_cents: int = Field(description="Credit they can spend on tickets", examples=[1200])


class CreditEntryOut(BaseModel):
    id: int = Field(description="Entry id", examples=[3])
    amount_cents: int = Field(description="Added to the credit; negative where it was spent", examples=[1200])
    reason: CreditReason = Field(description="Why", examples=["refund"])
    booking_reference: Optional[str] = Field(None, description="Booking it belongs to", examples=["HL-4007"])
    note: Optional[str] = Field(None, description="Remark", examples=["Late start on opening night"])
    created_at: datetime = Field(description="When, UTC", examples=["2026-02-20T18:05:00"])


class CreditOut(BaseModel):
    customer_id: int = Field(description="Customer id", examples=[7])
    credit_cents: int = Field(description="Credit they can spend on tickets", examples=[1200])
    entries: list[CreditEntryOut] = Field(description="Entries, oldest first")


class GoodwillIn(BaseModel):
    amount_cents: int = Field(ge=100, le=1_000_000, description="Amount to give", examples=[1000])
    note: Note = Field(description="What went wrong", examples=["Late start on opening night"])


CUSTOMER_PARTS = (selectinload(Customer.memberships).joinedload(Membership.tier), selectinload(Customer.credit_entries))


def customer_out(customer: Customer) -> CustomerOut:
    membership = customer.membership_on(now().date())
    return CustomerOut(
        id=customer.id,
        full_name=customer.full_name,
        email=customer.email,
        phone=customer.phone,
        town=customer.town,
        needs_wheelchair_space=customer.needs_wheelchair_space,
        created_at=customer.created_at,
        membership_tier=membership.tier.name if membership else None,
        credit_cents=customer.credit_cents,
    )


def credit_out(customer: Customer) -> CreditOut:
    entries = [
        CreditEntryOut(
            id=entry.id,
            amount_cents=entry.amount_cents,
            reason=entry.reason,
            booking_reference=entry.booking.reference if entry.booking else None,
            note=entry.note,
            created_at=entry.created_at,
        )
        for entry in customer.credit_entries
    ]
    return CreditOut(customer_id=customer.id, credit_cents=customer.credit_cents, entries=entries)


def check_email_is_free(session: Session, email: str) -> None:
    other = session.scalar(select(Customer).where(Customer.email == email))
    if other is not None:
        raise refusal(
            409,
            f"{email} belongs to another customer.",
            state={"customer_id": other.id, "full_name": other.full_name},
            allowed="Use that customer, or another address.",
        )


@app.get(
    "/api/customers",
    operation_id="search_customers",
    summary="Search customers by name, address or phone",
    description="The text matches any part of name, e-mail address, phone number or town.",
    tags=["customers"],
    response_model=Listing[CustomerOut],
)
async def search_customers(
    session: SessionDep,
    text_query: Annotated[
        Optional[str], Query(alias="q", max_length=80, description="Part of name, address, phone or town", examples=["tiernan"])
    ] = None,
    needs_wheelchair_space: Annotated[
        Optional[bool], Query(description="Only those who may, or may not, book wheelchair spaces", examples=[True])
    ] = None,
    sort: Annotated[
        Literal["full_name", "-full_name", "created_at", "-created_at"], Query(description="Order; minus is descending")
    ] = "full_name",
    page: PageNumber = 1,
    page_size: PageSize = 20,
) -> Listing[CustomerOut]:
    column = Customer.full_name if sort.endswith("full_name") else Customer.created_at
    statement = select(Customer).order_by(column.desc() if sort.startswith("-") else column, Customer.id)
    if text_query is not None:
        fields = (Customer.full_name, Customer.email, Customer.phone, Customer.town)
        statement = statement.where(or_(*(field.icontains(text_query, autoescape=True) for field in fields)))
    if needs_wheelchair_space is not None:
        statement = statement.where(Customer.needs_wheelchair_space == needs_wheelchair_space)
    customers, paging = page_of(session, statement, page, page_size, *CUSTOMER_PARTS)
    return Listing(items=[customer_out(customer) for customer in customers], **paging)


@app.post(
    "/api/customers",
    operation_id="create_customer",
    summary="Register a customer",
    description="Adds a customer. Refused when the e-mail address is known already; the answer names the customer who has it.",
    tags=["customers"],
    response_model=CustomerOut,
    status_code=201,
)
async def create_customer(session: SessionDep, user: UserDep, body: CustomerIn) -> CustomerOut:
    check_email_is_free(session, body.email)
    customer = Customer(**body.model_dump(), created_at=now())
    session.add(customer)
    record(session, user, "customer_created", customer, customer.full_name)
    session.commit()
    return customer_out(customer)


@app.get(
    "/api/customers/{customer_id}",
    operation_id="get_customer",
    summary="Show one customer",
    description="A customer with today's membership and the credit they can spend.",
    tags=["customers"],
    response_model=CustomerOut,
)
async def get_customer(session: SessionDep, customer_id: Annotated[int, path_id("customer", 7)]) -> CustomerOut:
    return customer_out(find(session, Customer, customer_id, "customer", "search_customers"))


@app.patch(
    "/api/customers/{customer_id}",
    operation_id="update_customer",
    summary="Change a customer's details",
    description="Changes only the fields that are given.",
    tags=["customers"],
    response_model=CustomerOut,
)
async def update_customer(
    session: SessionDep,
    user: UserDep,
    customer_id: Annotated[int, path_id("customer", 7)],
    body: CustomerChangeIn = CustomerChangeIn(),
) -> CustomerOut:
    customer = find(session, Customer, customer_id, "customer", "search_customers")
    given = body.model_dump(exclude_none=True)
    changes = {name: value for name, value in given.items() if getattr(customer, name) != value}
    if not changes:
        raise refusal(422, "Nothing would change.", state=given, allowed="Give at least one field with a new value.")
    if "email" in changes:
        check_email_is_free(session, changes["email"])
    for name, value in changes.items():
        setattr(customer, name, value)
    record(session, user, "customer_updated", customer, ", ".join(sorted(changes)))
    session.commit()
    return customer_out(customer)


@app.get(
    "/api/customers/{customer_id}/credit",
    operation_id="list_credit_entries",
    summary="Show a customer's credit and how it came about",
    description="Credit from refunds and goodwill, less what was spent, entry by entry.",
    tags=["customers"],
    response_model=CreditOut,
)
async def list_credit_entries(session: SessionDep, customer_id: Annotated[int, path_id("customer", 7)]) -> CreditOut:
    return credit_out(find(session, Customer, customer_id, "customer", "search_customers"))


@app.post(
    "/api/customers/{customer_id}/goodwill",
    operation_id="grant_goodwill_credit",
    summary="Give a customer credit for something that went wrong",
    description="Goodwill of one customer is limited in any period (see list_policies). Not a way round the refund rules.",
    tags=["customers"],
    response_model=CreditOut,
    status_code=201,
)
async def grant_goodwill_credit(
    session: SessionDep, user: UserDep, customer_id: Annotated[int, path_id("customer", 7)], body: GoodwillIn
) -> CreditOut:
    customer = find(session, Customer, customer_id, "customer", "search_customers")
    limit, days = policy(session, "goodwill_limit_cents"), policy(session, "goodwill_window_days")
    since = now() - timedelta(days=days)
    given = sum(e.amount_cents for e in customer.credit_entries if e.reason == "goodwill" and e.created_at > since)
    if given + body.amount_cents > limit:
        raise refusal(
            409,
            f"Goodwill of a customer is limited to {euros(limit)} in {days} days.",
            state={"given_cents": given, "limit_cents": limit},
            allowed=f"At most {euros(max(limit - given, 0))} now.",
        )
    customer.credit_entries.append(
        CreditEntry(amount_cents=body.amount_cents, reason="goodwill", note=body.note, created_by_id=user.id, created_at=now())
    )
    record(session, user, "goodwill_granted", customer, f"{euros(body.amount_cents)}: {body.note}")
    session.commit()
    return credit_out(customer)


# Memberships


MembershipState = Literal["upcoming", "active", "lapsed"]


class TierOut(BaseModel):
    id: int = Field(description="Tier id", examples=[1])
    name: str = Field(description="Tier", examples=["Friend"])
    annual_fee_cents: int = Field(description="Fee for a year", examples=[3500])
    discount_percent: int = Field(description="Off the price of tickets", examples=[10])
    discounted_tickets: int = Field(description="Tickets of one performance that get the discount", examples=[2])
    free_exchanges: bool = Field(description="Whether exchanges cost no fee", examples=[False])


class TiersOut(BaseModel):
    tiers: list[TierOut] = Field(description="All tiers")


class MembershipOut(BaseModel):
    id: int = Field(description="Membership id", examples=[4])
    customer_id: int = Field(description="Customer id", examples=[7])
    customer_name: str = Field(description="Member", examples=["Orla Tiernan"])
    tier: str = Field(description="Tier", examples=["Friend"])
    starts_on: date = Field(description="First day", examples=["2025-06-01"])
    ends_on: date = Field(description="Last day", examples=["2026-05-31"])
    state: MembershipState = Field(description="Whether it counts today", examples=["active"])
    fee_paid_cents: int = Field(description="Fee paid", examples=[3500])
    paid_by: TillMethod = Field(description="How it was paid", examples=["card"])


class MembershipIn(BaseModel):
    customer_id: int = body_id("Customer who joins", 7)
    tier_id: int = body_id("Tier they join", 1)
    paid_by: TillMethod = Field(description="How the fee is paid", examples=["card"])


class RenewalIn(BaseModel):
    paid_by: TillMethod = Field(description="How the fee is paid", examples=["card"])
    tier_id: Optional[int] = Field(None, ge=1, le=MAX_ID, description="Tier of the new year, if another", examples=[2])


MEMBERSHIP_PARTS = (joinedload(Membership.customer), joinedload(Membership.tier))


def membership_out(membership: Membership) -> MembershipOut:
    today = now().date()
    state: MembershipState = "active"
    if membership.starts_on > today:
        state = "upcoming"
    elif membership.ends_on < today:
        state = "lapsed"
    return MembershipOut(
        id=membership.id,
        customer_id=membership.customer_id,
        customer_name=membership.customer.full_name,
        tier=membership.tier.name,
        starts_on=membership.starts_on,
        ends_on=membership.ends_on,
        state=state,
        fee_paid_cents=membership.fee_paid_cents,
        paid_by=membership.paid_by,
    )


def new_membership(customer: Customer, tier: MembershipTier, starts_on: date, paid_by: str) -> Membership:
    return Membership(
        customer=customer,
        tier=tier,
        starts_on=starts_on,
        ends_on=a_year_later(starts_on) - timedelta(days=1),
        fee_paid_cents=tier.annual_fee_cents,
        paid_by=paid_by,
        created_at=now(),
    )


@app.get(
    "/api/membership-tiers",
    operation_id="list_membership_tiers",
    summary="List the membership tiers",
    description="Tiers with fee, discount, number of discounted tickets a performance, and whether exchanges are free.",
    tags=["memberships"],
    response_model=TiersOut,
)
async def list_membership_tiers(session: SessionDep) -> TiersOut:
    tiers = session.scalars(select(MembershipTier).order_by(MembershipTier.id))
    return TiersOut(tiers=[TierOut.model_validate(tier, from_attributes=True) for tier in tiers])


@app.get(
    "/api/memberships",
    operation_id="list_memberships",
    summary="List memberships by customer, state or last day",
    description="Memberships, one a year and customer, by last day. A renewed membership appears as a further one.",
    tags=["memberships"],
    response_model=Listing[MembershipOut],
)
async def list_memberships(
    session: SessionDep,
    customer_id: Annotated[Optional[int], query_id("Only this customer", 7)] = None,
    tier_id: Annotated[Optional[int], query_id("Only this tier", 1)] = None,
    state: Annotated[Optional[MembershipState], Query(description="Only this state", examples=["active"])] = None,
    ends_by: Annotated[
        Optional[date], Query(description="Only those that end on this day or before", examples=["2026-03-31"])
    ] = None,
    page: PageNumber = 1,
    page_size: PageSize = 20,
) -> Listing[MembershipOut]:
    today = now().date()
    statement = select(Membership).order_by(Membership.ends_on, Membership.id)
    if customer_id is not None:
        statement = statement.where(Membership.customer_id == customer_id)
    if tier_id is not None:
        statement = statement.where(Membership.tier_id == tier_id)
    if state == "upcoming":
        statement = statement.where(Membership.starts_on > today)
    elif state == "lapsed":
        statement = statement.where(Membership.ends_on < today)
    elif state == "active":
        statement = statement.where(Membership.starts_on <= today, Membership.ends_on >= today)
    if ends_by is not None:
        statement = statement.where(Membership.ends_on <= ends_by)
    memberships, paging = page_of(session, statement, page, page_size, *MEMBERSHIP_PARTS)
    return Listing(items=[membership_out(membership) for membership in memberships], **paging)


@app.post(
    "/api/memberships",
    operation_id="start_membership",
    summary="Make a customer a member for a year from today",
    description="For customers who are not members. Whoever is one, or was until lately, renews instead.",
    tags=["memberships"],
    response_model=MembershipOut,
    status_code=201,
)
async def start_membership(session: SessionDep, user: UserDep, body: MembershipIn) -> MembershipOut:
    customer = find(session, Customer, body.customer_id, "customer", "search_customers")
    tier = find(session, MembershipTier, body.tier_id, "membership tier", "list_membership_tiers")
    today, grace = now().date(), policy(session, "membership_grace_days")
    last = customer.memberships[-1] if customer.memberships else None
    if last is not None and last.ends_on + timedelta(days=grace) >= today:
        raise refusal(
            409,
            f"{customer.full_name} has a membership to renew.",
            state={"membership_id": last.id, "tier": last.tier.name, "ends_on": last.ends_on.isoformat()},
            allowed="renew_membership with that membership.",
        )
    membership = new_membership(customer, tier, today, body.paid_by)
    session.add(membership)
    record(session, user, "membership_started", membership, f"{customer.full_name}, {tier.name}")
    session.commit()
    return membership_out(membership)


@app.post(
    "/api/memberships/{membership_id}/renewals",
    operation_id="renew_membership",
    summary="Renew a customer's latest membership for a year",
    description="The new year follows the old one, or starts today if it has lapsed. Possible from 60 days before the end.",
    tags=["memberships"],
    response_model=MembershipOut,
    status_code=201,
)
async def renew_membership(
    session: SessionDep, user: UserDep, membership_id: Annotated[int, path_id("membership", 4)], body: RenewalIn
) -> MembershipOut:
    membership = find(session, Membership, membership_id, "membership", "list_memberships")
    tier = membership.tier
    if body.tier_id is not None:
        tier = find(session, MembershipTier, body.tier_id, "membership tier", "list_membership_tiers")
    customer, today = membership.customer, now().date()
    early, grace = policy(session, "membership_renewal_days"), policy(session, "membership_grace_days")
    latest = customer.memberships[-1]
    if latest is not membership:
        raise refusal(
            409,
            "This membership has been followed by another.",
            state={"latest_membership_id": latest.id, "ends_on": latest.ends_on.isoformat()},
            allowed="Only the latest membership of a customer is renewed.",
        )
    ends = {"ends_on": membership.ends_on.isoformat()}
    if membership.ends_on - timedelta(days=early) > today:
        raise refusal(
            409,
            "It is too early to renew.",
            state=ends,
            allowed=f"Renewal opens {early} days before the last day of the membership.",
        )
    if membership.ends_on + timedelta(days=grace) < today:
        raise refusal(
            409, f"The membership lapsed more than {grace} days ago.", state=ends, allowed="start_membership for the customer."
        )
    renewed = new_membership(customer, tier, max(membership.ends_on + timedelta(days=1), today), body.paid_by)
    session.add(renewed)
    record(session, user, "membership_renewed", renewed, f"{customer.full_name}, {tier.name}")
    session.commit()
    return membership_out(renewed)


# Bookings


class SeatChoice(BaseModel):
    seat_id: int = body_id("Seat to book", 11)
    ticket_type: TicketType = Field(description="Kind of ticket; companion seats take companion tickets", examples=["adult"])


class BookingIn(BaseModel):
    customer_id: int = body_id("Customer who books", 7)
    performance_id: int = body_id("Performance", 7)
    tickets: list[SeatChoice] = Field(
        min_length=1,
        max_length=40,
        description="Seats with the kind of ticket for each",
        examples=[[{"seat_id": 11, "ticket_type": "adult"}, {"seat_id": 12, "ticket_type": "concession"}]],
    )


class PromotionIn(BaseModel):
    code: str = Field(
        min_length=1, max_length=40, description="Code of the promotion; case does not matter", examples=["SPRING10"]
    )


class PaymentIn(BaseModel):
    method: PaymentMethod = Field(description="How it is paid", examples=["card"])
    amount_cents: int = Field(ge=1, le=1_000_000, description="Amount, at most what is due", examples=[6400])
    voucher_code: Optional[str] = Field(None, max_length=40, description="Gift voucher, for method voucher", examples=["GV-7001"])


class ExchangeIn(BaseModel):
    performance_id: int = body_id("Performance of the same show to move to", 9)
    seat_ids: list[Annotated[int, Field(ge=1, le=MAX_ID)]] = Field(
        min_length=1,
        max_length=40,
        description="New seats, one a ticket, in the order of the booking's tickets",
        examples=[[11, 12]],
    )
    settle_by: SettleMethod = Field(
        "card", description="How an amount due is paid; what is left over becomes credit", examples=["card"]
    )


class TypeCorrectionIn(BaseModel):
    ticket_type: PricedType = Field(description="Kind of ticket it should have been", examples=["concession"])
    settle_by: SettleMethod = Field(
        "card", description="How an amount due is paid; what is left over becomes credit", examples=["card"]
    )


class TicketOut(BaseModel):
    id: int = Field(description="Ticket id", examples=[31])
    section: str = Field(description="Section", examples=["Stalls"])
    seat_id: int = Field(description="Seat id", examples=[11])
    seat: str = Field(description="Row and number", examples=["B3"])
    ticket_type: TicketType = Field(description="Kind of ticket", examples=["adult"])
    price_cents: int = Field(description="Price before discount", examples=[3200])
    discount_percent: int = Field(description="Discount", examples=[10])
    net_cents: int = Field(description="Price after discount", examples=[2880])
    status: TicketStatus = Field(description="Held and sold tickets keep their seat", examples=["sold"])
    refund_id: Optional[int] = Field(None, description="Refund it belongs to", examples=[5])


class PaymentOut(BaseModel):
    id: int = Field(description="Payment id", examples=[17])
    method: PaymentMethod = Field(description="How it was paid", examples=["card"])
    amount_cents: int = Field(description="Amount", examples=[6400])
    voucher_code: Optional[str] = Field(None, description="Gift voucher used", examples=["GV-7001"])
    taken_at: datetime = Field(description="When, UTC", examples=["2026-02-14T11:32:00"])


class RefundOut(BaseModel):
    id: int = Field(description="Refund id", examples=[5])
    booking_id: int = Field(description="Booking id", examples=[7])
    booking_reference: str = Field(description="Booking", examples=["HL-4007"])
    customer_name: str = Field(description="Customer", examples=["Orla Tiernan"])
    show_title: str = Field(description="Show", examples=["A Winter Tide"])
    performance_starts_at: datetime = Field(description="Start of the performance, UTC", examples=["2026-03-13T19:30:00"])
    performance_state: PerformanceState = Field(description="Whether it is still to come", examples=["upcoming"])
    amount_cents: int = Field(description="Amount", examples=[6400])
    method: RefundMethod = Field(description="To where the money came from, or to the customer's credit", examples=["original"])
    reason: RefundReason = Field(description="Why", examples=["customer_request"])
    channel: RefundChannel = Field(description="Where it was asked for", examples=["web"])
    status: RefundStatus = Field(description="Pending refunds wait for a decision", examples=["pending"])
    note: Optional[str] = Field(None, description="Remark on the decision", examples=["Asked for too late"])
    requested_by: Optional[str] = Field(
        None, description="Staff who asked for it; empty for web requests", examples=["Colm Hession"]
    )
    requested_at: datetime = Field(description="When it was asked for, UTC", examples=["2026-03-06T15:10:00"])
    decided_by: Optional[str] = Field(None, description="Staff who decided", examples=["Aoife Brennan"])
    decided_at: Optional[datetime] = Field(None, description="When it was decided, UTC", examples=["2026-03-07T10:00:00"])
    ticket_ids: list[int] = Field(description="Tickets it is for", examples=[[31, 32]])


class BookingSummaryOut(BaseModel):
    id: int = Field(description="Booking id", examples=[7])
    reference: str = Field(description="Reference the customer knows", examples=["HL-4007"])
    status: BookingStatus = Field(description="Status", examples=["confirmed"])
    customer_id: int = Field(description="Customer id", examples=[7])
    customer_name: str = Field(description="Customer", examples=["Orla Tiernan"])
    performance_id: int = Field(description="Performance id", examples=[7])
    show_title: str = Field(description="Show", examples=["A Winter Tide"])
    starts_at: datetime = Field(description="Start of the performance, UTC", examples=["2026-03-13T19:30:00"])
    live_tickets: int = Field(description="Tickets held or sold", examples=[2])
    total_cents: int = Field(description="What these tickets and the fees cost", examples=[6550])
    due_cents: int = Field(description="Still to be paid", examples=[0])
    hold_expires_at: Optional[datetime] = Field(None, description="End of the hold, UTC", examples=["2026-03-09T09:20:00"])
    hold_expired: bool = Field(
        description="Whether the hold has run out; its seats stay blocked until it is released", examples=[False]
    )
    created_at: datetime = Field(description="When it was made, UTC", examples=["2026-02-14T11:30:00"])


class BookingOut(BookingSummaryOut):
    confirmed_at: Optional[datetime] = Field(None, description="When it was paid in full, UTC", examples=["2026-02-14T11:32:00"])
    promotion_code: Optional[str] = Field(None, description="Promotion applied", examples=["SPRING10"])
    fee_cents: int = Field(description="Booking and exchange fees", examples=[150])
    paid_cents: int = Field(description="Paid in all", examples=[6550])
    refunded_cents: int = Field(description="Given back in all", examples=[0])
    tickets: list[TicketOut] = Field(description="All tickets, with those given back")
    payments: list[PaymentOut] = Field(description="Payments")
    refunds: list[RefundOut] = Field(description="Refunds, with those pending and rejected")


class PromotionOut(BaseModel):
    id: int = Field(description="Promotion id", examples=[2])
    code: str = Field(description="Code", examples=["SPRING10"])
    description: str = Field(description="What it is for")
    percent_off: int = Field(description="Off the price of each ticket", examples=[10])
    show_title: Optional[str] = Field(None, description="The only show it is good for", examples=["Lantern Songs"])
    valid_from: date = Field(description="First day it can be applied", examples=["2026-03-01"])
    valid_to: date = Field(description="Last day it can be applied", examples=["2026-03-31"])
    min_tickets: int = Field(description="Tickets a booking needs", examples=[2])
    max_bookings: Optional[int] = Field(None, description="Bookings it is good for", examples=[50])
    bookings: int = Field(description="Bookings that have it", examples=[3])


class PromotionsOut(BaseModel):
    promotions: list[PromotionOut] = Field(description="Promotions")


def hold_has_expired(booking: Booking) -> bool:
    return booking.hold_expires_at is not None and booking.hold_expires_at <= now()


SUMMARY_PARTS = (
    joinedload(Booking.customer),
    joinedload(Booking.performance).joinedload(Performance.show),
    selectinload(Booking.tickets),
    selectinload(Booking.payments),
    selectinload(Booking.refunds),
)


def summary_fields(booking: Booking) -> dict[str, Any]:
    return {
        "id": booking.id,
        "reference": booking.reference,
        "status": booking.status,
        "customer_id": booking.customer_id,
        "customer_name": booking.customer.full_name,
        "performance_id": booking.performance_id,
        "show_title": booking.performance.show.title,
        "starts_at": booking.performance.starts_at,
        "live_tickets": len(booking.live_tickets),
        "total_cents": booking.total_cents,
        "due_cents": booking.due_cents,
        "hold_expires_at": booking.hold_expires_at,
        "hold_expired": hold_has_expired(booking),
        "created_at": booking.created_at,
    }


REFUND_PARTS = (
    joinedload(Refund.booking).options(
        joinedload(Booking.customer), joinedload(Booking.performance).joinedload(Performance.show)
    ),
    joinedload(Refund.requested_by),
    joinedload(Refund.decided_by),
    selectinload(Refund.tickets),
)


def refund_out(refund: Refund) -> RefundOut:
    booking = refund.booking
    return RefundOut(
        id=refund.id,
        booking_id=booking.id,
        booking_reference=booking.reference,
        customer_name=booking.customer.full_name,
        show_title=booking.performance.show.title,
        performance_starts_at=booking.performance.starts_at,
        performance_state=performance_state(booking.performance),
        amount_cents=refund.amount_cents,
        method=refund.method,
        reason=refund.reason,
        channel=refund.channel,
        status=refund.status,
        note=refund.note,
        requested_by=refund.requested_by.full_name if refund.requested_by else None,
        requested_at=refund.requested_at,
        decided_by=refund.decided_by.full_name if refund.decided_by else None,
        decided_at=refund.decided_at,
        ticket_ids=[ticket.id for ticket in refund.tickets],
    )


def ticket_out(ticket: Ticket) -> TicketOut:
    return TicketOut(
        id=ticket.id,
        section=ticket.seat.section.name,
        seat_id=ticket.seat_id,
        seat=ticket.seat.label,
        ticket_type=ticket.ticket_type,
        price_cents=ticket.price_cents,
        discount_percent=ticket.discount_percent,
        net_cents=ticket.net_cents,
        status=ticket.status,
        refund_id=ticket.refund_id,
    )


def booking_out(booking: Booking) -> BookingOut:
    payments = [
        PaymentOut(
            id=payment.id,
            method=payment.method,
            amount_cents=payment.amount_cents,
            voucher_code=payment.voucher.code if payment.voucher else None,
            taken_at=payment.taken_at,
        )
        for payment in booking.payments
    ]
    return BookingOut(
        **summary_fields(booking),
        confirmed_at=booking.confirmed_at,
        promotion_code=booking.promotion.code if booking.promotion else None,
        fee_cents=booking.fee_cents,
        paid_cents=booking.paid_cents,
        refunded_cents=booking.refunded_cents,
        tickets=[ticket_out(ticket) for ticket in booking.tickets],
        payments=payments,
        refunds=[refund_out(refund) for refund in booking.refunds],
    )


def check_on_sale(session: Session, performance: Performance, customer: Customer) -> None:
    state = performance_state(performance)
    if state != "upcoming":
        raise refusal(
            409, f"{performance.label} is {state}.", state=state, allowed="An upcoming performance (list_performances)."
        )
    if performance.sales_paused:
        raise refusal(
            409,
            f"The sale of {performance.label} is paused.",
            state="paused",
            allowed="Another performance, or wait until it reopens.",
        )
    if performance.sales_open_at > now():
        days = policy(session, "priority_booking_days")
        priority = performance.sales_open_at - timedelta(days=days)
        member = customer.membership_on(now().date()) is not None
        if not member or priority > now():
            raise refusal(
                409,
                f"Tickets for {performance.label} are not on sale to {customer.full_name} yet.",
                state={"member": member, "sales_open_at": performance.sales_open_at.isoformat()},
                allowed=f"Members may book from {when(priority)}, everyone from {when(performance.sales_open_at)}.",
            )


def choose_seats(
    session: Session, performance: Performance, seat_ids: Sequence[int], own: Optional[Booking] = None
) -> list[Seat]:
    """The seats, in the order asked for, if all of them are free; seats of the booking `own` count as free."""
    if len(set(seat_ids)) < len(seat_ids):
        raise refusal(422, "A seat is named twice.", state={"seat_ids": list(seat_ids)}, allowed="Each seat once.")
    on_stage = {seat.id: seat for seat in seats_of(performance)}
    unknown = [seat_id for seat_id in seat_ids if seat_id not in on_stage]
    if unknown:
        raise refusal(
            404, f"{performance.stage.name} has no seats with ids {unknown}.", allowed="Look seat ids up with list_seats."
        )
    taken = live_tickets_by_seat(session, performance)
    problems = []
    for seat in (on_stage[seat_id] for seat_id in seat_ids):
        state = seat_state(seat, taken)
        booking = taken[seat.id].booking if seat.id in taken else None
        if booking is not None and booking is not own:
            expired = ", whose hold has expired" if hold_has_expired(booking) else ""
            problems.append(f"{seat.full_label} is {state} ({booking.reference}{expired})")
        elif booking is None and state != "available":
            problems.append(f"{seat.full_label} is out of service ({seat.out_of_service_reason})")
    if problems:
        raise refusal(
            409,
            f"Not all of these seats are free at {performance.label}.",
            state=problems,
            allowed="Seats with state available (list_seats). A hold that has expired can be released (release_booking).",
        )
    return [on_stage[seat_id] for seat_id in seat_ids]


def check_tickets(performance: Performance, customer: Customer, choices: Iterable[tuple[Seat, str]]) -> None:
    """Who may sit where: age limits, wheelchair spaces, companions."""
    choices = list(choices)
    age = performance.show.minimum_age
    if age >= 16 and any(ticket_type == "child" for _, ticket_type in choices):
        raise refusal(
            409,
            f"{performance.show.title} admits nobody under {age}.",
            state={"minimum_age": age},
            allowed="Tickets other than child.",
        )
    for seat, ticket_type in choices:
        if (seat.kind == "companion") != (ticket_type == "companion"):
            raise refusal(
                409,
                f"{seat.full_label} is a {seat.kind} seat; a {ticket_type} ticket is not sold for it.",
                state={"seat_kind": seat.kind, "ticket_type": ticket_type},
                allowed="Companion tickets for companion seats, other tickets for other seats.",
            )
    spaces = [seat for seat, _ in choices if seat.kind == "wheelchair"]
    companions = [seat for seat, _ in choices if seat.kind == "companion"]
    if spaces and not customer.needs_wheelchair_space:
        raise refusal(
            409,
            f"{spaces[0].full_label} is a wheelchair space, and {customer.full_name} is not registered as needing one.",
            state={"needs_wheelchair_space": False},
            allowed="Another seat. If the customer does need the space, record that first (update_customer).",
        )
    if len(companions) > len(spaces):
        raise refusal(
            409,
            "A companion seat goes with a wheelchair space in the same booking.",
            state={"wheelchair_spaces": len(spaces), "companion_seats": len(companions)},
            allowed="One companion for each wheelchair space.",
        )


def list_price(session: Session, performance: Performance, seat: Seat, ticket_type: str) -> int:
    if ticket_type == "companion":
        return 0
    price = session.scalar(
        select(Price.amount_cents).where(
            Price.show_id == performance.show_id, Price.section_id == seat.section_id, Price.ticket_type == ticket_type
        )
    )
    if price is None:
        raise refusal(
            409,
            f"No {ticket_type} tickets are sold in {seat.section.name} for {performance.show.title}.",
            allowed="A kind of ticket that get_show lists with a price for that section.",
        )
    return price


def apply_member_discount(session: Session, booking: Booking) -> None:
    """Members get their discount on so many tickets of a performance, over all their bookings, dearest first."""
    for ticket in booking.live_tickets:
        ticket.discount_percent = 0
    membership = booking.customer.membership_on(now().date())
    if membership is None:
        return
    others = session.scalars(
        select(Ticket)
        .join(Booking, Booking.id == Ticket.booking_id)
        .where(Booking.customer_id == booking.customer_id, Booking.id != booking.id, Booking.promotion_id.is_(None))
        .where(Ticket.performance_id == booking.performance_id, Ticket.status.in_(("held", "sold")), Ticket.discount_percent > 0)
    ).all()
    left = max(membership.tier.discounted_tickets - len(others), 0)
    by_price = sorted(booking.live_tickets, key=lambda ticket: (-ticket.price_cents, ticket.id))
    for ticket in [ticket for ticket in by_price if ticket.price_cents > 0][:left]:
        ticket.discount_percent = membership.tier.discount_percent


def hold_seats(
    session: Session, user: User, customer: Customer, performance: Performance, choices: list[tuple[Seat, str]], expires: datetime
) -> Booking:
    limit = policy(session, "max_tickets_per_booking")
    if len(choices) > limit:
        raise refusal(
            409,
            f"A booking holds at most {limit} tickets.",
            state={"tickets": len(choices)},
            allowed="Fewer tickets, or a second booking.",
        )
    check_on_sale(session, performance, customer)
    check_tickets(performance, customer, choices)
    priced = [(seat, ticket_type, list_price(session, performance, seat, ticket_type)) for seat, ticket_type in choices]
    member = customer.membership_on(now().date()) is not None
    number = (session.scalar(select(func.max(Booking.id))) or 0) + 1
    booking = Booking(
        id=number,
        reference=f"HL-{4000 + number}",
        customer=customer,
        performance=performance,
        status="held",
        fee_cents=0 if member else policy(session, "booking_fee_cents"),
        hold_expires_at=min(expires, performance.starts_at),
        created_by_id=user.id,
        created_at=now(),
    )
    booking.tickets = [
        Ticket(
            performance_id=performance.id,
            seat=seat,
            ticket_type=ticket_type,
            price_cents=price,
            discount_percent=0,
            status="held",
        )
        for seat, ticket_type, price in priced
    ]
    session.add(booking)
    session.flush()
    apply_member_discount(session, booking)
    return booking


def check_hold(booking: Booking) -> None:
    """Only a hold that has not run out can be changed or paid."""
    if booking.status != "held":
        raise refusal(
            409,
            f"Booking {booking.reference} is {booking.status}, not held.",
            state=booking.status,
            allowed="Bookings on hold only.",
        )
    if hold_has_expired(booking):
        raise refusal(
            409,
            f"The hold of {booking.reference} has expired.",
            state={"hold_expires_at": booking.hold_expires_at.isoformat()},
            allowed="release_booking, then book the seats anew if they are still wanted.",
        )


def collect(
    session: Session, user: User, booking: Booking, method: str, amount_cents: int, voucher: Optional[Voucher] = None
) -> None:
    """Take money for a booking. The credit it is paid from must cover it."""
    if method == "credit":
        credit = booking.customer.credit_cents
        if credit < amount_cents:
            raise refusal(
                409,
                f"{booking.customer.full_name}'s credit does not cover {euros(amount_cents)}.",
                state={"credit_cents": credit},
                allowed=f"At most {euros(credit)} by credit, the rest another way.",
            )
        booking.customer.credit_entries.append(
            CreditEntry(booking=booking, amount_cents=-amount_cents, reason="spent", created_by_id=user.id, created_at=now())
        )
    if voucher is not None:
        voucher.balance_cents -= amount_cents
    booking.payments.append(
        Payment(method=method, amount_cents=amount_cents, voucher=voucher, taken_by_id=user.id, taken_at=now())
    )


def give_credit(session: Session, user: User, booking: Booking, amount_cents: int, reason: str) -> None:
    """Turn what a change of a booking left over into the customer's credit."""
    booking.refunds.append(
        Refund(
            amount_cents=amount_cents,
            method="credit",
            reason=reason,
            channel="counter",
            status="paid",
            requested_by_id=user.id,
            requested_at=now(),
            decided_by_id=user.id,
            decided_at=now(),
        )
    )
    add_refund_credit(user, booking, amount_cents)


def add_refund_credit(user: User, booking: Booking, amount_cents: int) -> None:
    booking.customer.credit_entries.append(
        CreditEntry(booking=booking, amount_cents=amount_cents, reason="refund", created_by_id=user.id, created_at=now())
    )


def settle(session: Session, user: User, booking: Booking, settle_by: str, reason: str) -> str:
    """Bring a changed booking back to nothing due. Says what that took."""
    due = booking.due_cents
    if due > 0:
        collect(session, user, booking, settle_by, due)
        return f"{euros(due)} paid by {settle_by}"
    if due < 0:
        give_credit(session, user, booking, -due, reason)
        return f"{euros(-due)} to credit"
    return "nothing due"


def check_no_pending_refund(booking: Booking) -> None:
    pending = [refund.id for refund in booking.refunds if refund.status == "pending"]
    if pending:
        raise refusal(
            409,
            f"A refund of {booking.reference} is waiting for a decision.",
            state={"refund_ids": pending},
            allowed="approve_refund or reject_refund first.",
        )


@app.get(
    "/api/bookings",
    operation_id="search_bookings",
    summary="Search bookings by reference, customer, performance or status",
    description="Bookings with what they cost and what is due. Holds that have run out are found with hold_expired.",
    tags=["bookings"],
    response_model=Listing[BookingSummaryOut],
)
async def search_bookings(
    session: SessionDep,
    reference: Annotated[Optional[str], Query(max_length=20, description="Reference, in full", examples=["HL-4007"])] = None,
    customer_id: Annotated[Optional[int], query_id("Only this customer", 7)] = None,
    performance_id: Annotated[Optional[int], query_id("Only this performance", 7)] = None,
    show_id: Annotated[Optional[int], query_id("Only this show", 2)] = None,
    status: Annotated[Optional[BookingStatus], Query(description="Only this status", examples=["confirmed"])] = None,
    hold_expired: Annotated[
        Optional[bool], Query(description="Only holds that have, or have not, run out", examples=[True])
    ] = None,
    sort: Annotated[
        Literal["created_at", "-created_at", "starts_at", "-starts_at"], Query(description="Order; minus is descending")
    ] = "created_at",
    page: PageNumber = 1,
    page_size: PageSize = 20,
) -> Listing[BookingSummaryOut]:
    column = Booking.created_at if sort.endswith("created_at") else Performance.starts_at
    statement = select(Booking).join(Performance, Performance.id == Booking.performance_id)
    statement = statement.order_by(column.desc() if sort.startswith("-") else column, Booking.id)
    if reference is not None:
        statement = statement.where(func.upper(Booking.reference) == reference.strip().upper())
    if customer_id is not None:
        statement = statement.where(Booking.customer_id == customer_id)
    if performance_id is not None:
        statement = statement.where(Booking.performance_id == performance_id)
    if show_id is not None:
        statement = statement.where(Performance.show_id == show_id)
    if status is not None:
        statement = statement.where(Booking.status == status)
    if hold_expired is not None:
        expired = Booking.hold_expires_at <= now()
        statement = statement.where(Booking.status == "held", expired if hold_expired else ~expired)
    bookings, paging = page_of(session, statement, page, page_size, *SUMMARY_PARTS)
    return Listing(items=[BookingSummaryOut(**summary_fields(booking)) for booking in bookings], **paging)


@app.get(
    "/api/bookings/{booking_id}",
    operation_id="get_booking",
    summary="Show one booking with tickets, payments and refunds",
    description="Everything about a booking, with tickets exchanged or given back.",
    tags=["bookings"],
    response_model=BookingOut,
)
async def get_booking(session: SessionDep, booking_id: Annotated[int, path_id("booking", 7)]) -> BookingOut:
    return booking_out(find(session, Booking, booking_id, "booking", "search_bookings"))


@app.post(
    "/api/bookings",
    operation_id="create_booking",
    summary="Put seats on hold for a customer",
    description="Holds the seats for a short time (see list_policies) until paid by take_payment. Member discounts are applied.",
    tags=["bookings"],
    response_model=BookingOut,
    status_code=201,
)
async def create_booking(session: SessionDep, user: UserDep, body: BookingIn) -> BookingOut:
    customer = find(session, Customer, body.customer_id, "customer", "search_customers")
    performance = find(session, Performance, body.performance_id, "performance", "list_performances")
    seats = choose_seats(session, performance, [choice.seat_id for choice in body.tickets])
    choices = [(seat, choice.ticket_type) for seat, choice in zip(seats, body.tickets, strict=True)]
    expires = now() + timedelta(minutes=policy(session, "hold_minutes"))
    booking = hold_seats(session, user, customer, performance, choices, expires)
    record(session, user, "booking_held", booking, ", ".join(seat.full_label for seat in seats))
    session.commit()
    return booking_out(booking)


@app.get(
    "/api/promotions",
    operation_id="list_promotions",
    summary="List promotions and their terms",
    description="Promotion codes with discount, show, days and least number of tickets. All, or those good on a day.",
    tags=["bookings"],
    response_model=PromotionsOut,
)
async def list_promotions(
    session: SessionDep,
    valid_on: Annotated[Optional[date], Query(description="Only those good on this day", examples=["2026-03-09"])] = None,
) -> PromotionsOut:
    statement = select(Promotion).order_by(Promotion.code)
    if valid_on is not None:
        statement = statement.where(Promotion.valid_from <= valid_on, Promotion.valid_to >= valid_on)
    promotions = [
        PromotionOut(
            id=promotion.id,
            code=promotion.code,
            description=promotion.description,
            percent_off=promotion.percent_off,
            show_title=promotion.show.title if promotion.show else None,
            valid_from=promotion.valid_from,
            valid_to=promotion.valid_to,
            min_tickets=promotion.min_tickets,
            max_bookings=promotion.max_bookings,
            bookings=bookings_with(session, promotion),
        )
        for promotion in session.scalars(statement)
    ]
    return PromotionsOut(promotions=promotions)


def bookings_with(session: Session, promotion: Promotion) -> int:
    statement = (
        select(func.count()).select_from(Booking).where(Booking.promotion_id == promotion.id, Booking.status != "released")
    )
    return session.scalar(statement) or 0


@app.post(
    "/api/bookings/{booking_id}/promotion",
    operation_id="apply_promotion",
    summary="Apply a promotion code to a booking on hold",
    description="Replaces a member discount or another promotion, where it is better for the customer.",
    tags=["bookings"],
    response_model=BookingOut,
)
async def apply_promotion(
    session: SessionDep, user: UserDep, booking_id: Annotated[int, path_id("booking", 7)], body: PromotionIn
) -> BookingOut:
    booking = find(session, Booking, booking_id, "booking", "search_bookings")
    check_hold(booking)
    promotion = session.scalar(select(Promotion).where(func.upper(Promotion.code) == body.code.strip().upper()))
    if promotion is None:
        raise refusal(404, f"There is no promotion {body.code!r}.", allowed="A code of list_promotions.")
    today, tickets = now().date(), booking.live_tickets
    terms = []
    if not promotion.valid_from <= today <= promotion.valid_to:
        terms.append(f"good from {promotion.valid_from} to {promotion.valid_to}")
    if promotion.show is not None and promotion.show is not booking.performance.show:
        terms.append(f"for {promotion.show.title} only")
    if len(tickets) < promotion.min_tickets:
        terms.append(f"for {promotion.min_tickets} tickets or more")
    if promotion.max_bookings is not None and bookings_with(session, promotion) >= promotion.max_bookings:
        terms.append(f"used up by {promotion.max_bookings} bookings")
    if booking.payments:
        terms.append("to be applied before the first payment")
    if terms:
        raise refusal(
            409, f"{promotion.code} can't be applied to {booking.reference}.", state=terms, allowed="See list_promotions."
        )
    before = booking.total_cents
    percentages = [ticket.discount_percent for ticket in tickets]
    for ticket in tickets:
        ticket.discount_percent = promotion.percent_off
    after = booking.total_cents
    if after >= before:
        for ticket, percent in zip(tickets, percentages, strict=True):
            ticket.discount_percent = percent
        raise refusal(
            409,
            f"{promotion.code} is no better than the discount {booking.reference} has.",
            state={"total_cents": before, "with_promotion_cents": after},
            allowed="Leave the booking as it is.",
        )
    booking.promotion = promotion
    record(session, user, "promotion_applied", booking, f"{promotion.code}: {euros(before)} to {euros(after)}")
    session.commit()
    return booking_out(booking)


@app.post(
    "/api/bookings/{booking_id}/payments",
    operation_id="take_payment",
    summary="Take a payment for a booking on hold",
    description="Part payments in different ways are fine. When nothing is due any more, the booking is confirmed.",
    tags=["bookings"],
    response_model=BookingOut,
    status_code=201,
)
async def take_payment(
    session: SessionDep, user: UserDep, booking_id: Annotated[int, path_id("booking", 7)], body: PaymentIn
) -> BookingOut:
    booking = find(session, Booking, booking_id, "booking", "search_bookings")
    check_hold(booking)
    if (body.method == "voucher") != (body.voucher_code is not None):
        raise refusal(422, "voucher_code goes with the method voucher, and only with it.", allowed="Both or neither.")
    if body.amount_cents > booking.due_cents:
        raise refusal(
            409,
            f"{euros(body.amount_cents)} is more than is due on {booking.reference}.",
            state={"due_cents": booking.due_cents},
            allowed=f"At most {euros(booking.due_cents)}.",
        )
    voucher = None
    if body.voucher_code is not None:
        voucher = usable_voucher(session, body.voucher_code, body.amount_cents)
    collect(session, user, booking, body.method, body.amount_cents, voucher)
    if booking.due_cents == 0:
        booking.status, booking.hold_expires_at, booking.confirmed_at = "confirmed", None, now()
        for ticket in booking.live_tickets:
            ticket.status = "sold"
        close_waitlist_offer(session, booking, "fulfilled")
    record(session, user, "payment_taken", booking, f"{euros(body.amount_cents)} by {body.method}")
    session.commit()
    return booking_out(booking)


@app.post(
    "/api/bookings/{booking_id}/release",
    operation_id="release_booking",
    summary="Give up a booking on hold and free its seats",
    description="For holds, run out or not. Whatever was paid on it becomes the customer's credit.",
    tags=["bookings"],
    response_model=BookingOut,
)
async def release_booking(session: SessionDep, user: UserDep, booking_id: Annotated[int, path_id("booking", 7)]) -> BookingOut:
    booking = find(session, Booking, booking_id, "booking", "search_bookings")
    if booking.status != "held":
        raise refusal(
            409,
            f"Booking {booking.reference} is {booking.status}, not held.",
            state=booking.status,
            allowed="Bookings on hold only; the tickets of a confirmed booking are refunded (request_refund) or exchanged.",
        )
    if booking.paid_cents > 0:
        give_credit(session, user, booking, booking.paid_cents, "hold_released")
    for ticket in booking.live_tickets:
        ticket.status = "released"
    booking.status, booking.hold_expires_at = "released", None
    close_waitlist_offer(session, booking, "expired")
    record(session, user, "booking_released", booking, booking.reference)
    session.commit()
    return booking_out(booking)


@app.post(
    "/api/bookings/{booking_id}/exchange",
    operation_id="exchange_booking",
    summary="Move a confirmed booking to other seats or another date",
    description="All its tickets, within the same show, until a time before the start (list_policies), for a fee a ticket.",
    tags=["bookings"],
    response_model=BookingOut,
)
async def exchange_booking(
    session: SessionDep, user: UserDep, booking_id: Annotated[int, path_id("booking", 7)], body: ExchangeIn
) -> BookingOut:
    booking = find(session, Booking, booking_id, "booking", "search_bookings")
    target = find(session, Performance, body.performance_id, "performance", "list_performances")
    if booking.status != "confirmed":
        raise refusal(
            409, f"Booking {booking.reference} is {booking.status}.", state=booking.status, allowed="Confirmed bookings only."
        )
    check_no_pending_refund(booking)
    if target.show_id != booking.performance.show_id:
        raise refusal(
            409,
            f"{booking.reference} is for {booking.performance.show.title}; {target.label} is another show.",
            state={"show_id": booking.performance.show_id},
            allowed="A performance of the same show.",
        )
    cancelled = booking.performance.cancelled_at is not None
    hours = policy(session, "exchange_cutoff_hours")
    deadline = booking.performance.starts_at - timedelta(hours=hours)
    if not cancelled and now() > deadline:
        raise refusal(
            409,
            f"{booking.reference} could be exchanged until {hours} hours before the performance.",
            state={"deadline": deadline.isoformat(), "now": now().isoformat()},
            allowed="Nothing any more; the tickets stay as they are.",
        )
    old = booking.live_tickets
    if len(body.seat_ids) != len(old):
        raise refusal(
            422,
            f"{booking.reference} has {len(old)} tickets, and {len(body.seat_ids)} seats are named.",
            state=[f"{ticket.seat.full_label} {ticket.ticket_type}" for ticket in old],
            allowed="One new seat for each ticket.",
        )
    if target is booking.performance and [ticket.seat_id for ticket in old] == body.seat_ids:
        raise refusal(409, "These are the seats the booking has.", state=body.seat_ids, allowed="Other seats.")
    check_on_sale(session, target, booking.customer)
    seats = choose_seats(session, target, body.seat_ids, own=booking)
    check_tickets(target, booking.customer, [(seat, ticket.ticket_type) for seat, ticket in zip(seats, old, strict=True)])
    new = [
        Ticket(
            performance_id=target.id,
            seat=seat,
            ticket_type=ticket.ticket_type,
            price_cents=list_price(session, target, seat, ticket.ticket_type),
            discount_percent=ticket.discount_percent,
            status="sold",
        )
        for seat, ticket in zip(seats, old, strict=True)
    ]
    for ticket in old:
        ticket.status = "exchanged"
    session.flush()
    booking.tickets.extend(new)
    booking.performance = target
    membership = booking.customer.membership_on(now().date())
    if not cancelled and not (membership and membership.tier.free_exchanges):
        booking.fee_cents += policy(session, "exchange_fee_cents") * len(new)
    settled = settle(session, user, booking, body.settle_by, "exchange_difference")
    record(session, user, "booking_exchanged", booking, f"To {target.label}; {settled}")
    session.commit()
    return booking_out(booking)


@app.patch(
    "/api/tickets/{ticket_id}/type",
    operation_id="correct_ticket_type",
    summary="Correct the kind of a ticket",
    description="Until the performance starts. The difference is paid, or becomes credit; discounts stay as they are.",
    tags=["bookings"],
    response_model=BookingOut,
)
async def correct_ticket_type(
    session: SessionDep,
    user: UserDep,
    ticket_id: Annotated[int, path_id("ticket; get_booking lists them", 31)],
    body: TypeCorrectionIn,
) -> BookingOut:
    ticket = find(session, Ticket, ticket_id, "ticket", "get_booking")
    booking, performance = ticket.booking, ticket.booking.performance
    if ticket.status not in ("held", "sold"):
        raise refusal(409, f"This ticket is {ticket.status}.", state=ticket.status, allowed="Tickets that are held or sold.")
    if ticket.status == "held":
        check_hold(booking)
    check_no_pending_refund(booking)
    state = performance_state(performance)
    if state != "upcoming":
        raise refusal(409, f"{performance.label} is {state}.", state=state, allowed="Tickets of upcoming performances.")
    if ticket.ticket_type == body.ticket_type:
        raise refusal(409, f"This is a {ticket.ticket_type} ticket already.", state=ticket.ticket_type, allowed="Another kind.")
    check_tickets(performance, booking.customer, [(ticket.seat, body.ticket_type)])
    old_type = ticket.ticket_type
    ticket.price_cents = list_price(session, performance, ticket.seat, body.ticket_type)
    ticket.ticket_type = body.ticket_type
    if ticket.status == "held":
        if booking.due_cents < 0:
            raise refusal(
                409,
                f"More has been paid on {booking.reference} than it would cost then.",
                state={"paid_cents": booking.paid_cents},
                allowed="Pay the rest first and correct the ticket afterwards.",
            )
        settled = "on hold, nothing settled"
    else:
        settled = settle(session, user, booking, body.settle_by, "type_correction")
    record(
        session, user, "ticket_type_corrected", booking, f"{ticket.seat.full_label} {old_type} to {body.ticket_type}; {settled}"
    )
    session.commit()
    return booking_out(booking)


# Refunds


class RefundIn(BaseModel):
    method: RefundMethod = Field(
        description="To where the money came from (card or cash only), or to the customer's credit", examples=["original"]
    )
    ticket_ids: Optional[list[Annotated[int, Field(ge=1, le=MAX_ID)]]] = Field(
        None, min_length=1, max_length=40, description="Tickets to give back; all when left out", examples=[[31, 32]]
    )


class ApprovalIn(BaseModel):
    note: Optional[Note] = Field(None, description="Remark on the decision", examples=["Performance cancelled"])


class RejectionIn(BaseModel):
    note: Note = Field(description="Reason the customer is told", examples=["Asked for too late"])


def refund_deadline(session: Session, performance: Performance) -> datetime:
    return performance.starts_at - timedelta(hours=policy(session, "refund_cutoff_hours"))


def check_refund_time(session: Session, performance: Performance, asked_at: datetime) -> None:
    """Tickets are taken back until a time before the start, and at any time for a cancelled performance."""
    deadline = refund_deadline(session, performance)
    if performance.cancelled_at is None and asked_at > deadline:
        hours = policy(session, "refund_cutoff_hours")
        raise refusal(
            409,
            f"Tickets for {performance.label} are refunded only when that is asked for {hours} hours before the start.",
            state={"deadline": deadline.isoformat(), "asked_at": asked_at.isoformat()},
            allowed="No refund any more. Exchanges have a deadline of their own (list_policies).",
        )


def pay_out(user: User, refund: Refund) -> None:
    refund.status, refund.decided_by_id, refund.decided_at = "paid", user.id, now()
    for ticket in refund.tickets:
        ticket.status = "refunded"
    if not refund.booking.live_tickets:
        refund.booking.status = "refunded"
    if refund.method == "credit":
        add_refund_credit(user, refund.booking, refund.amount_cents)


def check_may_decide(user: User, refund: Refund) -> None:
    if refund.status != "pending":
        raise refusal(409, f"This refund is {refund.status}.", state=refund.status, allowed="Pending refunds (list_refunds).")
    if user.role == "clerk" or refund.requested_by_id == user.id:
        raise refusal(
            403,
            "Refunds are decided by a supervisor or house manager who did not ask for them.",
            state={"your_role": user.role, "requested_by_id": refund.requested_by_id},
            allowed="Leave it for someone else.",
        )


@app.get(
    "/api/refunds",
    operation_id="list_refunds",
    summary="List refunds by status, channel or booking",
    description="Refunds, oldest request first, with performance and time of the request. Web requests come in unchecked.",
    tags=["refunds"],
    response_model=Listing[RefundOut],
)
async def list_refunds(
    session: SessionDep,
    status: Annotated[Optional[RefundStatus], Query(description="Only this status", examples=["pending"])] = None,
    channel: Annotated[Optional[RefundChannel], Query(description="Only this channel", examples=["web"])] = None,
    booking_id: Annotated[Optional[int], query_id("Only this booking", 7)] = None,
    page: PageNumber = 1,
    page_size: PageSize = 20,
) -> Listing[RefundOut]:
    statement = select(Refund).order_by(Refund.requested_at, Refund.id)
    if status is not None:
        statement = statement.where(Refund.status == status)
    if channel is not None:
        statement = statement.where(Refund.channel == channel)
    if booking_id is not None:
        statement = statement.where(Refund.booking_id == booking_id)
    refunds, paging = page_of(session, statement, page, page_size, *REFUND_PARTS)
    return Listing(items=[refund_out(refund) for refund in refunds], **paging)


@app.post(
    "/api/bookings/{booking_id}/refunds",
    operation_id="request_refund",
    summary="Refund tickets of a confirmed booking",
    description="Paid at once within your limit, else left pending. Fees are kept. Deadlines: list_policies.",
    tags=["refunds"],
    response_model=RefundOut,
    status_code=201,
)
async def request_refund(
    session: SessionDep, user: UserDep, booking_id: Annotated[int, path_id("booking", 7)], body: RefundIn
) -> RefundOut:
    booking = find(session, Booking, booking_id, "booking", "search_bookings")
    if booking.status != "confirmed":
        raise refusal(
            409, f"Booking {booking.reference} is {booking.status}.", state=booking.status, allowed="Confirmed bookings only."
        )
    check_no_pending_refund(booking)
    check_refund_time(session, booking.performance, now())
    live = {ticket.id: ticket for ticket in booking.live_tickets}
    chosen = list(dict.fromkeys(body.ticket_ids)) if body.ticket_ids is not None else list(live)
    unknown = [ticket_id for ticket_id in chosen if ticket_id not in live]
    if unknown:
        raise refusal(
            404,
            f"{booking.reference} has no live tickets with ids {unknown}.",
            state={"live_ticket_ids": list(live)},
            allowed="Tickets that get_booking shows as sold.",
        )
    left = [(ticket.seat, ticket.ticket_type) for ticket_id, ticket in live.items() if ticket_id not in chosen]
    check_tickets(booking.performance, booking.customer, left)
    methods = sorted({payment.method for payment in booking.payments} - {"card", "cash"})
    if body.method == "original" and methods:
        raise refusal(
            409,
            f"{booking.reference} was paid in part by {' and '.join(methods)}.",
            state={"paid_by": methods},
            allowed="Refund it to the customer's credit (method credit).",
        )
    tickets = [live[ticket_id] for ticket_id in chosen]
    amount = sum(ticket.net_cents for ticket in tickets)
    if amount == 0:
        raise refusal(409, "These tickets cost nothing.", state={"amount_cents": 0}, allowed="Tickets that were paid for.")
    refund = Refund(
        booking=booking,
        amount_cents=amount,
        method=body.method,
        reason="customer_request" if booking.performance.cancelled_at is None else "performance_cancelled",
        channel="counter",
        status="pending",
        requested_by=user,
        requested_at=now(),
        tickets=tickets,
    )
    session.add(refund)
    if amount <= user.refund_limit_cents:
        refund.decided_by = user
        pay_out(user, refund)
    record(session, user, f"refund_{refund.status}", refund, f"{booking.reference}: {euros(amount)} to {body.method}")
    session.commit()
    return refund_out(refund)


@app.post(
    "/api/refunds/{refund_id}/approval",
    operation_id="approve_refund",
    summary="Approve a pending refund and pay it out",
    description="Within your limit, not your own requests, and only where the house rules allow the refund.",
    tags=["refunds"],
    response_model=RefundOut,
)
async def approve_refund(
    session: SessionDep, user: UserDep, refund_id: Annotated[int, path_id("refund", 5)], body: ApprovalIn = ApprovalIn()
) -> RefundOut:
    refund = find(session, Refund, refund_id, "refund", "list_refunds")
    check_may_decide(user, refund)
    if refund.amount_cents > user.refund_limit_cents:
        raise refusal(
            403,
            f"{euros(refund.amount_cents)} is above your limit.",
            state={"refund_limit_cents": user.refund_limit_cents},
            allowed="Leave it for the house manager.",
        )
    check_refund_time(session, refund.booking.performance, refund.requested_at)
    refund.note = body.note
    refund.decided_by = user
    pay_out(user, refund)
    record(session, user, "refund_paid", refund, f"{refund.booking.reference}: {euros(refund.amount_cents)} to {refund.method}")
    session.commit()
    return refund_out(refund)


@app.post(
    "/api/refunds/{refund_id}/rejection",
    operation_id="reject_refund",
    summary="Reject a pending refund",
    description="The tickets stay sold. Not for your own requests.",
    tags=["refunds"],
    response_model=RefundOut,
)
async def reject_refund(
    session: SessionDep, user: UserDep, refund_id: Annotated[int, path_id("refund", 5)], body: RejectionIn
) -> RefundOut:
    refund = find(session, Refund, refund_id, "refund", "list_refunds")
    check_may_decide(user, refund)
    refund.status, refund.note, refund.decided_by, refund.decided_at = "rejected", body.note, user, now()
    for ticket in list(refund.tickets):
        ticket.refund = None
    record(session, user, "refund_rejected", refund, f"{refund.booking.reference}: {body.note}")
    session.commit()
    return refund_out(refund)


# Gift vouchers


VoucherState = Literal["usable", "spent", "expired"]


class VoucherIn(BaseModel):
    purchaser_id: int = body_id("Customer who buys it", 7)
    recipient_name: Name = Field(description="Who it is for", examples=["Fergal Tiernan"])
    amount_cents: int = Field(ge=1000, le=50_000, description="Value", examples=[5000])
    paid_by: TillMethod = Field(description="How it is paid", examples=["card"])


class VoucherOut(BaseModel):
    id: int = Field(description="Voucher id", examples=[3])
    code: str = Field(description="Code printed on it", examples=["GV-7003"])
    purchaser_name: Optional[str] = Field(None, description="Who bought it", examples=["Orla Tiernan"])
    recipient_name: str = Field(description="Who it is for", examples=["Fergal Tiernan"])
    initial_cents: int = Field(description="Value when bought", examples=[5000])
    balance_cents: int = Field(description="Value left", examples=[2500])
    state: VoucherState = Field(description="Whether it can be spent today", examples=["usable"])
    issued_at: datetime = Field(description="When it was bought, UTC", examples=["2025-12-19T16:40:00"])
    expires_on: date = Field(description="Last day it can be spent", examples=["2030-12-19"])


def voucher_out(voucher: Voucher) -> VoucherOut:
    state: VoucherState = "usable" if voucher.balance_cents > 0 else "spent"
    if voucher.expires_on < now().date():
        state = "expired"
    return VoucherOut(
        id=voucher.id,
        code=voucher.code,
        purchaser_name=voucher.purchaser.full_name if voucher.purchaser else None,
        recipient_name=voucher.recipient_name,
        initial_cents=voucher.initial_cents,
        balance_cents=voucher.balance_cents,
        state=state,
        issued_at=voucher.issued_at,
        expires_on=voucher.expires_on,
    )


def usable_voucher(session: Session, code: str, amount_cents: int) -> Voucher:
    voucher = session.scalar(select(Voucher).where(func.upper(Voucher.code) == code.strip().upper()))
    if voucher is None:
        raise refusal(404, f"There is no voucher {code!r}.", allowed="Look the code up with search_vouchers.")
    if voucher.expires_on < now().date():
        raise refusal(
            409,
            f"Voucher {voucher.code} has expired.",
            state={"expires_on": voucher.expires_on.isoformat()},
            allowed="Pay another way.",
        )
    if voucher.balance_cents < amount_cents:
        raise refusal(
            409,
            f"Voucher {voucher.code} does not cover {euros(amount_cents)}.",
            state={"balance_cents": voucher.balance_cents},
            allowed=f"At most {euros(voucher.balance_cents)} by this voucher, the rest another way.",
        )
    return voucher


@app.get(
    "/api/vouchers",
    operation_id="search_vouchers",
    summary="Search gift vouchers by code, person or state",
    description="Vouchers with the value left. The text matches any part of the code or the recipient's name.",
    tags=["vouchers"],
    response_model=Listing[VoucherOut],
)
async def search_vouchers(
    session: SessionDep,
    text_query: Annotated[
        Optional[str],
        Query(alias="q", max_length=80, description="Part of the code or the recipient's name", examples=["GV-7003"]),
    ] = None,
    purchaser_id: Annotated[Optional[int], query_id("Only those this customer bought", 7)] = None,
    state: Annotated[Optional[VoucherState], Query(description="Only this state", examples=["usable"])] = None,
    page: PageNumber = 1,
    page_size: PageSize = 20,
) -> Listing[VoucherOut]:
    today = now().date()
    statement = select(Voucher).order_by(Voucher.code)
    if text_query is not None:
        fields = (Voucher.code, Voucher.recipient_name)
        statement = statement.where(or_(*(field.icontains(text_query, autoescape=True) for field in fields)))
    if purchaser_id is not None:
        statement = statement.where(Voucher.purchaser_id == purchaser_id)
    if state == "expired":
        statement = statement.where(Voucher.expires_on < today)
    elif state == "spent":
        statement = statement.where(Voucher.expires_on >= today, Voucher.balance_cents == 0)
    elif state == "usable":
        statement = statement.where(Voucher.expires_on >= today, Voucher.balance_cents > 0)
    vouchers, paging = page_of(session, statement, page, page_size)
    return Listing(items=[voucher_out(voucher) for voucher in vouchers], **paging)


@app.post(
    "/api/vouchers",
    operation_id="issue_voucher",
    summary="Sell a gift voucher",
    description="The answer holds its code. How long it can be spent is a house rule (list_policies).",
    tags=["vouchers"],
    response_model=VoucherOut,
    status_code=201,
)
async def issue_voucher(session: SessionDep, user: UserDep, body: VoucherIn) -> VoucherOut:
    purchaser = find(session, Customer, body.purchaser_id, "customer", "search_customers")
    number = (session.scalar(select(func.max(Voucher.id))) or 0) + 1
    expires_on = now().date()
    for _ in range(policy(session, "voucher_years")):
        expires_on = a_year_later(expires_on)
    voucher = Voucher(
        id=number,
        code=f"GV-{7000 + number}",
        purchaser=purchaser,
        recipient_name=body.recipient_name,
        initial_cents=body.amount_cents,
        balance_cents=body.amount_cents,
        paid_by=body.paid_by,
        issued_at=now(),
        expires_on=expires_on,
    )
    session.add(voucher)
    record(session, user, "voucher_issued", voucher, f"{voucher.code}: {euros(body.amount_cents)}")
    session.commit()
    return voucher_out(voucher)


# Waiting lists


class WaitlistIn(BaseModel):
    customer_id: int = body_id("Customer who waits", 7)
    section_id: int = body_id("Section they want to sit in", 1)
    seats_wanted: int = Field(ge=1, le=40, description="Number of seats", examples=[2])


class OfferIn(BaseModel):
    seat_ids: list[Annotated[int, Field(ge=1, le=MAX_ID)]] = Field(
        min_length=1,
        max_length=40,
        description="Seats to offer, as many as are wanted, in the section wanted",
        examples=[[11, 12]],
    )


class WaitlistEntryOut(BaseModel):
    id: int = Field(description="Entry id", examples=[2])
    performance_id: int = Field(description="Performance id", examples=[9])
    show_title: str = Field(description="Show", examples=["A Winter Tide"])
    starts_at: datetime = Field(description="Start of the performance, UTC", examples=["2026-03-14T19:30:00"])
    section_id: int = Field(description="Section id", examples=[1])
    section: str = Field(description="Section", examples=["Stalls"])
    customer_id: int = Field(description="Customer id", examples=[7])
    customer_name: str = Field(description="Customer", examples=["Orla Tiernan"])
    seats_wanted: int = Field(description="Number of seats", examples=[2])
    status: WaitlistStatus = Field(description="Status", examples=["waiting"])
    booking_reference: Optional[str] = Field(None, description="Booking made for it", examples=["HL-4030"])
    joined_at: datetime = Field(description="When they joined, UTC", examples=["2026-03-02T12:00:00"])


WAITLIST_PARTS = (
    joinedload(WaitlistEntry.performance).joinedload(Performance.show),
    joinedload(WaitlistEntry.section),
    joinedload(WaitlistEntry.customer),
    joinedload(WaitlistEntry.booking),
)


def waitlist_out(entry: WaitlistEntry) -> WaitlistEntryOut:
    return WaitlistEntryOut(
        id=entry.id,
        performance_id=entry.performance_id,
        show_title=entry.performance.show.title,
        starts_at=entry.performance.starts_at,
        section_id=entry.section_id,
        section=entry.section.name,
        customer_id=entry.customer_id,
        customer_name=entry.customer.full_name,
        seats_wanted=entry.seats_wanted,
        status=entry.status,
        booking_reference=entry.booking.reference if entry.booking else None,
        joined_at=entry.joined_at,
    )


def close_waitlist_offer(session: Session, booking: Booking, status: str) -> None:
    entry = session.scalar(select(WaitlistEntry).where(WaitlistEntry.booking_id == booking.id, WaitlistEntry.status == "offered"))
    if entry is not None:
        entry.status = status


def check_waiting(entry: WaitlistEntry) -> None:
    if entry.status != "waiting":
        raise refusal(
            409, f"This entry is {entry.status}.", state=entry.status, allowed="Entries that are waiting (list_waitlist)."
        )


@app.get(
    "/api/waitlist",
    operation_id="list_waitlist",
    summary="List waiting-list entries in the order of joining",
    description="Who waits for seats, by performance, customer or status. First come, first served.",
    tags=["waitlist"],
    response_model=Listing[WaitlistEntryOut],
)
async def list_waitlist(
    session: SessionDep,
    performance_id: Annotated[Optional[int], query_id("Only this performance", 9)] = None,
    customer_id: Annotated[Optional[int], query_id("Only this customer", 7)] = None,
    status: Annotated[Optional[WaitlistStatus], Query(description="Only this status", examples=["waiting"])] = None,
    page: PageNumber = 1,
    page_size: PageSize = 20,
) -> Listing[WaitlistEntryOut]:
    statement = select(WaitlistEntry).order_by(WaitlistEntry.joined_at, WaitlistEntry.id)
    if performance_id is not None:
        statement = statement.where(WaitlistEntry.performance_id == performance_id)
    if customer_id is not None:
        statement = statement.where(WaitlistEntry.customer_id == customer_id)
    if status is not None:
        statement = statement.where(WaitlistEntry.status == status)
    entries, paging = page_of(session, statement, page, page_size, *WAITLIST_PARTS)
    return Listing(items=[waitlist_out(entry) for entry in entries], **paging)


@app.post(
    "/api/performances/{performance_id}/waitlist",
    operation_id="join_waitlist",
    summary="Put a customer on the waiting list of a performance",
    description="Only while the section has fewer free seats than wanted, and once a customer and performance.",
    tags=["waitlist"],
    response_model=WaitlistEntryOut,
    status_code=201,
)
async def join_waitlist(
    session: SessionDep, user: UserDep, performance_id: Annotated[int, path_id("performance", 9)], body: WaitlistIn
) -> WaitlistEntryOut:
    performance = find(session, Performance, performance_id, "performance", "list_performances")
    customer = find(session, Customer, body.customer_id, "customer", "search_customers")
    section = next((part for part in performance.stage.sections if part.id == body.section_id), None)
    if section is None:
        sections = {part.name: part.id for part in performance.stage.sections}
        raise refusal(404, f"{performance.stage.name} has no section {body.section_id}.", state=sections, allowed="One of these.")
    check_on_sale(session, performance, customer)
    limit = policy(session, "max_tickets_per_booking")
    if body.seats_wanted > limit:
        raise refusal(409, f"A booking holds at most {limit} tickets.", state={"limit": limit}, allowed="Fewer seats.")
    free = len(open_seats(session, performance, section))
    if free >= body.seats_wanted:
        raise refusal(
            409,
            f"{section.name} has {free} free seats at {performance.label}; there is nothing to wait for.",
            state={"available": free, "seats_wanted": body.seats_wanted},
            allowed="create_booking with seats of list_seats.",
        )
    waiting = session.scalar(
        select(WaitlistEntry).where(
            WaitlistEntry.performance_id == performance.id,
            WaitlistEntry.customer_id == customer.id,
            WaitlistEntry.status == "waiting",
        )
    )
    if waiting is not None:
        raise refusal(
            409,
            f"{customer.full_name} is waiting for this performance already.",
            state={"entry_id": waiting.id, "section": waiting.section.name, "seats_wanted": waiting.seats_wanted},
            allowed="leave_waitlist with that entry first, at the price of the place in the queue.",
        )
    entry = WaitlistEntry(
        performance=performance,
        section=section,
        customer=customer,
        seats_wanted=body.seats_wanted,
        status="waiting",
        joined_at=now(),
    )
    session.add(entry)
    record(session, user, "waitlist_joined", entry, f"{customer.full_name}: {body.seats_wanted} in {section.name}")
    session.commit()
    return waitlist_out(entry)


@app.post(
    "/api/waitlist/{entry_id}/withdrawal",
    operation_id="leave_waitlist",
    summary="Take a customer off a waiting list",
    description="For entries that are waiting. An offer that was made is declined by releasing its booking.",
    tags=["waitlist"],
    response_model=WaitlistEntryOut,
)
async def leave_waitlist(
    session: SessionDep, user: UserDep, entry_id: Annotated[int, path_id("waiting-list entry", 2)]
) -> WaitlistEntryOut:
    entry = find(session, WaitlistEntry, entry_id, "waiting-list entry", "list_waitlist")
    check_waiting(entry)
    entry.status = "withdrawn"
    record(session, user, "waitlist_left", entry, entry.customer.full_name)
    session.commit()
    return waitlist_out(entry)


@app.post(
    "/api/waitlist/{entry_id}/offer",
    operation_id="offer_waitlist_seats",
    summary="Hold free seats for someone on the waiting list",
    description="Makes a longer hold of adult tickets. Whoever joined earlier and wants no more seats than are free goes first.",
    tags=["waitlist"],
    response_model=WaitlistEntryOut,
)
async def offer_waitlist_seats(
    session: SessionDep, user: UserDep, entry_id: Annotated[int, path_id("waiting-list entry", 2)], body: OfferIn
) -> WaitlistEntryOut:
    entry = find(session, WaitlistEntry, entry_id, "waiting-list entry", "list_waitlist")
    check_waiting(entry)
    if len(body.seat_ids) != entry.seats_wanted:
        raise refusal(
            422,
            f"{entry.customer.full_name} wants {entry.seats_wanted} seats, and {len(body.seat_ids)} are named.",
            state={"seats_wanted": entry.seats_wanted},
            allowed="As many seats as are wanted.",
        )
    seats = choose_seats(session, entry.performance, body.seat_ids)
    elsewhere = [seat.full_label for seat in seats if seat.section_id != entry.section_id]
    if elsewhere:
        raise refusal(
            409,
            f"{entry.customer.full_name} waits for {entry.section.name}.",
            state=elsewhere,
            allowed=f"Seats in {entry.section.name}.",
        )
    free = len(open_seats(session, entry.performance, entry.section))
    earlier = session.scalars(
        select(WaitlistEntry)
        .where(WaitlistEntry.performance_id == entry.performance_id, WaitlistEntry.section_id == entry.section_id)
        .where(WaitlistEntry.status == "waiting", WaitlistEntry.seats_wanted <= free, WaitlistEntry.id != entry.id)
        .where(
            or_(
                WaitlistEntry.joined_at < entry.joined_at,
                (WaitlistEntry.joined_at == entry.joined_at) & (WaitlistEntry.id < entry.id),
            )
        )
        .order_by(WaitlistEntry.joined_at, WaitlistEntry.id)
    ).first()
    if earlier is not None:
        raise refusal(
            409,
            f"{earlier.customer.full_name} joined earlier and would have enough seats.",
            state={"entry_id": earlier.id, "seats_wanted": earlier.seats_wanted, "available": free},
            allowed="Offer the seats to that entry first.",
        )
    expires = now() + timedelta(hours=policy(session, "waitlist_hold_hours"))
    booking = hold_seats(session, user, entry.customer, entry.performance, [(seat, "adult") for seat in seats], expires)
    entry.status, entry.booking = "offered", booking
    record(session, user, "waitlist_offered", entry, f"{booking.reference}: {', '.join(seat.full_label for seat in seats)}")
    session.commit()
    return waitlist_out(entry)


# Front of house: volunteers and their shifts


class VolunteerOut(BaseModel):
    id: int = Field(description="Volunteer id", examples=[4])
    full_name: str = Field(description="Name", examples=["Maeve Costello"])
    email: str = Field(description="Address", examples=["maeve.costello@corribmail.example"])
    first_aid_valid_to: Optional[date] = Field(None, description="Last day of the first-aid certificate", examples=["2026-08-31"])
    max_shifts_per_week: int = Field(description="Shifts they do from Monday to Sunday at most", examples=[2])
    is_active: bool = Field(description="Whether they volunteer at present", examples=[True])


class ShiftOut(BaseModel):
    id: int = Field(description="Shift id", examples=[9])
    performance_id: int = Field(description="Performance id", examples=[9])
    show_title: str = Field(description="Show", examples=["A Winter Tide"])
    duty: Duty = Field(description="Duty", examples=["first_aid"])
    volunteer_id: Optional[int] = Field(None, description="Volunteer id; empty where nobody has it", examples=[4])
    volunteer_name: Optional[str] = Field(None, description="Volunteer", examples=["Maeve Costello"])
    starts_at: datetime = Field(description="Start, UTC", examples=["2026-03-14T18:30:00"])
    ends_at: datetime = Field(description="End, UTC", examples=["2026-03-14T22:15:00"])


class AssignmentIn(BaseModel):
    volunteer_id: int = body_id("Volunteer who takes the shift", 4)


SHIFT_PARTS = (joinedload(Shift.performance).joinedload(Performance.show), joinedload(Shift.volunteer))


def shift_out(shift: Shift) -> ShiftOut:
    return ShiftOut(
        id=shift.id,
        performance_id=shift.performance_id,
        show_title=shift.performance.show.title,
        duty=shift.duty,
        volunteer_id=shift.volunteer_id,
        volunteer_name=shift.volunteer.full_name if shift.volunteer else None,
        starts_at=shift.starts_at,
        ends_at=shift.ends_at,
    )


def check_shift_is_open(shift: Shift) -> None:
    state = performance_state(shift.performance)
    if state != "upcoming":
        raise refusal(
            409, f"{shift.performance.label} is {state}.", state=state, allowed="Shifts of upcoming performances (list_shifts)."
        )


@app.get(
    "/api/volunteers",
    operation_id="list_volunteers",
    summary="List volunteers, or those with a first-aid certificate",
    description="Volunteers by name, with certificate and the number of shifts they do in a week (Monday to Sunday).",
    tags=["front of house"],
    response_model=Listing[VolunteerOut],
)
async def list_volunteers(
    session: SessionDep,
    text_query: Annotated[
        Optional[str], Query(alias="q", max_length=80, description="Part of name or address", examples=["costello"])
    ] = None,
    first_aid_on: Annotated[
        Optional[date], Query(description="Only those whose certificate covers this day", examples=["2026-03-14"])
    ] = None,
    is_active: Annotated[
        Optional[bool], Query(description="Only those who do, or don't, volunteer at present", examples=[True])
    ] = None,
    page: PageNumber = 1,
    page_size: PageSize = 20,
) -> Listing[VolunteerOut]:
    statement = select(Volunteer).order_by(Volunteer.full_name, Volunteer.id)
    if text_query is not None:
        fields = (Volunteer.full_name, Volunteer.email)
        statement = statement.where(or_(*(field.icontains(text_query, autoescape=True) for field in fields)))
    if first_aid_on is not None:
        statement = statement.where(Volunteer.first_aid_valid_to >= first_aid_on)
    if is_active is not None:
        statement = statement.where(Volunteer.is_active == is_active)
    volunteers, paging = page_of(session, statement, page, page_size)
    return Listing(items=[VolunteerOut.model_validate(row, from_attributes=True) for row in volunteers], **paging)


@app.get(
    "/api/shifts",
    operation_id="list_shifts",
    summary="List shifts by day, duty, volunteer or vacancy",
    description="Shifts in order of time. Days are inclusive and count by the start of the shift.",
    tags=["front of house"],
    response_model=Listing[ShiftOut],
)
async def list_shifts(
    session: SessionDep,
    performance_id: Annotated[Optional[int], query_id("Only this performance", 9)] = None,
    volunteer_id: Annotated[Optional[int], query_id("Only this volunteer", 4)] = None,
    duty: Annotated[Optional[Duty], Query(description="Only this duty", examples=["first_aid"])] = None,
    vacant: Annotated[Optional[bool], Query(description="Only shifts nobody has, or only the others", examples=[True])] = None,
    date_from: Annotated[Optional[date], Query(description="First day", examples=["2026-03-09"])] = None,
    date_to: Annotated[Optional[date], Query(description="Last day", examples=["2026-03-15"])] = None,
    page: PageNumber = 1,
    page_size: PageSize = 50,
) -> Listing[ShiftOut]:
    statement = select(Shift).order_by(Shift.starts_at, Shift.id)
    if performance_id is not None:
        statement = statement.where(Shift.performance_id == performance_id)
    if volunteer_id is not None:
        statement = statement.where(Shift.volunteer_id == volunteer_id)
    if duty is not None:
        statement = statement.where(Shift.duty == duty)
    if vacant is not None:
        statement = statement.where(Shift.volunteer_id.is_(None) if vacant else Shift.volunteer_id.is_not(None))
    if date_from is not None:
        statement = statement.where(Shift.starts_at >= day_start(date_from))
    if date_to is not None:
        statement = statement.where(Shift.starts_at <= day_end(date_to))
    shifts, paging = page_of(session, statement, page, page_size, *SHIFT_PARTS)
    return Listing(items=[shift_out(shift) for shift in shifts], **paging)


@app.put(
    "/api/shifts/{shift_id}/volunteer",
    operation_id="assign_shift",
    summary="Give a vacant shift to a volunteer",
    description="Refused where shifts overlap, the week is full, or a first-aid shift lacks a certificate good on that day.",
    tags=["front of house"],
    response_model=ShiftOut,
)
async def assign_shift(
    session: SessionDep, user: UserDep, shift_id: Annotated[int, path_id("shift", 9)], body: AssignmentIn
) -> ShiftOut:
    shift = find(session, Shift, shift_id, "shift", "list_shifts")
    volunteer = find(session, Volunteer, body.volunteer_id, "volunteer", "list_volunteers")
    check_shift_is_open(shift)
    if shift.volunteer is not None:
        raise refusal(
            409,
            f"{shift.volunteer.full_name} has this shift.",
            state={"volunteer_id": shift.volunteer_id},
            allowed="clear_shift first.",
        )
    name, day = volunteer.full_name, shift.starts_at.date()
    if not volunteer.is_active:
        raise refusal(409, f"{name} does not volunteer at present.", state={"is_active": False}, allowed="An active volunteer.")
    certificate = volunteer.first_aid_valid_to
    if shift.duty == "first_aid" and (certificate is None or certificate < day):
        raise refusal(
            409,
            f"{name} has no first-aid certificate for {day}.",
            state={"first_aid_valid_to": certificate.isoformat() if certificate else None},
            allowed=f"A volunteer of list_volunteers with first_aid_on {day}.",
        )
    others = [other for other in volunteer.shifts if other.performance.cancelled_at is None]
    overlap = next((other for other in others if other.starts_at < shift.ends_at and shift.starts_at < other.ends_at), None)
    if overlap is not None:
        raise refusal(
            409,
            f"{name} has another shift at that time.",
            state={"shift_id": overlap.id, "starts_at": overlap.starts_at.isoformat(), "ends_at": overlap.ends_at.isoformat()},
            allowed="A volunteer who is free.",
        )
    week = shift.starts_at.isocalendar()[:2]
    in_week = [other.id for other in others if other.starts_at.isocalendar()[:2] == week]
    if len(in_week) >= volunteer.max_shifts_per_week:
        raise refusal(
            409,
            f"{name} has {len(in_week)} shifts in that week, and does no more.",
            state={"shift_ids": in_week, "max_shifts_per_week": volunteer.max_shifts_per_week},
            allowed="A volunteer with room in that week.",
        )
    shift.volunteer = volunteer
    record(session, user, "shift_assigned", shift, name)
    session.commit()
    return shift_out(shift)


@app.delete(
    "/api/shifts/{shift_id}/volunteer",
    operation_id="clear_shift",
    summary="Take the volunteer off a shift",
    description="The shift stays, vacant. For shifts of upcoming performances.",
    tags=["front of house"],
    response_model=ShiftOut,
)
async def clear_shift(session: SessionDep, user: UserDep, shift_id: Annotated[int, path_id("shift", 9)]) -> ShiftOut:
    shift = find(session, Shift, shift_id, "shift", "list_shifts")
    check_shift_is_open(shift)
    if shift.volunteer is None:
        raise refusal(409, "Nobody has this shift.", state="vacant", allowed="assign_shift.")
    name = shift.volunteer.full_name
    shift.volunteer = None
    record(session, user, "shift_cleared", shift, name)
    session.commit()
    return shift_out(shift)


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host=os.getenv("HOST", "127.0.0.1"), port=int(os.getenv("PORT", "8000")))
