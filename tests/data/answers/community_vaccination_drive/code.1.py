import os
from datetime import date, datetime, timedelta, timezone
from typing import Annotated, List, Literal, Optional

from fastapi import Depends, FastAPI, HTTPException, Path, Query, Request
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel, BaseSettings, ConfigDict, Field, StringConstraints
from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
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
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, declarative_base, relationship, sessionmaker

class Settings(BaseSettings):
    database_path: str = "sqlite:///community_vaccination_drive.db"


settings = Settings()
engine = create_engine(
    settings.database_path,
    connect_args={"check_same_thread": False},
)


@event.listens_for(engine, "connect")
def foreign_keys_on(connection, record):
    connection.execute("PRAGMA foreign_keys = ON")


SessionLocal = sessionmaker(bind=engine, expire_on_commit=False)
Base = declarative_base()

app = FastAPI(
    title="Community Vaccination Drive",
    version="1.0.0",
    description="Patients, sessions, appointments, doses, lots, waiting list and messages of a community clinic's vaccination drive.",
)

CURRENT_USER_ID = 1
BIGGEST = 2**31 - 1
ADULT_AGE = 16  # younger patients need a guardian on record
BOOKING_HORIZON_DAYS = 180


async def get_db():
    session = SessionLocal()
    try:
        yield session
    finally:
        session.close()


Db = Annotated[Session, Depends(get_db)]


# ------------------------------------------------------------------ tables


class User(Base):
    __tablename__ = "users"
    __table_args__ = (CheckConstraint("role IN ('coordinator', 'nurse', 'clerk')"),)
    id = Column(Integer, primary_key=True)
    full_name = Column(String, nullable=False)
    email = Column(String, nullable=False, unique=True)
    role = Column(String, nullable=False)
    is_active = Column(Boolean, nullable=False, default=True)


class Site(Base):
    __tablename__ = "sites"
    id = Column(Integer, primary_key=True)
    name = Column(String, nullable=False, unique=True)
    address = Column(String, nullable=False)
    has_freezer = Column(Boolean, nullable=False, default=False)


class Vaccine(Base):
    __tablename__ = "vaccines"
    id = Column(Integer, primary_key=True)
    code = Column(String, nullable=False, unique=True)
    name = Column(String, nullable=False)
    doses_required = Column(Integer, nullable=False)
    min_days_between = Column(Integer, nullable=False, default=0)
    min_age_years = Column(Integer, nullable=False, default=0)
    max_age_years = Column(Integer)
    needs_freezer = Column(Boolean, nullable=False, default=False)


class VaccineContraindication(Base):
    __tablename__ = "vaccine_contraindications"
    __table_args__ = (UniqueConstraint("vaccine_id", "substance"),)
    id = Column(Integer, primary_key=True)
    vaccine_id = Column(Integer, ForeignKey("vaccines.id", ondelete="CASCADE"), nullable=False)
    substance = Column(String, nullable=False)


class VaccineLot(Base):
    __tablename__ = "vaccine_lots"
    __table_args__ = (
        CheckConstraint("status IN ('usable', 'quarantined', 'recalled')"),
        CheckConstraint("doses_remaining BETWEEN 0 AND doses_received"),
        UniqueConstraint("lot_number", "site_id"),
        Index("idx_vaccine_lots_vaccine", "vaccine_id"),
    )
    id = Column(Integer, primary_key=True)
    vaccine_id = Column(Integer, ForeignKey("vaccines.id"), nullable=False)
    site_id = Column(Integer, ForeignKey("sites.id"), nullable=False)
    lot_number = Column(String, nullable=False)
    doses_received = Column(Integer, nullable=False)
    doses_remaining = Column(Integer, nullable=False)
    expires_on = Column(Date, nullable=False)
    status = Column(String, nullable=False, default="usable")
    vaccine = relationship("Vaccine")
    site = relationship("Site")


class StockMovement(Base):
    __tablename__ = "stock_movements"
    __table_args__ = (
        CheckConstraint("kind IN ('received', 'used', 'wasted', 'transfer_out', 'transfer_in')"),
        CheckConstraint("doses > 0"),
        Index("idx_stock_movements_lot", "lot_id"),
    )
    id = Column(Integer, primary_key=True)
    lot_id = Column(Integer, ForeignKey("vaccine_lots.id"), nullable=False)
    kind = Column(String, nullable=False)
    doses = Column(Integer, nullable=False)
    reason = Column(Text)
    moved_at = Column(DateTime, nullable=False)
    moved_by = Column(Integer, ForeignKey("users.id"), nullable=False)


class Patient(Base):
    __tablename__ = "patients"
    __table_args__ = (UniqueConstraint("full_name", "birth_date"),)
    id = Column(Integer, primary_key=True)
    full_name = Column(String, nullable=False)
    birth_date = Column(Date, nullable=False)
    phone = Column(String)
    email = Column(String)
    language = Column(String, nullable=False, default="English")
    guardian_id = Column(Integer, ForeignKey("patients.id", ondelete="SET NULL"))
    created_at = Column(DateTime, nullable=False)
    allergies = relationship("PatientAllergy", order_by="PatientAllergy.id")


class PatientAllergy(Base):
    __tablename__ = "patient_allergies"
    __table_args__ = (
        UniqueConstraint("patient_id", "substance"),
        CheckConstraint("severity IN ('mild', 'moderate', 'severe')"),
    )
    id = Column(Integer, primary_key=True)
    patient_id = Column(Integer, ForeignKey("patients.id", ondelete="CASCADE"), nullable=False)
    substance = Column(String, nullable=False)
    severity = Column(String, nullable=False)


class ClinicSession(Base):
    __tablename__ = "clinic_sessions"
    __table_args__ = (
        CheckConstraint("status IN ('planned', 'closed', 'cancelled')"),
        Index("idx_clinic_sessions_day", "session_date"),
    )
    id = Column(Integer, primary_key=True)
    site_id = Column(Integer, ForeignKey("sites.id"), nullable=False)
    session_date = Column(Date, nullable=False)
    title = Column(String, nullable=False)
    lead_user_id = Column(Integer, ForeignKey("users.id"), nullable=False)
    status = Column(String, nullable=False, default="planned")
    cancel_reason = Column(Text)
    site = relationship("Site")
    slots = relationship("SessionSlot", back_populates="clinic_session", order_by="SessionSlot.starts_at")


class SessionSlot(Base):
    __tablename__ = "session_slots"
    __table_args__ = (UniqueConstraint("session_id", "starts_at"), CheckConstraint("capacity > 0"))
    id = Column(Integer, primary_key=True)
    session_id = Column(Integer, ForeignKey("clinic_sessions.id", ondelete="CASCADE"), nullable=False)
    starts_at = Column(DateTime, nullable=False)
    capacity = Column(Integer, nullable=False)
    clinic_session = relationship("ClinicSession", back_populates="slots")
    appointments = relationship("Appointment", back_populates="slot", order_by="Appointment.id")


class Appointment(Base):
    __tablename__ = "appointments"
    __table_args__ = (
        CheckConstraint("status IN ('booked', 'checked_in', 'completed', 'cancelled', 'no_show')"),
        Index("idx_appointments_slot", "slot_id"),
        Index("idx_appointments_patient", "patient_id"),
    )
    id = Column(Integer, primary_key=True)
    slot_id = Column(Integer, ForeignKey("session_slots.id"), nullable=False)
    patient_id = Column(Integer, ForeignKey("patients.id"), nullable=False)
    vaccine_id = Column(Integer, ForeignKey("vaccines.id"), nullable=False)
    dose_number = Column(Integer, nullable=False)
    status = Column(String, nullable=False, default="booked")
    created_at = Column(DateTime, nullable=False)
    slot = relationship("SessionSlot", back_populates="appointments")
    patient = relationship("Patient")
    vaccine = relationship("Vaccine")


class Vaccination(Base):
    __tablename__ = "vaccinations"
    __table_args__ = (
        UniqueConstraint("patient_id", "vaccine_id", "dose_number"),
        CheckConstraint("arm IN ('left', 'right')"),
        Index("idx_vaccinations_lot", "lot_id"),
    )
    id = Column(Integer, primary_key=True)
    patient_id = Column(Integer, ForeignKey("patients.id"), nullable=False)
    vaccine_id = Column(Integer, ForeignKey("vaccines.id"), nullable=False)
    lot_id = Column(Integer, ForeignKey("vaccine_lots.id"), nullable=False)
    appointment_id = Column(Integer, ForeignKey("appointments.id"), unique=True)
    dose_number = Column(Integer, nullable=False)
    arm = Column(String, nullable=False)
    given_at = Column(DateTime, nullable=False)
    given_by = Column(Integer, ForeignKey("users.id"), nullable=False)
    patient = relationship("Patient")
    vaccine = relationship("Vaccine")
    lot = relationship("VaccineLot")


class AdverseEvent(Base):
    __tablename__ = "adverse_events"
    __table_args__ = (
        CheckConstraint("severity IN ('mild', 'moderate', 'severe')"),
        CheckConstraint("status IN ('open', 'reviewed')"),
    )
    id = Column(Integer, primary_key=True)
    vaccination_id = Column(Integer, ForeignKey("vaccinations.id"), nullable=False)
    description = Column(Text, nullable=False)
    severity = Column(String, nullable=False)
    status = Column(String, nullable=False, default="open")
    reported_at = Column(DateTime, nullable=False)
    review_note = Column(Text)
    vaccination = relationship("Vaccination")


class WaitlistEntry(Base):
    __tablename__ = "waitlist_entries"
    __table_args__ = (CheckConstraint("status IN ('waiting', 'withdrawn')"),)
    id = Column(Integer, primary_key=True)
    patient_id = Column(Integer, ForeignKey("patients.id"), nullable=False)
    vaccine_id = Column(Integer, ForeignKey("vaccines.id"), nullable=False)
    site_id = Column(Integer, ForeignKey("sites.id"), nullable=False)
    status = Column(String, nullable=False, default="waiting")
    created_at = Column(DateTime, nullable=False)
    patient = relationship("Patient")


class OutreachMessage(Base):
    __tablename__ = "outreach_messages"
    __table_args__ = (CheckConstraint("channel IN ('sms', 'email', 'phone')"),)
    id = Column(Integer, primary_key=True)
    patient_id = Column(Integer, ForeignKey("patients.id"), nullable=False)
    channel = Column(String, nullable=False)
    body = Column(Text, nullable=False)
    queued_at = Column(DateTime, nullable=False)
    queued_by = Column(Integer, ForeignKey("users.id"), nullable=False)


Base.metadata.create_all(engine)


# ------------------------------------------------------------------ what comes in


def within_a_lifetime(value: date) -> date:
    if not 1900 <= value.year <= 2100:
        raise ValueError("the year must lie between 1900 and 2100")
    return value


def utc_minutes(value: datetime) -> datetime:
    if not 1900 < value.year < 2100:
        raise ValueError("the year must lie between 1900 and 2100")
    if value.tzinfo is not None:
        value = value.astimezone(timezone.utc).replace(tzinfo=None)
    return value.replace(second=0, microsecond=0)


Day = Annotated[date, AfterValidator(within_a_lifetime)]
Moment = Annotated[datetime, AfterValidator(utc_minutes)]
Short = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)]
Long = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=600)]
Key = Annotated[int, Field(ge=1, le=BIGGEST)]
PathKey = Annotated[int, Path(ge=1, le=BIGGEST, description="Id of the row")]
Doses = Annotated[int, Field(ge=1, le=10_000)]
Severity = Literal["mild", "moderate", "severe"]
LotStatus = Literal["usable", "quarantined", "recalled"]
MovementKind = Literal["received", "used", "wasted", "transfer_out", "transfer_in"]
SessionStatus = Literal["planned", "closed", "cancelled"]
AppointmentStatus = Literal["booked", "checked_in", "completed", "cancelled", "no_show"]
Arm = Literal["left", "right"]
Channel = Literal["sms", "email", "phone"]
Limit = Annotated[int, Query(ge=1, le=200, description="How many to return at most")]
Offset = Annotated[int, Query(ge=0, le=100_000, description="How many to skip")]


class PatientIn(BaseModel):
    full_name: Short = Field(description="Full name", examples=["Mehdi Azar"])
    birth_date: Day = Field(description="Date of birth", examples=["1990-04-12"])
    phone: Optional[Short] = Field(None, description="Telephone number", examples=["555-0190"])
    email: Optional[Short] = Field(None, description="E-mail address", examples=["mehdi@example.org"])
    language: Short = Field("English", description="Preferred language", examples=["Farsi"])
    guardian_id: Optional[Key] = Field(None, description="Guardian, for patients younger than 16", examples=[4])


class PatientPatch(BaseModel):
    phone: Optional[Short] = Field(None, description="New telephone number", examples=["555-0191"])
    email: Optional[Short] = Field(None, description="New e-mail address", examples=["mehdi.azar@example.org"])
    language: Optional[Short] = Field(None, description="New preferred language", examples=["English"])
    guardian_id: Optional[Key] = Field(None, description="New guardian", examples=[4])


class AllergyIn(BaseModel):
    substance: Short = Field(description="Substance, in lower case", examples=["latex"])
    severity: Severity = Field(description="How bad the reaction is", examples=["moderate"])


class SessionIn(BaseModel):
    site_id: Key = Field(description="Where it is held", examples=[2])
    title: Short = Field(description="Title", examples=["Evening clinic"])
    starts_at: Moment = Field(description="Start of the first slot, UTC", examples=["2026-02-03T09:00:00"])
    slots: Annotated[int, Field(ge=1, le=24)] = Field(description="Number of slots", examples=[6])
    slot_minutes: Annotated[int, Field(ge=5, le=60)] = Field(30, description="Length of a slot", examples=[30])
    capacity: Annotated[int, Field(ge=1, le=50)] = Field(description="Patients a slot takes", examples=[2])


class CancelSessionIn(BaseModel):
    reason: Long = Field(description="Why the session is cancelled", examples=["Power cut"])


class AppointmentIn(BaseModel):
    slot_id: Key = Field(description="Slot, as found by find_open_slots", examples=[14])
    patient_id: Key = Field(description="Patient", examples=[3])
    vaccine_id: Key = Field(description="Vaccine", examples=[1])


class RescheduleIn(BaseModel):
    slot_id: Key = Field(description="New slot", examples=[15])


class VaccinationIn(BaseModel):
    appointment_id: Key = Field(description="Appointment of a patient who is checked in", examples=[9])
    lot_id: Key = Field(description="Lot the dose is taken from", examples=[2])
    arm: Arm = Field(description="Arm of the injection", examples=["left"])


class AdverseEventIn(BaseModel):
    vaccination_id: Key = Field(description="Dose after which it happened", examples=[5])
    description: Long = Field(description="What happened", examples=["Rash on the forearm"])
    severity: Severity = Field(description="How bad it was", examples=["mild"])


class ReviewIn(BaseModel):
    note: Long = Field(description="Outcome of the review", examples=["Gone after a day, no action"])


class LotIn(BaseModel):
    vaccine_id: Key = Field(description="Vaccine", examples=[1])
    site_id: Key = Field(description="Site that receives it", examples=[2])
    lot_number: Short = Field(description="Number printed on the boxes", examples=["FLU-2400"])
    doses: Doses = Field(description="Doses received", examples=[50])
    expires_on: Day = Field(description="Last day of use", examples=["2026-09-30"])


class LotStatusIn(BaseModel):
    status: LotStatus = Field(description="New status", examples=["quarantined"])


class WastageIn(BaseModel):
    doses: Doses = Field(description="Doses written off", examples=[2])
    reason: Long = Field(description="Why", examples=["Vial dropped"])


class TransferIn(BaseModel):
    to_site_id: Key = Field(description="Site that gets the doses", examples=[3])
    doses: Doses = Field(description="Doses to move", examples=[10])


class WaitlistIn(BaseModel):
    patient_id: Key = Field(description="Patient who waits", examples=[3])
    vaccine_id: Key = Field(description="Vaccine waited for", examples=[1])
    site_id: Key = Field(description="Site waited for", examples=[2])


class MessageIn(BaseModel):
    patient_id: Key = Field(description="Patient it goes to", examples=[3])
    channel: Channel = Field(description="How it is sent", examples=["sms"])
    body: Long = Field(description="Text of the message", examples=["See you on Friday at nine."])


# ------------------------------------------------------------------ what goes out


class Row(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class UserOut(Row):
    id: int
    full_name: str
    email: str
    role: str


class SiteOut(Row):
    id: int
    name: str
    address: str
    has_freezer: bool


class SiteList(BaseModel):
    items: List[SiteOut]
    total: int


class VaccineOut(BaseModel):
    id: int
    code: str
    name: str
    doses_required: int
    min_days_between: int
    min_age_years: int
    max_age_years: Optional[int]
    needs_freezer: bool
    contraindicated_substances: List[str]


class VaccineList(BaseModel):
    items: List[VaccineOut]
    total: int


class PatientOut(Row):
    id: int
    full_name: str
    birth_date: date
    phone: Optional[str]
    email: Optional[str]
    language: str
    guardian_id: Optional[int]


class PatientList(BaseModel):
    items: List[PatientOut]
    total: int


class AllergyOut(Row):
    id: int
    substance: str
    severity: Severity


class VaccinationOut(BaseModel):
    id: int
    patient_id: int
    patient_name: str
    vaccine_code: str
    dose_number: int
    lot_id: int
    lot_number: str
    arm: Arm
    given_at: datetime
    appointment_id: Optional[int]


class VaccinationList(BaseModel):
    items: List[VaccinationOut]
    total: int


class PatientDetail(PatientOut):
    age_years: int
    allergies: List[AllergyOut]
    vaccinations: List[VaccinationOut]


class EligibilityOut(BaseModel):
    patient_id: int
    vaccine_code: str
    eligible: bool
    next_dose_number: Optional[int]
    earliest_on: Optional[date]
    reasons: List[str]


class SlotOut(BaseModel):
    id: int
    session_id: int
    site_id: int
    site_name: str
    starts_at: datetime
    capacity: int
    free: int


class SlotList(BaseModel):
    items: List[SlotOut]
    total: int


class SessionOut(BaseModel):
    id: int
    site_id: int
    site_name: str
    session_date: date
    title: str
    lead_user_id: int
    status: SessionStatus
    cancel_reason: Optional[str]


class SessionList(BaseModel):
    items: List[SessionOut]
    total: int


class SessionDetail(SessionOut):
    slots: List[SlotOut]


class AppointmentOut(BaseModel):
    id: int
    slot_id: int
    session_id: int
    site_name: str
    starts_at: datetime
    patient_id: int
    patient_name: str
    vaccine_id: int
    vaccine_code: str
    dose_number: int
    status: AppointmentStatus


class AppointmentList(BaseModel):
    items: List[AppointmentOut]
    total: int


class CancelledSession(BaseModel):
    session: SessionOut
    cancelled_appointments: List[AppointmentOut]


class AdverseEventOut(Row):
    id: int
    vaccination_id: int
    description: str
    severity: Severity
    status: Literal["open", "reviewed"]
    reported_at: datetime
    review_note: Optional[str]


class AdverseEventReport(AdverseEventOut):
    lot_number: str
    lot_status: LotStatus


class AdverseEventList(BaseModel):
    items: List[AdverseEventOut]
    total: int


class LotOut(BaseModel):
    id: int
    lot_number: str
    vaccine_id: int
    vaccine_code: str
    site_id: int
    site_name: str
    doses_received: int
    doses_remaining: int
    expires_on: date
    expired: bool
    status: LotStatus


class LotList(BaseModel):
    items: List[LotOut]
    total: int


class TransferOut(BaseModel):
    source: LotOut
    target: LotOut


class MovementOut(Row):
    id: int
    lot_id: int
    kind: MovementKind
    doses: int
    reason: Optional[str]
    moved_at: datetime
    moved_by: int


class MovementList(BaseModel):
    items: List[MovementOut]
    total: int


class WaitlistOut(BaseModel):
    id: int
    patient_id: int
    patient_name: str
    vaccine_id: int
    site_id: int
    status: Literal["waiting", "withdrawn"]
    created_at: datetime


class WaitlistList(BaseModel):
    items: List[WaitlistOut]
    total: int


class MessageOut(Row):
    id: int
    patient_id: int
    channel: Channel
    body: str
    queued_at: datetime


class MessageList(BaseModel):
    items: List[MessageOut]
    total: int


# ------------------------------------------------------------------ rules


def now() -> datetime:
    return datetime.now(timezone.utc).replace(tzinfo=None, microsecond=0)


def today() -> date:
    return now().date()


def find(db: Session, model, key: int, what: str):
    row = db.get(model, key)
    if row is None:
        raise HTTPException(404, f"No {what} has the id {key}.")
    return row


def cut(query, limit: int, offset: int):
    return query.limit(limit).offset(offset).all(), query.order_by(None).count()


def age_on(birth_date: date, day: date) -> int:
    return day.year - birth_date.year - ((day.month, day.day) < (birth_date.month, birth_date.day))


def birthday(birth_date: date, years: int) -> date:
    try:
        return birth_date.replace(year=birth_date.year + years)
    except ValueError:
        return date(birth_date.year + years, 3, 1)


def eligibility(db: Session, patient: Patient, vaccine: Vaccine, day: date) -> EligibilityOut:
    """Whether a patient may get the next dose of a vaccine on a day, and all the reasons against it."""
    given = (
        db.query(Vaccination)
        .filter(Vaccination.patient_id == patient.id, Vaccination.vaccine_id == vaccine.id)
        .order_by(Vaccination.dose_number)
        .all()
    )
    reasons = []
    earliest = birthday(patient.birth_date, vaccine.min_age_years)
    if given:
        earliest = max(earliest, given[-1].given_at.date() + timedelta(days=vaccine.min_days_between))
    done = len(given) >= vaccine.doses_required
    if done:
        reasons.append(f"All {vaccine.doses_required} doses have been given.")
    if day < birthday(patient.birth_date, vaccine.min_age_years):
        reasons.append(f"{vaccine.code} is given from the age of {vaccine.min_age_years}.")
    elif day < earliest and not done:
        reasons.append(f"The next dose can be given from {earliest} on, {vaccine.min_days_between} days after the last.")
    if vaccine.max_age_years is not None and age_on(patient.birth_date, day) > vaccine.max_age_years:
        reasons.append(f"{vaccine.code} is given up to the age of {vaccine.max_age_years}.")
    banned = {row.substance.lower() for row in contraindications(db, vaccine.id)}
    for allergy in patient.allergies:
        if allergy.substance.lower() in banned:
            reasons.append(f"{vaccine.code} must not be given with an allergy to {allergy.substance}.")
    if age_on(patient.birth_date, day) < ADULT_AGE and patient.guardian_id is None:
        reasons.append(f"Patients younger than {ADULT_AGE} need a guardian on record.")
    return EligibilityOut(
        patient_id=patient.id,
        vaccine_code=vaccine.code,
        eligible=not reasons,
        next_dose_number=None if done else len(given) + 1,
        earliest_on=None if done else max(earliest, today()),
        reasons=reasons,
    )


def contraindications(db: Session, vaccine_id: int) -> list:
    return (
        db.query(VaccineContraindication)
        .filter(VaccineContraindication.vaccine_id == vaccine_id)
        .order_by(VaccineContraindication.id)
        .all()
    )


def taken(slot: SessionSlot) -> int:
    return sum(row.status != "cancelled" for row in slot.appointments)


def require_slot(slot: SessionSlot) -> None:
    if slot.clinic_session.status != "planned":
        raise HTTPException(409, f"The session of {slot.clinic_session.session_date} is {slot.clinic_session.status}.")
    if slot.starts_at <= now():
        raise HTTPException(409, f"The slot at {slot.starts_at} has begun already.")
    if slot.starts_at.date() > today() + timedelta(days=BOOKING_HORIZON_DAYS):
        raise HTTPException(409, f"Appointments are made {BOOKING_HORIZON_DAYS} days ahead at most.")
    if taken(slot) >= slot.capacity:
        raise HTTPException(409, f"The slot at {slot.starts_at} is full.")


def require_eligible(db: Session, patient: Patient, vaccine: Vaccine, slot: SessionSlot) -> int:
    verdict = eligibility(db, patient, vaccine, slot.starts_at.date())
    if not verdict.eligible:
        raise HTTPException(409, f"{patient.full_name} can't have {vaccine.code} then: {' '.join(verdict.reasons)}")
    if vaccine.needs_freezer and not slot.clinic_session.site.has_freezer:
        raise HTTPException(409, f"{vaccine.code} needs a freezer, which {slot.clinic_session.site.name} does not have.")
    return verdict.next_dose_number


def require_usable(lot: VaccineLot) -> None:
    if lot.status != "usable":
        raise HTTPException(409, f"Lot {lot.lot_number} is {lot.status}.")
    if lot.expires_on < today():
        raise HTTPException(409, f"Lot {lot.lot_number} expired on {lot.expires_on}.")


def move(db: Session, lot: VaccineLot, kind: str, doses: int, reason: Optional[str] = None) -> None:
    db.add(StockMovement(lot_id=lot.id, kind=kind, doses=doses, reason=reason, moved_at=now(), moved_by=CURRENT_USER_ID))
    db.flush()


def vaccination_out(row: Vaccination) -> VaccinationOut:
    return VaccinationOut(
        id=row.id,
        patient_id=row.patient_id,
        patient_name=row.patient.full_name,
        vaccine_code=row.vaccine.code,
        dose_number=row.dose_number,
        lot_id=row.lot_id,
        lot_number=row.lot.lot_number,
        arm=row.arm,
        given_at=row.given_at,
        appointment_id=row.appointment_id,
    )


def slot_out(slot: SessionSlot) -> SlotOut:
    return SlotOut(
        id=slot.id,
        session_id=slot.session_id,
        site_id=slot.clinic_session.site_id,
        site_name=slot.clinic_session.site.name,
        starts_at=slot.starts_at,
        capacity=slot.capacity,
        free=max(0, slot.capacity - taken(slot)) if slot.clinic_session.status == "planned" else 0,
    )


def session_out(row: ClinicSession) -> SessionOut:
    return SessionOut(
        id=row.id,
        site_id=row.site_id,
        site_name=row.site.name,
        session_date=row.session_date,
        title=row.title,
        lead_user_id=row.lead_user_id,
        status=row.status,
        cancel_reason=row.cancel_reason,
    )


def appointment_out(row: Appointment) -> AppointmentOut:
    return AppointmentOut(
        id=row.id,
        slot_id=row.slot_id,
        session_id=row.slot.session_id,
        site_name=row.slot.clinic_session.site.name,
        starts_at=row.slot.starts_at,
        patient_id=row.patient_id,
        patient_name=row.patient.full_name,
        vaccine_id=row.vaccine_id,
        vaccine_code=row.vaccine.code,
        dose_number=row.dose_number,
        status=row.status,
    )


def lot_out(lot: VaccineLot) -> LotOut:
    return LotOut(
        id=lot.id,
        lot_number=lot.lot_number,
        vaccine_id=lot.vaccine_id,
        vaccine_code=lot.vaccine.code,
        site_id=lot.site_id,
        site_name=lot.site.name,
        doses_received=lot.doses_received,
        doses_remaining=lot.doses_remaining,
        expires_on=lot.expires_on,
        expired=lot.expires_on < today(),
        status=lot.status,
    )


def waitlist_out(row: WaitlistEntry) -> WaitlistOut:
    return WaitlistOut(
        id=row.id,
        patient_id=row.patient_id,
        patient_name=row.patient.full_name,
        vaccine_id=row.vaccine_id,
        site_id=row.site_id,
        status=row.status,
        created_at=row.created_at,
    )


@app.exception_handler(IntegrityError)
async def constraint_broken(request: Request, error: IntegrityError) -> JSONResponse:
    return JSONResponse({"detail": f"The change breaks a rule of the database: {error.orig}."}, status_code=409)


# ------------------------------------------------------------------ reference data


@app.get(
    "/api/me",
    operation_id="get_current_user",
    summary="Show the signed-in user",
    description="Name, e-mail and role of the member of staff who is signed in.",
    tags=["reference"],
    response_model=UserOut,
)
async def get_current_user(db: Db) -> UserOut:
    return UserOut.model_validate(find(db, User, CURRENT_USER_ID, "user"))


@app.get(
    "/api/sites",
    operation_id="list_sites",
    summary="List the sites of the drive",
    description="Sites with their address and whether they have a freezer.",
    tags=["reference"],
    response_model=SiteList,
)
async def list_sites(db: Db) -> SiteList:
    rows = db.query(Site).order_by(Site.id).all()
    return SiteList(items=[SiteOut.model_validate(row) for row in rows], total=len(rows))


@app.get(
    "/api/vaccines",
    operation_id="list_vaccines",
    summary="List vaccines and the rules for giving them",
    description="Vaccines with doses, intervals, age limits and the allergies with which they must not be given.",
    tags=["reference"],
    response_model=VaccineList,
)
async def list_vaccines(
    db: Db, code: Annotated[Optional[str], Query(max_length=20, description="Exactly this code")] = None
) -> VaccineList:
    query = db.query(Vaccine).order_by(Vaccine.id)
    if code:
        query = query.filter(Vaccine.code == code.strip().upper())
    rows = query.all()
    items = [
        VaccineOut(
            id=row.id,
            code=row.code,
            name=row.name,
            doses_required=row.doses_required,
            min_days_between=row.min_days_between,
            min_age_years=row.min_age_years,
            max_age_years=row.max_age_years,
            needs_freezer=row.needs_freezer,
            contraindicated_substances=[item.substance for item in contraindications(db, row.id)],
        )
        for row in rows
    ]
    return VaccineList(items=items, total=len(items))


# ------------------------------------------------------------------ patients


@app.get(
    "/api/patients",
    operation_id="list_patients",
    summary="Search patients",
    description="Patients by part of their name and language, in order of id.",
    tags=["patients"],
    response_model=PatientList,
)
async def list_patients(
    db: Db,
    q: Annotated[Optional[str], Query(max_length=120, description="Part of the name")] = None,
    language: Annotated[Optional[str], Query(max_length=40, description="Only this language")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> PatientList:
    query = db.query(Patient).order_by(Patient.id)
    if q:
        query = query.filter(Patient.full_name.icontains(q, autoescape=True))
    if language:
        query = query.filter(func.lower(Patient.language) == language.lower())
    rows, total = cut(query, limit, offset)
    return PatientList(items=[PatientOut.model_validate(row) for row in rows], total=total)


@app.post(
    "/api/patients",
    operation_id="register_patient",
    summary="Register a new patient",
    description="Adds a patient. Two patients can't share name and date of birth.",
    tags=["patients"],
    response_model=PatientOut,
    status_code=201,
)
async def register_patient(body: PatientIn, db: Db) -> PatientOut:
    if body.birth_date > today():
        raise HTTPException(400, "The date of birth lies in the future.")
    same = db.query(Patient).filter(func.lower(Patient.full_name) == body.full_name.lower(), Patient.birth_date == body.birth_date)
    if same.first() is not None:
        raise HTTPException(409, f"{body.full_name}, born {body.birth_date}, is registered already.")
    if body.guardian_id is not None:
        require_guardian(db, body.guardian_id)
    patient = Patient(**body.model_dump(), created_at=now())
    db.add(patient)
    db.flush()
    result = PatientOut.model_validate(patient)
    db.commit()
    return result


def require_guardian(db: Session, guardian_id: int) -> None:
    guardian = find(db, Patient, guardian_id, "guardian")
    if age_on(guardian.birth_date, today()) < 18:
        raise HTTPException(409, f"{guardian.full_name} is too young to be a guardian.")


@app.get(
    "/api/patients/{patient_id}",
    operation_id="get_patient",
    summary="Show one patient with allergies and doses",
    description="A patient with age, allergies and every dose given.",
    tags=["patients"],
    response_model=PatientDetail,
)
async def get_patient(patient_id: PathKey, db: Db) -> PatientDetail:
    patient = find(db, Patient, patient_id, "patient")
    doses = db.query(Vaccination).filter(Vaccination.patient_id == patient_id).order_by(Vaccination.given_at, Vaccination.id).all()
    return PatientDetail(
        **PatientOut.model_validate(patient).model_dump(),
        age_years=age_on(patient.birth_date, today()),
        allergies=[AllergyOut.model_validate(row) for row in patient.allergies],
        vaccinations=[vaccination_out(row) for row in doses],
    )


@app.patch(
    "/api/patients/{patient_id}",
    operation_id="update_patient",
    summary="Change a patient's contact details or guardian",
    description="Changes phone, e-mail, language or guardian; what is left out stays.",
    tags=["patients"],
    response_model=PatientOut,
)
async def update_patient(patient_id: PathKey, body: PatientPatch, db: Db) -> PatientOut:
    patient = find(db, Patient, patient_id, "patient")
    changes = body.model_dump(exclude_none=True)
    if not changes:
        raise HTTPException(400, "Nothing to change: give phone, email, language or guardian_id.")
    if all(getattr(patient, name) == value for name, value in changes.items()):
        raise HTTPException(409, "This is how it is already; nothing would change.")
    if body.guardian_id is not None:
        if body.guardian_id == patient_id:
            raise HTTPException(409, "Nobody is their own guardian.")
        require_guardian(db, body.guardian_id)
    for name, value in changes.items():
        setattr(patient, name, value)
    db.flush()
    result = PatientOut.model_validate(patient)
    db.commit()
    return result


@app.post(
    "/api/patients/{patient_id}/allergies",
    operation_id="add_allergy",
    summary="Record an allergy",
    description="Adds a substance to a patient's allergies; each substance is recorded once.",
    tags=["patients"],
    response_model=AllergyOut,
    status_code=201,
)
async def add_allergy(patient_id: PathKey, body: AllergyIn, db: Db) -> AllergyOut:
    patient = find(db, Patient, patient_id, "patient")
    if any(row.substance.lower() == body.substance.lower() for row in patient.allergies):
        raise HTTPException(409, f"An allergy to {body.substance} is on record already.")
    allergy = PatientAllergy(patient_id=patient_id, substance=body.substance.lower(), severity=body.severity)
    db.add(allergy)
    db.flush()
    result = AllergyOut.model_validate(allergy)
    db.commit()
    return result


@app.get(
    "/api/patients/{patient_id}/eligibility",
    operation_id="check_eligibility",
    summary="Check whether a patient may get a vaccine",
    description="Tells which dose is next, from which day on it can be given, and all reasons against it on the day asked about.",
    tags=["patients"],
    response_model=EligibilityOut,
)
async def check_eligibility(
    patient_id: PathKey,
    db: Db,
    vaccine_id: Annotated[int, Query(ge=1, le=BIGGEST, description="Vaccine asked about")],
    on: Annotated[Optional[Day], Query(description="Day asked about; today if left out")] = None,
) -> EligibilityOut:
    patient = find(db, Patient, patient_id, "patient")
    return eligibility(db, patient, find(db, Vaccine, vaccine_id, "vaccine"), on or today())


# ------------------------------------------------------------------ sessions


@app.get(
    "/api/sessions",
    operation_id="list_sessions",
    summary="List clinic sessions",
    description="Sessions by site, day and status, in order of day.",
    tags=["sessions"],
    response_model=SessionList,
)
async def list_sessions(
    db: Db,
    site_id: Annotated[Optional[int], Query(ge=1, le=BIGGEST, description="Only this site")] = None,
    on: Annotated[Optional[Day], Query(description="Only this day")] = None,
    status: Annotated[Optional[SessionStatus], Query(description="Only this status")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> SessionList:
    query = db.query(ClinicSession).order_by(ClinicSession.session_date, ClinicSession.id)
    if site_id is not None:
        query = query.filter(ClinicSession.site_id == site_id)
    if on is not None:
        query = query.filter(ClinicSession.session_date == on)
    if status is not None:
        query = query.filter(ClinicSession.status == status)
    rows, total = cut(query, limit, offset)
    return SessionList(items=[session_out(row) for row in rows], total=total)


@app.post(
    "/api/sessions",
    operation_id="create_session",
    summary="Plan a clinic session with its slots",
    description="Plans a session of equal slots, one after the other, on one future day.",
    tags=["sessions"],
    response_model=SessionDetail,
    status_code=201,
)
async def create_session(body: SessionIn, db: Db) -> SessionDetail:
    site = find(db, Site, body.site_id, "site")
    if body.starts_at <= now():
        raise HTTPException(400, "A session starts in the future.")
    last = body.starts_at + timedelta(minutes=body.slot_minutes * (body.slots - 1))
    if last.date() != body.starts_at.date():
        raise HTTPException(400, "All slots of a session lie on one day.")
    row = ClinicSession(
        site_id=site.id,
        session_date=body.starts_at.date(),
        title=body.title,
        lead_user_id=CURRENT_USER_ID,
        status="planned",
    )
    row.slots = [
        SessionSlot(starts_at=body.starts_at + timedelta(minutes=body.slot_minutes * number), capacity=body.capacity)
        for number in range(body.slots)
    ]
    db.add(row)
    db.flush()
    result = SessionDetail(**session_out(row).model_dump(), slots=[slot_out(slot) for slot in row.slots])
    db.commit()
    return result


@app.get(
    "/api/sessions/{session_id}",
    operation_id="get_session",
    summary="Show one session with its slots",
    description="A session with each slot's time, capacity and free places.",
    tags=["sessions"],
    response_model=SessionDetail,
)
async def get_session(session_id: PathKey, db: Db) -> SessionDetail:
    row = find(db, ClinicSession, session_id, "session")
    return SessionDetail(**session_out(row).model_dump(), slots=[slot_out(slot) for slot in row.slots])


@app.post(
    "/api/sessions/{session_id}/cancel",
    operation_id="cancel_session",
    summary="Cancel a session and all its appointments",
    description="Cancels a planned session; every booked appointment in it is cancelled and returned, to be booked anew.",
    tags=["sessions"],
    response_model=CancelledSession,
)
async def cancel_session(session_id: PathKey, body: CancelSessionIn, db: Db) -> CancelledSession:
    row = find(db, ClinicSession, session_id, "session")
    if row.status != "planned":
        raise HTTPException(409, f"This session is {row.status}.")
    busy = [item for slot in row.slots for item in slot.appointments if item.status in ("checked_in", "completed")]
    if busy:
        raise HTTPException(409, "Patients have been seen in this session; it can't be cancelled any more.")
    row.status = "cancelled"
    row.cancel_reason = body.reason
    dropped = [item for slot in row.slots for item in slot.appointments if item.status == "booked"]
    for item in dropped:
        item.status = "cancelled"
    db.flush()
    result = CancelledSession(session=session_out(row), cancelled_appointments=[appointment_out(item) for item in dropped])
    db.commit()
    return result


@app.get(
    "/api/slots/open",
    operation_id="find_open_slots",
    summary="Find slots with free places",
    description="Slots of planned sessions, yet to come, with at least one free place, in order of time.",
    tags=["sessions"],
    response_model=SlotList,
)
async def find_open_slots(
    db: Db,
    site_id: Annotated[Optional[int], Query(ge=1, le=BIGGEST, description="Only this site")] = None,
    from_day: Annotated[Optional[Day], Query(description="Only on this day or later")] = None,
    until_day: Annotated[Optional[Day], Query(description="Only on this day or earlier")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> SlotList:
    query = db.query(SessionSlot).join(ClinicSession).filter(ClinicSession.status == "planned", SessionSlot.starts_at > now())
    if site_id is not None:
        query = query.filter(ClinicSession.site_id == site_id)
    if from_day is not None:
        query = query.filter(ClinicSession.session_date >= from_day)
    if until_day is not None:
        query = query.filter(ClinicSession.session_date <= until_day)
    slots = [slot_out(slot) for slot in query.order_by(SessionSlot.starts_at, SessionSlot.id).all()]
    free = [slot for slot in slots if slot.free > 0]
    return SlotList(items=free[offset : offset + limit], total=len(free))


# ------------------------------------------------------------------ appointments


@app.get(
    "/api/appointments",
    operation_id="list_appointments",
    summary="List appointments",
    description="Appointments by patient, session, day and status, in order of time.",
    tags=["appointments"],
    response_model=AppointmentList,
)
async def list_appointments(
    db: Db,
    patient_id: Annotated[Optional[int], Query(ge=1, le=BIGGEST, description="Only this patient")] = None,
    session_id: Annotated[Optional[int], Query(ge=1, le=BIGGEST, description="Only this session")] = None,
    on: Annotated[Optional[Day], Query(description="Only this day")] = None,
    status: Annotated[Optional[AppointmentStatus], Query(description="Only this status")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> AppointmentList:
    query = db.query(Appointment).join(SessionSlot).join(ClinicSession).order_by(SessionSlot.starts_at, Appointment.id)
    if patient_id is not None:
        query = query.filter(Appointment.patient_id == patient_id)
    if session_id is not None:
        query = query.filter(SessionSlot.session_id == session_id)
    if on is not None:
        query = query.filter(ClinicSession.session_date == on)
    if status is not None:
        query = query.filter(Appointment.status == status)
    rows, total = cut(query, limit, offset)
    return AppointmentList(items=[appointment_out(row) for row in rows], total=total)


@app.post(
    "/api/appointments",
    operation_id="book_appointment",
    summary="Book a patient into a slot",
    description="Books the next dose of a vaccine, if the slot has room and the patient is eligible on that day.",
    tags=["appointments"],
    response_model=AppointmentOut,
    status_code=201,
)
async def book_appointment(body: AppointmentIn, db: Db) -> AppointmentOut:
    slot = find(db, SessionSlot, body.slot_id, "slot")
    patient = find(db, Patient, body.patient_id, "patient")
    vaccine = find(db, Vaccine, body.vaccine_id, "vaccine")
    require_slot(slot)
    dose_number = require_eligible(db, patient, vaccine, slot)
    other = (
        db.query(Appointment)
        .filter(
            Appointment.patient_id == patient.id,
            Appointment.vaccine_id == vaccine.id,
            Appointment.status.in_(["booked", "checked_in"]),
        )
        .first()
    )
    if other is not None:
        raise HTTPException(409, f"{patient.full_name} has appointment {other.id} for {vaccine.code} already; reschedule that one.")
    row = Appointment(
        slot_id=slot.id,
        patient_id=patient.id,
        vaccine_id=vaccine.id,
        dose_number=dose_number,
        status="booked",
        created_at=now(),
    )
    db.add(row)
    db.flush()
    result = appointment_out(row)
    db.commit()
    return result


@app.patch(
    "/api/appointments/{appointment_id}",
    operation_id="reschedule_appointment",
    summary="Move an appointment to another slot",
    description="Moves a booked appointment under the same rules as a new one.",
    tags=["appointments"],
    response_model=AppointmentOut,
)
async def reschedule_appointment(appointment_id: PathKey, body: RescheduleIn, db: Db) -> AppointmentOut:
    row = find(db, Appointment, appointment_id, "appointment")
    slot = find(db, SessionSlot, body.slot_id, "slot")
    if row.status != "booked":
        raise HTTPException(409, f"This appointment is {row.status}.")
    if slot.id == row.slot_id:
        raise HTTPException(409, "The appointment is in this slot already.")
    require_slot(slot)
    row.dose_number = require_eligible(db, row.patient, row.vaccine, slot)
    row.slot = slot
    db.flush()
    result = appointment_out(row)
    db.commit()
    return result


def settle(db: Session, appointment_id: int, status: str) -> AppointmentOut:
    row = find(db, Appointment, appointment_id, "appointment")
    if row.status != "booked":
        raise HTTPException(409, f"This appointment is {row.status}; only a booked one can become {status}.")
    day = row.slot.clinic_session.session_date
    if status == "checked_in" and day != today():
        raise HTTPException(409, f"This appointment is on {day}; patients are checked in on the day itself.")
    if status == "no_show" and row.slot.starts_at > now():
        raise HTTPException(409, f"This appointment is yet to come, on {row.slot.starts_at}.")
    row.status = status
    db.flush()
    result = appointment_out(row)
    db.commit()
    return result


@app.post(
    "/api/appointments/{appointment_id}/cancel",
    operation_id="cancel_appointment",
    summary="Cancel an appointment",
    description="Cancels a booked appointment; its place is free again.",
    tags=["appointments"],
    response_model=AppointmentOut,
)
async def cancel_appointment(appointment_id: PathKey, db: Db) -> AppointmentOut:
    return settle(db, appointment_id, "cancelled")


@app.post(
    "/api/appointments/{appointment_id}/check_in",
    operation_id="check_in_appointment",
    summary="Check a patient in",
    description="Marks a patient with a booked appointment today as arrived; needed before a dose is recorded.",
    tags=["appointments"],
    response_model=AppointmentOut,
)
async def check_in_appointment(appointment_id: PathKey, db: Db) -> AppointmentOut:
    return settle(db, appointment_id, "checked_in")


@app.post(
    "/api/appointments/{appointment_id}/no_show",
    operation_id="mark_no_show",
    summary="Mark an appointment as a no-show",
    description="Marks a booked appointment whose time has passed as missed by the patient.",
    tags=["appointments"],
    response_model=AppointmentOut,
)
async def mark_no_show(appointment_id: PathKey, db: Db) -> AppointmentOut:
    return settle(db, appointment_id, "no_show")


# ------------------------------------------------------------------ doses and adverse events


@app.get(
    "/api/vaccinations",
    operation_id="list_vaccinations",
    summary="List doses given",
    description="Doses by patient, vaccine and lot, the latest first.",
    tags=["doses"],
    response_model=VaccinationList,
)
async def list_vaccinations(
    db: Db,
    patient_id: Annotated[Optional[int], Query(ge=1, le=BIGGEST, description="Only this patient")] = None,
    vaccine_id: Annotated[Optional[int], Query(ge=1, le=BIGGEST, description="Only this vaccine")] = None,
    lot_id: Annotated[Optional[int], Query(ge=1, le=BIGGEST, description="Only this lot")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> VaccinationList:
    query = db.query(Vaccination).order_by(Vaccination.given_at.desc(), Vaccination.id.desc())
    if patient_id is not None:
        query = query.filter(Vaccination.patient_id == patient_id)
    if vaccine_id is not None:
        query = query.filter(Vaccination.vaccine_id == vaccine_id)
    if lot_id is not None:
        query = query.filter(Vaccination.lot_id == lot_id)
    rows, total = cut(query, limit, offset)
    return VaccinationList(items=[vaccination_out(row) for row in rows], total=total)


@app.post(
    "/api/vaccinations",
    operation_id="record_vaccination",
    summary="Record a dose given to a patient who is checked in",
    description="Takes a dose from a usable lot of the session's site, completes the appointment and books the dose out of stock.",
    tags=["doses"],
    response_model=VaccinationOut,
    status_code=201,
)
async def record_vaccination(body: VaccinationIn, db: Db) -> VaccinationOut:
    appointment = find(db, Appointment, body.appointment_id, "appointment")
    lot = find(db, VaccineLot, body.lot_id, "lot")
    if appointment.status != "checked_in":
        raise HTTPException(409, f"This appointment is {appointment.status}; check the patient in first.")
    if lot.vaccine_id != appointment.vaccine_id:
        raise HTTPException(409, f"Lot {lot.lot_number} holds {lot.vaccine.code}; the appointment is for {appointment.vaccine.code}.")
    if lot.site_id != appointment.slot.clinic_session.site_id:
        raise HTTPException(409, f"Lot {lot.lot_number} is kept at {lot.site.name}, not at the session's site.")
    require_usable(lot)
    if lot.doses_remaining < 1:
        raise HTTPException(409, f"Lot {lot.lot_number} is used up.")
    dose_number = require_eligible(db, appointment.patient, appointment.vaccine, appointment.slot)
    lot.doses_remaining -= 1
    appointment.status = "completed"
    row = Vaccination(
        patient_id=appointment.patient_id,
        vaccine_id=appointment.vaccine_id,
        lot_id=lot.id,
        appointment_id=appointment.id,
        dose_number=dose_number,
        arm=body.arm,
        given_at=now(),
        given_by=CURRENT_USER_ID,
    )
    db.add(row)
    move(db, lot, "used", 1)
    result = vaccination_out(row)
    db.commit()
    return result


@app.get(
    "/api/adverse_events",
    operation_id="list_adverse_events",
    summary="List adverse events",
    description="Reports of reactions after a dose, by status, the latest first.",
    tags=["doses"],
    response_model=AdverseEventList,
)
async def list_adverse_events(
    db: Db,
    status: Annotated[Optional[Literal["open", "reviewed"]], Query(description="Only this status")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> AdverseEventList:
    query = db.query(AdverseEvent).order_by(AdverseEvent.reported_at.desc(), AdverseEvent.id.desc())
    if status is not None:
        query = query.filter(AdverseEvent.status == status)
    rows, total = cut(query, limit, offset)
    return AdverseEventList(items=[AdverseEventOut.model_validate(row) for row in rows], total=total)


@app.post(
    "/api/adverse_events",
    operation_id="report_adverse_event",
    summary="Report a reaction after a dose",
    description="Opens a report. A severe one puts the usable lot that the dose came from into quarantine at once.",
    tags=["doses"],
    response_model=AdverseEventReport,
    status_code=201,
)
async def report_adverse_event(body: AdverseEventIn, db: Db) -> AdverseEventReport:
    dose = find(db, Vaccination, body.vaccination_id, "vaccination")
    row = AdverseEvent(
        vaccination_id=dose.id,
        description=body.description,
        severity=body.severity,
        status="open",
        reported_at=now(),
    )
    db.add(row)
    if body.severity == "severe" and dose.lot.status == "usable":
        dose.lot.status = "quarantined"
    db.flush()
    result = AdverseEventReport(
        **AdverseEventOut.model_validate(row).model_dump(), lot_number=dose.lot.lot_number, lot_status=dose.lot.status
    )
    db.commit()
    return result


@app.post(
    "/api/adverse_events/{event_id}/review",
    operation_id="review_adverse_event",
    summary="Close an adverse event after review",
    description="Records the outcome of the review of an open report.",
    tags=["doses"],
    response_model=AdverseEventOut,
)
async def review_adverse_event(event_id: PathKey, body: ReviewIn, db: Db) -> AdverseEventOut:
    row = find(db, AdverseEvent, event_id, "adverse event")
    if row.status != "open":
        raise HTTPException(409, "This report has been reviewed already.")
    row.status = "reviewed"
    row.review_note = body.note
    db.flush()
    result = AdverseEventOut.model_validate(row)
    db.commit()
    return result


# ------------------------------------------------------------------ stock


@app.get(
    "/api/lots",
    operation_id="list_lots",
    summary="List vaccine lots",
    description="Lots by vaccine, site, number, status and expiry, in order of their expiry date.",
    tags=["stock"],
    response_model=LotList,
)
async def list_lots(
    db: Db,
    vaccine_id: Annotated[Optional[int], Query(ge=1, le=BIGGEST, description="Only this vaccine")] = None,
    site_id: Annotated[Optional[int], Query(ge=1, le=BIGGEST, description="Only this site")] = None,
    lot_number: Annotated[Optional[str], Query(max_length=40, description="Exactly this number")] = None,
    status: Annotated[Optional[LotStatus], Query(description="Only this status")] = None,
    expired: Annotated[Optional[bool], Query(description="Only lots past (true) or within (false) their last day of use")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> LotList:
    query = db.query(VaccineLot).order_by(VaccineLot.expires_on, VaccineLot.id)
    if vaccine_id is not None:
        query = query.filter(VaccineLot.vaccine_id == vaccine_id)
    if site_id is not None:
        query = query.filter(VaccineLot.site_id == site_id)
    if lot_number:
        query = query.filter(VaccineLot.lot_number == lot_number.strip().upper())
    if status is not None:
        query = query.filter(VaccineLot.status == status)
    if expired is not None:
        query = query.filter(VaccineLot.expires_on < today() if expired else VaccineLot.expires_on >= today())
    rows, total = cut(query, limit, offset)
    return LotList(items=[lot_out(row) for row in rows], total=total)


@app.post(
    "/api/lots",
    operation_id="receive_lot",
    summary="Receive a new lot",
    description="Adds a lot to a site's stock; vaccines that need a freezer go only where there is one.",
    tags=["stock"],
    response_model=LotOut,
    status_code=201,
)
async def receive_lot(body: LotIn, db: Db) -> LotOut:
    vaccine = find(db, Vaccine, body.vaccine_id, "vaccine")
    site = find(db, Site, body.site_id, "site")
    if vaccine.needs_freezer and not site.has_freezer:
        raise HTTPException(409, f"{vaccine.code} needs a freezer, which {site.name} does not have.")
    if body.expires_on < today():
        raise HTTPException(409, f"This lot expired on {body.expires_on}.")
    number = body.lot_number.upper()
    if db.query(VaccineLot).filter(VaccineLot.lot_number == number, VaccineLot.site_id == site.id).first() is not None:
        raise HTTPException(409, f"{site.name} has lot {number} already.")
    lot = VaccineLot(
        vaccine_id=vaccine.id,
        site_id=site.id,
        lot_number=number,
        doses_received=body.doses,
        doses_remaining=body.doses,
        expires_on=body.expires_on,
        status="usable",
    )
    db.add(lot)
    db.flush()
    move(db, lot, "received", body.doses)
    result = lot_out(lot)
    db.commit()
    return result


@app.post(
    "/api/lots/{lot_id}/status",
    operation_id="set_lot_status",
    summary="Quarantine, recall or release a lot",
    description="Sets the status of a lot; a recalled lot is never released.",
    tags=["stock"],
    response_model=LotOut,
)
async def set_lot_status(lot_id: PathKey, body: LotStatusIn, db: Db) -> LotOut:
    lot = find(db, VaccineLot, lot_id, "lot")
    if lot.status == body.status:
        raise HTTPException(409, f"Lot {lot.lot_number} is {lot.status} already.")
    if lot.status == "recalled":
        raise HTTPException(409, f"Lot {lot.lot_number} is recalled for good.")
    lot.status = body.status
    db.flush()
    result = lot_out(lot)
    db.commit()
    return result


@app.post(
    "/api/lots/{lot_id}/wastage",
    operation_id="record_wastage",
    summary="Write doses of a lot off",
    description="Takes doses out of a lot as wasted, whatever the lot's status.",
    tags=["stock"],
    response_model=LotOut,
)
async def record_wastage(lot_id: PathKey, body: WastageIn, db: Db) -> LotOut:
    lot = find(db, VaccineLot, lot_id, "lot")
    if body.doses > lot.doses_remaining:
        raise HTTPException(409, f"Lot {lot.lot_number} has only {lot.doses_remaining} doses left.")
    lot.doses_remaining -= body.doses
    move(db, lot, "wasted", body.doses, body.reason)
    result = lot_out(lot)
    db.commit()
    return result


@app.post(
    "/api/lots/{lot_id}/transfer",
    operation_id="transfer_doses",
    summary="Move doses of a lot to another site",
    description="Moves usable doses; the other site gets the same lot number, or more of it.",
    tags=["stock"],
    response_model=TransferOut,
)
async def transfer_doses(lot_id: PathKey, body: TransferIn, db: Db) -> TransferOut:
    lot = find(db, VaccineLot, lot_id, "lot")
    site = find(db, Site, body.to_site_id, "site")
    require_usable(lot)
    if site.id == lot.site_id:
        raise HTTPException(409, f"The lot is at {site.name} already.")
    if lot.vaccine.needs_freezer and not site.has_freezer:
        raise HTTPException(409, f"{lot.vaccine.code} needs a freezer, which {site.name} does not have.")
    if body.doses > lot.doses_remaining:
        raise HTTPException(409, f"Lot {lot.lot_number} has only {lot.doses_remaining} doses left.")
    target = db.query(VaccineLot).filter(VaccineLot.lot_number == lot.lot_number, VaccineLot.site_id == site.id).first()
    if target is None:
        target = VaccineLot(
            vaccine_id=lot.vaccine_id,
            site_id=site.id,
            lot_number=lot.lot_number,
            doses_received=0,
            doses_remaining=0,
            expires_on=lot.expires_on,
            status="usable",
        )
        db.add(target)
        db.flush()
    require_usable(target)
    lot.doses_remaining -= body.doses
    target.doses_received += body.doses
    target.doses_remaining += body.doses
    move(db, lot, "transfer_out", body.doses, f"To {site.name}")
    move(db, target, "transfer_in", body.doses, f"From {lot.site.name}")
    result = TransferOut(source=lot_out(lot), target=lot_out(target))
    db.commit()
    return result


@app.get(
    "/api/stock_movements",
    operation_id="list_stock_movements",
    summary="List stock movements",
    description="Doses received, used, wasted and moved, by lot and kind, the latest first.",
    tags=["stock"],
    response_model=MovementList,
)
async def list_stock_movements(
    db: Db,
    lot_id: Annotated[Optional[int], Query(ge=1, le=BIGGEST, description="Only this lot")] = None,
    kind: Annotated[Optional[MovementKind], Query(description="Only this kind")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> MovementList:
    query = db.query(StockMovement).order_by(StockMovement.moved_at.desc(), StockMovement.id.desc())
    if lot_id is not None:
        query = query.filter(StockMovement.lot_id == lot_id)
    if kind is not None:
        query = query.filter(StockMovement.kind == kind)
    rows, total = cut(query, limit, offset)
    return MovementList(items=[MovementOut.model_validate(row) for row in rows], total=total)


# ------------------------------------------------------------------ waiting list and messages


@app.get(
    "/api/waitlist",
    operation_id="list_waitlist",
    summary="List the waiting list",
    description="Entries by vaccine and site, in the order they were made.",
    tags=["outreach"],
    response_model=WaitlistList,
)
async def list_waitlist(
    db: Db,
    vaccine_id: Annotated[Optional[int], Query(ge=1, le=BIGGEST, description="Only this vaccine")] = None,
    site_id: Annotated[Optional[int], Query(ge=1, le=BIGGEST, description="Only this site")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> WaitlistList:
    query = db.query(WaitlistEntry).order_by(WaitlistEntry.created_at, WaitlistEntry.id)
    if vaccine_id is not None:
        query = query.filter(WaitlistEntry.vaccine_id == vaccine_id)
    if site_id is not None:
        query = query.filter(WaitlistEntry.site_id == site_id)
    rows, total = cut(query, limit, offset)
    return WaitlistList(items=[waitlist_out(row) for row in rows], total=total)


@app.post(
    "/api/waitlist",
    operation_id="join_waitlist",
    summary="Put a patient on the waiting list",
    description="Adds a patient to the queue for a vaccine at a site; each patient stands in each queue once.",
    tags=["outreach"],
    response_model=WaitlistOut,
    status_code=201,
)
async def join_waitlist(body: WaitlistIn, db: Db) -> WaitlistOut:
    patient = find(db, Patient, body.patient_id, "patient")
    find(db, Vaccine, body.vaccine_id, "vaccine")
    find(db, Site, body.site_id, "site")
    same = db.query(WaitlistEntry).filter_by(
        patient_id=patient.id, vaccine_id=body.vaccine_id, site_id=body.site_id, status="waiting"
    )
    if same.first() is not None:
        raise HTTPException(409, f"{patient.full_name} waits for that already.")
    row = WaitlistEntry(**body.model_dump(), status="waiting", created_at=now())
    db.add(row)
    db.flush()
    result = waitlist_out(row)
    db.commit()
    return result


@app.post(
    "/api/waitlist/{entry_id}/withdraw",
    operation_id="withdraw_from_waitlist",
    summary="Take a patient off the waiting list",
    description="Withdraws an entry that is still waiting.",
    tags=["outreach"],
    response_model=WaitlistOut,
)
async def withdraw_from_waitlist(entry_id: PathKey, db: Db) -> WaitlistOut:
    row = find(db, WaitlistEntry, entry_id, "waiting list entry")
    if row.status != "waiting":
        raise HTTPException(409, "This entry has been withdrawn already.")
    row.status = "withdrawn"
    db.flush()
    result = waitlist_out(row)
    db.commit()
    return result


@app.get(
    "/api/messages",
    operation_id="list_messages",
    summary="List messages to patients",
    description="Queued messages by patient, the latest first.",
    tags=["outreach"],
    response_model=MessageList,
)
async def list_messages(
    db: Db,
    patient_id: Annotated[Optional[int], Query(ge=1, le=BIGGEST, description="Only this patient")] = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> MessageList:
    query = db.query(OutreachMessage).order_by(OutreachMessage.queued_at.desc(), OutreachMessage.id.desc())
    if patient_id is not None:
        query = query.filter(OutreachMessage.patient_id == patient_id)
    rows, total = cut(query, limit, offset)
    return MessageList(items=[MessageOut.model_validate(row) for row in rows], total=total)


@app.post(
    "/api/messages",
    operation_id="queue_message",
    summary="Queue a message to a patient",
    description="Queues a text; sms and phone need a telephone number on record, email an address.",
    tags=["outreach"],
    response_model=MessageOut,
    status_code=201,
)
async def queue_message(body: MessageIn, db: Db) -> MessageOut:
    patient = find(db, Patient, body.patient_id, "patient")
    if body.channel == "email" and patient.email is None:
        raise HTTPException(409, f"{patient.full_name} has no e-mail address on record.")
    if body.channel != "email" and patient.phone is None:
        raise HTTPException(409, f"{patient.full_name} has no telephone number on record.")
    row = OutreachMessage(**body.model_dump(), queued_at=now(), queued_by=CURRENT_USER_ID)
    db.add(row)
    db.flush()
    result = MessageOut.model_validate(row)
    db.commit()
    return result


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host=os.getenv("HOST", "127.0.0.1"), port=int(os.getenv("PORT", "8000")))
