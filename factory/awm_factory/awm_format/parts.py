"""From a record's JSON to what a bundle is made of. Fields AWM does not know are passed over here; source/ keeps them."""

import ast
import re
import warnings
from dataclasses import dataclass
from typing import TypeVar

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from awm_factory import syntax
from awm_factory.bundle import Task
from awm_factory.errors import FormatError
from awm_runtime.contract import Statement, VerifierMode

FUNCTIONS: dict[str, VerifierMode] = {"verify_task_completion": "code", "verify_task": "sql"}
_DEFINITION = re.compile(r"^(?:async\s+)?def\s+(verify_task(?:_completion)?)\s*\(", re.MULTILINE)
_INSTRUCTION_KEYS = ("instruction", "task", "description", "text")
_TASK_ID_KEYS = ("task_id", "task_idx", "index", "id")
_SURROGATE = re.compile("[\ud800-\udfff]")
_M = TypeVar("_M", bound=BaseModel)


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class _Table(_Lenient):
    name: str = Field(validation_alias=AliasChoices("name", "table_name"))
    ddl: str | None = None
    indexes: list[str] | None = None


class _Schema(_Lenient):
    tables: list[_Table]


class _DbRecord(_Lenient):
    db_schema: _Schema


class _Inserts(_Lenient):
    table_name: str = Field(validation_alias=AliasChoices("table_name", "name"))
    insert_statements: list[str] | None = None


class _Sample(_Lenient):
    tables: list[_Inserts]


class _SampleRecord(_Lenient):
    sample_data: _Sample


class _EnvsRecord(_Lenient):
    full_code: str


class _ScenarioRecord(_Lenient):
    description: str | None = None


class _SpecRecord(_Lenient):
    api_spec: JsonValue


class _TasksRecord(_Lenient):
    tasks: list[str | dict[str, JsonValue] | None]


class _Verification(_Lenient):
    code: str | None = None


class _VerifierRecord(_Lenient):
    task_idx: int = Field(ge=0, validation_alias=AliasChoices("task_idx", "task_id"))
    task: str | None = None
    verification: _Verification | None = None


@dataclass(frozen=True)
class Verifier:
    """One verifier record, its mode found."""

    task_id: int
    instruction: str | None
    code: str | None
    mode: VerifierMode
    defined: bool
    """False where the mode had to be guessed by the file's name, because the code defines neither function."""


def schema_statements(record: JsonValue) -> list[Statement]:
    """Table by table: its DDL, then its indexes."""
    tables = _validate(_DbRecord, record).db_schema.tables
    return _numbered([(table.name, sql) for table in tables for sql in (table.ddl or "", *(table.indexes or []))])


def data_statements(record: JsonValue) -> list[Statement]:
    tables = _validate(_SampleRecord, record).sample_data.tables
    return _numbered([(table.table_name, sql) for table in tables for sql in table.insert_statements or []])


def app_code(record: JsonValue) -> str:
    return encodable(_validate(_EnvsRecord, record).full_code, "`full_code`")


def description(record: JsonValue) -> str:
    text = _validate(_ScenarioRecord, record).description or ""
    return encodable(text, "`description`")


def api_spec(record: JsonValue) -> JsonValue:
    """Not looked into: comparing it with the app's routes is a gate's work."""
    return _validate(_SpecRecord, record).api_spec


def tasks(record: JsonValue) -> tuple[list[Task], list[int]]:
    """The tasks, and the positions that hold none; the others keep their index."""
    found: list[Task] = []
    empty: list[int] = []
    for position, entry in enumerate(_validate(_TasksRecord, record).tasks):
        text, task_id = entry, position
        if isinstance(entry, dict):
            text = next((value for key in _INSTRUCTION_KEYS if isinstance(value := entry.get(key), str)), None)
            task_id = next((value for key in _TASK_ID_KEYS if type(value := entry.get(key)) is int), position)
        if not isinstance(text, str) or not text.strip():
            empty.append(position)
        elif task_id < 0 or any(task.task_id == task_id for task in found):
            raise FormatError(f"`tasks[{position}]` has the index {task_id}, which another task has or no task can have")
        else:
            found.append(Task(task_id=task_id, instruction=encodable(text, f"`tasks[{position}]`")))
    return found, empty


def verifier(record: JsonValue, file: str) -> Verifier:
    parsed = _validate(_VerifierRecord, record)
    code = parsed.verification.code if parsed.verification else None
    mode = _mode(code or "")
    return Verifier(
        task_id=parsed.task_idx,
        instruction=parsed.task,
        code=encodable(code, "`verification.code`") if code and code.strip() else None,
        mode=mode or ("code" if file.endswith("pure_code") else "sql"),
        defined=mode is not None,
    )


def encodable(text: str, where: str) -> str:
    if _SURROGATE.search(text):
        raise FormatError(f"{where} holds half a character (a lone surrogate), which no file can hold")
    return text


def _mode(code: str) -> VerifierMode | None:
    """By the function defined at the top. Code that this Python can't parse is left for the sandbox to judge.

    With both functions there, the one that gives a verdict counts: the other is its helper.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = syntax.module(code).body
        names = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        names = set(_DEFINITION.findall(code))
    return next((mode for name, mode in FUNCTIONS.items() if name in names), None)


def _numbered(statements: list[tuple[str, str]]) -> list[Statement]:
    counts: dict[str, int] = {}
    numbered = []
    for table, sql in statements:
        index = counts.setdefault(table, 0)
        counts[table] += 1
        numbered.append(
            Statement(sql=encodable(sql, f"statement {index} of {table}"), table=encodable(table, "a table's name"), index=index)
        )
    return numbered


def _validate(model: type[_M], record: JsonValue) -> _M:
    try:
        return model.model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
        raise FormatError(f"`{where}`: {first['msg'][:1].lower()}{first['msg'][1:]}") from error
