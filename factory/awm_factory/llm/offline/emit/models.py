"""The Pydantic models of a service: what requests bring and answers hold."""

from collections.abc import Iterator, Sequence

from awm_factory.llm.offline.emit.expressions import written
from awm_factory.llm.offline.emit.layout import wrapped
from awm_factory.llm.offline.emit.names import Names
from awm_factory.llm.offline.emit.tables import quoted
from awm_factory.llm.offline.ir import Column, Entity, Operation, Param, Show
from awm_factory.llm.offline.steps import Field, ReturnRecord, ReturnRow, ReturnTable
from awm_factory.llm.offline.words import camel

MOST_INT, MOST_CENTS = 1_000_000, 100_000_000
"""What a number may be at most, where nothing is said: far from what the database can't hold."""


def out(names: Names, entity: Entity) -> list[str]:
    """The model of an entity's rows."""
    lines = [f"class {names.out(entity.role)}(Answer):", f'    id: int = Field(description="Id of the {entity.noun}")']
    for column in entity.columns:
        lines += _out_field(names, entity, column)
    for show in entity.shows:
        lines += _out_field(names, entity, show)
    return wrapped(lines)


def _out_field(names: Names, entity: Entity, column: Column | Show) -> list[str]:
    about = quoted(column.about or column.name.strip("_").replace("_", " ").capitalize())
    if isinstance(column, Column):
        kind = names.literal(entity, column) if column.choices else written(column)
        optional = column.null
    else:
        kind, optional = written(Column(column.key, column.kind)), " if " in column.expr
    if optional:
        return [f"    {column.name}: {kind} | None = Field(None, description={about})"]
    return [f"    {column.name}: {kind} = Field(description={about})"]


def detail(names: Names, operation: Operation, role: str) -> list[str]:
    """Rows with those that belong to them."""
    assert isinstance(operation.returns, ReturnRow)
    lines = [f"class {detail_name(names, operation, role)}({names.out(role)}):"]
    for child, _ in operation.returns.children:
        nouns = names.domain.entity(child).nouns
        lines.append(f'    {names.children(child)}: list[{names.out(child)}] = Field(description="Its {nouns}")')
    return wrapped(lines)


def detail_name(names: Names, operation: Operation, role: str) -> str:
    """All operations that answer with children of a role answer with the same."""
    assert isinstance(operation.returns, ReturnRow)
    return names.out(role, detail=True)


def records(names: Names, operation: Operation) -> list[str]:
    """The models of a report."""
    match operation.returns:
        case ReturnRecord(fields=fields):
            return wrapped([f"class {names.record(operation)}(BaseModel):", *_record(fields)])
        case ReturnTable(fields=fields):
            row = names.record(operation, "Row")
            return wrapped(
                [
                    f"class {row}(BaseModel):",
                    *_record(fields),
                    "",
                    "",
                    f"class {names.record(operation)}(BaseModel):",
                    f"    rows: list[{row}]",
                ]
            )
    return []


def _record(fields: Sequence[Field]) -> Iterator[str]:
    for field in fields:
        about = quoted(field.about or field.name.replace("_", " ").capitalize())
        optional = " | None" if " if " in field.expr or field.expr.startswith(("highest(", "lowest(")) else ""
        yield f"    {field.name}: {written(Column(field.key, field.kind))}{optional} = Field(description={about})"


def body(names: Names, operation: Operation) -> list[str]:
    """The model of a request's body, after those of the lists in it."""
    params = [param for param in operation.params if param.where == "body"]
    lines: list[str] = []
    for param in params:
        if param.items:
            lines += [f"class {item_name(names, operation, param)}(BaseModel):"]
            lines += [in_field(names, operation, item) for item in param.items]
            lines += ["", ""]
    lines.append(f"class {names.body(operation)}(BaseModel):")
    lines += [in_field(names, operation, param) for param in params]
    return wrapped(lines)


def item_name(names: Names, operation: Operation, param: Param) -> str:
    return f"{names.body(operation).removesuffix('In')}{camel(param.name.removesuffix('s'))}In"


def in_field(names: Names, operation: Operation, param: Param) -> str:
    return f"    {param.name}: {annotation(names, operation, param)}{_default(param, 'Field')}"


def in_query(names: Names, operation: Operation, param: Param) -> str:
    """As an argument of a handler, query or path."""
    kind = "Path" if param.where == "path" else "Query"
    inner = ", ".join([*limits(param), f"description={quoted(param.about or param.name.replace('_', ' ').capitalize())}"])
    default = "" if param.required else f" = {_value(param)}"
    return f"    {param.name}: Annotated[{annotation(names, operation, param)}, {kind}({inner})]{default},"


def annotation(names: Names, operation: Operation, param: Param) -> str:
    if param.kind == "list":
        kind = f"list[{item_name(names, operation, param)}]"
    elif param.kind == "ref":
        kind = "Id"
    elif param.choices:
        kind = _literal(names, operation, param)
    else:
        kind = {"int": "int", "money": "int", "bool": "bool", "date": "Day", "datetime": "Moment"}.get(param.kind, "str")
    return f"{kind} | None" if not param.required and param.default is None else kind


def _literal(names: Names, operation: Operation, param: Param) -> str:
    """The type that a column of the same words has, or one of its own."""
    entities = [names.domain.entity(operation.entity), *names.domain.entities.values()]
    for entity in entities:
        for column in entity.columns:
            if column.choices == param.choices:
                return names.literal(entity, column)
    return f"Literal[{', '.join(quoted(value) for value in param.choices)}]"


def limits(param: Param) -> list[str]:
    if param.kind in ("int", "money"):
        most = MOST_INT if param.kind == "int" else MOST_CENTS
        low = param.low if param.low is not None else -most
        return [f"ge={_digits(low)}", f"le={_digits(param.high if param.high is not None else most)}"]
    if param.kind in ("text", "list") and not param.choices:
        found = [f"min_length={param.low}"] if param.low is not None else []
        return [*found, f"max_length={param.high}"] if param.high is not None else found
    return []


def _default(param: Param, function: str) -> str:
    inner = [*limits(param), f"description={quoted(param.about or param.name.replace('_', ' ').capitalize())}"]
    if not param.required:
        inner.insert(0, _value(param))
    return f" = {function}({', '.join(inner)})"


def _value(param: Param) -> str:
    return quoted(param.default) if isinstance(param.default, str) else repr(param.default)


def _digits(number: int) -> str:
    return f"{number:_}" if abs(number) >= 100_000 else str(number)
