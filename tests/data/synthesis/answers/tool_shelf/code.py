import os
from datetime import date, datetime, timezone
from typing import List, Literal, Optional

from fastapi import FastAPI, HTTPException, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import ForeignKey, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, sessionmaker

engine = create_engine(os.getenv("DATABASE_PATH", "sqlite:///./app.db"), connect_args={"check_same_thread": False})
SessionLocal = sessionmaker(bind=engine)
app = FastAPI(title="Tool Shelf")
CURRENT_USER_ID = 1
MAX_ID = 2**31 - 1

Status = Literal["available", "on_loan", "in_repair"]


class Base(DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "users"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    role: Mapped[str]


class ToolRow(Base):
    __tablename__ = "tools"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    category: Mapped[str]
    status: Mapped[str]


class Loan(Base):
    __tablename__ = "loans"
    id: Mapped[int] = mapped_column(primary_key=True)
    tool_id: Mapped[int] = mapped_column(ForeignKey("tools.id"))
    member_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    due_on: Mapped[date]
    lent_at: Mapped[datetime]
    returned_at: Mapped[Optional[datetime]]


class ToolOut(BaseModel):
    model_config = ConfigDict(from_attributes=True)
    id: int
    name: str
    category: str
    status: str


class ToolList(BaseModel):
    tools: List[ToolOut]


class MemberOut(BaseModel):
    model_config = ConfigDict(from_attributes=True)
    id: int
    name: str


class MemberList(BaseModel):
    members: List[MemberOut]


class LoanOut(BaseModel):
    model_config = ConfigDict(from_attributes=True)
    id: int
    tool_id: int
    member_id: int
    due_on: date
    returned_at: Optional[datetime] = None


class LoanList(BaseModel):
    loans: List[LoanOut]


class LendRequest(BaseModel):
    tool_id: int = Field(ge=1, le=MAX_ID)
    member_id: int = Field(ge=1, le=MAX_ID)
    due_on: date


def now() -> datetime:
    return datetime.now(timezone.utc).replace(tzinfo=None)


@app.get("/tools", operation_id="list_tools", response_model=ToolList)
async def list_tools(name: Optional[str] = None, category: Optional[str] = None, status: Optional[Status] = None):
    """Tools by name, category or status; an empty list where none fits."""
    with SessionLocal() as session:
        query = select(ToolRow).order_by(ToolRow.id)
        if name is not None:
            query = query.where(ToolRow.name == name)
        if category is not None:
            query = query.where(ToolRow.category == category)
        if status is not None:
            query = query.where(ToolRow.status == status)
        return ToolList(tools=[ToolOut.model_validate(row) for row in session.scalars(query)])


@app.get("/members", operation_id="list_members", response_model=MemberList)
async def list_members():
    """All members, ordered by id."""
    with SessionLocal() as session:
        query = select(User).where(User.role == "member").order_by(User.id)
        return MemberList(members=[MemberOut.model_validate(row) for row in session.scalars(query)])


@app.get("/loans", operation_id="list_loans", response_model=LoanList)
async def list_loans(tool_id: Optional[int] = Query(default=None, ge=1, le=MAX_ID), open_only: bool = True):
    """Loans, open ones only unless told otherwise."""
    with SessionLocal() as session:
        query = select(Loan).order_by(Loan.id)
        if tool_id is not None:
            query = query.where(Loan.tool_id == tool_id)
        if open_only:
            query = query.where(Loan.returned_at.is_(None))
        return LoanList(loans=[LoanOut.model_validate(row) for row in session.scalars(query)])


@app.post("/loans", operation_id="lend_tool", response_model=LoanOut)
async def lend_tool(body: LendRequest):
    """Lends an available tool to a member; 409 where it is not available."""
    with SessionLocal() as session:
        tool = session.get(ToolRow, body.tool_id)
        if tool is None:
            raise HTTPException(404, f"no tool {body.tool_id}")
        member = session.get(User, body.member_id)
        if member is None or member.role != "member":
            raise HTTPException(404, f"no member {body.member_id}")
        if tool.status != "available":
            raise HTTPException(409, f"tool {tool.id} is {tool.status}, only an available one can be lent")
        loan = Loan(tool_id=tool.id, member_id=member.id, due_on=body.due_on, lent_at=now())
        tool.status = "on_loan"
        session.add(loan)
        session.flush()
        answer = LoanOut.model_validate(loan)
        session.commit()
        return answer


@app.post("/loans/{loan_id}/return", operation_id="return_tool", response_model=LoanOut)
async def return_tool(loan_id: int = Path(ge=1, le=MAX_ID)):
    """Ends an open loan and puts the tool back; 409 where the loan has ended."""
    with SessionLocal() as session:
        loan = session.get(Loan, loan_id)
        if loan is None:
            raise HTTPException(404, f"no loan {loan_id}")
        if loan.returned_at is not None:
            raise HTTPException(409, f"loan {loan_id} has ended already")
        tool = session.get(ToolRow, loan.tool_id)
        if tool is None:
            raise HTTPException(404, f"no tool {loan.tool_id}")
        loan.returned_at = now()
        tool.status = "available"
        session.flush()
        answer = LoanOut.model_validate(loan)
        session.commit()
        return answer


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host=os.getenv("HOST", "127.0.0.1"), port=int(os.getenv("PORT", "8000")))
