"""Functions that the handlers of a service share; a service holds those that it uses."""

from collections.abc import Mapping
from typing import Final

HELPERS: Final[Mapping[str, str]] = {
    "now": """
def now() -> datetime:
    return datetime.now(timezone.utc).replace(tzinfo=None, microsecond=0)
""",
    "today": """
def today() -> date:
    return now().date()
""",
    "start_of": """
def start_of(day: date) -> datetime:
    return datetime.combine(day, time.min)
""",
    "end_of": """
def end_of(day: date) -> datetime:
    return datetime.combine(day, time.max)
""",
    "add_months": '''
def add_months(day: date, months: int) -> date:
    """The same day so many months later, or the last of a month that is too short."""
    year, month = divmod(day.month - 1 + months, 12)
    year, month = day.year + year, month + 1
    return day.replace(year=year, month=month, day=min(day.day, monthrange(year, month)[1]))
''',
    "money": """
def money(cents: int) -> str:
    return f"{CURRENCY} {cents // 100}.{cents % 100:02d}"
""",
    "find": """
def find(db: Session, model: type[Row], row_id: int, noun: str) -> Row:
    row = db.get(model, row_id)
    if row is None:
        raise HTTPException(404, f"There is no {noun} with id {row_id}.")
    return row
""",
    "count": """
def count(db: Session, model: type[Base], *conditions: ColumnElement[bool]) -> int:
    return db.scalar(select(func.count()).select_from(model).where(*conditions)) or 0
""",
    "exists": """
def exists(db: Session, model: type[Base], *conditions: ColumnElement[bool]) -> bool:
    return db.scalar(select(model.id).where(*conditions).limit(1)) is not None
""",
    "total": """
def total(db: Session, column: Any, *conditions: ColumnElement[bool]) -> int:
    return db.scalar(select(func.coalesce(func.sum(column), 0)).where(*conditions)) or 0
""",
    "highest": """
def highest(db: Session, column: Any, *conditions: ColumnElement[bool]) -> Any:
    return db.scalar(select(func.max(column)).where(*conditions))
""",
    "lowest": """
def lowest(db: Session, column: Any, *conditions: ColumnElement[bool]) -> Any:
    return db.scalar(select(func.min(column)).where(*conditions))
""",
    "next_reference": '''
def next_reference(db: Session, model: type[Base], prefix: str) -> str:
    """References count on from 1001, in the order of the ids."""
    return f"{prefix}-{1001 + (db.scalar(select(func.max(model.id))) or 0)}"
''',
    "record": '''
def record(db: Session, action: str, subject: str, row: Base, detail: str | None = None) -> None:
    """One line of the activity log; every change leaves one."""
    db.flush()
    db.add(
        ACTIVITY(
            user_id=CURRENT_USER_ID, action=action, subject=subject, subject_id=row.id, detail=detail, created_at=now()
        )
    )
''',
    "page_of": """
def page_of(db: Session, statement: Select[Any], limit: int, offset: int) -> dict[str, Any]:
    found = db.scalar(select(func.count()).select_from(statement.order_by(None).subquery())) or 0
    rows = db.scalars(statement.limit(limit).offset(offset)).all()
    return {"items": rows, "total": found, "limit": limit, "offset": offset}
""",
    "sorted_by": """
def sorted_by(statement: Select[Any], model: type[Base], sort: str) -> Select[Any]:
    column = getattr(model, sort.removeprefix("-"))
    return statement.order_by(column.desc() if sort.startswith("-") else column, model.id)
""",
    "to_utc": '''
def to_utc(moment: datetime) -> datetime:
    """Moments are kept in UTC, without an offset and to the second."""
    if not 2000 <= moment.year <= 2100:
        raise ValueError("the year must lie between 2000 and 2100")
    if moment.tzinfo is not None:
        moment = moment.astimezone(timezone.utc).replace(tzinfo=None)
    return moment.replace(microsecond=0)
''',
}
"""In the order in which they stand."""

NEEDS: Final[Mapping[str, tuple[str, ...]]] = {"today": ("now",), "record": ("now",)}

TYPES: Final[Mapping[str, str]] = {
    "Id": "Id = Annotated[int, Field(ge=1, le=2**31 - 1)]",
    "Day": "Day = Annotated[date, Field(ge=date(2000, 1, 1), le=date(2100, 12, 31))]",
    "Moment": "Moment = Annotated[datetime, AfterValidator(to_utc)]",
}
