"""Two environments small enough for a model of a hundred thousand weights: a shelf of books, and a bee yard."""

import json
from pathlib import Path

from awm_factory.bundle import Solution
from awm_runtime.contract import WORLD_TIME, ToolCall
from runtime_support import database

_APP = """
import os
from fastapi import FastAPI
from pydantic import BaseModel
from sqlalchemy import Column, Integer, String, create_engine
from sqlalchemy.orm import declarative_base, sessionmaker

engine = create_engine(os.environ.get("DATABASE_PATH") or "sqlite:///x.db")
Session = sessionmaker(bind=engine)
Base = declarative_base()
app = FastAPI()


class Row(Base):
    __tablename__ = "TABLE"
    id = Column(Integer, primary_key=True)
    name = Column(String)


class New(BaseModel):
    name: str


@app.get("/TABLE", operation_id="list_TABLE", summary="All TABLE")
def everything() -> list[dict]:
    with Session() as session:
        return [{"id": row.id, "name": row.name} for row in session.query(Row)]


@app.post("/TABLE", operation_id="add_ONE", summary="Add a ONE")
def add(body: New) -> dict:
    with Session() as session:
        row = Row(name=body.name)
        session.add(row)
        session.commit()
        return {"id": row.id}
"""

_VERIFIER = """
def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    import sqlite3
    rows = sqlite3.connect(f"file:{final_db_path}?mode=ro", uri=True).execute("SELECT name FROM TABLE ORDER BY id").fetchall()
    return {"result": "complete" if rows == [("FIRST",), ("NAME",)] else "others"}
"""

WORLDS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "book_shelf": ("books", "book", ("Emma", "Ulysses")),
    "bee_yard": ("hives", "hive", ("North", "South")),
}
"""Table, word for one of its rows, and the names that the tasks want to be added."""


def write(env_id: str, directory: Path) -> Path:
    """The files that an image has under /env."""
    table, one, names = WORLDS[env_id]
    (directory / "verifiers").mkdir(parents=True)
    (directory / "manifest.json").write_text(json.dumps({"env_id": env_id, "scenario": env_id, "world_time": WORLD_TIME}))
    (directory / "app.py").write_text(_APP.replace("TABLE", table).replace("ONE", one))
    sql = f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO {table} VALUES (1, 'First');"
    (directory / "seed.db").write_bytes(database(sql))
    tasks = [{"task_id": number, "instruction": instruction(env_id, name)} for number, name in enumerate(names)]
    (directory / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    for number, name in enumerate(names):
        verifier = _VERIFIER.replace("TABLE", table).replace("FIRST", "First").replace("NAME", name)
        (directory / "verifiers" / f"{number}.code.py").write_text(verifier)
    return directory


def instruction(env_id: str, name: str) -> str:
    return f"Add the {WORLDS[env_id][1]} {name}."


def tasks() -> list[tuple[str, int]]:
    return [(env_id, number) for env_id, (_, _, names) in WORLDS.items() for number in range(len(names))]


def solutions(*, right: bool = True) -> dict[str, Solution]:
    """By instruction; wrong ones add the name that another task wants."""
    found = {}
    for env_id, (table, one, names) in WORLDS.items():
        for number, name in enumerate(names):
            added = name if right else names[number - 1]
            calls = [ToolCall(tool=f"list_{table}", arguments={}), ToolCall(tool=f"add_{one}", arguments={"name": added})]
            found[instruction(env_id, name)] = Solution(calls=calls, final_answer="Done.")
    return found
