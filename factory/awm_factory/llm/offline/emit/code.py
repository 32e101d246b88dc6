"""The service as one file, in AWM's form: FastAPI, SQLAlchemy, Pydantic."""

import re
from typing import Final

from awm_factory.llm.offline.emit import models
from awm_factory.llm.offline.emit.handlers import Handler
from awm_factory.llm.offline.emit.names import Names
from awm_factory.llm.offline.emit.shared import HELPERS, NEEDS, TYPES
from awm_factory.llm.offline.emit.spec import row_role
from awm_factory.llm.offline.emit.tables import has_body, literals, quoted, tables
from awm_factory.llm.offline.ir import Domain, Operation
from awm_factory.llm.offline.steps import ReturnRow

_ENGINE: Final = """
engine = create_engine(
    os.getenv("DATABASE_PATH", "sqlite:///./app.db"),
    connect_args={"check_same_thread": False},
)


@event.listens_for(engine, "connect")
def enforce_foreign_keys(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA foreign_keys = ON")


SessionLocal = sessionmaker(bind=engine)
"""
_BASE: Final = """
class Base(DeclarativeBase):
    id: Mapped[int] = mapped_column(primary_key=True)
"""
_SESSION: Final = """
async def get_session() -> AsyncIterator[Session]:
    with SessionLocal() as session:
        yield session


Db = Annotated[Session, Depends(get_session)]
"""
_ANSWERS: Final = """
class Answer(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class Page(Answer, Generic[Item]):
    items: list[Item] = Field(description="The rows of this page")
    total: int = Field(description="Rows on all pages together")
    limit: int = Field(description="Rows of a page")
    offset: int = Field(description="Rows left out before the first")
"""
_PAGING: Final = """
Limit = Annotated[int, Query(ge=1, le=100, description="Rows of a page")]
Offset = Annotated[int, Query(ge=0, le=1_000_000, description="Rows to leave out before the first")]
"""
_MAIN: Final = """
if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host=os.getenv("HOST", "127.0.0.1"), port=int(os.getenv("PORT", "8000")))
"""


def code(domain: Domain) -> str:
    names = Names(domain)
    helpers: set[str] = set()
    table_lines = tables(names, helpers)
    sections = _sections(names, helpers)
    shared = _shared(names, helpers, "\n".join([*table_lines, *sections]))
    parts = [
        _ENGINE.strip(),
        _app(domain),
        "\n".join(_constants(names, "\n".join([*sections, shared]))),
        "\n".join(literals(names)),
        "# Tables",
        _BASE.strip(),
        "\n".join(table_lines).strip(),
        "# Shared by all endpoints",
        shared,
        "\n".join(sections).strip(),
        _MAIN.strip(),
    ]
    text = ""
    for part in parts:
        compact = not part.startswith(("class ", "def ", "async ", "@", "#", "if __name__"))
        text += ("\n\n" if compact else "\n\n\n") * bool(text) + part
    return f"{_imports(text)}\n\n{text}\n"


def _app(domain: Domain) -> str:
    about = " ".join([domain.description, *(rule.text for rule in domain.rules)])
    described = "\n".join(f"        {quoted(line)}" for line in _lines(about))
    return f'app = FastAPI(\n    title={quoted(domain.name)},\n    version="1.0.0",\n    description=(\n{described}\n    ),\n)'


def _lines(text: str) -> list[str]:
    """Broken at spaces, each but the last with the space that it was broken at."""
    lines, line = [], ""
    for word in text.split():
        if len(line) + len(word) > 100:
            lines.append(line)
            line = ""
        line += f"{word} "
    return [*lines, line.rstrip()]


def _constants(names: Names, body: str) -> list[str]:
    lines = ["CURRENT_USER_ID = 1"] if "CURRENT_USER_ID" in body else []
    if "CURRENCY" in body:
        lines.append(f'CURRENCY = "{names.domain.currency}"')
    for (module, key), name in names.constants.items():
        if re.search(rf"\b{name}\b", body):
            lines.append(f"{name} = {names.domain.policies[module][key]}")
    return lines or ["CURRENT_USER_ID = 1"]


def _shared(names: Names, helpers: set[str], body: str) -> str:
    for name in sorted(helpers):
        helpers |= set(NEEDS.get(name, ()))
    if "Moment" in body:
        helpers.add("to_utc")
    found = [_SESSION.strip()]
    variables = [f'{name} = TypeVar("{name}"{bound})' for name, bound in (("Row", ", bound=Base"), ("Item", ""))]
    found.append("\n".join(variables))
    for name, source in HELPERS.items():
        if name in helpers:
            text = source.strip()
            if name == "record":
                text = text.replace("ACTIVITY", names.model("activity"))
            found.append(text)
    types = [source for name, source in TYPES.items() if re.search(rf"\b{name}\b", body)]
    found.append("\n".join([*types, _PAGING.strip()]))
    found.append(_ANSWERS.strip())
    return "\n\n\n".join(found)


def _sections(names: Names, helpers: set[str]) -> list[str]:
    """One a tag: models first, then its endpoints; fixed paths before those with a parameter."""
    groups: dict[str, list[Operation]] = {}
    for operation in names.domain.operations.values():
        groups.setdefault(operation.tag, []).append(operation)
    lines: list[str] = []
    made: set[str] = set()
    needed = _answers(names)
    for tag, operations in groups.items():
        lines += ["", "", f"# {tag[:1].upper()}{tag[1:]}"]
        ordered = sorted(operations, key=lambda operation: "{" in operation.path)
        for role in needed[tag]:
            if names.out(role) not in made:
                made.add(names.out(role))
                lines += ["", "", *models.out(names, names.domain.entity(role))]
        for operation in ordered:
            if isinstance(operation.returns, ReturnRow) and operation.returns.children:
                role = row_role(operation, operation.returns.var)
                name = models.detail_name(names, operation, role)
                if name not in made:
                    made.add(name)
                    lines += ["", "", *models.detail(names, operation, role)]
            if own := models.records(names, operation):
                lines += ["", "", *own]
            if has_body(operation):
                lines += ["", "", *models.body(names, operation)]
        for operation in ordered:
            lines += ["", "", *Handler(names, operation, helpers).lines()]
    return lines


def _answers(names: Names) -> dict[str, list[str]]:
    """By tag, the roles whose rows its operations answer with."""
    found: dict[str, list[str]] = {}
    for operation in names.domain.operations.values():
        mine = found.setdefault(operation.tag, [])
        if operation.kind == "list":
            mine.append(operation.entity)
        elif isinstance(operation.returns, ReturnRow):
            mine += [*(role for role, _ in operation.returns.children), row_role(operation, operation.returns.var)]
    return {tag: list(dict.fromkeys(roles)) for tag, roles in found.items()}


_STANDARD: Final = (
    ("calendar", ("monthrange",)),
    ("collections.abc", ("AsyncIterator",)),
    ("datetime", ("date", "datetime", "time", "timedelta", "timezone")),
    ("typing", ("Annotated", "Any", "Generic", "Literal", "Optional", "TypeVar")),
)
_PACKAGES: Final = (
    ("fastapi", ("Depends", "FastAPI", "HTTPException", "Path", "Query")),
    ("pydantic", ("AfterValidator", "BaseModel", "ConfigDict", "Field")),
    (
        "sqlalchemy",
        ("ColumnElement", "ForeignKey", "Select", "UniqueConstraint", "and_", "create_engine", "event", "func", "or_", "select"),
    ),
    ("sqlalchemy.orm", ("DeclarativeBase", "Mapped", "Session", "mapped_column", "relationship", "sessionmaker")),
)


def _imports(body: str) -> str:
    """What the body uses, in the order that isort would give it."""
    used = set(re.findall(r"(?<![\w.\"])[A-Za-z_]\w*(?=\b)", re.sub(r'(?<!Mapped\[)f?"[^"\n]*"', _inner, body)))
    blocks = []
    for group in (_STANDARD, _PACKAGES):
        lines = ["import os"] if group is _STANDARD else []
        for module, names in group:
            if mine := [name for name in names if name in used]:
                line = f"from {module} import {', '.join(mine)}"
                lines.append(line if len(line) <= 120 else f"from {module} import (\n    " + ",\n    ".join(mine) + ",\n)")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _inner(match: re.Match[str]) -> str:
    """Of a string only what stands in the braces of an f-string."""
    return " ".join(re.findall(r"\{([^}]*)\}", match[0])) if match[0].startswith("f") else ""
