import os
import re
from datetime import date, datetime, timedelta, timezone
from typing import Annotated, List, Literal, Optional

from fastapi import FastAPI, HTTPException, Path, Query, Request
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Date,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    String,
    Text,
    UniqueConstraint,
    create_engine,
    event,
    func,
    or_,
    select,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, sessionmaker

DATABASE_URL = os.getenv("DATABASE_PATH") or "sqlite:///makers_tool_library.db"

engine = create_engine(DATABASE_URL, connect_args={"check_same_thread": False})


@event.listens_for(engine, "connect")
def switch_on_foreign_keys(connection, record):
    connection.execute("PRAGMA foreign_keys = ON")


SessionLocal = sessionmaker(bind=engine, expire_on_commit=False)

app = FastAPI(
    title="Makers Tool Library",
    version="1.0.0",
    description="Lending desk of a neighbourhood tool library: members, tools, loans, reservations, charges, repairs and workshops.",
)

CURRENT_USER_ID = 1
MAX_ID = 2**31 - 1
BLOCKING_DEBT_CENTS = 2000  # a member who owes more than this borrows nothing
BOOKING_HORIZON_DAYS = 90
FREE_CANCELLATION_HOURS = 48

Role = Literal["volunteer", "coordinator", "manager"]
MemberStatus = Literal["active", "suspended"]
Condition = Literal["excellent", "good", "worn", "damaged"]
CopyStatus = Literal["available", "on_loan", "in_repair", "retired"]
ReservationStatus = Literal["booked", "fulfilled", "cancelled"]
ChargeKind = Literal["late_fee", "damage", "membership", "workshop"]
Method = Literal["card", "cash", "transfer"]
Severity = Literal["low", "medium", "high"]
JobStatus = Literal["open", "done"]
WorkshopStatus = Literal["scheduled", "cancelled", "completed"]
SignupStatus = Literal["enrolled", "waitlisted", "cancelled", "attended", "absent"]


# ---------------------------------------------------------------------------
# Tables
# ---------------------------------------------------------------------------


class Base(DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "users"
    __table_args__ = (CheckConstraint("role IN ('volunteer', 'coordinator', 'manager')"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    full_name: Mapped[str] = mapped_column(String, nullable=False)
    email: Mapped[str] = mapped_column(String, nullable=False, unique=True)
    role: Mapped[str] = mapped_column(String, nullable=False)
    waiver_limit_cents: Mapped[int] = mapped_column(Integer, nullable=False, default=0)
    is_active: Mapped[bool] = mapped_column(Boolean, nullable=False, default=True)


class MembershipPlan(Base):
    __tablename__ = "membership_plans"

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    name: Mapped[str] = mapped_column(String, nullable=False, unique=True)
    annual_fee_cents: Mapped[int] = mapped_column(Integer, nullable=False)
    max_loans: Mapped[int] = mapped_column(Integer, nullable=False)


class Member(Base):
    __tablename__ = "members"
    __table_args__ = (CheckConstraint("status IN ('active', 'suspended')"), Index("idx_members_plan", "plan_id"))

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    full_name: Mapped[str] = mapped_column(String, nullable=False)
    email: Mapped[str] = mapped_column(String, nullable=False, unique=True)
    phone: Mapped[Optional[str]] = mapped_column(String)
    plan_id: Mapped[int] = mapped_column(ForeignKey("membership_plans.id"), nullable=False)
    status: Mapped[str] = mapped_column(String, nullable=False, default="active")
    joined_on: Mapped[date] = mapped_column(Date, nullable=False)
    expires_on: Mapped[date] = mapped_column(Date, nullable=False)

    plan: Mapped[MembershipPlan] = relationship()


class Certification(Base):
    __tablename__ = "certifications"

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    code: Mapped[str] = mapped_column(String, nullable=False, unique=True)
    name: Mapped[str] = mapped_column(String, nullable=False)
    valid_months: Mapped[Optional[int]] = mapped_column(Integer)


class MemberCertification(Base):
    __tablename__ = "member_certifications"
    __table_args__ = (UniqueConstraint("member_id", "certification_id"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    member_id: Mapped[int] = mapped_column(ForeignKey("members.id", ondelete="CASCADE"), nullable=False)
    certification_id: Mapped[int] = mapped_column(ForeignKey("certifications.id"), nullable=False)
    earned_on: Mapped[date] = mapped_column(Date, nullable=False)
    expires_on: Mapped[Optional[date]] = mapped_column(Date)

    certification: Mapped[Certification] = relationship()


class Category(Base):
    __tablename__ = "categories"

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    name: Mapped[str] = mapped_column(String, nullable=False, unique=True)
    loan_days: Mapped[int] = mapped_column(Integer, nullable=False)
    max_renewals: Mapped[int] = mapped_column(Integer, nullable=False)
    daily_fine_cents: Mapped[int] = mapped_column(Integer, nullable=False)
    max_fine_cents: Mapped[int] = mapped_column(Integer, nullable=False)


class Tool(Base):
    __tablename__ = "tools"
    __table_args__ = (Index("idx_tools_category", "category_id"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    name: Mapped[str] = mapped_column(String, nullable=False, unique=True)
    brand: Mapped[str] = mapped_column(String, nullable=False)
    category_id: Mapped[int] = mapped_column(ForeignKey("categories.id"), nullable=False)
    certification_id: Mapped[Optional[int]] = mapped_column(ForeignKey("certifications.id"))
    replacement_cents: Mapped[int] = mapped_column(Integer, nullable=False)
    notes: Mapped[Optional[str]] = mapped_column(Text)

    category: Mapped[Category] = relationship()
    certification: Mapped[Optional[Certification]] = relationship()
    copies: Mapped[List["ToolCopy"]] = relationship(back_populates="tool", order_by="ToolCopy.id")


class ToolCopy(Base):
    __tablename__ = "tool_copies"
    __table_args__ = (
        CheckConstraint("condition IN ('excellent', 'good', 'worn', 'damaged')"),
        CheckConstraint("status IN ('available', 'on_loan', 'in_repair', 'retired')"),
        Index("idx_tool_copies_tool", "tool_id"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    tool_id: Mapped[int] = mapped_column(ForeignKey("tools.id"), nullable=False)
    asset_tag: Mapped[str] = mapped_column(String, nullable=False, unique=True)
    condition: Mapped[str] = mapped_column(String, nullable=False)
    status: Mapped[str] = mapped_column(String, nullable=False)
    shelf: Mapped[str] = mapped_column(String, nullable=False)
    acquired_on: Mapped[date] = mapped_column(Date, nullable=False)

    tool: Mapped[Tool] = relationship(back_populates="copies")


class Loan(Base):
    __tablename__ = "loans"
    __table_args__ = (Index("idx_loans_copy", "copy_id"), Index("idx_loans_member", "member_id"))

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    copy_id: Mapped[int] = mapped_column(ForeignKey("tool_copies.id"), nullable=False)
    member_id: Mapped[int] = mapped_column(ForeignKey("members.id"), nullable=False)
    checked_out_on: Mapped[date] = mapped_column(Date, nullable=False)
    due_on: Mapped[date] = mapped_column(Date, nullable=False)
    returned_on: Mapped[Optional[date]] = mapped_column(Date)
    renewals: Mapped[int] = mapped_column(Integer, nullable=False, default=0)
    issued_by: Mapped[int] = mapped_column(ForeignKey("users.id"), nullable=False)

    copy: Mapped[ToolCopy] = relationship()
    member: Mapped[Member] = relationship()


class Reservation(Base):
    __tablename__ = "reservations"
    __table_args__ = (
        CheckConstraint("status IN ('booked', 'fulfilled', 'cancelled')"),
        CheckConstraint("ends_on >= starts_on"),
        Index("idx_reservations_tool", "tool_id", "starts_on"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    tool_id: Mapped[int] = mapped_column(ForeignKey("tools.id"), nullable=False)
    member_id: Mapped[int] = mapped_column(ForeignKey("members.id"), nullable=False)
    starts_on: Mapped[date] = mapped_column(Date, nullable=False)
    ends_on: Mapped[date] = mapped_column(Date, nullable=False)
    status: Mapped[str] = mapped_column(String, nullable=False, default="booked")
    created_at: Mapped[datetime] = mapped_column(DateTime, nullable=False)

    tool: Mapped[Tool] = relationship()
    member: Mapped[Member] = relationship()


class Charge(Base):
    __tablename__ = "charges"
    __table_args__ = (
        CheckConstraint("kind IN ('late_fee', 'damage', 'membership', 'workshop')"),
        CheckConstraint("amount_cents > 0"),
        CheckConstraint("paid_cents + waived_cents <= amount_cents"),
        Index("idx_charges_member", "member_id"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    member_id: Mapped[int] = mapped_column(ForeignKey("members.id"), nullable=False)
    loan_id: Mapped[Optional[int]] = mapped_column(ForeignKey("loans.id"))
    kind: Mapped[str] = mapped_column(String, nullable=False)
    amount_cents: Mapped[int] = mapped_column(Integer, nullable=False)
    paid_cents: Mapped[int] = mapped_column(Integer, nullable=False, default=0)
    waived_cents: Mapped[int] = mapped_column(Integer, nullable=False, default=0)
    waiver_reason: Mapped[Optional[str]] = mapped_column(Text)
    description: Mapped[str] = mapped_column(Text, nullable=False)
    created_at: Mapped[datetime] = mapped_column(DateTime, nullable=False)

    member: Mapped[Member] = relationship()

    @property
    def outstanding_cents(self) -> int:
        return self.amount_cents - self.paid_cents - self.waived_cents


class Payment(Base):
    __tablename__ = "payments"
    __table_args__ = (
        CheckConstraint("method IN ('card', 'cash', 'transfer')"),
        CheckConstraint("amount_cents > 0"),
        Index("idx_payments_charge", "charge_id"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    charge_id: Mapped[int] = mapped_column(ForeignKey("charges.id"), nullable=False)
    amount_cents: Mapped[int] = mapped_column(Integer, nullable=False)
    method: Mapped[str] = mapped_column(String, nullable=False)
    received_by: Mapped[int] = mapped_column(ForeignKey("users.id"), nullable=False)
    received_at: Mapped[datetime] = mapped_column(DateTime, nullable=False)

    charge: Mapped[Charge] = relationship()


class MaintenanceJob(Base):
    __tablename__ = "maintenance_jobs"
    __table_args__ = (
        CheckConstraint("severity IN ('low', 'medium', 'high')"),
        CheckConstraint("status IN ('open', 'done')"),
        Index("idx_maintenance_jobs_copy", "copy_id"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    copy_id: Mapped[int] = mapped_column(ForeignKey("tool_copies.id"), nullable=False)
    issue: Mapped[str] = mapped_column(Text, nullable=False)
    severity: Mapped[str] = mapped_column(String, nullable=False)
    status: Mapped[str] = mapped_column(String, nullable=False, default="open")
    opened_at: Mapped[datetime] = mapped_column(DateTime, nullable=False)
    opened_by: Mapped[int] = mapped_column(ForeignKey("users.id"), nullable=False)
    closed_at: Mapped[Optional[datetime]] = mapped_column(DateTime)
    cost_cents: Mapped[Optional[int]] = mapped_column(Integer)
    resolution: Mapped[Optional[str]] = mapped_column(Text)

    copy: Mapped[ToolCopy] = relationship()


class Workshop(Base):
    __tablename__ = "workshops"
    __table_args__ = (
        CheckConstraint("status IN ('scheduled', 'cancelled', 'completed')"),
        CheckConstraint("ends_at > starts_at"),
        CheckConstraint("capacity > 0"),
        Index("idx_workshops_start", "starts_at"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    title: Mapped[str] = mapped_column(String, nullable=False)
    instructor: Mapped[str] = mapped_column(String, nullable=False)
    room: Mapped[str] = mapped_column(String, nullable=False)
    starts_at: Mapped[datetime] = mapped_column(DateTime, nullable=False)
    ends_at: Mapped[datetime] = mapped_column(DateTime, nullable=False)
    capacity: Mapped[int] = mapped_column(Integer, nullable=False)
    fee_cents: Mapped[int] = mapped_column(Integer, nullable=False, default=0)
    status: Mapped[str] = mapped_column(String, nullable=False, default="scheduled")
    certification_id: Mapped[Optional[int]] = mapped_column(ForeignKey("certifications.id"))

    signups: Mapped[List["WorkshopSignup"]] = relationship(back_populates="workshop", order_by="WorkshopSignup.id")


class WorkshopSignup(Base):
    __tablename__ = "workshop_signups"
    __table_args__ = (
        CheckConstraint("status IN ('enrolled', 'waitlisted', 'cancelled', 'attended', 'absent')"),
        Index("idx_workshop_signups_workshop", "workshop_id"),
        Index("idx_workshop_signups_member", "member_id"),
    )

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    workshop_id: Mapped[int] = mapped_column(ForeignKey("workshops.id"), nullable=False)
    member_id: Mapped[int] = mapped_column(ForeignKey("members.id"), nullable=False)
    status: Mapped[str] = mapped_column(String, nullable=False)
    charge_id: Mapped[Optional[int]] = mapped_column(ForeignKey("charges.id"))
    created_at: Mapped[datetime] = mapped_column(DateTime, nullable=False)

    workshop: Mapped[Workshop] = relationship(back_populates="signups")
    member: Mapped[Member] = relationship()
    charge: Mapped[Optional[Charge]] = relationship()


class Closure(Base):
    __tablename__ = "closures"

    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    closed_on: Mapped[date] = mapped_column(Date, nullable=False, unique=True)
    reason: Mapped[str] = mapped_column(String, nullable=False)


Base.metadata.create_all(engine)


# ---------------------------------------------------------------------------
# Values that arrive
# ---------------------------------------------------------------------------


def sensible_day(value: date) -> date:
    if not 2000 <= value.year <= 2100:
        raise ValueError("the year must lie between 2000 and 2100")
    return value


def sensible_moment(value: datetime) -> datetime:
    if not 2000 <= value.year <= 2100:
        raise ValueError("the year must lie between 2000 and 2100")
    if value.tzinfo is not None:
        value = value.astimezone(timezone.utc).replace(tzinfo=None)
    return value.replace(microsecond=0)


def looks_like_email(value: str) -> str:
    if not re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", value):
        raise ValueError("this is not an e-mail address")
    return value.lower()


Day = Annotated[date, AfterValidator(sensible_day)]
Moment = Annotated[datetime, AfterValidator(sensible_moment)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)]
Prose = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
Email = Annotated[str, StringConstraints(strip_whitespace=True, max_length=120), AfterValidator(looks_like_email)]
RowId = Annotated[int, Field(ge=1, le=MAX_ID)]
Cents = Annotated[int, Field(ge=1, le=1_000_000)]
Limit = Annotated[int, Query(ge=1, le=200, description="How many to return at most")]
Offset = Annotated[int, Query(ge=0, le=100_000, description="How many to skip")]


class MemberIn(BaseModel):
    full_name: Name = Field(description="Full name of the new member", examples=["Rosa Lindgren"])
    email: Email = Field(description="E-mail address; no two members share one", examples=["rosa.lindgren@example.org"])
    phone: Optional[Name] = Field(None, description="Telephone number", examples=["555-0199"])
    plan_id: RowId = Field(description="Membership plan, as listed by list_membership_plans", examples=[2])


class MemberPatch(BaseModel):
    email: Optional[Email] = Field(None, description="New e-mail address", examples=["rosa@example.org"])
    phone: Optional[Name] = Field(None, description="New telephone number", examples=["555-0200"])
    status: Optional[MemberStatus] = Field(None, description="'suspended' stops all borrowing", examples=["suspended"])


class RenewMembershipIn(BaseModel):
    plan_id: Optional[RowId] = Field(None, description="Plan for the new year; the present one if left out", examples=[1])


class GrantIn(BaseModel):
    certification_id: RowId = Field(description="Certification to record", examples=[2])
    earned_on: Optional[Day] = Field(None, description="Day it was earned; today if left out", examples=["2025-12-20"])


class CopyIn(BaseModel):
    asset_tag: Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^TL-[0-9]{4}$")] = Field(
        description="Tag of the form TL-0000, not used by another copy", examples=["TL-0901"]
    )
    condition: Condition = Field("good", description="Condition on arrival", examples=["excellent"])
    shelf: Name = Field(description="Where the copy is kept", examples=["B-04"])


class CopyPatch(BaseModel):
    condition: Optional[Condition] = Field(None, description="New condition", examples=["worn"])
    shelf: Optional[Name] = Field(None, description="New shelf", examples=["C-02"])


class CheckOutIn(BaseModel):
    copy_id: RowId = Field(description="Copy that leaves the library", examples=[12])
    member_id: RowId = Field(description="Member who borrows it", examples=[4])
    days: Optional[Annotated[int, Field(ge=1, le=60)]] = Field(
        None, description="Shorter loan than the category allows; the full period if left out", examples=[3]
    )


class ReturnIn(BaseModel):
    condition: Condition = Field(description="Condition in which the copy came back", examples=["good"])
    damage_note: Optional[Prose] = Field(None, description="What is broken; needed when damaged", examples=["Chuck slips"])


class ReservationIn(BaseModel):
    tool_id: RowId = Field(description="Tool to reserve; the copy is picked at the desk", examples=[7])
    member_id: RowId = Field(description="Member it is kept for", examples=[4])
    starts_on: Day = Field(description="First day", examples=["2026-01-10"])
    ends_on: Day = Field(description="Last day, included", examples=["2026-01-12"])


class ReservationPatch(BaseModel):
    starts_on: Day = Field(description="New first day", examples=["2026-01-11"])
    ends_on: Day = Field(description="New last day, included", examples=["2026-01-13"])


class ChargeIn(BaseModel):
    member_id: RowId = Field(description="Member who is charged", examples=[4])
    kind: Literal["damage", "late_fee"] = Field(description="What the charge is for", examples=["damage"])
    amount_cents: Cents = Field(description="Amount in cents", examples=[1500])
    description: Prose = Field(description="What happened, as the member will read it", examples=["Broken drill bit set"])
    loan_id: Optional[RowId] = Field(None, description="Loan it goes back to", examples=[31])


class PaymentIn(BaseModel):
    amount_cents: Cents = Field(description="Amount received in cents", examples=[500])
    method: Method = Field(description="How it was paid", examples=["card"])


class WaiverIn(BaseModel):
    amount_cents: Cents = Field(description="Amount to waive in cents", examples=[300])
    reason: Prose = Field(description="Why it is waived", examples=["Snow closed the road"])


class JobIn(BaseModel):
    copy_id: RowId = Field(description="Copy that needs work", examples=[12])
    issue: Prose = Field(description="What is wrong with it", examples=["Cord is frayed near the plug"])
    severity: Severity = Field(description="How bad it is", examples=["medium"])


class JobCloseIn(BaseModel):
    resolution: Prose = Field(description="What was done", examples=["Replaced the cord"])
    cost_cents: Annotated[int, Field(ge=0, le=1_000_000)] = Field(description="Cost of parts in cents", examples=[850])
    condition: Condition = Field(description="Condition after the repair", examples=["good"])


class WorkshopIn(BaseModel):
    title: Name = Field(description="Title", examples=["Sharpening chisels"])
    instructor: Name = Field(description="Who teaches it", examples=["Noor Haddad"])
    room: Name = Field(description="Room", examples=["Bench Room"])
    starts_at: Moment = Field(description="Start, UTC", examples=["2026-02-14T10:00:00"])
    ends_at: Moment = Field(description="End, UTC", examples=["2026-02-14T12:00:00"])
    capacity: Annotated[int, Field(ge=1, le=100)] = Field(description="Places", examples=[8])
    fee_cents: Annotated[int, Field(ge=0, le=100_000)] = Field(0, description="Fee in cents", examples=[1500])


class WorkshopPatch(BaseModel):
    room: Optional[Name] = Field(None, description="New room", examples=["Metal Bay"])
    instructor: Optional[Name] = Field(None, description="New instructor", examples=["Noor Haddad"])
    capacity: Optional[Annotated[int, Field(ge=1, le=100)]] = Field(None, description="New number of places", examples=[10])


class SignupIn(BaseModel):
    member_id: RowId = Field(description="Member who takes part", examples=[4])
    join_waitlist: bool = Field(False, description="Queue up if the workshop is full", examples=[False])


# ---------------------------------------------------------------------------
# Values that leave
# ---------------------------------------------------------------------------


class Out(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class UserOut(Out):
    id: int
    full_name: str
    email: str
    role: Role
    waiver_limit_cents: int


class PlanOut(Out):
    id: int
    name: str
    annual_fee_cents: int
    max_loans: int


class PlanList(BaseModel):
    items: List[PlanOut]
    total: int


class MemberOut(Out):
    id: int
    full_name: str
    email: str
    phone: Optional[str]
    plan_id: int
    plan_name: str
    status: MemberStatus
    joined_on: date
    expires_on: date


class MemberList(BaseModel):
    items: List[MemberOut]
    total: int


class CertificationOut(Out):
    id: int
    code: str
    name: str
    valid_months: Optional[int]


class CertificationList(BaseModel):
    items: List[CertificationOut]
    total: int


class EarnedOut(BaseModel):
    certification_id: int
    code: str
    earned_on: date
    expires_on: Optional[date]


class MemberDetail(MemberOut):
    owed_cents: int
    open_loans: int
    certifications: List[EarnedOut]


class MembershipOut(BaseModel):
    member: MemberOut
    charge_id: Optional[int]
    charge_cents: int


class CategoryOut(Out):
    id: int
    name: str
    loan_days: int
    max_renewals: int
    daily_fine_cents: int
    max_fine_cents: int


class CategoryList(BaseModel):
    items: List[CategoryOut]
    total: int


class ToolOut(BaseModel):
    id: int
    name: str
    brand: str
    category_id: int
    category_name: str
    certification_code: Optional[str]
    replacement_cents: int
    notes: Optional[str]
    copies_available: int


class ToolList(BaseModel):
    items: List[ToolOut]
    total: int


class CopyOut(BaseModel):
    id: int
    tool_id: int
    tool_name: str
    asset_tag: str
    condition: Condition
    status: CopyStatus
    shelf: str
    acquired_on: date


class CopyList(BaseModel):
    items: List[CopyOut]
    total: int


class ToolDetail(ToolOut):
    loan_days: int
    copies: List[CopyOut]


class DayOut(BaseModel):
    day: date
    free_copies: int


class AvailabilityOut(BaseModel):
    tool_id: int
    starts_on: date
    ends_on: date
    free_throughout: bool
    days: List[DayOut]


class LoanOut(BaseModel):
    id: int
    copy_id: int
    asset_tag: str
    tool_id: int
    tool_name: str
    member_id: int
    member_name: str
    checked_out_on: date
    due_on: date
    returned_on: Optional[date]
    renewals: int
    overdue_days: int


class LoanList(BaseModel):
    items: List[LoanOut]
    total: int


class ReturnOut(BaseModel):
    loan: LoanOut
    late_fee_cents: int
    charge_id: Optional[int]
    maintenance_job_id: Optional[int]


class ReservationOut(BaseModel):
    id: int
    tool_id: int
    tool_name: str
    member_id: int
    member_name: str
    starts_on: date
    ends_on: date
    status: ReservationStatus
    created_at: datetime


class ReservationList(BaseModel):
    items: List[ReservationOut]
    total: int


class ChargeOut(BaseModel):
    id: int
    member_id: int
    member_name: str
    loan_id: Optional[int]
    kind: ChargeKind
    amount_cents: int
    paid_cents: int
    waived_cents: int
    outstanding_cents: int
    waiver_reason: Optional[str]
    description: str
    created_at: datetime


class ChargeList(BaseModel):
    items: List[ChargeOut]
    total: int


class PaymentOut(Out):
    id: int
    charge_id: int
    amount_cents: int
    method: Method
    received_by: int
    received_at: datetime


class PaymentList(BaseModel):
    items: List[PaymentOut]
    total: int


class PaymentReceipt(BaseModel):
    payment: PaymentOut
    outstanding_cents: int


class JobOut(BaseModel):
    id: int
    copy_id: int
    asset_tag: str
    tool_name: str
    issue: str
    severity: Severity
    status: JobStatus
    opened_at: datetime
    closed_at: Optional[datetime]
    cost_cents: Optional[int]
    resolution: Optional[str]


class JobList(BaseModel):
    items: List[JobOut]
    total: int


class WorkshopOut(BaseModel):
    id: int
    title: str
    instructor: str
    room: str
    starts_at: datetime
    ends_at: datetime
    capacity: int
    places_left: int
    fee_cents: int
    status: WorkshopStatus
    certification_code: Optional[str]


class WorkshopList(BaseModel):
    items: List[WorkshopOut]
    total: int


class SignupOut(BaseModel):
    id: int
    workshop_id: int
    member_id: int
    member_name: str
    status: SignupStatus
    charge_id: Optional[int]
    created_at: datetime


class WorkshopDetail(WorkshopOut):
    signups: List[SignupOut]


class CancelledSignup(BaseModel):
    signup: SignupOut
    written_off_cents: int
    promoted: List[SignupOut]


class ClosureOut(Out):
    id: int
    closed_on: date
    reason: str


class ClosureList(BaseModel):
    items: List[ClosureOut]
    total: int


# ---------------------------------------------------------------------------
# House rules
# ---------------------------------------------------------------------------


def now() -> datetime:
    return datetime.now(timezone.utc).replace(tzinfo=None, microsecond=0)


def today() -> date:
    return now().date()


def refuse(detail: str, status: int = 409) -> HTTPException:
    return HTTPException(status_code=status, detail=detail)


def money(cents: int) -> str:
    return f"${cents // 100}.{cents % 100:02d}"


def fetch(session: Session, model, row_id: int, what: str):
    row = session.get(model, row_id)
    if row is None:
        raise HTTPException(status_code=404, detail=f"There is no {what} with id {row_id}.")
    return row


def require_difference(row, changes: dict) -> None:
    if all(getattr(row, name) == value for name, value in changes.items()):
        raise refuse("This is how it is already; nothing would change.")


def page(session: Session, statement, limit: int, offset: int):
    total = session.scalar(select(func.count()).select_from(statement.order_by(None).subquery()))
    return session.scalars(statement.limit(limit).offset(offset)).all(), total


def a_year_after(day: date) -> date:
    try:
        return day.replace(year=day.year + 1)
    except ValueError:
        return date(day.year + 1, 3, 1)


def months_after(day: date, months: int) -> date:
    years, month = divmod(day.month - 1 + months, 12)
    for last in range(day.day, 0, -1):
        try:
            return date(day.year + years, month + 1, last)
        except ValueError:
            continue
    return day


def first_open_day(session: Session, day: date) -> date:
    closed = set(session.scalars(select(Closure.closed_on).where(Closure.closed_on >= day)))
    while day in closed:
        day += timedelta(days=1)
    return day


def owed_cents(session: Session, member_id: int) -> int:
    owed = func.sum(Charge.amount_cents - Charge.paid_cents - Charge.waived_cents)
    return session.scalar(select(owed).where(Charge.member_id == member_id)) or 0


def open_loan_count(session: Session, member_id: int) -> int:
    return session.scalar(select(func.count(Loan.id)).where(Loan.member_id == member_id, Loan.returned_on.is_(None))) or 0


def require_good_standing(member: Member) -> None:
    if member.status == "suspended":
        raise refuse(f"{member.full_name} is suspended.")
    if member.expires_on < today():
        raise refuse(f"The membership of {member.full_name} ran out on {member.expires_on}; renew it first.")


def require_certification(session: Session, member: Member, tool: Tool, day: date) -> None:
    if tool.certification_id is None:
        return
    held = session.scalar(
        select(MemberCertification).where(
            MemberCertification.member_id == member.id, MemberCertification.certification_id == tool.certification_id
        )
    )
    if held is None or (held.expires_on is not None and held.expires_on < day):
        raise refuse(f"{tool.name} needs a valid {tool.certification.code} certification, which {member.full_name} does not hold.")


def free_by_day(session: Session, tool_id: int, start: date, end: date, skip_loan: int = 0, skip_reservations: tuple = ()) -> list:
    """Copies of a tool that nobody has or expects, for each day. A late loan is expected back today at the earliest."""
    usable = session.scalar(
        select(func.count(ToolCopy.id)).where(ToolCopy.tool_id == tool_id, ToolCopy.status.in_(["available", "on_loan"]))
    )
    loans = session.scalars(
        select(Loan).join(ToolCopy).where(ToolCopy.tool_id == tool_id, Loan.returned_on.is_(None), Loan.id != skip_loan)
    ).all()
    bookings = session.scalars(
        select(Reservation).where(
            Reservation.tool_id == tool_id,
            Reservation.status == "booked",
            Reservation.id.not_in(skip_reservations),
            Reservation.starts_on <= end,
            Reservation.ends_on >= start,
        )
    ).all()
    current = today()
    result = []
    day = start
    while day <= end:
        out = sum(loan.checked_out_on <= day <= max(loan.due_on, current) for loan in loans)
        kept = sum(booking.starts_on <= day <= booking.ends_on for booking in bookings)
        result.append((day, (usable or 0) - out - kept))
        day += timedelta(days=1)
    return result


def require_free(session: Session, tool: Tool, start: date, end: date, skip_loan: int = 0, skip_reservations: tuple = ()) -> None:
    short = [day for day, free in free_by_day(session, tool.id, start, end, skip_loan, skip_reservations) if free < 1]
    if short:
        raise refuse(f"No copy of {tool.name} is free on {', '.join(str(day) for day in short)}.")


def charge(session: Session, member_id: int, kind: str, cents: int, description: str, loan_id: Optional[int] = None) -> Charge:
    row = Charge(
        member_id=member_id,
        loan_id=loan_id,
        kind=kind,
        amount_cents=cents,
        paid_cents=0,
        waived_cents=0,
        description=description,
        created_at=now(),
    )
    session.add(row)
    session.flush()
    return row


def places_left(workshop: Workshop) -> int:
    return workshop.capacity - sum(signup.status in ("enrolled", "attended", "absent") for signup in workshop.signups)


def charge_for_place(session: Session, signup: WorkshopSignup, workshop: Workshop) -> None:
    if workshop.fee_cents:
        signup.charge_id = charge(session, signup.member_id, "workshop", workshop.fee_cents, f"Workshop: {workshop.title}").id


def promote_waiting(session: Session, workshop: Workshop) -> list:
    """Fill free places from the waiting list, first come first served."""
    waiting = sorted((s for s in workshop.signups if s.status == "waitlisted"), key=lambda s: (s.created_at, s.id))
    promoted = waiting[: max(0, places_left(workshop))]
    for signup in promoted:
        signup.status = "enrolled"
        charge_for_place(session, signup, workshop)
    session.flush()
    return promoted


def require_free_room(session: Session, room: str, starts_at: datetime, ends_at: datetime, skip: int = 0) -> None:
    taken = session.scalar(
        select(Workshop).where(
            Workshop.room == room,
            Workshop.status == "scheduled",
            Workshop.id != skip,
            Workshop.starts_at < ends_at,
            Workshop.ends_at > starts_at,
        )
    )
    if taken is not None:
        raise refuse(f"{room} is taken by '{taken.title}' from {taken.starts_at} to {taken.ends_at}.")


def member_out(member: Member) -> MemberOut:
    return MemberOut(
        id=member.id,
        full_name=member.full_name,
        email=member.email,
        phone=member.phone,
        plan_id=member.plan_id,
        plan_name=member.plan.name,
        status=member.status,
        joined_on=member.joined_on,
        expires_on=member.expires_on,
    )


def copy_out(copy: ToolCopy) -> CopyOut:
    return CopyOut(
        id=copy.id,
        tool_id=copy.tool_id,
        tool_name=copy.tool.name,
        asset_tag=copy.asset_tag,
        condition=copy.condition,
        status=copy.status,
        shelf=copy.shelf,
        acquired_on=copy.acquired_on,
    )


def tool_out(tool: Tool) -> ToolOut:
    return ToolOut(
        id=tool.id,
        name=tool.name,
        brand=tool.brand,
        category_id=tool.category_id,
        category_name=tool.category.name,
        certification_code=tool.certification.code if tool.certification else None,
        replacement_cents=tool.replacement_cents,
        notes=tool.notes,
        copies_available=sum(copy.status == "available" for copy in tool.copies),
    )


def overdue_days(loan: Loan) -> int:
    return max(0, ((loan.returned_on or today()) - loan.due_on).days)


def loan_out(loan: Loan) -> LoanOut:
    return LoanOut(
        id=loan.id,
        copy_id=loan.copy_id,
        asset_tag=loan.copy.asset_tag,
        tool_id=loan.copy.tool_id,
        tool_name=loan.copy.tool.name,
        member_id=loan.member_id,
        member_name=loan.member.full_name,
        checked_out_on=loan.checked_out_on,
        due_on=loan.due_on,
        returned_on=loan.returned_on,
        renewals=loan.renewals,
        overdue_days=overdue_days(loan),
    )


def reservation_out(reservation: Reservation) -> ReservationOut:
    return ReservationOut(
        id=reservation.id,
        tool_id=reservation.tool_id,
        tool_name=reservation.tool.name,
        member_id=reservation.member_id,
        member_name=reservation.member.full_name,
        starts_on=reservation.starts_on,
        ends_on=reservation.ends_on,
        status=reservation.status,
        created_at=reservation.created_at,
    )


def charge_out(row: Charge) -> ChargeOut:
    return ChargeOut(
        id=row.id,
        member_id=row.member_id,
        member_name=row.member.full_name,
        loan_id=row.loan_id,
        kind=row.kind,
        amount_cents=row.amount_cents,
        paid_cents=row.paid_cents,
        waived_cents=row.waived_cents,
        outstanding_cents=row.outstanding_cents,
        waiver_reason=row.waiver_reason,
        description=row.description,
        created_at=row.created_at,
    )


def job_out(job: MaintenanceJob) -> JobOut:
    return JobOut(
        id=job.id,
        copy_id=job.copy_id,
        asset_tag=job.copy.asset_tag,
        tool_name=job.copy.tool.name,
        issue=job.issue,
        severity=job.severity,
        status=job.status,
        opened_at=job.opened_at,
        closed_at=job.closed_at,
        cost_cents=job.cost_cents,
        resolution=job.resolution,
    )


def workshop_fields(session: Session, workshop: Workshop) -> dict:
    certification = session.get(Certification, workshop.certification_id) if workshop.certification_id else None
    return {
        "id": workshop.id,
        "title": workshop.title,
        "instructor": workshop.instructor,
        "room": workshop.room,
        "starts_at": workshop.starts_at,
        "ends_at": workshop.ends_at,
        "capacity": workshop.capacity,
        "places_left": max(0, places_left(workshop)),
        "fee_cents": workshop.fee_cents,
        "status": workshop.status,
        "certification_code": certification.code if certification else None,
    }


def signup_out(signup: WorkshopSignup) -> SignupOut:
    return SignupOut(
        id=signup.id,
        workshop_id=signup.workshop_id,
        member_id=signup.member_id,
        member_name=signup.member.full_name,
        status=signup.status,
        charge_id=signup.charge_id,
        created_at=signup.created_at,
    )


@app.exception_handler(IntegrityError)
async def broken_constraint(request: Request, error: IntegrityError) -> JSONResponse:
    return JSONResponse(status_code=409, content={"detail": f"The database refuses this change: {error.orig}."})


# ---------------------------------------------------------------------------
# Desk
# ---------------------------------------------------------------------------


@app.get(
    "/api/me",
    operation_id="get_current_user",
    summary="Show who is signed in",
    description="The member of staff who is signed in, with the largest amount they may waive on one charge.",
    tags=["desk"],
    response_model=UserOut,
)
async def get_current_user() -> UserOut:
    with SessionLocal() as session:
        return UserOut.model_validate(fetch(session, User, CURRENT_USER_ID, "user"))


@app.get(
    "/api/closures",
    operation_id="list_closures",
    summary="List the days on which the library is closed",
    description="Closed days in order. A loan never falls due on one: it is due on the next open day.",
    tags=["desk"],
    response_model=ClosureList,
)
async def list_closures(limit: Limit = 50, offset: Offset = 0) -> ClosureList:
    with SessionLocal() as session:
        rows, total = page(session, select(Closure).order_by(Closure.closed_on), limit, offset)
        return ClosureList(items=[ClosureOut.model_validate(row) for row in rows], total=total)


# ---------------------------------------------------------------------------
# Members
# ---------------------------------------------------------------------------


@app.get(
    "/api/membership_plans",
    operation_id="list_membership_plans",
    summary="List membership plans",
    description="Plans with their yearly fee and how many tools a member may have at once.",
    tags=["members"],
    response_model=PlanList,
)
async def list_membership_plans() -> PlanList:
    with SessionLocal() as session:
        rows = session.scalars(select(MembershipPlan).order_by(MembershipPlan.id)).all()
        return PlanList(items=[PlanOut.model_validate(row) for row in rows], total=len(rows))


@app.get(
    "/api/members",
    operation_id="list_members",
    summary="Search members",
    description="Members by name or e-mail, plan and status, in order of id.",
    tags=["members"],
    response_model=MemberList,
)
async def list_members(
    q: Annotated[Optional[str], Query(max_length=120, description="Part of a name or e-mail address")] = None,
    plan_id: Annotated[Optional[int], Query(ge=1, le=MAX_ID, description="Only this plan")] = None,
    status: Annotated[Optional[MemberStatus], Query(description="Only this status")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> MemberList:
    with SessionLocal() as session:
        statement = select(Member).order_by(Member.id)
        if q:
            statement = statement.where(
                or_(Member.full_name.icontains(q, autoescape=True), Member.email.icontains(q, autoescape=True))
            )
        if plan_id is not None:
            statement = statement.where(Member.plan_id == plan_id)
        if status is not None:
            statement = statement.where(Member.status == status)
        rows, total = page(session, statement, limit, offset)
        return MemberList(items=[member_out(row) for row in rows], total=total)


@app.post(
    "/api/members",
    operation_id="create_member",
    summary="Enrol a new member",
    description="Membership starts today and lasts a year; the plan's yearly fee is charged.",
    tags=["members"],
    response_model=MembershipOut,
    status_code=201,
)
async def create_member(body: MemberIn) -> MembershipOut:
    with SessionLocal() as session:
        plan = fetch(session, MembershipPlan, body.plan_id, "membership plan")
        if session.scalar(select(Member.id).where(func.lower(Member.email) == body.email)) is not None:
            raise refuse(f"A member with the e-mail address {body.email} exists already.")
        member = Member(
            full_name=body.full_name,
            email=body.email,
            phone=body.phone,
            plan_id=plan.id,
            status="active",
            joined_on=today(),
            expires_on=a_year_after(today()),
        )
        session.add(member)
        session.flush()
        fee = charge(session, member.id, "membership", plan.annual_fee_cents, f"{plan.name} membership") if plan.annual_fee_cents else None
        result = MembershipOut(
            member=member_out(member), charge_id=fee.id if fee else None, charge_cents=fee.amount_cents if fee else 0
        )
        session.commit()
        return result


@app.get(
    "/api/members/{member_id}",
    operation_id="get_member",
    summary="Show one member",
    description="A member with debts, number of open loans and certifications.",
    tags=["members"],
    response_model=MemberDetail,
)
async def get_member(member_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Member's id")]) -> MemberDetail:
    with SessionLocal() as session:
        member = fetch(session, Member, member_id, "member")
        held = session.scalars(
            select(MemberCertification).where(MemberCertification.member_id == member_id).order_by(MemberCertification.id)
        ).all()
        return MemberDetail(
            **member_out(member).model_dump(),
            owed_cents=owed_cents(session, member_id),
            open_loans=open_loan_count(session, member_id),
            certifications=[
                EarnedOut(
                    certification_id=row.certification_id,
                    code=row.certification.code,
                    earned_on=row.earned_on,
                    expires_on=row.expires_on,
                )
                for row in held
            ],
        )


@app.patch(
    "/api/members/{member_id}",
    operation_id="update_member",
    summary="Change a member's contact details or status",
    description="Gives a member another e-mail address, telephone number or status; what is left out stays.",
    tags=["members"],
    response_model=MemberOut,
)
async def update_member(
    member_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Member's id")], body: MemberPatch
) -> MemberOut:
    with SessionLocal() as session:
        member = fetch(session, Member, member_id, "member")
        changes = body.model_dump(exclude_none=True)
        if not changes:
            raise refuse("Nothing to change: give email, phone or status.", 400)
        require_difference(member, changes)
        if body.email is not None:
            other = select(Member.id).where(func.lower(Member.email) == body.email, Member.id != member_id)
            if session.scalar(other) is not None:
                raise refuse(f"Another member has the e-mail address {body.email}.")
        for name, value in changes.items():
            setattr(member, name, value)
        session.flush()
        result = member_out(member)
        session.commit()
        return result


@app.post(
    "/api/members/{member_id}/renew",
    operation_id="renew_membership",
    summary="Renew a membership for a year",
    description="Adds a year to the expiry date (or to today, if it has passed) and charges the plan's fee.",
    tags=["members"],
    response_model=MembershipOut,
)
async def renew_membership(
    member_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Member's id")], body: RenewMembershipIn = RenewMembershipIn()
) -> MembershipOut:
    with SessionLocal() as session:
        member = fetch(session, Member, member_id, "member")
        plan = fetch(session, MembershipPlan, body.plan_id or member.plan_id, "membership plan")
        if member.status == "suspended":
            raise refuse(f"{member.full_name} is suspended.")
        if member.expires_on > today() + timedelta(days=365):
            raise refuse(f"This membership already runs until {member.expires_on}; it can't be renewed so early.")
        member.plan_id = plan.id
        member.expires_on = a_year_after(max(member.expires_on, today()))
        session.flush()
        session.expire(member, ["plan"])
        fee = charge(session, member.id, "membership", plan.annual_fee_cents, f"{plan.name} membership") if plan.annual_fee_cents else None
        result = MembershipOut(
            member=member_out(member), charge_id=fee.id if fee else None, charge_cents=fee.amount_cents if fee else 0
        )
        session.commit()
        return result


@app.get(
    "/api/certifications",
    operation_id="list_certifications",
    summary="List safety certifications",
    description="Certifications that some tools ask for, and for how many months each stays valid (null: for ever).",
    tags=["members"],
    response_model=CertificationList,
)
async def list_certifications() -> CertificationList:
    with SessionLocal() as session:
        rows = session.scalars(select(Certification).order_by(Certification.id)).all()
        return CertificationList(items=[CertificationOut.model_validate(row) for row in rows], total=len(rows))


@app.post(
    "/api/members/{member_id}/certifications",
    operation_id="grant_certification",
    summary="Record that a member earned a certification",
    description="Records a certification, or renews one that has run out.",
    tags=["members"],
    response_model=EarnedOut,
    status_code=201,
)
async def grant_certification(
    member_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Member's id")], body: GrantIn
) -> EarnedOut:
    with SessionLocal() as session:
        member = fetch(session, Member, member_id, "member")
        certification = fetch(session, Certification, body.certification_id, "certification")
        earned_on = body.earned_on or today()
        if earned_on > today():
            raise refuse("A certification can't be earned in the future.", 400)
        row = session.scalar(
            select(MemberCertification).where(
                MemberCertification.member_id == member_id, MemberCertification.certification_id == certification.id
            )
        )
        if row is not None and (row.expires_on is None or row.expires_on >= today()):
            raise refuse(f"{member.full_name} already holds {certification.code}.")
        if row is None:
            row = MemberCertification(member_id=member_id, certification_id=certification.id)
            session.add(row)
        row.earned_on = earned_on
        row.expires_on = months_after(earned_on, certification.valid_months) if certification.valid_months else None
        session.flush()
        result = EarnedOut(
            certification_id=certification.id, code=certification.code, earned_on=row.earned_on, expires_on=row.expires_on
        )
        session.commit()
        return result


# ---------------------------------------------------------------------------
# Tools and copies
# ---------------------------------------------------------------------------


@app.get(
    "/api/categories",
    operation_id="list_categories",
    summary="List tool categories and their loan rules",
    description="Loan period in days, renewals allowed and late fees of each category.",
    tags=["tools"],
    response_model=CategoryList,
)
async def list_categories() -> CategoryList:
    with SessionLocal() as session:
        rows = session.scalars(select(Category).order_by(Category.id)).all()
        return CategoryList(items=[CategoryOut.model_validate(row) for row in rows], total=len(rows))


@app.get(
    "/api/tools",
    operation_id="search_tools",
    summary="Search the tool catalogue",
    description="Tools by name or brand and category, with the number of copies on the shelf now.",
    tags=["tools"],
    response_model=ToolList,
)
async def search_tools(
    q: Annotated[Optional[str], Query(max_length=120, description="Part of a name or brand")] = None,
    category_id: Annotated[Optional[int], Query(ge=1, le=MAX_ID, description="Only this category")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> ToolList:
    with SessionLocal() as session:
        statement = select(Tool).order_by(Tool.id)
        if q:
            statement = statement.where(or_(Tool.name.icontains(q, autoescape=True), Tool.brand.icontains(q, autoescape=True)))
        if category_id is not None:
            statement = statement.where(Tool.category_id == category_id)
        rows, total = page(session, statement, limit, offset)
        return ToolList(items=[tool_out(row) for row in rows], total=total)


@app.get(
    "/api/tools/{tool_id}",
    operation_id="get_tool",
    summary="Show one tool with its copies",
    description="A tool, its loan period, and every copy with condition, status and shelf.",
    tags=["tools"],
    response_model=ToolDetail,
)
async def get_tool(tool_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Tool's id")]) -> ToolDetail:
    with SessionLocal() as session:
        tool = fetch(session, Tool, tool_id, "tool")
        return ToolDetail(
            **tool_out(tool).model_dump(),
            loan_days=tool.category.loan_days,
            copies=[copy_out(copy) for copy in tool.copies],
        )


@app.get(
    "/api/tools/{tool_id}/availability",
    operation_id="check_tool_availability",
    summary="Show how many copies of a tool are free each day",
    description="Counts copies that are neither on loan nor kept for a reservation, for up to 31 days.",
    tags=["tools"],
    response_model=AvailabilityOut,
)
async def check_tool_availability(
    tool_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Tool's id")],
    starts_on: Annotated[Day, Query(description="First day, today or later")],
    ends_on: Annotated[Day, Query(description="Last day, included")],
) -> AvailabilityOut:
    with SessionLocal() as session:
        tool = fetch(session, Tool, tool_id, "tool")
        if ends_on < starts_on or (ends_on - starts_on).days > 30:
            raise refuse("ends_on must lie 0 to 30 days after starts_on.", 400)
        if starts_on < today():
            raise refuse("starts_on lies in the past.", 400)
        days = free_by_day(session, tool.id, starts_on, ends_on)
        return AvailabilityOut(
            tool_id=tool.id,
            starts_on=starts_on,
            ends_on=ends_on,
            free_throughout=all(free > 0 for _, free in days),
            days=[DayOut(day=day, free_copies=max(0, free)) for day, free in days],
        )


@app.get(
    "/api/copies",
    operation_id="list_copies",
    summary="List copies of tools",
    description="Copies by tool, asset tag, condition and status, in order of id.",
    tags=["tools"],
    response_model=CopyList,
)
async def list_copies(
    tool_id: Annotated[Optional[int], Query(ge=1, le=MAX_ID, description="Only copies of this tool")] = None,
    asset_tag: Annotated[Optional[str], Query(max_length=20, description="Exactly this tag")] = None,
    condition: Annotated[Optional[Condition], Query(description="Only this condition")] = None,
    status: Annotated[Optional[CopyStatus], Query(description="Only this status")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> CopyList:
    with SessionLocal() as session:
        statement = select(ToolCopy).order_by(ToolCopy.id)
        if tool_id is not None:
            statement = statement.where(ToolCopy.tool_id == tool_id)
        if asset_tag:
            statement = statement.where(ToolCopy.asset_tag == asset_tag.strip().upper())
        if condition is not None:
            statement = statement.where(ToolCopy.condition == condition)
        if status is not None:
            statement = statement.where(ToolCopy.status == status)
        rows, total = page(session, statement, limit, offset)
        return CopyList(items=[copy_out(row) for row in rows], total=total)


@app.post(
    "/api/tools/{tool_id}/copies",
    operation_id="add_copy",
    summary="Add a copy of a tool to the shelves",
    description="Registers one more copy under a new asset tag; it is available at once unless it is damaged.",
    tags=["tools"],
    response_model=CopyOut,
    status_code=201,
)
async def add_copy(tool_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Tool's id")], body: CopyIn) -> CopyOut:
    with SessionLocal() as session:
        tool = fetch(session, Tool, tool_id, "tool")
        if session.scalar(select(ToolCopy.id).where(ToolCopy.asset_tag == body.asset_tag)) is not None:
            raise refuse(f"Asset tag {body.asset_tag} is taken.")
        copy = ToolCopy(
            tool_id=tool.id,
            asset_tag=body.asset_tag,
            condition=body.condition,
            status="in_repair" if body.condition == "damaged" else "available",
            shelf=body.shelf,
            acquired_on=today(),
        )
        session.add(copy)
        session.flush()
        result = copy_out(copy)
        session.commit()
        return result


@app.patch(
    "/api/copies/{copy_id}",
    operation_id="update_copy",
    summary="Change a copy's condition or shelf",
    description="Corrects the condition or the shelf of a copy; the status follows from loans and repairs.",
    tags=["tools"],
    response_model=CopyOut,
)
async def update_copy(copy_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Copy's id")], body: CopyPatch) -> CopyOut:
    with SessionLocal() as session:
        copy = fetch(session, ToolCopy, copy_id, "copy")
        changes = body.model_dump(exclude_none=True)
        if not changes:
            raise refuse("Nothing to change: give condition or shelf.", 400)
        require_difference(copy, changes)
        if copy.status == "retired":
            raise refuse(f"{copy.asset_tag} is retired.")
        for name, value in changes.items():
            setattr(copy, name, value)
        session.flush()
        result = copy_out(copy)
        session.commit()
        return result


@app.post(
    "/api/copies/{copy_id}/retire",
    operation_id="retire_copy",
    summary="Take a copy out of the library for good",
    description="Retires a copy that is neither on loan nor waiting for an open maintenance job.",
    tags=["tools"],
    response_model=CopyOut,
)
async def retire_copy(copy_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Copy's id")]) -> CopyOut:
    with SessionLocal() as session:
        copy = fetch(session, ToolCopy, copy_id, "copy")
        if copy.status == "retired":
            raise refuse(f"{copy.asset_tag} is retired already.")
        if copy.status == "on_loan":
            raise refuse(f"{copy.asset_tag} is on loan; take it back first.")
        open_job = select(MaintenanceJob.id).where(MaintenanceJob.copy_id == copy_id, MaintenanceJob.status == "open")
        if session.scalar(open_job) is not None:
            raise refuse(f"{copy.asset_tag} has an open maintenance job; close it first.")
        copy.status = "retired"
        session.flush()
        result = copy_out(copy)
        session.commit()
        return result


# ---------------------------------------------------------------------------
# Loans
# ---------------------------------------------------------------------------


@app.get(
    "/api/loans",
    operation_id="list_loans",
    summary="List loans",
    description="Loans by member, copy and state, the latest first. 'open' includes overdue ones.",
    tags=["loans"],
    response_model=LoanList,
)
async def list_loans(
    member_id: Annotated[Optional[int], Query(ge=1, le=MAX_ID, description="Only this member's loans")] = None,
    copy_id: Annotated[Optional[int], Query(ge=1, le=MAX_ID, description="Only loans of this copy")] = None,
    state: Annotated[Optional[Literal["open", "overdue", "returned"]], Query(description="Only loans in this state")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> LoanList:
    with SessionLocal() as session:
        statement = select(Loan).order_by(Loan.checked_out_on.desc(), Loan.id.desc())
        if member_id is not None:
            statement = statement.where(Loan.member_id == member_id)
        if copy_id is not None:
            statement = statement.where(Loan.copy_id == copy_id)
        if state == "returned":
            statement = statement.where(Loan.returned_on.is_not(None))
        elif state is not None:
            statement = statement.where(Loan.returned_on.is_(None))
        if state == "overdue":
            statement = statement.where(Loan.due_on < today())
        rows, total = page(session, statement, limit, offset)
        return LoanList(items=[loan_out(row) for row in rows], total=total)


@app.get(
    "/api/loans/{loan_id}",
    operation_id="get_loan",
    summary="Show one loan",
    description="A loan with its copy, member, dates, renewals and days overdue.",
    tags=["loans"],
    response_model=LoanOut,
)
async def get_loan(loan_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Loan's id")]) -> LoanOut:
    with SessionLocal() as session:
        return loan_out(fetch(session, Loan, loan_id, "loan"))


@app.post(
    "/api/loans",
    operation_id="check_out_copy",
    summary="Lend a copy to a member",
    description="Lends a copy for its category's loan period. A reservation of the member's that covers today is fulfilled by it.",
    tags=["loans"],
    response_model=LoanOut,
    status_code=201,
)
async def check_out_copy(body: CheckOutIn) -> LoanOut:
    with SessionLocal() as session:
        copy = fetch(session, ToolCopy, body.copy_id, "copy")
        member = fetch(session, Member, body.member_id, "member")
        tool = copy.tool
        require_good_standing(member)
        owed = owed_cents(session, member.id)
        if owed > BLOCKING_DEBT_CENTS:
            raise refuse(f"{member.full_name} owes {money(owed)}; above {money(BLOCKING_DEBT_CENTS)} nothing is lent.")
        if open_loan_count(session, member.id) >= member.plan.max_loans:
            raise refuse(f"{member.full_name} has {member.plan.max_loans} tools out, as many as the {member.plan.name} plan allows.")
        require_certification(session, member, tool, today())
        if copy.status != "available":
            raise refuse(f"{copy.asset_tag} is {copy.status.replace('_', ' ')}.")
        days = body.days or tool.category.loan_days
        if days > tool.category.loan_days:
            raise refuse(f"{tool.category.name} are lent for {tool.category.loan_days} days at most.", 400)
        due_on = first_open_day(session, today() + timedelta(days=days))
        own = session.scalars(
            select(Reservation).where(
                Reservation.tool_id == tool.id,
                Reservation.member_id == member.id,
                Reservation.status == "booked",
                Reservation.starts_on <= today(),
                Reservation.ends_on >= today(),
            )
        ).all()
        require_free(session, tool, today(), due_on, skip_reservations=tuple(row.id for row in own))
        for reservation in own:
            reservation.status = "fulfilled"
        copy.status = "on_loan"
        loan = Loan(
            copy_id=copy.id,
            member_id=member.id,
            checked_out_on=today(),
            due_on=due_on,
            renewals=0,
            issued_by=CURRENT_USER_ID,
        )
        session.add(loan)
        session.flush()
        result = loan_out(loan)
        session.commit()
        return result


@app.post(
    "/api/loans/{loan_id}/renew",
    operation_id="renew_loan",
    summary="Extend a loan by one loan period",
    description="Moves the due date on by the category's loan period, if the loan isn't late and no reservation stands in the way.",
    tags=["loans"],
    response_model=LoanOut,
)
async def renew_loan(loan_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Loan's id")]) -> LoanOut:
    with SessionLocal() as session:
        loan = fetch(session, Loan, loan_id, "loan")
        tool = loan.copy.tool
        if loan.returned_on is not None:
            raise refuse(f"This loan ended on {loan.returned_on}.")
        if loan.due_on < today():
            raise refuse(f"This loan has been overdue since {loan.due_on}; it can only be returned.")
        if loan.renewals >= tool.category.max_renewals:
            raise refuse(f"{tool.category.name} can be renewed {tool.category.max_renewals} times; this loan has been.")
        require_good_standing(loan.member)
        due_on = first_open_day(session, loan.due_on + timedelta(days=tool.category.loan_days))
        require_free(session, tool, loan.due_on + timedelta(days=1), due_on, skip_loan=loan.id)
        loan.due_on = due_on
        loan.renewals += 1
        session.flush()
        result = loan_out(loan)
        session.commit()
        return result


@app.post(
    "/api/loans/{loan_id}/return",
    operation_id="return_loan",
    summary="Take a copy back",
    description="Ends a loan. A late return is charged its late fee; a damaged copy goes into repair with a maintenance job.",
    tags=["loans"],
    response_model=ReturnOut,
)
async def return_loan(loan_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Loan's id")], body: ReturnIn) -> ReturnOut:
    with SessionLocal() as session:
        loan = fetch(session, Loan, loan_id, "loan")
        if loan.returned_on is not None:
            raise refuse(f"This loan ended on {loan.returned_on}.")
        if body.condition == "damaged" and body.damage_note is None:
            raise refuse("Say in damage_note what is broken.", 400)
        category = loan.copy.tool.category
        loan.returned_on = today()
        loan.copy.condition = body.condition
        loan.copy.status = "in_repair" if body.condition == "damaged" else "available"
        late = overdue_days(loan)
        fee = None
        if late and category.daily_fine_cents:
            cents = min(late * category.daily_fine_cents, category.max_fine_cents)
            fee = charge(session, loan.member_id, "late_fee", cents, f"{loan.copy.tool.name}, {late} days late", loan.id)
        job = None
        if body.condition == "damaged":
            job = MaintenanceJob(
                copy_id=loan.copy_id,
                issue=body.damage_note,
                severity="medium",
                status="open",
                opened_at=now(),
                opened_by=CURRENT_USER_ID,
            )
            session.add(job)
        session.flush()
        result = ReturnOut(
            loan=loan_out(loan),
            late_fee_cents=fee.amount_cents if fee else 0,
            charge_id=fee.id if fee else None,
            maintenance_job_id=job.id if job else None,
        )
        session.commit()
        return result


# ---------------------------------------------------------------------------
# Reservations
# ---------------------------------------------------------------------------


@app.get(
    "/api/reservations",
    operation_id="list_reservations",
    summary="List reservations",
    description="Reservations by tool, member and status, in order of their first day.",
    tags=["reservations"],
    response_model=ReservationList,
)
async def list_reservations(
    tool_id: Annotated[Optional[int], Query(ge=1, le=MAX_ID, description="Only this tool")] = None,
    member_id: Annotated[Optional[int], Query(ge=1, le=MAX_ID, description="Only this member")] = None,
    status: Annotated[Optional[ReservationStatus], Query(description="Only this status")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> ReservationList:
    with SessionLocal() as session:
        statement = select(Reservation).order_by(Reservation.starts_on, Reservation.id)
        if tool_id is not None:
            statement = statement.where(Reservation.tool_id == tool_id)
        if member_id is not None:
            statement = statement.where(Reservation.member_id == member_id)
        if status is not None:
            statement = statement.where(Reservation.status == status)
        rows, total = page(session, statement, limit, offset)
        return ReservationList(items=[reservation_out(row) for row in rows], total=total)


def require_bookable(session: Session, tool: Tool, member: Member, start: date, end: date, reservation_id: int = 0) -> None:
    require_good_standing(member)
    if start < today() or start > today() + timedelta(days=BOOKING_HORIZON_DAYS):
        raise refuse(f"A reservation starts between today and {BOOKING_HORIZON_DAYS} days from now.", 400)
    length = (end - start).days + 1
    if length < 1 or length > tool.category.loan_days:
        raise refuse(f"{tool.category.name} can be reserved for 1 to {tool.category.loan_days} days.", 400)
    if first_open_day(session, start) != start:
        raise refuse(f"The library is closed on {start}.")
    require_certification(session, member, tool, start)
    double = session.scalar(
        select(Reservation).where(
            Reservation.tool_id == tool.id,
            Reservation.member_id == member.id,
            Reservation.status == "booked",
            Reservation.id != reservation_id,
            Reservation.starts_on <= end,
            Reservation.ends_on >= start,
        )
    )
    if double is not None:
        raise refuse(f"{member.full_name} has reservation {double.id} of this tool for {double.starts_on} to {double.ends_on}.")
    require_free(session, tool, start, end, skip_reservations=(reservation_id,))


@app.post(
    "/api/reservations",
    operation_id="create_reservation",
    summary="Reserve a tool for a member",
    description="Keeps a copy of a tool for some days, if one is free on each of them.",
    tags=["reservations"],
    response_model=ReservationOut,
    status_code=201,
)
async def create_reservation(body: ReservationIn) -> ReservationOut:
    with SessionLocal() as session:
        tool = fetch(session, Tool, body.tool_id, "tool")
        member = fetch(session, Member, body.member_id, "member")
        require_bookable(session, tool, member, body.starts_on, body.ends_on)
        reservation = Reservation(
            tool_id=tool.id,
            member_id=member.id,
            starts_on=body.starts_on,
            ends_on=body.ends_on,
            status="booked",
            created_at=now(),
        )
        session.add(reservation)
        session.flush()
        result = reservation_out(reservation)
        session.commit()
        return result


@app.patch(
    "/api/reservations/{reservation_id}",
    operation_id="reschedule_reservation",
    summary="Move a reservation to other days",
    description="Gives a booked reservation new days under the same rules as a new one.",
    tags=["reservations"],
    response_model=ReservationOut,
)
async def reschedule_reservation(
    reservation_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Reservation's id")], body: ReservationPatch
) -> ReservationOut:
    with SessionLocal() as session:
        reservation = fetch(session, Reservation, reservation_id, "reservation")
        if reservation.status != "booked":
            raise refuse(f"This reservation is {reservation.status}.")
        require_difference(reservation, body.model_dump())
        require_bookable(session, reservation.tool, reservation.member, body.starts_on, body.ends_on, reservation.id)
        reservation.starts_on = body.starts_on
        reservation.ends_on = body.ends_on
        session.flush()
        result = reservation_out(reservation)
        session.commit()
        return result


@app.post(
    "/api/reservations/{reservation_id}/cancel",
    operation_id="cancel_reservation",
    summary="Cancel a reservation",
    description="Gives up a booked reservation; the record stays with status 'cancelled'.",
    tags=["reservations"],
    response_model=ReservationOut,
)
async def cancel_reservation(
    reservation_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Reservation's id")],
) -> ReservationOut:
    with SessionLocal() as session:
        reservation = fetch(session, Reservation, reservation_id, "reservation")
        if reservation.status != "booked":
            raise refuse(f"This reservation is {reservation.status}; only a booked one can be cancelled.")
        reservation.status = "cancelled"
        session.flush()
        result = reservation_out(reservation)
        session.commit()
        return result


# ---------------------------------------------------------------------------
# Charges and payments
# ---------------------------------------------------------------------------


@app.get(
    "/api/charges",
    operation_id="list_charges",
    summary="List charges",
    description="Charges by member and kind, the latest first; outstanding_only leaves out what is settled.",
    tags=["charges"],
    response_model=ChargeList,
)
async def list_charges(
    member_id: Annotated[Optional[int], Query(ge=1, le=MAX_ID, description="Only this member")] = None,
    kind: Annotated[Optional[ChargeKind], Query(description="Only this kind")] = None,
    outstanding_only: Annotated[bool, Query(description="Only charges with something left to pay")] = False,
    limit: Limit = 50,
    offset: Offset = 0,
) -> ChargeList:
    with SessionLocal() as session:
        statement = select(Charge).order_by(Charge.created_at.desc(), Charge.id.desc())
        if member_id is not None:
            statement = statement.where(Charge.member_id == member_id)
        if kind is not None:
            statement = statement.where(Charge.kind == kind)
        if outstanding_only:
            statement = statement.where(Charge.amount_cents > Charge.paid_cents + Charge.waived_cents)
        rows, total = page(session, statement, limit, offset)
        return ChargeList(items=[charge_out(row) for row in rows], total=total)


@app.post(
    "/api/charges",
    operation_id="create_charge",
    summary="Charge a member for damage or a late return",
    description="Adds a charge to a member's account; a loan that is named must be that member's.",
    tags=["charges"],
    response_model=ChargeOut,
    status_code=201,
)
async def create_charge(body: ChargeIn) -> ChargeOut:
    with SessionLocal() as session:
        member = fetch(session, Member, body.member_id, "member")
        if body.loan_id is not None:
            loan = fetch(session, Loan, body.loan_id, "loan")
            if loan.member_id != member.id:
                raise refuse(f"Loan {loan.id} is not {member.full_name}'s.")
        row = charge(session, member.id, body.kind, body.amount_cents, body.description, body.loan_id)
        result = charge_out(row)
        session.commit()
        return result


@app.post(
    "/api/charges/{charge_id}/payments",
    operation_id="record_payment",
    summary="Record a payment towards a charge",
    description="Takes a payment of at most what is outstanding on the charge.",
    tags=["charges"],
    response_model=PaymentReceipt,
    status_code=201,
)
async def record_payment(
    charge_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Charge's id")], body: PaymentIn
) -> PaymentReceipt:
    with SessionLocal() as session:
        row = fetch(session, Charge, charge_id, "charge")
        if body.amount_cents > row.outstanding_cents:
            raise refuse(f"Only {money(row.outstanding_cents)} is outstanding on this charge.")
        row.paid_cents += body.amount_cents
        payment = Payment(
            charge_id=row.id,
            amount_cents=body.amount_cents,
            method=body.method,
            received_by=CURRENT_USER_ID,
            received_at=now(),
        )
        session.add(payment)
        session.flush()
        result = PaymentReceipt(payment=PaymentOut.model_validate(payment), outstanding_cents=row.outstanding_cents)
        session.commit()
        return result


@app.post(
    "/api/charges/{charge_id}/waive",
    operation_id="waive_charge",
    summary="Waive a charge in whole or in part",
    description="Waives at most your own limit on one charge (see get_current_user); membership fees are never waived.",
    tags=["charges"],
    response_model=ChargeOut,
)
async def waive_charge(charge_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Charge's id")], body: WaiverIn) -> ChargeOut:
    with SessionLocal() as session:
        row = fetch(session, Charge, charge_id, "charge")
        user = fetch(session, User, CURRENT_USER_ID, "user")
        if row.kind == "membership":
            raise refuse("Membership fees are never waived.", 403)
        if body.amount_cents > row.outstanding_cents:
            raise refuse(f"Only {money(row.outstanding_cents)} is outstanding on this charge.")
        if row.waived_cents + body.amount_cents > user.waiver_limit_cents:
            raise refuse(f"You may waive {money(user.waiver_limit_cents)} on one charge at most; ask a manager.", 403)
        row.waived_cents += body.amount_cents
        row.waiver_reason = body.reason
        session.flush()
        result = charge_out(row)
        session.commit()
        return result


@app.get(
    "/api/payments",
    operation_id="list_payments",
    summary="List payments",
    description="Payments by charge and method, the latest first.",
    tags=["charges"],
    response_model=PaymentList,
)
async def list_payments(
    charge_id: Annotated[Optional[int], Query(ge=1, le=MAX_ID, description="Only towards this charge")] = None,
    method: Annotated[Optional[Method], Query(description="Only this method")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> PaymentList:
    with SessionLocal() as session:
        statement = select(Payment).order_by(Payment.received_at.desc(), Payment.id.desc())
        if charge_id is not None:
            statement = statement.where(Payment.charge_id == charge_id)
        if method is not None:
            statement = statement.where(Payment.method == method)
        rows, total = page(session, statement, limit, offset)
        return PaymentList(items=[PaymentOut.model_validate(row) for row in rows], total=total)


# ---------------------------------------------------------------------------
# Maintenance
# ---------------------------------------------------------------------------


@app.get(
    "/api/maintenance_jobs",
    operation_id="list_maintenance_jobs",
    summary="List maintenance jobs",
    description="Repairs by copy and status, the latest first.",
    tags=["maintenance"],
    response_model=JobList,
)
async def list_maintenance_jobs(
    copy_id: Annotated[Optional[int], Query(ge=1, le=MAX_ID, description="Only this copy")] = None,
    status: Annotated[Optional[JobStatus], Query(description="Only this status")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> JobList:
    with SessionLocal() as session:
        statement = select(MaintenanceJob).order_by(MaintenanceJob.opened_at.desc(), MaintenanceJob.id.desc())
        if copy_id is not None:
            statement = statement.where(MaintenanceJob.copy_id == copy_id)
        if status is not None:
            statement = statement.where(MaintenanceJob.status == status)
        rows, total = page(session, statement, limit, offset)
        return JobList(items=[job_out(row) for row in rows], total=total)


@app.post(
    "/api/maintenance_jobs",
    operation_id="open_maintenance_job",
    summary="Send a copy to repair",
    description="Opens a job and takes the copy off the shelf. A copy on loan has to come back first.",
    tags=["maintenance"],
    response_model=JobOut,
    status_code=201,
)
async def open_maintenance_job(body: JobIn) -> JobOut:
    with SessionLocal() as session:
        copy = fetch(session, ToolCopy, body.copy_id, "copy")
        if copy.status in ("on_loan", "retired"):
            raise refuse(f"{copy.asset_tag} is {copy.status.replace('_', ' ')}.")
        copy.status = "in_repair"
        job = MaintenanceJob(
            copy_id=copy.id,
            issue=body.issue,
            severity=body.severity,
            status="open",
            opened_at=now(),
            opened_by=CURRENT_USER_ID,
        )
        session.add(job)
        session.flush()
        result = job_out(job)
        session.commit()
        return result


@app.post(
    "/api/maintenance_jobs/{job_id}/close",
    operation_id="close_maintenance_job",
    summary="Close a maintenance job",
    description="Records what was done; the copy is available again once its last open job is closed and it isn't damaged.",
    tags=["maintenance"],
    response_model=JobOut,
)
async def close_maintenance_job(job_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Job's id")], body: JobCloseIn) -> JobOut:
    with SessionLocal() as session:
        job = fetch(session, MaintenanceJob, job_id, "maintenance job")
        if job.status == "done":
            raise refuse(f"This job was closed on {job.closed_at}.")
        job.status = "done"
        job.closed_at = now()
        job.cost_cents = body.cost_cents
        job.resolution = body.resolution
        job.copy.condition = body.condition
        session.flush()
        others = select(MaintenanceJob.id).where(MaintenanceJob.copy_id == job.copy_id, MaintenanceJob.status == "open")
        if session.scalar(others) is None and body.condition != "damaged" and job.copy.status == "in_repair":
            job.copy.status = "available"
        session.flush()
        result = job_out(job)
        session.commit()
        return result


# ---------------------------------------------------------------------------
# Workshops
# ---------------------------------------------------------------------------


@app.get(
    "/api/workshops",
    operation_id="list_workshops",
    summary="List workshops",
    description="Workshops by title, status and start, in order of time, with the places left.",
    tags=["workshops"],
    response_model=WorkshopList,
)
async def list_workshops(
    q: Annotated[Optional[str], Query(max_length=120, description="Part of the title")] = None,
    status: Annotated[Optional[WorkshopStatus], Query(description="Only this status")] = None,
    starts_from: Annotated[Optional[Day], Query(description="Only those that start on this day or later")] = None,
    starts_until: Annotated[Optional[Day], Query(description="Only those that start on this day or earlier")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> WorkshopList:
    with SessionLocal() as session:
        statement = select(Workshop).order_by(Workshop.starts_at, Workshop.id)
        if q:
            statement = statement.where(Workshop.title.icontains(q, autoescape=True))
        if status is not None:
            statement = statement.where(Workshop.status == status)
        if starts_from is not None:
            statement = statement.where(Workshop.starts_at >= datetime(starts_from.year, starts_from.month, starts_from.day))
        if starts_until is not None:
            end = datetime(starts_until.year, starts_until.month, starts_until.day) + timedelta(days=1)
            statement = statement.where(Workshop.starts_at < end)
        rows, total = page(session, statement, limit, offset)
        return WorkshopList(items=[WorkshopOut(**workshop_fields(session, row)) for row in rows], total=total)


@app.post(
    "/api/workshops",
    operation_id="create_workshop",
    summary="Schedule a workshop",
    description="Schedules a workshop in a room that is free at that time.",
    tags=["workshops"],
    response_model=WorkshopOut,
    status_code=201,
)
async def create_workshop(body: WorkshopIn) -> WorkshopOut:
    with SessionLocal() as session:
        if body.starts_at <= now():
            raise refuse("A workshop starts in the future.", 400)
        if body.ends_at <= body.starts_at or body.ends_at - body.starts_at > timedelta(hours=12):
            raise refuse("A workshop ends after it starts and lasts 12 hours at most.", 400)
        require_free_room(session, body.room, body.starts_at, body.ends_at)
        workshop = Workshop(**body.model_dump(), status="scheduled")
        session.add(workshop)
        session.flush()
        result = WorkshopOut(**workshop_fields(session, workshop))
        session.commit()
        return result


@app.get(
    "/api/workshops/{workshop_id}",
    operation_id="get_workshop",
    summary="Show one workshop with its signups",
    description="A workshop with everybody who is enrolled, waiting or has cancelled.",
    tags=["workshops"],
    response_model=WorkshopDetail,
)
async def get_workshop(workshop_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Workshop's id")]) -> WorkshopDetail:
    with SessionLocal() as session:
        workshop = fetch(session, Workshop, workshop_id, "workshop")
        return WorkshopDetail(**workshop_fields(session, workshop), signups=[signup_out(row) for row in workshop.signups])


@app.patch(
    "/api/workshops/{workshop_id}",
    operation_id="update_workshop",
    summary="Change a workshop's room, instructor or capacity",
    description="Changes a scheduled workshop. More places are given to the waiting list at once, in order.",
    tags=["workshops"],
    response_model=WorkshopDetail,
)
async def update_workshop(
    workshop_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Workshop's id")], body: WorkshopPatch
) -> WorkshopDetail:
    with SessionLocal() as session:
        workshop = fetch(session, Workshop, workshop_id, "workshop")
        changes = body.model_dump(exclude_none=True)
        if not changes:
            raise refuse("Nothing to change: give room, instructor or capacity.", 400)
        require_difference(workshop, changes)
        if workshop.status != "scheduled":
            raise refuse(f"This workshop is {workshop.status}.")
        enrolled = workshop.capacity - places_left(workshop)
        if body.capacity is not None and body.capacity < enrolled:
            raise refuse(f"{enrolled} members are enrolled; the capacity can't be lower.")
        if body.room is not None:
            require_free_room(session, body.room, workshop.starts_at, workshop.ends_at, workshop.id)
        for name, value in changes.items():
            setattr(workshop, name, value)
        promote_waiting(session, workshop)
        result = WorkshopDetail(**workshop_fields(session, workshop), signups=[signup_out(row) for row in workshop.signups])
        session.commit()
        return result


@app.post(
    "/api/workshops/{workshop_id}/signups",
    operation_id="enroll_member",
    summary="Sign a member up for a workshop",
    description="Enrols a member and charges the fee. A full workshop is refused unless join_waitlist is true.",
    tags=["workshops"],
    response_model=SignupOut,
    status_code=201,
)
async def enroll_member(
    workshop_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Workshop's id")], body: SignupIn
) -> SignupOut:
    with SessionLocal() as session:
        workshop = fetch(session, Workshop, workshop_id, "workshop")
        member = fetch(session, Member, body.member_id, "member")
        if workshop.status != "scheduled" or workshop.starts_at <= now():
            raise refuse("This workshop is not open for signups.")
        require_good_standing(member)
        held = session.scalars(
            select(WorkshopSignup)
            .join(Workshop)
            .where(
                WorkshopSignup.member_id == member.id,
                WorkshopSignup.status.in_(["enrolled", "waitlisted"]),
                Workshop.status == "scheduled",
                Workshop.starts_at < workshop.ends_at,
                Workshop.ends_at > workshop.starts_at,
            )
        ).all()
        for other in held:
            if other.workshop_id == workshop.id:
                raise refuse(f"{member.full_name} is {other.status} in this workshop already.")
            raise refuse(f"{member.full_name} is {other.status} in '{other.workshop.title}' at that time.")
        full = places_left(workshop) < 1
        if full and not body.join_waitlist:
            raise refuse(f"'{workshop.title}' is full; set join_waitlist to queue up.")
        signup = WorkshopSignup(
            workshop_id=workshop.id,
            member_id=member.id,
            status="waitlisted" if full else "enrolled",
            created_at=now(),
        )
        session.add(signup)
        if not full:
            charge_for_place(session, signup, workshop)
        session.flush()
        result = signup_out(signup)
        session.commit()
        return result


@app.post(
    "/api/signups/{signup_id}/cancel",
    operation_id="cancel_signup",
    summary="Cancel a member's place in a workshop",
    description="Up to 48 hours ahead the unpaid fee is written off; the first on the waiting list takes the place.",
    tags=["workshops"],
    response_model=CancelledSignup,
)
async def cancel_signup(signup_id: Annotated[int, Path(ge=1, le=MAX_ID, description="Signup's id")]) -> CancelledSignup:
    with SessionLocal() as session:
        signup = fetch(session, WorkshopSignup, signup_id, "signup")
        workshop = signup.workshop
        if signup.status not in ("enrolled", "waitlisted") or workshop.status != "scheduled" or workshop.starts_at <= now():
            raise refuse("Only a place in a workshop yet to come can be cancelled.")
        signup.status = "cancelled"
        written_off = 0
        if signup.charge is not None and workshop.starts_at - now() >= timedelta(hours=FREE_CANCELLATION_HOURS):
            written_off = signup.charge.outstanding_cents
            signup.charge.waived_cents += written_off
            if written_off:
                signup.charge.waiver_reason = "Place cancelled in time"
        promoted = promote_waiting(session, workshop)
        session.flush()
        result = CancelledSignup(
            signup=signup_out(signup), written_off_cents=written_off, promoted=[signup_out(row) for row in promoted]
        )
        session.commit()
        return result


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host=os.getenv("HOST", "127.0.0.1"), port=int(os.getenv("PORT", "8000")))
