"""The small environment that the synthesis is tested with, its parts changed at will, and runs of it without any engine."""

import json
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from awm_factory.bundle import Solution
from awm_factory.llm.protocol import ModelReply, ModelRequest
from awm_factory.synthesis.artifacts import ApiSpec, SampleData, Scenario, Schema, VerifierPair
from awm_factory.synthesis.draft import Draft
from awm_factory.synthesis.report import Row
from awm_factory.synthesis.scripted import ScriptedModel
from awm_factory.synthesis.workbench import TableRows, read_rows
from awm_runtime.contract import Column, LoadReply, Table

DATA = Path(__file__).parent / "data" / "synthesis"
ANSWERS = DATA / "answers"
SHELF = ANSWERS / "tool_shelf"


def part(name: str) -> Any:
    path = SHELF / name
    return json.loads(path.read_text()) if path.suffix == ".json" else path.read_text()


def shelf(**changes: Any) -> Draft:
    """The tool library, finished; `changes` replace parts of the draft."""
    solutions = {entry.pop("task_id"): Solution.model_validate(entry) for entry in part("solutions.json")}
    return Draft(
        scenario=Scenario.model_validate(part("scenario.json")),
        tasks=tuple(part("tasks.json")),
        schema=Schema.model_validate(part("schema.json")),
        data=SampleData.model_validate(part("data.json")),
        spec=part("spec.json"),
        code=part("code.py"),
        verifiers={n: VerifierPair(code=part(f"verifiers/{n}.code.py"), sql=part(f"verifiers/{n}.sql.py")) for n in range(3)},
        solutions=solutions,
    ).with_(**changes)


def api(**changes: Any) -> ApiSpec:
    return ApiSpec.model_validate(part("spec.json") | changes)


def changed(text: str, *pairs: tuple[str, str]) -> str:
    """The text with each first thing turned into the second; a thing that is not there is a mistake of the test's."""
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


def rows_of(schema: Iterable[str], data: Iterable[str] = ()) -> dict[str, TableRows]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for sql in (*schema, *data):
            connection.execute(sql)
        connection.commit()
        return read_rows(connection.serialize())


def shelf_rows(*pairs: tuple[str, str]) -> dict[str, TableRows]:
    """The tool library's start state, its statements changed."""
    draft = shelf()
    assert draft.schema is not None
    assert draft.data is not None
    statements = "\n".join(draft.data.statements)
    return rows_of(draft.schema.statements, changed(statements, *pairs).split("\n"))


def loaded(tables: Iterable[str] = ("users",), **changes: Any) -> LoadReply:
    fields: dict[str, Any] = {
        "failures": [],
        "statements_total": {"schema": 1, "data": 1},
        "schema_sql": [],
        "seed_sql": [],
        "moving": [],
        "db": "",
        "dump_sha256": "",
        "integrity": [],
        "dangling": [],
        "tables": [
            Table(name=name, columns=[Column(name="id", type="INTEGER", not_null=False, primary_key=True, default=None)], rows=0)
            for name in tables
        ],
    }
    return LoadReply.model_validate(fields | changes)


class Edited:
    """The scripted model, with some answers changed on their way."""

    name = "scripted"

    def __init__(self, edit: Callable[[ModelRequest, str], str], root: Path = ANSWERS) -> None:
        self._inner = ScriptedModel(root)
        self._edit = edit
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        reply = await self._inner.complete(request)
        return reply.model_copy(update={"raw": self._edit(request, reply.raw)})


class Quiet:
    """Progress that nobody watches."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, str]] = []

    def stage(self, env_id: str, stage: str) -> None:
        self.stages.append((env_id, stage))

    def done(self, row: Row) -> None:
        pass


async def each(drafts: Iterable[Draft]) -> AsyncIterator[Draft]:
    for draft in drafts:
        yield draft


def said(problems: Iterable[Any]) -> str:
    return re.sub(r"\s+", " ", "\n".join(map(str, problems)))
