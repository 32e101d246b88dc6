"""A small certified bundle for tests of what is made of bundles; nothing serves it."""

from typing import Any

from awm_factory.bundle import Bundle, Manifest, Solution, Task
from awm_factory.certificate import Certificate, Subject, TaskCertificate
from awm_runtime.contract import ToolCall


def certified(scenario: str = "Bee yard", shipped: tuple[int, ...] = (0, 2), **changes: Any) -> Bundle:
    bundle = Bundle(
        manifest=Manifest(env_id="bee_yard", scenario=scenario, origin="handwritten", tools=["add_hive", "list_hives"]),
        schema_sql=["CREATE TABLE hives (id INTEGER PRIMARY KEY)"],
        seed_sql=["INSERT INTO hives VALUES (1)"],
        app_code="app = None\n",
        tasks=[Task(task_id=number, instruction=f"Task number {number}.") for number in range(3)],
        verifiers={(number, "code"): f"# verifier {number}\n" for number in range(3)},
        solutions={0: Solution(calls=[ToolCall(tool="add_hive", arguments={"secret_answer": 1})])},
        source={"gen_envs": {"full_code": "imported as it came"}},
        seed_db=b"SQLite format 3\0",
    ).with_(**changes)
    certificate = Certificate(
        subject=Subject(
            bundle_digest=bundle.digest(), solutions_digest=bundle.solutions_digest(), base="x", gates={}, seed=0, budget={}
        ),
        gates={"schema": "passed"},
        problems=[],
        tasks=[
            TaskCertificate(task_id=number, shipped=number in shipped, reason=None if number in shipped else "unsound", gates={})
            for number in range(3)
        ],
    )
    return bundle.with_(certificate=certificate)


APP = """
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy import Column, Integer, String, create_engine
from sqlalchemy.orm import declarative_base, sessionmaker

engine = create_engine("sqlite:///bee_yard.db", connect_args={"check_same_thread": False})
Session = sessionmaker(bind=engine)
Base = declarative_base()
app = FastAPI()


class Hive(Base):
    __tablename__ = "hives"
    id = Column(Integer, primary_key=True)
    label = Column(String, nullable=False, unique=True)


class NewHive(BaseModel):
    label: str


@app.get("/hives", operation_id="list_hives", summary="All hives")
def list_hives() -> list[dict]:
    with Session() as session:
        return [{"id": hive.id, "label": hive.label} for hive in session.query(Hive).order_by(Hive.id)]


@app.post("/hives", operation_id="add_hive", summary="Set up a hive")
def add_hive(new: NewHive) -> dict:
    with Session() as session:
        if session.query(Hive).filter_by(label=new.label).first():
            raise HTTPException(409, f"There is a hive {new.label} already; choose another label.")
        hive = Hive(label=new.label)
        session.add(hive)
        session.commit()
        return {"id": hive.id, "label": hive.label}
"""

VERIFIER = """
import sqlite3


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    def labels(path):
        with sqlite3.connect(path) as connection:
            return {label for (label,) in connection.execute("SELECT label FROM hives")}

    return {"result": "complete" if labels(final_db_path) - labels(initial_db_path) == {"South"} else "others"}
"""


def working(env_id: str = "bee_yard") -> Bundle:
    """The same yard as an environment that can be served, with one sound task; not certified yet."""
    return Bundle(
        manifest=Manifest(env_id=env_id, scenario=env_id.replace("_", " "), origin="handwritten"),
        schema_sql=["CREATE TABLE hives (id INTEGER PRIMARY KEY, label TEXT NOT NULL UNIQUE)"],
        seed_sql=["INSERT INTO hives (label) VALUES ('North')"],
        app_code=APP.lstrip(),
        api_spec={
            "api_groups": [
                {
                    "group_name": "Hives",
                    "endpoints": [
                        {"path": "/hives", "method": "GET", "operation_id": "list_hives", "request_params": {}},
                        {
                            "path": "/hives",
                            "method": "POST",
                            "operation_id": "add_hive",
                            "request_params": {"label": {"type": "string", "param_type": "body", "required": True}},
                        },
                    ],
                }
            ]
        },
        tasks=[Task(task_id=0, instruction="Set up a hive called South.")],
        verifiers={(0, "code"): VERIFIER.lstrip()},
        solutions={0: Solution(calls=[ToolCall(tool="add_hive", arguments={"label": "South"})])},
    )
