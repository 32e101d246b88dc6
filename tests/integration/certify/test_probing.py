"""What an exploration asks of each tool beyond chance: limits, spans, the same act twice, rows that take a change."""

from collections.abc import Iterator

import pytest

from awm_factory.bundle import Bundle, Manifest
from awm_factory.certify import Options, certify
from awm_factory.sandbox import ProcessSandbox

APP = """
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy import Column, Integer, String, create_engine
from sqlalchemy.orm import declarative_base, sessionmaker

engine = create_engine("sqlite:///lots.db")
Session = sessionmaker(bind=engine)
Base = declarative_base()
app = FastAPI()


class Lot(Base):
    __tablename__ = "vaccine_lots"
    id = Column(Integer, primary_key=True)
    doses = Column(Integer, nullable=False)
    status = Column(String, nullable=False)


class Tour(Base):
    __tablename__ = "tours"
    id = Column(Integer, primary_key=True)
    lot_id = Column(Integer, nullable=False)
    starts_on = Column(String, nullable=False)
    ends_on = Column(String, nullable=False)


class Note(Base):
    __tablename__ = "notes"
    id = Column(Integer, primary_key=True)
    text = Column(String, nullable=False)


class Waste(BaseModel):
    doses: int


class NewTour(BaseModel):
    starts_on: str
    ends_on: str


def shown(lot: Lot) -> dict:
    return {"id": lot.id, "doses": lot.doses, "status": lot.status}


def found(session, lot_id: int) -> Lot:
    lot = session.get(Lot, lot_id)
    if lot is None:
        raise HTTPException(404, "There is no such lot.")
    return lot


@app.get("/lots", operation_id="list_lots")
def list_lots() -> list[dict]:
    with Session() as session:
        return [shown(lot) for lot in session.query(Lot).order_by(Lot.id)]


@app.get("/lots/{lot_id}", operation_id="get_lot")
def get_lot(lot_id: int) -> dict:
    with Session() as session:
        return shown(found(session, lot_id))


@app.post("/lots/{lot_id}/wastage", operation_id="waste")
def waste(lot_id: int, body: Waste) -> dict:
    with Session() as session:
        lot = found(session, lot_id)
        if body.doses < 1 or body.doses > lot.doses:
            raise HTTPException(409, f"The lot has {lot.doses} doses.")
        lot.doses -= body.doses
        session.commit()
        return shown(lot)


@app.post("/lots/{lot_id}/close", operation_id="close_lot")
def close_lot(lot_id: int) -> dict:
    with Session() as session:
        lot = found(session, lot_id)
        if lot.status == "closed":
            raise HTTPException(409, "The lot is closed already.")
        lot.status = "closed"
        session.add(Note(text="closed"))
        session.commit()
        return shown(lot)


@app.post("/lots/{lot_id}/tours", operation_id="send_lot")
def send_lot(lot_id: int, body: NewTour) -> dict:
    with Session() as session:
        found(session, lot_id)
        if body.ends_on < body.starts_on:
            raise HTTPException(400, "It ends before it starts.")
        tour = Tour(lot_id=lot_id, starts_on=body.starts_on, ends_on=body.ends_on)
        session.add(tour)
        session.commit()
        return {"tour_id": tour.id, "starts_on": tour.starts_on, "ends_on": tour.ends_on}
"""

SCHEMA = [
    "CREATE TABLE vaccine_lots (id INTEGER PRIMARY KEY, doses INTEGER NOT NULL CHECK (doses >= -5), status TEXT NOT NULL)",
    (
        "CREATE TABLE tours (id INTEGER PRIMARY KEY, lot_id INTEGER NOT NULL REFERENCES vaccine_lots (id), "
        "starts_on TEXT NOT NULL, ends_on TEXT NOT NULL)"
    ),
    "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)",
]
SEED = ["INSERT INTO vaccine_lots VALUES (1, 40, 'open'), (2, 9, 'closed'), (3, 12, 'open')"]
CLOSED = '        if lot.status == "closed":\n            raise HTTPException(409, "The lot is closed already.")\n'
ORDERED = '        if body.ends_on < body.starts_on:\n            raise HTTPException(400, "It ends before it starts.")\n'


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    with ProcessSandbox(1) as opened:
        yield opened


def told(sandbox: ProcessSandbox, old: str = "", new: str = "") -> list[tuple[str, str, str]]:
    """Severity, tool and words of what the exploration finds, with one text of the app replaced."""
    assert old in APP
    bundle = Bundle(
        manifest=Manifest(env_id="vaccine_lots", scenario="Vaccine lots", origin="synthesized"),
        schema_sql=SCHEMA,
        seed_sql=SEED,
        app_code=APP.replace(old, new) if old else APP,
        api_spec={},
    )
    problems = certify(bundle, sandbox, Options(calls=120, gates=("behaviour",))).certificate.problems
    return [(problem.severity, problem.where, problem.what) for problem in problems if problem.gate == "behaviour"]


def test_a_sound_app_is_told_nothing_of(sandbox: ProcessSandbox) -> None:
    assert told(sandbox) == []


@pytest.mark.parametrize(
    ("old", "new", "tool", "says"),
    [
        ("body.doses > lot.doses:", "body.doses > lot.doses + 1:", "waste", "limit: doses = "),
        (CLOSED, "", "close_lot", "again: done once more it says yes again, leaves the row of vaccine_lots as it was"),
        (ORDERED, "", "send_lot", "order: it takes starts_on "),
        ("starts_on=body.starts_on", "starts_on=body.ends_on", "send_lot", "given: it is given starts_on = "),
    ],
    ids=["limit off by one", "no look at what was done", "span the wrong way round", "another value stored"],
)
def test_a_fault_that_chance_hardly_comes_by_is_warned_of(
    sandbox: ProcessSandbox, old: str, new: str, tool: str, says: str
) -> None:
    assert any(
        (how, where) == ("warning", f"tool {tool}") and what.startswith(says) for how, where, what in told(sandbox, old, new)
    )


def test_a_tool_that_works_on_few_rows_only_is_tried_on_all_of_them(sandbox: ProcessSandbox) -> None:
    dropped = CLOSED + '        lot.status = "closed"\n        session.add(Note(text="closed"))\n        session.commit()\n'
    found = told(sandbox, dropped, dropped.replace("commit", "flush"))
    assert any(where == "tool close_lot" and what.startswith("no effect") for _, where, what in found), found
