"""The SQLAlchemy models of a service."""

from collections.abc import Iterator

from awm_factory.llm.offline.emit.expressions import Known, Printer, written
from awm_factory.llm.offline.emit.layout import wrapped
from awm_factory.llm.offline.emit.names import Names
from awm_factory.llm.offline.ir import Column, Domain, Entity, Operation
from awm_factory.llm.offline.steps import ReturnRow


def literals(names: Names) -> list[str]:
    """`ReservationStatus = Literal["reserved", …]` for every column that has its own words."""
    return wrapped(
        f"{names.literal(entity, column)} = Literal[{', '.join(quoted(value) for value in column.choices)}]"
        for entity in names.domain.entities.values()
        for column in entity.columns
        if column.choices
    )


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def collections(domain: Domain) -> dict[str, list[tuple[str, str]]]:
    """By parent role, the (child role, column) pairs that some answer shows with the parent."""
    found: dict[str, list[tuple[str, str]]] = {}
    for operation in domain.operations.values():
        if isinstance(operation.returns, ReturnRow):
            for role, key in operation.returns.children:
                mine = found.setdefault(domain.entity(role).column(key).ref, [])
                if (role, key) not in mine:
                    mine.append((role, key))
    return found


def tables(names: Names, helpers: set[str]) -> list[str]:
    shown = collections(names.domain)
    lines: list[str] = []
    for entity in names.domain.entities.values():
        lines += ["", "", *wrapped(_class(names, entity, shown, helpers))]
    return lines


def _class(names: Names, entity: Entity, shown: dict[str, list[tuple[str, str]]], helpers: set[str]) -> Iterator[str]:
    yield f"class {names.model(entity.role)}(Base):"
    if entity.about:
        yield f'    """{entity.about}"""'
        yield ""
    yield f'    __tablename__ = "{entity.plural}"'
    if entity.uniques:
        uniques = [
            f"UniqueConstraint({', '.join(quoted(entity.column(key).name) for key in unique)})" for unique in entity.uniques
        ]
        yield f"    __table_args__ = ({', '.join(uniques)},)"
    yield ""
    yield from (_column(names, column) for column in entity.columns)
    relations = [*_references(names, entity, shown), *_children(names, entity, shown.get(entity.role, []))]
    if relations:
        yield ""
        yield from relations
    printer = Printer(names, entity.role.partition(".")[0], {"self": Known("self", entity.role)}, helpers)
    for show in entity.shows:
        kind = written(Column(show.key, show.kind))
        yield ""
        yield "    @property"
        optional = " | None" if " if " in show.expr else ""
        yield f"    def {show.name}(self) -> {kind}{optional}:"
        yield f"        return {printer.text(show.expr)}"


def _column(names: Names, column: Column) -> str:
    kind = written(column) + (" | None" if column.null else "")
    arguments = []
    if column.kind == "ref":
        rule = ', ondelete="CASCADE"' if column.owned else ""
        arguments.append(f'ForeignKey("{names.domain.entity(column.ref).plural}.id"{rule})')
    if column.unique:
        arguments.append("unique=True")
    if column.default is not None:
        value = quoted(column.default) if isinstance(column.default, str) else repr(column.default)
        arguments.append(f"default={value}")
    return f"    {column.name}: Mapped[{kind}]" + (f" = mapped_column({', '.join(arguments)})" if arguments else "")


def _references(names: Names, entity: Entity, shown: dict[str, list[tuple[str, str]]]) -> Iterator[str]:
    targets = [column.ref for column in entity.columns if column.kind == "ref"]
    for column in entity.columns:
        if column.kind != "ref":
            continue
        model = names.model(column.ref)
        quoted_model = f'"{model}"'
        kind = f"Optional[{quoted_model}]" if column.null else quoted_model
        arguments = []
        if targets.count(column.ref) > 1:
            arguments.append(f"foreign_keys=[{column.name}]")
        if column.ref == entity.role:
            arguments.append(f'remote_side="{model}.id"')
        if (entity.role, column.key) in shown.get(column.ref, []):
            arguments.append(f'back_populates="{names.children(entity.role)}"')
        yield f"    {names.reference(column)}: Mapped[{kind}] = relationship({', '.join(arguments)})"


def _children(names: Names, entity: Entity, pairs: list[tuple[str, str]]) -> Iterator[str]:
    for role, key in pairs:
        child = names.domain.entity(role)
        model, column = names.model(role), child.column(key)
        arguments = []
        if sum(other.ref == entity.role for other in child.columns) > 1:
            arguments.append(f'foreign_keys="{model}.{column.name}"')
        arguments += [f'order_by="{model}.id"', f'back_populates="{names.reference(column)}"']
        if column.owned:
            arguments.append("passive_deletes=True")
        yield f'    {names.children(role)}: Mapped[list["{model}"]] = relationship({", ".join(arguments)})'


def has_body(operation: Operation) -> bool:
    return any(param.where == "body" for param in operation.params)
