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
    title="Toy Library",
    version="1.0.0",
    description=(
        "Families, toys with parts, loans, missing pieces, reservations and membership years. A toy loan has "
        "at most 5 loan lines. Delivery is free for goods worth 15.00 or more and costs 4.90 below that. A "
        "toy gift is of 3 in full units or more, and made while its toy fund is running. What was received "
        "can be given back for 14 days. A membership year ends 14 days after notice was given. A membership "
        "year is paused for at most 90 days. A family has at most 3 missing piece cases that are not settled. "
        "A missing piece case that was settled can be taken up again within 30 days. A missing piece case is "
        "due after 1 day where it is urgent, after 3, 7 or 14 where its priority is high, normal or low."
    ),
)

CURRENT_USER_ID = 1
CURRENCY = "EUR"
FREE_DELIVERY_OVER = 15
REFUND_DAYS = 14
MINIMUM = 3
REOPEN_DAYS = 30
MAX_OPEN = 3

UserRole = Literal["toy_librarian", "volunteer", "repairer", "coordinator"]
FamilyKind = Literal["standard", "large_family", "day_nursery", "supported"]
AddressKind = Literal["home", "work", "billing"]
ToyLoanStatus = Literal["in_basket", "reserved", "lent", "cancelled", "returned"]
ToyFundStatus = Literal["planned", "running", "closed"]
ToyGiftMethod = Literal["transfer", "card", "cash"]
ToyGiftStatus = Literal["promised", "received", "returned"]
MembershipYearStatus = Literal["active", "resting", "ended"]
YearBillStatus = Literal["unpaid", "paid", "waived"]
MissingPieceCaseTopic = Literal["lost piece", "broken", "dirty", "late"]
MissingPieceCasePriority = Literal["low", "normal", "high", "urgent"]
MissingPieceCaseStatus = Literal["reported", "searching", "family_asked", "found_or_replaced", "closed"]
MissingPieceCaseResolution = Literal[
    "piece found at home", "printed a new one", "family paid", "repaired by volunteer", "toy retired"
]


# Tables


class Base(DeclarativeBase):
    id: Mapped[int] = mapped_column(primary_key=True)


class LendingPoint(Base):
    __tablename__ = "lending_points"

    name: Mapped[str] = mapped_column(unique=True)
    address: Mapped[str]
    phone: Mapped[str]
    is_open: Mapped[bool] = mapped_column(default=True)


class User(Base):
    __tablename__ = "users"

    full_name: Mapped[str] = mapped_column(unique=True)
    email: Mapped[str] = mapped_column(unique=True)
    role: Mapped[str]
    lending_point_id: Mapped[int | None] = mapped_column(ForeignKey("lending_points.id"))
    is_active: Mapped[bool] = mapped_column(default=True)

    lending_point: Mapped[Optional["LendingPoint"]] = relationship()

    @property
    def lending_point_name(self) -> str | None:
        return self.lending_point.name if self.lending_point is not None else None


class ToyShelf(Base):
    __tablename__ = "toy_shelves"

    name: Mapped[str] = mapped_column(unique=True)
    position: Mapped[int]


class Toy(Base):
    __tablename__ = "toys"

    name: Mapped[str] = mapped_column(unique=True)
    toy_shelf_id: Mapped[int] = mapped_column(ForeignKey("toy_shelves.id"))
    pieces: Mapped[int]
    minimum_age: Mapped[int]
    loan_fee_cents: Mapped[int]
    is_active: Mapped[bool] = mapped_column(default=True)
    created_at: Mapped[datetime]

    toy_shelf: Mapped["ToyShelf"] = relationship()

    @property
    def toy_shelf_name(self) -> str:
        return self.toy_shelf.name


class LoanFeeChange(Base):
    __tablename__ = "loan_fee_changes"

    toy_id: Mapped[int] = mapped_column(ForeignKey("toys.id", ondelete="CASCADE"))
    old_cents: Mapped[int]
    new_cents: Mapped[int]
    changed_by_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    changed_at: Mapped[datetime]

    toy: Mapped["Toy"] = relationship()
    changed_by: Mapped["User"] = relationship()

    @property
    def toy_name(self) -> str:
        return self.toy.name

    @property
    def changed_by_name(self) -> str:
        return self.changed_by.full_name


class Family(Base):
    __tablename__ = "families"

    full_name: Mapped[str] = mapped_column(unique=True)
    email: Mapped[str] = mapped_column(unique=True)
    phone: Mapped[str | None]
    family_kind: Mapped[str]
    town: Mapped[str | None]
    joined_on: Mapped[date]
    is_blocked: Mapped[bool] = mapped_column(default=False)

    addresses: Mapped[list["Address"]] = relationship(
        order_by="Address.id", back_populates="family", passive_deletes=True
    )
    family_notes: Mapped[list["FamilyNote"]] = relationship(
        order_by="FamilyNote.id", back_populates="family", passive_deletes=True
    )


class Address(Base):
    __tablename__ = "addresses"
    __table_args__ = (UniqueConstraint("family_id", "kind"),)

    family_id: Mapped[int] = mapped_column(ForeignKey("families.id", ondelete="CASCADE"))
    kind: Mapped[str]
    street: Mapped[str]
    town: Mapped[str]
    postcode: Mapped[str]

    family: Mapped["Family"] = relationship(back_populates="addresses")

    @property
    def family_name(self) -> str:
        return self.family.full_name


class FamilyNote(Base):
    __tablename__ = "family_notes"

    family_id: Mapped[int] = mapped_column(ForeignKey("families.id", ondelete="CASCADE"))
    author_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    body: Mapped[str]
    is_pinned: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]

    family: Mapped["Family"] = relationship(back_populates="family_notes")
    author: Mapped["User"] = relationship()

    @property
    def family_name(self) -> str:
        return self.family.full_name

    @property
    def author_name(self) -> str:
        return self.author.full_name


class Activity(Base):
    __tablename__ = "activity_log"

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    action: Mapped[str]
    subject: Mapped[str]
    subject_id: Mapped[int]
    detail: Mapped[str | None]
    created_at: Mapped[datetime]

    user: Mapped["User"] = relationship()

    @property
    def user_name(self) -> str:
        return self.user.full_name


class DiscountCode(Base):
    __tablename__ = "discount_codes"

    code: Mapped[str] = mapped_column(unique=True)
    percent: Mapped[int]
    minimum_cents: Mapped[int]
    is_active: Mapped[bool] = mapped_column(default=True)


class ToyLoan(Base):
    __tablename__ = "toy_loans"

    reference: Mapped[str] = mapped_column(unique=True)
    family_id: Mapped[int] = mapped_column(ForeignKey("families.id"))
    lending_point_id: Mapped[int] = mapped_column(ForeignKey("lending_points.id"))
    status: Mapped[str] = mapped_column(default="in_basket")
    discount_code_id: Mapped[int | None] = mapped_column(ForeignKey("discount_codes.id"))
    goods_cents: Mapped[int] = mapped_column(default=0)
    delivery_cents: Mapped[int] = mapped_column(default=0)
    total_cents: Mapped[int] = mapped_column(default=0)
    is_delivered: Mapped[bool] = mapped_column(default=False)
    note: Mapped[str | None]
    created_at: Mapped[datetime]
    placed_at: Mapped[datetime | None]
    closed_at: Mapped[datetime | None]

    family: Mapped["Family"] = relationship()
    lending_point: Mapped["LendingPoint"] = relationship()
    discount_code: Mapped[Optional["DiscountCode"]] = relationship()

    @property
    def family_name(self) -> str:
        return self.family.full_name

    @property
    def lending_point_name(self) -> str:
        return self.lending_point.name

    @property
    def discount_code_code(self) -> str | None:
        return self.discount_code.code if self.discount_code is not None else None


class LoanLine(Base):
    __tablename__ = "loan_lines"
    __table_args__ = (UniqueConstraint("toy_loan_id", "toy_id"),)

    toy_loan_id: Mapped[int] = mapped_column(ForeignKey("toy_loans.id", ondelete="CASCADE"))
    toy_id: Mapped[int] = mapped_column(ForeignKey("toys.id"))
    quantity: Mapped[int]
    price_cents: Mapped[int]

    toy_loan: Mapped["ToyLoan"] = relationship()
    toy: Mapped["Toy"] = relationship()

    @property
    def toy_loan_reference(self) -> str:
        return self.toy_loan.reference

    @property
    def toy_name(self) -> str:
        return self.toy.name


class ToyFund(Base):
    __tablename__ = "toy_funds"

    name: Mapped[str] = mapped_column(unique=True)
    manager_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    goal_cents: Mapped[int]
    begins_on: Mapped[date]
    ends_on: Mapped[date]
    status: Mapped[str] = mapped_column(default="planned")

    manager: Mapped["User"] = relationship()
    toy_fund_matchings: Mapped[list["ToyFundMatching"]] = relationship(
        order_by="ToyFundMatching.id", back_populates="toy_fund", passive_deletes=True
    )
    toy_fund_news_items: Mapped[list["ToyFundNews"]] = relationship(
        order_by="ToyFundNews.id", back_populates="toy_fund", passive_deletes=True
    )

    @property
    def manager_name(self) -> str:
        return self.manager.full_name


class ToyGift(Base):
    __tablename__ = "toy_gifts"

    reference: Mapped[str] = mapped_column(unique=True)
    toy_fund_id: Mapped[int] = mapped_column(ForeignKey("toy_funds.id"))
    family_id: Mapped[int] = mapped_column(ForeignKey("families.id"))
    amount_cents: Mapped[int]
    method: Mapped[str]
    is_anonymous: Mapped[bool] = mapped_column(default=False)
    status: Mapped[str] = mapped_column(default="promised")
    pledged_at: Mapped[datetime]
    received_at: Mapped[datetime | None]

    toy_fund: Mapped["ToyFund"] = relationship()
    family: Mapped["Family"] = relationship()

    @property
    def toy_fund_name(self) -> str:
        return self.toy_fund.name

    @property
    def family_name(self) -> str:
        return self.family.full_name


class ToyFundMatching(Base):
    __tablename__ = "toy_fund_matchings"
    __table_args__ = (UniqueConstraint("toy_fund_id", "family_id"),)

    toy_fund_id: Mapped[int] = mapped_column(ForeignKey("toy_funds.id", ondelete="CASCADE"))
    family_id: Mapped[int] = mapped_column(ForeignKey("families.id"))
    limit_cents: Mapped[int]

    toy_fund: Mapped["ToyFund"] = relationship(back_populates="toy_fund_matchings")
    family: Mapped["Family"] = relationship()

    @property
    def toy_fund_name(self) -> str:
        return self.toy_fund.name

    @property
    def family_name(self) -> str:
        return self.family.full_name


class ToyFundNews(Base):
    __tablename__ = "toy_fund_news_items"

    toy_fund_id: Mapped[int] = mapped_column(ForeignKey("toy_funds.id", ondelete="CASCADE"))
    title: Mapped[str]
    body: Mapped[str]
    posted_at: Mapped[datetime]

    toy_fund: Mapped["ToyFund"] = relationship(back_populates="toy_fund_news_items")

    @property
    def toy_fund_name(self) -> str:
        return self.toy_fund.name


class FamilyPlan(Base):
    __tablename__ = "family_plans"

    name: Mapped[str] = mapped_column(unique=True)
    fee_cents: Mapped[int]
    months: Mapped[int]
    is_offered: Mapped[bool] = mapped_column(default=True)


class MembershipYear(Base):
    __tablename__ = "membership_years"

    number: Mapped[str] = mapped_column(unique=True)
    family_id: Mapped[int] = mapped_column(ForeignKey("families.id"))
    family_plan_id: Mapped[int] = mapped_column(ForeignKey("family_plans.id"))
    status: Mapped[str] = mapped_column(default="active")
    started_on: Mapped[date]
    ends_on: Mapped[date | None]
    created_at: Mapped[datetime]

    family: Mapped["Family"] = relationship()
    family_plan: Mapped["FamilyPlan"] = relationship()

    @property
    def family_name(self) -> str:
        return self.family.full_name

    @property
    def family_plan_name(self) -> str:
        return self.family_plan.name


class YearBill(Base):
    __tablename__ = "year_bills"
    __table_args__ = (UniqueConstraint("membership_year_id", "month"),)

    number: Mapped[str] = mapped_column(unique=True)
    membership_year_id: Mapped[int] = mapped_column(ForeignKey("membership_years.id", ondelete="CASCADE"))
    month: Mapped[date]
    amount_cents: Mapped[int]
    status: Mapped[str] = mapped_column(default="unpaid")
    paid_on: Mapped[date | None]

    membership_year: Mapped["MembershipYear"] = relationship()

    @property
    def membership_year_number(self) -> str:
        return self.membership_year.number


class MissingPieceCase(Base):
    __tablename__ = "missing_piece_cases"

    reference: Mapped[str] = mapped_column(unique=True)
    subject: Mapped[str]
    family_id: Mapped[int] = mapped_column(ForeignKey("families.id"))
    topic: Mapped[str]
    priority: Mapped[str] = mapped_column(default="normal")
    status: Mapped[str] = mapped_column(default="reported")
    assignee_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    toy_id: Mapped[int | None] = mapped_column(ForeignKey("toys.id"))
    due_on: Mapped[date]
    resolution: Mapped[str | None]
    opened_at: Mapped[datetime]
    resolved_at: Mapped[datetime | None]

    family: Mapped["Family"] = relationship()
    assignee: Mapped[Optional["User"]] = relationship()
    toy: Mapped[Optional["Toy"]] = relationship()

    @property
    def family_name(self) -> str:
        return self.family.full_name

    @property
    def assignee_name(self) -> str | None:
        return self.assignee.full_name if self.assignee is not None else None

    @property
    def toy_name(self) -> str | None:
        return self.toy.name if self.toy is not None else None


class WorkEntry(Base):
    __tablename__ = "work_entries"

    missing_piece_case_id: Mapped[int] = mapped_column(ForeignKey("missing_piece_cases.id", ondelete="CASCADE"))
    worker_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    minutes: Mapped[int]
    what: Mapped[str]
    worked_on: Mapped[date]

    missing_piece_case: Mapped["MissingPieceCase"] = relationship()
    worker: Mapped["User"] = relationship()

    @property
    def missing_piece_case_reference(self) -> str:
        return self.missing_piece_case.reference

    @property
    def worker_name(self) -> str:
        return self.worker.full_name


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


def money(cents: int) -> str:
    return f"{CURRENCY} {cents // 100}.{cents % 100:02d}"


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


def record(db: Session, action: str, subject: str, row: Base, detail: str | None = None) -> None:
    """One line of the activity log; every change leaves one."""
    db.flush()
    db.add(
        Activity(
            user_id=CURRENT_USER_ID, action=action, subject=subject, subject_id=row.id, detail=detail, created_at=now()
        )
    )


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


# Lending points


class LendingPointOut(Answer):
    id: int = Field(description="Id of the lending point")
    name: str = Field(description="Name")
    address: str = Field(description="Address")
    phone: str = Field(description="Telephone number")
    is_open: bool = Field(description="Whether it is in use")


@app.get(
    "/lending-points",
    operation_id="list_lending_points",
    summary="List lending points",
    description="Answers a page of lending points that fit the filters given; an empty one where none do.",
    tags=["lending points"],
    response_model=Page[LendingPointOut],
)
async def list_lending_points(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the name or address")] = None,
    is_open: Annotated[bool | None, Query(description="Only those that are, or are not, open")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(LendingPoint)
    if q is not None:
        statement = statement.where(
            or_(LendingPoint.name.icontains(q, autoescape=True), LendingPoint.address.icontains(q, autoescape=True))
        )
    if is_open is not None:
        statement = statement.where(LendingPoint.is_open == is_open)
    return page_of(db, statement.order_by(LendingPoint.name, LendingPoint.id), limit, offset)


# Users


class UserOut(Answer):
    id: int = Field(description="Id of the user")
    full_name: str = Field(description="Full name")
    email: str = Field(description="E-mail address")
    role: UserRole = Field(description="Role")
    lending_point_id: int | None = Field(None, description="Lending point where they work")
    is_active: bool = Field(description="Whether they work here at present")
    lending_point_name: str | None = Field(None, description="Name of the lending point")


@app.get(
    "/users",
    operation_id="list_toy_librarians",
    summary="List toy librarians",
    description="Answers a page of users that fit the filters given; an empty one where none do.",
    tags=["users"],
    response_model=Page[UserOut],
)
async def list_toy_librarians(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the full name or email")] = None,
    role: Annotated[UserRole | None, Query(description="Only those with this role")] = None,
    lending_point_id: Annotated[Id | None, Query(description="Only those of this lending point")] = None,
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
    if lending_point_id is not None:
        statement = statement.where(User.lending_point_id == lending_point_id)
    if is_active is not None:
        statement = statement.where(User.is_active == is_active)
    return page_of(db, statement.order_by(User.full_name, User.id), limit, offset)


# Toy shelves


class ToyShelfOut(Answer):
    id: int = Field(description="Id of the toy shelf")
    name: str = Field(description="Name")
    position: int = Field(description="Place in lists")


@app.get(
    "/toy-shelves",
    operation_id="list_toy_shelves",
    summary="List toy shelves",
    description="Answers a page of toy shelves that fit the filters given; an empty one where none do.",
    tags=["toy shelves"],
    response_model=Page[ToyShelfOut],
)
async def list_toy_shelves(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the name")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(ToyShelf)
    if q is not None:
        statement = statement.where(ToyShelf.name.icontains(q, autoescape=True))
    return page_of(db, statement.order_by(ToyShelf.position, ToyShelf.id), limit, offset)


# Toys


class ToyOut(Answer):
    id: int = Field(description="Id of the toy")
    name: str = Field(description="Name")
    toy_shelf_id: int = Field(description="Id of the toy shelf")
    pieces: int = Field(description="Pieces")
    minimum_age: int = Field(description="Minimum age")
    loan_fee_cents: int = Field(description="Loan fee of one loan, in cents")
    is_active: bool = Field(description="Whether it is offered at present")
    created_at: datetime = Field(description="When it was entered")
    toy_shelf_name: str = Field(description="Name of the toy shelf")


@app.get(
    "/toys",
    operation_id="list_toys",
    summary="List toys",
    description="Answers a page of toys that fit the filters given; an empty one where none do.",
    tags=["toys"],
    response_model=Page[ToyOut],
)
async def list_toys(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the name")] = None,
    toy_shelf_id: Annotated[Id | None, Query(description="Only those of this toy shelf")] = None,
    min_pieces: Annotated[int | None, Query(ge=0, le=1_000_000, description="Least number of pieces")] = None,
    max_pieces: Annotated[int | None, Query(ge=0, le=1_000_000, description="Highest number of pieces")] = None,
    min_minimum_age: Annotated[int | None, Query(ge=0, le=1_000_000, description="Least minimum age")] = None,
    max_minimum_age: Annotated[int | None, Query(ge=0, le=1_000_000, description="Highest minimum age")] = None,
    min_loan_fee_cents: Annotated[
        int | None, Query(ge=0, le=100_000_000, description="Least loan fee in cents")
    ] = None,
    max_loan_fee_cents: Annotated[
        int | None, Query(ge=0, le=100_000_000, description="Highest loan fee in cents")
    ] = None,
    is_active: Annotated[bool | None, Query(description="Only those that are, or are not, active")] = None,
    sort: Annotated[
        Literal["name", "-name", "loan_fee_cents", "-loan_fee_cents"] | None,
        Query(description="Order of the rows, descending with -"),
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(Toy)
    if q is not None:
        statement = statement.where(Toy.name.icontains(q, autoescape=True))
    if toy_shelf_id is not None:
        statement = statement.where(Toy.toy_shelf_id == toy_shelf_id)
    if min_pieces is not None:
        statement = statement.where(Toy.pieces >= min_pieces)
    if max_pieces is not None:
        statement = statement.where(Toy.pieces <= max_pieces)
    if min_minimum_age is not None:
        statement = statement.where(Toy.minimum_age >= min_minimum_age)
    if max_minimum_age is not None:
        statement = statement.where(Toy.minimum_age <= max_minimum_age)
    if min_loan_fee_cents is not None:
        statement = statement.where(Toy.loan_fee_cents >= min_loan_fee_cents)
    if max_loan_fee_cents is not None:
        statement = statement.where(Toy.loan_fee_cents <= max_loan_fee_cents)
    if is_active is not None:
        statement = statement.where(Toy.is_active == is_active)
    return page_of(db, sorted_by(statement, Toy, sort or "name"), limit, offset)


# Loan fee changes


class LoanFeeChangeOut(Answer):
    id: int = Field(description="Id of the loan fee change")
    toy_id: int = Field(description="Id of the toy")
    old_cents: int = Field(description="Before, in cents")
    new_cents: int = Field(description="After, in cents")
    changed_by_id: int = Field(description="Who changed it")
    changed_at: datetime = Field(description="When it was changed")
    toy_name: str = Field(description="Name of the toy")
    changed_by_name: str = Field(description="Full name of the user")


@app.get(
    "/loan-fee-changes",
    operation_id="list_loan_fee_changes",
    summary="List loan fee changes",
    description="Answers a page of loan fee changes that fit the filters given; an empty one where none do.",
    tags=["loan fee changes"],
    response_model=Page[LoanFeeChangeOut],
)
async def list_loan_fee_changes(
    db: Db,
    toy_id: Annotated[Id | None, Query(description="Only those of this toy")] = None,
    changed_from: Annotated[Day | None, Query(description="First day (changed at)")] = None,
    changed_to: Annotated[Day | None, Query(description="Last day (changed at)")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(LoanFeeChange)
    if toy_id is not None:
        statement = statement.where(LoanFeeChange.toy_id == toy_id)
    if changed_from is not None:
        statement = statement.where(LoanFeeChange.changed_at >= start_of(changed_from))
    if changed_to is not None:
        statement = statement.where(LoanFeeChange.changed_at <= end_of(changed_to))
    return page_of(db, statement.order_by(LoanFeeChange.changed_at.desc(), LoanFeeChange.id), limit, offset)


# Families


class FamilyOut(Answer):
    id: int = Field(description="Id of the family")
    full_name: str = Field(description="Full name")
    email: str = Field(description="E-mail address")
    phone: str | None = Field(None, description="Telephone number")
    family_kind: FamilyKind = Field(description="Family kind")
    town: str | None = Field(None, description="Town")
    joined_on: date = Field(description="Since when they are known here")
    is_blocked: bool = Field(description="Whether nothing new may be entered for them")


class AddressOut(Answer):
    id: int = Field(description="Id of the address")
    family_id: int = Field(description="Id of the family")
    kind: AddressKind = Field(description="What it is used for")
    street: str = Field(description="Street and number")
    town: str = Field(description="Town")
    postcode: str = Field(description="Postcode")
    family_name: str = Field(description="Full name of the family")


class FamilyNoteOut(Answer):
    id: int = Field(description="Id of the family note")
    family_id: int = Field(description="Id of the family")
    author_id: int = Field(description="Who wrote it")
    body: str = Field(description="What it says")
    is_pinned: bool = Field(description="Whether it is shown first")
    created_at: datetime = Field(description="When it was entered")
    family_name: str = Field(description="Full name of the family")
    author_name: str = Field(description="Full name of the user")


class FamilyDetail(FamilyOut):
    addresses: list[AddressOut] = Field(description="Its addresses")
    family_notes: list[FamilyNoteOut] = Field(description="Its family notes")


class UpdateFamilyIn(BaseModel):
    full_name: str | None = Field(None, min_length=1, max_length=200, description="Full name")
    email: str | None = Field(None, min_length=1, max_length=200, description="E-mail address")
    phone: str | None = Field(None, min_length=1, max_length=200, description="Telephone number")
    family_kind: FamilyKind | None = Field(None, description="Family kind")
    town: str | None = Field(None, min_length=1, max_length=200, description="Town")
    is_blocked: bool | None = Field(None, description="Whether nothing new may be entered for them")


@app.get(
    "/families",
    operation_id="list_families",
    summary="List families",
    description="Answers a page of families that fit the filters given; an empty one where none do.",
    tags=["families"],
    response_model=Page[FamilyOut],
)
async def list_families(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the full name or email")] = None,
    family_kind: Annotated[FamilyKind | None, Query(description="Only those with this family kind")] = None,
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
    statement = select(Family)
    if q is not None:
        statement = statement.where(
            or_(Family.full_name.icontains(q, autoescape=True), Family.email.icontains(q, autoescape=True))
        )
    if family_kind is not None:
        statement = statement.where(Family.family_kind == family_kind)
    if town is not None:
        statement = statement.where(Family.town == town)
    if is_blocked is not None:
        statement = statement.where(Family.is_blocked == is_blocked)
    if joined_from is not None:
        statement = statement.where(Family.joined_on >= joined_from)
    if joined_to is not None:
        statement = statement.where(Family.joined_on <= joined_to)
    return page_of(db, sorted_by(statement, Family, sort or "full_name"), limit, offset)


@app.get(
    "/families/{family_id}",
    operation_id="get_family",
    summary="Show one family with its addresses and family notes",
    description="Answers the family with its addresses and family notes; 404 where there is none with this id.",
    tags=["families"],
    response_model=FamilyDetail,
)
async def get_family(db: Db, family_id: Annotated[Id, Path(description="Id of the family")]) -> Family:
    family = find(db, Family, family_id, "family")
    return family


@app.patch(
    "/families/{family_id}",
    operation_id="update_family",
    summary="Change full name, email, phone, family kind, town or is blocked of a family",
    description="What is left out stays as it is. Answers the family.",
    tags=["families"],
    response_model=FamilyOut,
)
async def update_family(
    db: Db,
    family_id: Annotated[Id, Path(description="Id of the family")],
    body: UpdateFamilyIn,
) -> Family:
    family = find(db, Family, family_id, "family")
    if body.full_name is not None and exists(db, Family, Family.full_name == body.full_name, Family.id != family.id):
        raise HTTPException(409, f"There is a family with the full name {body.full_name} already; choose another.")
    if body.email is not None and exists(db, Family, Family.email == body.email, Family.id != family.id):
        raise HTTPException(409, f"There is a family with the email {body.email} already; choose another.")
    given = body.model_dump(exclude_none=True)
    changes = {name: value for name, value in given.items() if getattr(family, name) != value}
    if not changes:
        raise HTTPException(409, "Nothing would change: no value given differs from what is stored.")
    for name, value in changes.items():
        setattr(family, name, value)
    record(db, "updated", "family", family)
    db.commit()
    return family


# Activity log


class ActivityOut(Answer):
    id: int = Field(description="Id of the activity")
    user_id: int = Field(description="Who did it")
    action: str = Field(description="What was done")
    subject: str = Field(description="What kind of record it was done to")
    subject_id: int = Field(description="Id of that record")
    detail: str | None = Field(None, description="More about it")
    created_at: datetime = Field(description="When it was done")
    user_name: str = Field(description="Full name of the user")


@app.get(
    "/activity",
    operation_id="list_activity",
    summary="List what was done lately",
    description="The activity log, latest entries first: who did what to which record.",
    tags=["activity log"],
    response_model=Page[ActivityOut],
)
async def list_activity(
    db: Db,
    subject: Annotated[str | None, Query(description="Only those with this subject")] = None,
    subject_id: Annotated[int | None, Query(ge=1, le=1_000_000, description="Only those with this subject id")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(Activity)
    if subject is not None:
        statement = statement.where(Activity.subject == subject)
    if subject_id is not None:
        statement = statement.where(Activity.subject_id == subject_id)
    return page_of(db, statement.order_by(Activity.id.desc()), limit, offset)


# Toy loans


class ToyLoanOut(Answer):
    id: int = Field(description="Id of the toy loan")
    reference: str = Field(description="Reference")
    family_id: int = Field(description="Id of the family")
    lending_point_id: int = Field(description="Lending point that serves it")
    status: ToyLoanStatus = Field(description="State")
    discount_code_id: int | None = Field(None, description="Id of the discount code")
    goods_cents: int = Field(description="Value of the loan lines, in cents")
    delivery_cents: int = Field(description="Price of the delivery, in cents")
    total_cents: int = Field(description="What is to be paid, in cents")
    is_delivered: bool = Field(description="Whether it is brought rather than fetched")
    note: str | None = Field(None, description="A note with it")
    created_at: datetime = Field(description="When it was entered")
    placed_at: datetime | None = Field(None, description="When it was placed")
    closed_at: datetime | None = Field(None, description="When it was fulfilled, cancelled or returned")
    family_name: str = Field(description="Full name of the family")
    lending_point_name: str = Field(description="Name of the lending point")
    discount_code_code: str | None = Field(None, description="Code of the discount code")


class StartToyLoanIn(BaseModel):
    family_id: Id = Field(description="Id of the family")
    lending_point_id: Id = Field(description="Lending point that serves it")
    is_delivered: bool = Field(False, description="Whether it is brought rather than fetched")
    note: str | None = Field(None, min_length=1, max_length=200, description="A note with it")


@app.get(
    "/toy-loans",
    operation_id="list_toy_loans",
    summary="List toy loans",
    description="Answers a page of toy loans that fit the filters given; an empty one where none do.",
    tags=["toy loans"],
    response_model=Page[ToyLoanOut],
)
async def list_toy_loans(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the reference")] = None,
    family_id: Annotated[Id | None, Query(description="Only those of this family")] = None,
    lending_point_id: Annotated[Id | None, Query(description="Only those of this lending point")] = None,
    status: Annotated[ToyLoanStatus | None, Query(description="Only those with this status")] = None,
    created_from: Annotated[Day | None, Query(description="First day (created at)")] = None,
    created_to: Annotated[Day | None, Query(description="Last day (created at)")] = None,
    min_total_cents: Annotated[int | None, Query(ge=0, le=100_000_000, description="Least total in cents")] = None,
    max_total_cents: Annotated[int | None, Query(ge=0, le=100_000_000, description="Highest total in cents")] = None,
    is_delivered: Annotated[bool | None, Query(description="Only those that are, or are not, delivered")] = None,
    sort: Annotated[
        Literal["created_at", "-created_at", "total_cents", "-total_cents"] | None,
        Query(description="Order of the rows, descending with -"),
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(ToyLoan)
    if q is not None:
        statement = statement.where(ToyLoan.reference.icontains(q, autoescape=True))
    if family_id is not None:
        statement = statement.where(ToyLoan.family_id == family_id)
    if lending_point_id is not None:
        statement = statement.where(ToyLoan.lending_point_id == lending_point_id)
    if status is not None:
        statement = statement.where(ToyLoan.status == status)
    if created_from is not None:
        statement = statement.where(ToyLoan.created_at >= start_of(created_from))
    if created_to is not None:
        statement = statement.where(ToyLoan.created_at <= end_of(created_to))
    if min_total_cents is not None:
        statement = statement.where(ToyLoan.total_cents >= min_total_cents)
    if max_total_cents is not None:
        statement = statement.where(ToyLoan.total_cents <= max_total_cents)
    if is_delivered is not None:
        statement = statement.where(ToyLoan.is_delivered == is_delivered)
    return page_of(db, sorted_by(statement, ToyLoan, sort or "-id"), limit, offset)


@app.post(
    "/toy-loans",
    operation_id="start_toy_loan",
    summary="Start a toy loan for a family",
    description="It is empty and in_basket; add loan lines, then place it.",
    tags=["toy loans"],
    response_model=ToyLoanOut,
    status_code=201,
)
async def start_toy_loan(db: Db, body: StartToyLoanIn) -> ToyLoan:
    family = find(db, Family, body.family_id, "family")
    lending_point = find(db, LendingPoint, body.lending_point_id, "lending point")
    if family.is_blocked:
        raise HTTPException(409, f"{family.full_name} is blocked; nothing new may be entered.")
    if not lending_point.is_open:
        raise HTTPException(409, f"{lending_point.name} is not in use.")
    toy_loan = ToyLoan(
        family_id=family.id,
        lending_point_id=lending_point.id,
        is_delivered=body.is_delivered,
        note=body.note,
        reference=next_reference(db, ToyLoan, "O"),
        created_at=now(),
    )
    db.add(toy_loan)
    record(db, "started", "toy_loan", toy_loan)
    db.commit()
    return toy_loan


@app.post(
    "/toy-loans/{toy_loan_id}/place",
    operation_id="place_toy_loan",
    summary="Place a toy loan that is in_basket",
    description="Settles what is to be paid. Refused while it has no loan lines.",
    tags=["toy loans"],
    response_model=ToyLoanOut,
)
async def place_toy_loan(db: Db, toy_loan_id: Annotated[Id, Path(description="Id of the toy loan")]) -> ToyLoan:
    toy_loan = find(db, ToyLoan, toy_loan_id, "toy loan")
    if toy_loan.status != "in_basket":
        raise HTTPException(409, f"Toy loan {toy_loan.reference} is {toy_loan.status}.")
    if not exists(db, LoanLine, LoanLine.toy_loan_id == toy_loan.id):
        raise HTTPException(409, f"Toy loan {toy_loan.reference} has no loan lines; add some first.")
    goods = toy_loan.goods_cents - toy_loan.goods_cents * toy_loan.discount_code.percent // 100 if toy_loan.discount_code is not None else toy_loan.goods_cents
    delivery = 490 if toy_loan.is_delivered and goods < FREE_DELIVERY_OVER * 100 else 0
    toy_loan.status = "reserved"
    toy_loan.placed_at = now()
    toy_loan.total_cents = goods + delivery
    toy_loan.delivery_cents = delivery
    record(db, "placed", "toy_loan", toy_loan)
    db.commit()
    return toy_loan


@app.post(
    "/toy-loans/{toy_loan_id}/fulfil",
    operation_id="fulfil_toy_loan",
    summary="Note that a toy loan was handed over",
    description="For toy loans that are reserved.",
    tags=["toy loans"],
    response_model=ToyLoanOut,
)
async def fulfil_toy_loan(db: Db, toy_loan_id: Annotated[Id, Path(description="Id of the toy loan")]) -> ToyLoan:
    toy_loan = find(db, ToyLoan, toy_loan_id, "toy loan")
    if toy_loan.status != "reserved":
        raise HTTPException(409, f"Toy loan {toy_loan.reference} is {toy_loan.status}.")
    toy_loan.status = "lent"
    toy_loan.closed_at = now()
    record(db, "fulfilled", "toy_loan", toy_loan)
    db.commit()
    return toy_loan


@app.post(
    "/toy-loans/{toy_loan_id}/cancel",
    operation_id="cancel_toy_loan",
    summary="Cancel a toy loan",
    description="Possible until it is lent.",
    tags=["toy loans"],
    response_model=ToyLoanOut,
)
async def cancel_toy_loan(db: Db, toy_loan_id: Annotated[Id, Path(description="Id of the toy loan")]) -> ToyLoan:
    toy_loan = find(db, ToyLoan, toy_loan_id, "toy loan")
    if toy_loan.status not in ("in_basket", "reserved"):
        raise HTTPException(409, f"Toy loan {toy_loan.reference} is {toy_loan.status} and can't be cancelled any more.")
    toy_loan.status = "cancelled"
    toy_loan.closed_at = now()
    record(db, "cancelled", "toy_loan", toy_loan)
    db.commit()
    return toy_loan


# Loan lines


class LoanLineOut(Answer):
    id: int = Field(description="Id of the loan line")
    toy_loan_id: int = Field(description="Id of the toy loan")
    toy_id: int = Field(description="Id of the toy")
    quantity: int = Field(description="How many")
    price_cents: int = Field(description="Price of one at that time, in cents")
    toy_loan_reference: str = Field(description="Reference of the toy loan")
    toy_name: str = Field(description="Name of the toy")


@app.get(
    "/loan-lines",
    operation_id="list_loan_lines",
    summary="List loan lines",
    description="Answers a page of loan lines that fit the filters given; an empty one where none do.",
    tags=["loan lines"],
    response_model=Page[LoanLineOut],
)
async def list_loan_lines(
    db: Db,
    toy_loan_id: Annotated[Id | None, Query(description="Only those of this toy loan")] = None,
    toy_id: Annotated[Id | None, Query(description="Only those of this toy")] = None,
    min_quantity: Annotated[int | None, Query(ge=0, le=1_000_000, description="Least quantity")] = None,
    max_quantity: Annotated[int | None, Query(ge=0, le=1_000_000, description="Highest quantity")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(LoanLine)
    if toy_loan_id is not None:
        statement = statement.where(LoanLine.toy_loan_id == toy_loan_id)
    if toy_id is not None:
        statement = statement.where(LoanLine.toy_id == toy_id)
    if min_quantity is not None:
        statement = statement.where(LoanLine.quantity >= min_quantity)
    if max_quantity is not None:
        statement = statement.where(LoanLine.quantity <= max_quantity)
    return page_of(db, statement.order_by(LoanLine.id), limit, offset)


# Discount codes


class DiscountCodeOut(Answer):
    id: int = Field(description="Id of the discount code")
    code: str = Field(description="Code")
    percent: int = Field(description="By how many per cent the loan lines become cheaper")
    minimum_cents: int = Field(description="Least value of the loan lines it is given on, in cents")
    is_active: bool = Field(description="Whether it is given at present")


@app.get(
    "/discount-codes",
    operation_id="list_discount_codes",
    summary="List discount codes",
    description="Answers a page of discount codes that fit the filters given; an empty one where none do.",
    tags=["discount codes"],
    response_model=Page[DiscountCodeOut],
)
async def list_discount_codes(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the code")] = None,
    is_active: Annotated[bool | None, Query(description="Only those that are, or are not, active")] = None,
    min_percent: Annotated[int | None, Query(ge=0, le=1_000_000, description="Least percent")] = None,
    max_percent: Annotated[int | None, Query(ge=0, le=1_000_000, description="Highest percent")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(DiscountCode)
    if q is not None:
        statement = statement.where(DiscountCode.code.icontains(q, autoescape=True))
    if is_active is not None:
        statement = statement.where(DiscountCode.is_active == is_active)
    if min_percent is not None:
        statement = statement.where(DiscountCode.percent >= min_percent)
    if max_percent is not None:
        statement = statement.where(DiscountCode.percent <= max_percent)
    return page_of(db, statement.order_by(DiscountCode.code, DiscountCode.id), limit, offset)


# Toy funds


class ToyFundOut(Answer):
    id: int = Field(description="Id of the toy fund")
    name: str = Field(description="Name")
    manager_id: int = Field(description="Who runs it")
    goal_cents: int = Field(description="Goal in cents")
    begins_on: date = Field(description="First day")
    ends_on: date = Field(description="Last day")
    status: ToyFundStatus = Field(description="State")
    manager_name: str = Field(description="Who runs it")


class ToyFundMatchingOut(Answer):
    id: int = Field(description="Id of the toy fund matching")
    toy_fund_id: int = Field(description="Id of the toy fund")
    family_id: int = Field(description="Family that adds to it")
    limit_cents: int = Field(description="Most that they add, in cents")
    toy_fund_name: str = Field(description="Name of the toy fund")
    family_name: str = Field(description="Full name of the family")


class ToyFundNewsOut(Answer):
    id: int = Field(description="Id of the toy fund news")
    toy_fund_id: int = Field(description="Id of the toy fund")
    title: str = Field(description="Title")
    body: str = Field(description="What it says")
    posted_at: datetime = Field(description="When it was posted")
    toy_fund_name: str = Field(description="Name of the toy fund")


class PlanToyFundIn(BaseModel):
    name: str = Field(min_length=1, max_length=200, description="Name")
    manager_id: Id = Field(description="Who runs it")
    goal_cents: int = Field(ge=1, le=100_000_000, description="Goal in cents")
    begins_on: Day = Field(description="First day")
    ends_on: Day = Field(description="Last day")


class ToyFundDetail(ToyFundOut):
    toy_fund_matchings: list[ToyFundMatchingOut] = Field(description="Its toy fund matchings")
    toy_fund_news_items: list[ToyFundNewsOut] = Field(description="Its toy fund news items")


@app.get(
    "/toy-funds",
    operation_id="list_toy_funds",
    summary="List toy funds",
    description="Answers a page of toy funds that fit the filters given; an empty one where none do.",
    tags=["toy funds"],
    response_model=Page[ToyFundOut],
)
async def list_toy_funds(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the name")] = None,
    status: Annotated[ToyFundStatus | None, Query(description="Only those with this status")] = None,
    manager_id: Annotated[Id | None, Query(description="Only those of this manager")] = None,
    ends_from: Annotated[Day | None, Query(description="First day (ends on)")] = None,
    ends_to: Annotated[Day | None, Query(description="Last day (ends on)")] = None,
    min_goal_cents: Annotated[int | None, Query(ge=0, le=100_000_000, description="Least goal in cents")] = None,
    max_goal_cents: Annotated[int | None, Query(ge=0, le=100_000_000, description="Highest goal in cents")] = None,
    sort: Annotated[
        Literal["ends_on", "-ends_on", "goal_cents", "-goal_cents"] | None,
        Query(description="Order of the rows, descending with -"),
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(ToyFund)
    if q is not None:
        statement = statement.where(ToyFund.name.icontains(q, autoescape=True))
    if status is not None:
        statement = statement.where(ToyFund.status == status)
    if manager_id is not None:
        statement = statement.where(ToyFund.manager_id == manager_id)
    if ends_from is not None:
        statement = statement.where(ToyFund.ends_on >= ends_from)
    if ends_to is not None:
        statement = statement.where(ToyFund.ends_on <= ends_to)
    if min_goal_cents is not None:
        statement = statement.where(ToyFund.goal_cents >= min_goal_cents)
    if max_goal_cents is not None:
        statement = statement.where(ToyFund.goal_cents <= max_goal_cents)
    return page_of(db, sorted_by(statement, ToyFund, sort or "name"), limit, offset)


@app.post(
    "/toy-funds",
    operation_id="plan_toy_fund",
    summary="Plan a new toy fund",
    description="Answers the new toy fund with its id.",
    tags=["toy funds"],
    response_model=ToyFundOut,
    status_code=201,
)
async def plan_toy_fund(db: Db, body: PlanToyFundIn) -> ToyFund:
    manager = find(db, User, body.manager_id, "user")
    if not manager.is_active:
        raise HTTPException(409, f"{manager.full_name} does not work here at present.")
    if body.begins_on < today() or body.ends_on < body.begins_on:
        raise HTTPException(422, "It begins today or later and ends after that.")
    if exists(db, ToyFund, ToyFund.name == body.name):
        raise HTTPException(409, f"There is a toy fund with the name {body.name} already; choose another.")
    toy_fund = ToyFund(
        name=body.name,
        manager_id=manager.id,
        goal_cents=body.goal_cents,
        begins_on=body.begins_on,
        ends_on=body.ends_on,
    )
    db.add(toy_fund)
    record(db, "planned", "toy_fund", toy_fund)
    db.commit()
    return toy_fund


@app.post(
    "/toy-funds/{toy_fund_id}/launch",
    operation_id="launch_toy_fund",
    summary="Launch a toy fund",
    description="From its first day on; it becomes running.",
    tags=["toy funds"],
    response_model=ToyFundOut,
)
async def launch_toy_fund(db: Db, toy_fund_id: Annotated[Id, Path(description="Id of the toy fund")]) -> ToyFund:
    toy_fund = find(db, ToyFund, toy_fund_id, "toy fund")
    if toy_fund.status != "planned":
        raise HTTPException(409, f"Toy fund {toy_fund.name} is {toy_fund.status}.")
    if toy_fund.begins_on > today():
        raise HTTPException(409, f"It begins on {toy_fund.begins_on} only.")
    toy_fund.status = "running"
    record(db, "launched", "toy_fund", toy_fund)
    db.commit()
    return toy_fund


@app.post(
    "/toy-funds/{toy_fund_id}/close",
    operation_id="close_toy_fund",
    summary="Close a toy fund",
    description="Once nothing that was promised is missing.",
    tags=["toy funds"],
    response_model=ToyFundOut,
)
async def close_toy_fund(db: Db, toy_fund_id: Annotated[Id, Path(description="Id of the toy fund")]) -> ToyFund:
    toy_fund = find(db, ToyFund, toy_fund_id, "toy fund")
    if toy_fund.status != "running":
        raise HTTPException(409, f"Toy fund {toy_fund.name} is {toy_fund.status}.")
    if exists(db, ToyGift, ToyGift.toy_fund_id == toy_fund.id, ToyGift.status == "promised"):
        raise HTTPException(
            409,
            f"{count(db, ToyGift, ToyGift.toy_fund_id == toy_fund.id, ToyGift.status == 'promised')} toy "
            "gifts of it have not come in yet.",
        )
    toy_fund.status = "closed"
    record(db, "closed", "toy_fund", toy_fund)
    db.commit()
    return toy_fund


@app.get(
    "/toy-funds/{toy_fund_id}",
    operation_id="get_toy_fund",
    summary="Show one toy fund with its toy fund matchings and toy fund news items",
    description="Answers the toy fund with its toy fund matchings and toy fund news items; 404 where there is none with this id.",
    tags=["toy funds"],
    response_model=ToyFundDetail,
)
async def get_toy_fund(db: Db, toy_fund_id: Annotated[Id, Path(description="Id of the toy fund")]) -> ToyFund:
    toy_fund = find(db, ToyFund, toy_fund_id, "toy fund")
    return toy_fund


# Toy gifts


class ToyGiftOut(Answer):
    id: int = Field(description="Id of the toy gift")
    reference: str = Field(description="Reference")
    toy_fund_id: int = Field(description="Id of the toy fund")
    family_id: int = Field(description="Id of the family")
    amount_cents: int = Field(description="Amount in cents")
    method: ToyGiftMethod = Field(description="How it is paid")
    is_anonymous: bool = Field(description="Whether the name is kept back")
    status: ToyGiftStatus = Field(description="State")
    pledged_at: datetime = Field(description="When it was promised")
    received_at: datetime | None = Field(None, description="When it came in")
    toy_fund_name: str = Field(description="Name of the toy fund")
    family_name: str = Field(description="Full name of the family")


class PledgeToyGiftIn(BaseModel):
    toy_fund_id: Id = Field(description="Id of the toy fund")
    family_id: Id = Field(description="Id of the family")
    amount_cents: int = Field(ge=1, le=100_000_000, description="Amount in cents")
    method: ToyGiftMethod = Field(description="How it is paid")
    is_anonymous: bool = Field(False, description="Whether the name is kept back")


@app.get(
    "/toy-gifts",
    operation_id="list_toy_gifts",
    summary="List toy gifts",
    description="Answers a page of toy gifts that fit the filters given; an empty one where none do.",
    tags=["toy gifts"],
    response_model=Page[ToyGiftOut],
)
async def list_toy_gifts(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the reference")] = None,
    toy_fund_id: Annotated[Id | None, Query(description="Only those of this toy fund")] = None,
    family_id: Annotated[Id | None, Query(description="Only those of this family")] = None,
    status: Annotated[ToyGiftStatus | None, Query(description="Only those with this status")] = None,
    method: Annotated[ToyGiftMethod | None, Query(description="Only those with this method")] = None,
    min_amount_cents: Annotated[int | None, Query(ge=0, le=100_000_000, description="Least amount in cents")] = None,
    max_amount_cents: Annotated[int | None, Query(ge=0, le=100_000_000, description="Highest amount in cents")] = None,
    pledged_from: Annotated[Day | None, Query(description="First day (pledged at)")] = None,
    pledged_to: Annotated[Day | None, Query(description="Last day (pledged at)")] = None,
    sort: Annotated[
        Literal["amount_cents", "-amount_cents", "pledged_at", "-pledged_at"] | None,
        Query(description="Order of the rows, descending with -"),
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(ToyGift)
    if q is not None:
        statement = statement.where(ToyGift.reference.icontains(q, autoescape=True))
    if toy_fund_id is not None:
        statement = statement.where(ToyGift.toy_fund_id == toy_fund_id)
    if family_id is not None:
        statement = statement.where(ToyGift.family_id == family_id)
    if status is not None:
        statement = statement.where(ToyGift.status == status)
    if method is not None:
        statement = statement.where(ToyGift.method == method)
    if min_amount_cents is not None:
        statement = statement.where(ToyGift.amount_cents >= min_amount_cents)
    if max_amount_cents is not None:
        statement = statement.where(ToyGift.amount_cents <= max_amount_cents)
    if pledged_from is not None:
        statement = statement.where(ToyGift.pledged_at >= start_of(pledged_from))
    if pledged_to is not None:
        statement = statement.where(ToyGift.pledged_at <= end_of(pledged_to))
    return page_of(db, sorted_by(statement, ToyGift, sort or "-id"), limit, offset)


@app.post(
    "/toy-gifts",
    operation_id="pledge_toy_gift",
    summary="Enter a toy gift that a family promises",
    description="Of 3 in full units or more, while the toy fund is running.",
    tags=["toy gifts"],
    response_model=ToyGiftOut,
    status_code=201,
)
async def pledge_toy_gift(db: Db, body: PledgeToyGiftIn) -> ToyGift:
    toy_fund = find(db, ToyFund, body.toy_fund_id, "toy fund")
    family = find(db, Family, body.family_id, "family")
    if toy_fund.status != "running":
        raise HTTPException(409, f"Toy fund {toy_fund.name} is {toy_fund.status}.")
    if family.is_blocked:
        raise HTTPException(409, f"{family.full_name} is blocked; nothing new may be entered.")
    if body.amount_cents < MINIMUM * 100:
        raise HTTPException(422, f"{money(MINIMUM * 100)} is the least that is taken.")
    if toy_fund.ends_on < today():
        raise HTTPException(409, f"Toy fund {toy_fund.name} ended on {toy_fund.ends_on}.")
    toy_gift = ToyGift(
        toy_fund_id=toy_fund.id,
        family_id=family.id,
        amount_cents=body.amount_cents,
        method=body.method,
        is_anonymous=body.is_anonymous,
        reference=next_reference(db, ToyGift, "G"),
        pledged_at=now(),
    )
    db.add(toy_gift)
    record(db, "pledged", "toy_gift", toy_gift)
    db.commit()
    return toy_gift


@app.post(
    "/toy-gifts/{toy_gift_id}/receive",
    operation_id="receive_toy_gift",
    summary="Note that a toy gift has come in",
    description="Answers the toy gift.",
    tags=["toy gifts"],
    response_model=ToyGiftOut,
)
async def receive_toy_gift(db: Db, toy_gift_id: Annotated[Id, Path(description="Id of the toy gift")]) -> ToyGift:
    toy_gift = find(db, ToyGift, toy_gift_id, "toy gift")
    if toy_gift.status != "promised":
        raise HTTPException(409, f"{toy_gift.reference} is {toy_gift.status}.")
    toy_gift.status = "received"
    toy_gift.received_at = now()
    record(db, "received", "toy_gift", toy_gift)
    db.commit()
    return toy_gift


@app.post(
    "/toy-gifts/{toy_gift_id}/refund",
    operation_id="refund_toy_gift",
    summary="Give back a toy gift",
    description="For 14 days after it came in.",
    tags=["toy gifts"],
    response_model=ToyGiftOut,
)
async def refund_toy_gift(db: Db, toy_gift_id: Annotated[Id, Path(description="Id of the toy gift")]) -> ToyGift:
    toy_gift = find(db, ToyGift, toy_gift_id, "toy gift")
    if toy_gift.status != "received":
        raise HTTPException(409, f"{toy_gift.reference} is {toy_gift.status}.")
    if toy_gift.received_at < now() - timedelta(days=REFUND_DAYS):
        raise HTTPException(
            409,
            f"{toy_gift.reference} came in at {toy_gift.received_at} and could be given back for "
            f"{REFUND_DAYS} days.",
        )
    toy_gift.status = "returned"
    record(db, "refunded", "toy_gift", toy_gift)
    db.commit()
    return toy_gift


# Toy fund news items


@app.get(
    "/toy-fund-news-items",
    operation_id="list_toy_fund_news_items",
    summary="List toy fund news items",
    description="Answers a page of toy fund news items that fit the filters given; an empty one where none do.",
    tags=["toy fund news items"],
    response_model=Page[ToyFundNewsOut],
)
async def list_toy_fund_news_items(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the title or body")] = None,
    toy_fund_id: Annotated[Id | None, Query(description="Only those of this toy fund")] = None,
    posted_from: Annotated[Day | None, Query(description="First day (posted at)")] = None,
    posted_to: Annotated[Day | None, Query(description="Last day (posted at)")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(ToyFundNews)
    if q is not None:
        statement = statement.where(
            or_(ToyFundNews.title.icontains(q, autoescape=True), ToyFundNews.body.icontains(q, autoescape=True))
        )
    if toy_fund_id is not None:
        statement = statement.where(ToyFundNews.toy_fund_id == toy_fund_id)
    if posted_from is not None:
        statement = statement.where(ToyFundNews.posted_at >= start_of(posted_from))
    if posted_to is not None:
        statement = statement.where(ToyFundNews.posted_at <= end_of(posted_to))
    return page_of(db, statement.order_by(ToyFundNews.id.desc()), limit, offset)


# Family plans


class FamilyPlanOut(Answer):
    id: int = Field(description="Id of the family plan")
    name: str = Field(description="Name")
    fee_cents: int = Field(description="What it costs a month, in cents")
    months: int = Field(description="For how many months it runs at least")
    is_offered: bool = Field(description="Whether it can be taken out at present")


@app.get(
    "/family-plans",
    operation_id="list_family_plans",
    summary="List family plans",
    description="Answers a page of family plans that fit the filters given; an empty one where none do.",
    tags=["family plans"],
    response_model=Page[FamilyPlanOut],
)
async def list_family_plans(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the name")] = None,
    is_offered: Annotated[bool | None, Query(description="Only those that are, or are not, offered")] = None,
    min_fee_cents: Annotated[int | None, Query(ge=0, le=100_000_000, description="Least fee in cents")] = None,
    max_fee_cents: Annotated[int | None, Query(ge=0, le=100_000_000, description="Highest fee in cents")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(FamilyPlan)
    if q is not None:
        statement = statement.where(FamilyPlan.name.icontains(q, autoescape=True))
    if is_offered is not None:
        statement = statement.where(FamilyPlan.is_offered == is_offered)
    if min_fee_cents is not None:
        statement = statement.where(FamilyPlan.fee_cents >= min_fee_cents)
    if max_fee_cents is not None:
        statement = statement.where(FamilyPlan.fee_cents <= max_fee_cents)
    return page_of(db, statement.order_by(FamilyPlan.fee_cents, FamilyPlan.id), limit, offset)


# Membership years


class MembershipYearOut(Answer):
    id: int = Field(description="Id of the membership year")
    number: str = Field(description="Number")
    family_id: int = Field(description="Id of the family")
    family_plan_id: int = Field(description="Id of the family plan")
    status: MembershipYearStatus = Field(description="State")
    started_on: date = Field(description="First day")
    ends_on: date | None = Field(None, description="Last day, where notice was given or it has ended")
    created_at: datetime = Field(description="When it was entered")
    family_name: str = Field(description="Full name of the family")
    family_plan_name: str = Field(description="Name of the family plan")


class TakeOutMembershipYearIn(BaseModel):
    family_id: Id = Field(description="Id of the family")
    family_plan_id: Id = Field(description="Id of the family plan")


@app.get(
    "/membership-years",
    operation_id="list_membership_years",
    summary="List membership years",
    description="Answers a page of membership years that fit the filters given; an empty one where none do.",
    tags=["membership years"],
    response_model=Page[MembershipYearOut],
)
async def list_membership_years(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the number")] = None,
    family_id: Annotated[Id | None, Query(description="Only those of this family")] = None,
    family_plan_id: Annotated[Id | None, Query(description="Only those of this family plan")] = None,
    status: Annotated[MembershipYearStatus | None, Query(description="Only those with this status")] = None,
    started_from: Annotated[Day | None, Query(description="First day (started on)")] = None,
    started_to: Annotated[Day | None, Query(description="Last day (started on)")] = None,
    sort: Annotated[
        Literal["started_on", "-started_on"] | None, Query(description="Order of the rows, descending with -")
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(MembershipYear)
    if q is not None:
        statement = statement.where(MembershipYear.number.icontains(q, autoescape=True))
    if family_id is not None:
        statement = statement.where(MembershipYear.family_id == family_id)
    if family_plan_id is not None:
        statement = statement.where(MembershipYear.family_plan_id == family_plan_id)
    if status is not None:
        statement = statement.where(MembershipYear.status == status)
    if started_from is not None:
        statement = statement.where(MembershipYear.started_on >= started_from)
    if started_to is not None:
        statement = statement.where(MembershipYear.started_on <= started_to)
    return page_of(db, sorted_by(statement, MembershipYear, sort or "-started_on"), limit, offset)


@app.post(
    "/membership-years",
    operation_id="take_out_membership_year",
    summary="Take out a membership year for a family",
    description="From today on. One of each family plan that has not ended.",
    tags=["membership years"],
    response_model=MembershipYearOut,
    status_code=201,
)
async def take_out_membership_year(db: Db, body: TakeOutMembershipYearIn) -> MembershipYear:
    family = find(db, Family, body.family_id, "family")
    family_plan = find(db, FamilyPlan, body.family_plan_id, "family plan")
    if family.is_blocked:
        raise HTTPException(409, f"{family.full_name} is blocked; nothing new may be entered.")
    if not family_plan.is_offered:
        raise HTTPException(409, f"The family plan {family_plan.name} can't be taken out at present.")
    if exists(
        db,
        MembershipYear,
        MembershipYear.family_id == family.id,
        MembershipYear.family_plan_id == family_plan.id,
        MembershipYear.status.in_(("active", "resting")),
    ):
        raise HTTPException(409, f"{family.full_name} has a membership year of {family_plan.name} already.")
    membership_year = MembershipYear(
        family_id=family.id,
        family_plan_id=family_plan.id,
        number=next_reference(db, MembershipYear, "M"),
        started_on=today(),
        created_at=now(),
    )
    db.add(membership_year)
    record(db, "taken out", "membership_year", membership_year)
    db.commit()
    return membership_year


@app.post(
    "/membership-years/{membership_year_id}/end",
    operation_id="end_membership_year",
    summary="End a membership year at once",
    description="Refused while a year bill of it is unpaid.",
    tags=["membership years"],
    response_model=MembershipYearOut,
)
async def end_membership_year(
    db: Db,
    membership_year_id: Annotated[Id, Path(description="Id of the membership year")],
) -> MembershipYear:
    membership_year = find(db, MembershipYear, membership_year_id, "membership year")
    if membership_year.status == "ended":
        raise HTTPException(409, f"Membership year {membership_year.number} has ended.")
    if exists(db, YearBill, YearBill.membership_year_id == membership_year.id, YearBill.status == "unpaid"):
        raise HTTPException(409, f"It has year bills that are {'unpaid'}; settle them first.")
    membership_year.status = "ended"
    membership_year.ends_on = today()
    record(db, "ended", "membership_year", membership_year)
    db.commit()
    return membership_year


# Year bills


class YearBillOut(Answer):
    id: int = Field(description="Id of the year bill")
    number: str = Field(description="Number")
    membership_year_id: int = Field(description="Id of the membership year")
    month: date = Field(description="First day of the month it is for")
    amount_cents: int = Field(description="How much, in cents")
    status: YearBillStatus = Field(description="State")
    paid_on: date | None = Field(None, description="Day it was paid")
    membership_year_number: str = Field(description="Number of the membership year")


class IssueYearBillIn(BaseModel):
    membership_year_id: Id = Field(description="Id of the membership year")
    month: Day = Field(description="First day of the month it is for")


@app.get(
    "/year-bills",
    operation_id="list_year_bills",
    summary="List year bills",
    description="Answers a page of year bills that fit the filters given; an empty one where none do.",
    tags=["year bills"],
    response_model=Page[YearBillOut],
)
async def list_year_bills(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the number")] = None,
    membership_year_id: Annotated[Id | None, Query(description="Only those of this membership year")] = None,
    month_from: Annotated[Day | None, Query(description="First day (month)")] = None,
    month_to: Annotated[Day | None, Query(description="Last day (month)")] = None,
    status: Annotated[YearBillStatus | None, Query(description="Only those with this status")] = None,
    min_amount_cents: Annotated[int | None, Query(ge=0, le=100_000_000, description="Least amount in cents")] = None,
    max_amount_cents: Annotated[int | None, Query(ge=0, le=100_000_000, description="Highest amount in cents")] = None,
    sort: Annotated[
        Literal["month", "-month"] | None, Query(description="Order of the rows, descending with -")
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(YearBill)
    if q is not None:
        statement = statement.where(YearBill.number.icontains(q, autoescape=True))
    if membership_year_id is not None:
        statement = statement.where(YearBill.membership_year_id == membership_year_id)
    if month_from is not None:
        statement = statement.where(YearBill.month >= month_from)
    if month_to is not None:
        statement = statement.where(YearBill.month <= month_to)
    if status is not None:
        statement = statement.where(YearBill.status == status)
    if min_amount_cents is not None:
        statement = statement.where(YearBill.amount_cents >= min_amount_cents)
    if max_amount_cents is not None:
        statement = statement.where(YearBill.amount_cents <= max_amount_cents)
    return page_of(db, sorted_by(statement, YearBill, sort or "-month"), limit, offset)


@app.post(
    "/year-bills",
    operation_id="issue_year_bill",
    summary="Issue a year bill for a month of a membership year",
    description="At the fee of the family plan. One a month; the month is told by its first day.",
    tags=["year bills"],
    response_model=YearBillOut,
    status_code=201,
)
async def issue_year_bill(db: Db, body: IssueYearBillIn) -> YearBill:
    membership_year = find(db, MembershipYear, body.membership_year_id, "membership year")
    if body.month.day != 1:
        raise HTTPException(422, "A month is told by its first day.")
    if membership_year.status != "active":
        raise HTTPException(409, f"Membership year {membership_year.number} is {membership_year.status}.")
    if exists(db, YearBill, YearBill.membership_year_id == membership_year.id, YearBill.month == body.month):
        raise HTTPException(409, f"There is a year bill of {membership_year.number} for that month already.")
    year_bill = YearBill(
        membership_year_id=membership_year.id,
        month=body.month,
        number=next_reference(db, YearBill, "I"),
        amount_cents=membership_year.family_plan.fee_cents,
    )
    db.add(year_bill)
    record(db, "issued", "year_bill", year_bill)
    db.commit()
    return year_bill


@app.post(
    "/year-bills/{year_bill_id}/pay",
    operation_id="pay_year_bill",
    summary="Note that a year bill was paid",
    description="Today, in full.",
    tags=["year bills"],
    response_model=YearBillOut,
)
async def pay_year_bill(db: Db, year_bill_id: Annotated[Id, Path(description="Id of the year bill")]) -> YearBill:
    year_bill = find(db, YearBill, year_bill_id, "year bill")
    if year_bill.status != "unpaid":
        raise HTTPException(409, f"Year bill {year_bill.number} is {year_bill.status}.")
    year_bill.status = "paid"
    year_bill.paid_on = today()
    record(db, "paid", "year_bill", year_bill)
    db.commit()
    return year_bill


# Missing piece cases


class MissingPieceCaseOut(Answer):
    id: int = Field(description="Id of the missing piece case")
    reference: str = Field(description="Reference")
    subject: str = Field(description="What it is about, in a few words")
    family_id: int = Field(description="Id of the family")
    topic: MissingPieceCaseTopic = Field(description="Topic")
    priority: MissingPieceCasePriority = Field(description="How soon it has to be seen to")
    status: MissingPieceCaseStatus = Field(description="State")
    assignee_id: int | None = Field(None, description="Who works on it")
    toy_id: int | None = Field(None, description="Id of the toy")
    due_on: date = Field(description="Day by which it is to be settled")
    resolution: MissingPieceCaseResolution | None = Field(None, description="How it was settled")
    opened_at: datetime = Field(description="When it was reported")
    resolved_at: datetime | None = Field(None, description="When it was settled")
    family_name: str = Field(description="Full name of the family")
    assignee_name: str | None = Field(None, description="Full name of the user")
    toy_name: str | None = Field(None, description="Name of the toy")


class OpenMissingPieceCaseIn(BaseModel):
    family_id: Id = Field(description="Id of the family")
    subject: str = Field(min_length=1, max_length=120, description="What it is about, in a few words")
    topic: MissingPieceCaseTopic = Field(description="Topic")
    priority: MissingPieceCasePriority = Field("normal", description="How soon it has to be seen to")
    toy_id: Id | None = Field(None, description="Id of the toy")


class AssignMissingPieceCaseIn(BaseModel):
    assignee_id: Id = Field(description="Who is to work on it")


class ResolveMissingPieceCaseIn(BaseModel):
    resolution: MissingPieceCaseResolution = Field(description="How it was settled")


@app.get(
    "/missing-piece-cases",
    operation_id="list_missing_piece_cases",
    summary="List missing piece cases",
    description="Answers a page of missing piece cases that fit the filters given; an empty one where none do.",
    tags=["missing piece cases"],
    response_model=Page[MissingPieceCaseOut],
)
async def list_missing_piece_cases(
    db: Db,
    q: Annotated[str | None, Query(min_length=1, max_length=80, description="Part of the reference or subject")] = None,
    family_id: Annotated[Id | None, Query(description="Only those of this family")] = None,
    topic: Annotated[MissingPieceCaseTopic | None, Query(description="Only those with this topic")] = None,
    priority: Annotated[MissingPieceCasePriority | None, Query(description="Only those with this priority")] = None,
    status: Annotated[MissingPieceCaseStatus | None, Query(description="Only those with this status")] = None,
    assignee_id: Annotated[Id | None, Query(description="Only those of this assignee")] = None,
    opened_from: Annotated[Day | None, Query(description="First day (opened at)")] = None,
    opened_to: Annotated[Day | None, Query(description="Last day (opened at)")] = None,
    due_from: Annotated[Day | None, Query(description="First day (due on)")] = None,
    due_to: Annotated[Day | None, Query(description="Last day (due on)")] = None,
    toy_id: Annotated[Id | None, Query(description="Only those of this toy")] = None,
    sort: Annotated[
        Literal["opened_at", "-opened_at"] | None, Query(description="Order of the rows, descending with -")
    ] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(MissingPieceCase)
    if q is not None:
        statement = statement.where(
            or_(
                MissingPieceCase.reference.icontains(q, autoescape=True),
                MissingPieceCase.subject.icontains(q, autoescape=True),
            ),
        )
    if family_id is not None:
        statement = statement.where(MissingPieceCase.family_id == family_id)
    if topic is not None:
        statement = statement.where(MissingPieceCase.topic == topic)
    if priority is not None:
        statement = statement.where(MissingPieceCase.priority == priority)
    if status is not None:
        statement = statement.where(MissingPieceCase.status == status)
    if assignee_id is not None:
        statement = statement.where(MissingPieceCase.assignee_id == assignee_id)
    if opened_from is not None:
        statement = statement.where(MissingPieceCase.opened_at >= start_of(opened_from))
    if opened_to is not None:
        statement = statement.where(MissingPieceCase.opened_at <= end_of(opened_to))
    if due_from is not None:
        statement = statement.where(MissingPieceCase.due_on >= due_from)
    if due_to is not None:
        statement = statement.where(MissingPieceCase.due_on <= due_to)
    if toy_id is not None:
        statement = statement.where(MissingPieceCase.toy_id == toy_id)
    return page_of(db, sorted_by(statement, MissingPieceCase, sort or "-opened_at"), limit, offset)


@app.post(
    "/missing-piece-cases",
    operation_id="open_missing_piece_case",
    summary="Open a new missing piece case",
    description="Answers the new missing piece case with its id.",
    tags=["missing piece cases"],
    response_model=MissingPieceCaseOut,
    status_code=201,
)
async def open_missing_piece_case(db: Db, body: OpenMissingPieceCaseIn) -> MissingPieceCase:
    family = find(db, Family, body.family_id, "family")
    if body.toy_id is not None:
        find(db, Toy, body.toy_id, "toy")
    if (
        count(
            db,
            MissingPieceCase,
            MissingPieceCase.family_id == family.id,
            MissingPieceCase.status.in_(("reported", "searching", "family_asked")),
        )
        >= MAX_OPEN
    ):
        raise HTTPException(
            409, f"{family.full_name} has {MAX_OPEN} missing piece cases that are not settled, which is the most."
        )
    missing_piece_case = MissingPieceCase(
        family_id=family.id,
        subject=body.subject,
        topic=body.topic,
        priority=body.priority,
        toy_id=body.toy_id,
        reference=next_reference(db, MissingPieceCase, "T"),
        opened_at=now(),
        due_on=today()
        + timedelta(
            days=1 if body.priority
            == "urgent" else 3 if body.priority
            == "high" else 7 if body.priority
            == "normal" else 14
        ),
    )
    db.add(missing_piece_case)
    record(db, "opened", "missing_piece_case", missing_piece_case)
    db.commit()
    return missing_piece_case


@app.put(
    "/missing-piece-cases/{missing_piece_case_id}/assignee",
    operation_id="assign_missing_piece_case",
    summary="Give a missing piece case to a toy librarian",
    description="It becomes searching. Not for one that is settled.",
    tags=["missing piece cases"],
    response_model=MissingPieceCaseOut,
)
async def assign_missing_piece_case(
    db: Db,
    missing_piece_case_id: Annotated[Id, Path(description="Id of the missing piece case")],
    body: AssignMissingPieceCaseIn,
) -> MissingPieceCase:
    missing_piece_case = find(db, MissingPieceCase, missing_piece_case_id, "missing piece case")
    if missing_piece_case.status not in ("reported", "searching", "family_asked"):
        raise HTTPException(
            409, f"Missing piece case {missing_piece_case.reference} is {missing_piece_case.status} already."
        )
    assignee = find(db, User, body.assignee_id, "user")
    if not assignee.is_active:
        raise HTTPException(409, f"{assignee.full_name} does not work here at present.")
    if missing_piece_case.assignee_id == assignee.id:
        raise HTTPException(409, f"{assignee.full_name} has it already.")
    missing_piece_case.assignee_id = assignee.id
    missing_piece_case.status = "searching"
    record(db, "assigned", "missing_piece_case", missing_piece_case)
    db.commit()
    return missing_piece_case


@app.post(
    "/missing-piece-cases/{missing_piece_case_id}/hold",
    operation_id="hold_missing_piece_case",
    summary="Let a missing piece case wait",
    description="For one that is searching; it becomes family_asked.",
    tags=["missing piece cases"],
    response_model=MissingPieceCaseOut,
)
async def hold_missing_piece_case(
    db: Db,
    missing_piece_case_id: Annotated[Id, Path(description="Id of the missing piece case")],
) -> MissingPieceCase:
    missing_piece_case = find(db, MissingPieceCase, missing_piece_case_id, "missing piece case")
    if missing_piece_case.status != "searching":
        raise HTTPException(409, f"Missing piece case {missing_piece_case.reference} is {missing_piece_case.status}.")
    missing_piece_case.status = "family_asked"
    record(db, "put on hold", "missing_piece_case", missing_piece_case)
    db.commit()
    return missing_piece_case


@app.post(
    "/missing-piece-cases/{missing_piece_case_id}/resolve",
    operation_id="resolve_missing_piece_case",
    summary="Settle a missing piece case",
    description="Says how. Refused while nobody has it.",
    tags=["missing piece cases"],
    response_model=MissingPieceCaseOut,
)
async def resolve_missing_piece_case(
    db: Db,
    missing_piece_case_id: Annotated[Id, Path(description="Id of the missing piece case")],
    body: ResolveMissingPieceCaseIn,
) -> MissingPieceCase:
    missing_piece_case = find(db, MissingPieceCase, missing_piece_case_id, "missing piece case")
    if missing_piece_case.status not in ("reported", "searching", "family_asked"):
        raise HTTPException(
            409, f"Missing piece case {missing_piece_case.reference} is {missing_piece_case.status} already."
        )
    if missing_piece_case.assignee_id is None:
        raise HTTPException(409, "Nobody has it; assign it first.")
    missing_piece_case.status = "found_or_replaced"
    missing_piece_case.resolution = body.resolution
    missing_piece_case.resolved_at = now()
    record(db, "resolved", "missing_piece_case", missing_piece_case)
    db.commit()
    return missing_piece_case


@app.post(
    "/missing-piece-cases/{missing_piece_case_id}/close",
    operation_id="close_missing_piece_case",
    summary="Close a missing piece case that is found_or_replaced",
    description="It can't be taken up again after that.",
    tags=["missing piece cases"],
    response_model=MissingPieceCaseOut,
)
async def close_missing_piece_case(
    db: Db,
    missing_piece_case_id: Annotated[Id, Path(description="Id of the missing piece case")],
) -> MissingPieceCase:
    missing_piece_case = find(db, MissingPieceCase, missing_piece_case_id, "missing piece case")
    if missing_piece_case.status != "found_or_replaced":
        raise HTTPException(409, f"It is {missing_piece_case.status}; only what is {'found_or_replaced'} is closed.")
    missing_piece_case.status = "closed"
    record(db, "closed", "missing_piece_case", missing_piece_case)
    db.commit()
    return missing_piece_case


@app.post(
    "/missing-piece-cases/{missing_piece_case_id}/reopen",
    operation_id="reopen_missing_piece_case",
    summary="Take up a missing piece case again",
    description="Within 30 days after it was settled.",
    tags=["missing piece cases"],
    response_model=MissingPieceCaseOut,
)
async def reopen_missing_piece_case(
    db: Db,
    missing_piece_case_id: Annotated[Id, Path(description="Id of the missing piece case")],
) -> MissingPieceCase:
    missing_piece_case = find(db, MissingPieceCase, missing_piece_case_id, "missing piece case")
    if missing_piece_case.status != "found_or_replaced":
        raise HTTPException(
            409, f"It is {missing_piece_case.status}; only what is {'found_or_replaced'} is taken up again."
        )
    if now() > missing_piece_case.resolved_at + timedelta(days=REOPEN_DAYS):
        raise HTTPException(
            409,
            f"It was settled on {missing_piece_case.resolved_at.date()}; it could be taken up again within "
            f"{REOPEN_DAYS} days.",
        )
    missing_piece_case.status = "reported"
    missing_piece_case.resolution = None
    missing_piece_case.resolved_at = None
    record(db, "reopened", "missing_piece_case", missing_piece_case)
    db.commit()
    return missing_piece_case


# Work entries


class WorkEntryOut(Answer):
    id: int = Field(description="Id of the work entry")
    missing_piece_case_id: int = Field(description="Id of the missing piece case")
    worker_id: int = Field(description="Who did it")
    minutes: int = Field(description="How long it took")
    what: str = Field(description="What was done")
    worked_on: date = Field(description="Day it was done")
    missing_piece_case_reference: str = Field(description="Reference of the missing piece case")
    worker_name: str = Field(description="Full name of the user")


@app.get(
    "/work-entries",
    operation_id="list_work_entries",
    summary="List work entries",
    description="Answers a page of work entries that fit the filters given; an empty one where none do.",
    tags=["work entries"],
    response_model=Page[WorkEntryOut],
)
async def list_work_entries(
    db: Db,
    missing_piece_case_id: Annotated[Id | None, Query(description="Only those of this missing piece case")] = None,
    worked_from: Annotated[Day | None, Query(description="First day (worked on)")] = None,
    worked_to: Annotated[Day | None, Query(description="Last day (worked on)")] = None,
    min_minutes: Annotated[int | None, Query(ge=0, le=1_000_000, description="Least number of minutes")] = None,
    max_minutes: Annotated[int | None, Query(ge=0, le=1_000_000, description="Highest number of minutes")] = None,
    limit: Limit = 20,
    offset: Offset = 0,
) -> dict[str, Any]:
    statement = select(WorkEntry)
    if missing_piece_case_id is not None:
        statement = statement.where(WorkEntry.missing_piece_case_id == missing_piece_case_id)
    if worked_from is not None:
        statement = statement.where(WorkEntry.worked_on >= worked_from)
    if worked_to is not None:
        statement = statement.where(WorkEntry.worked_on <= worked_to)
    if min_minutes is not None:
        statement = statement.where(WorkEntry.minutes >= min_minutes)
    if max_minutes is not None:
        statement = statement.where(WorkEntry.minutes <= max_minutes)
    return page_of(db, statement.order_by(WorkEntry.worked_on.desc(), WorkEntry.id), limit, offset)


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host=os.getenv("HOST", "127.0.0.1"), port=int(os.getenv("PORT", "8000")))
