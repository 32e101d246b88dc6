"""The service's code, read without running it: its tables, request models and handlers, and which columns it ever writes.

Only what common FastAPI and SQLAlchemy code says plainly is read; what is built at run time is left open, and the rules
that use this say nothing about it.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from awm_factory import syntax

Parser = Callable[[str], ast.Module]
"""Where the code runs on a newer Python than this one, that one's; see `sandbox.parsing`."""
_HTTP = {"get", "post", "put", "patch", "delete"}


@dataclass
class OrmModel:
    name: str
    table: str
    columns: dict[str, str] = field(default_factory=dict)
    """Attribute to column name."""
    types: dict[str, str] = field(default_factory=dict)
    """Attribute to type as written: `DateTime`, `Date`, `String`."""
    nullable: set[str] = field(default_factory=set)
    """Attributes that may be None."""


@dataclass
class RequestModel:
    name: str
    bases: list[str]
    fields: dict[str, ast.expr] = field(default_factory=dict)
    defaults: set[str] = field(default_factory=set)


@dataclass
class Handler:
    name: str
    operation_id: str
    method: str
    path: str
    node: ast.AsyncFunctionDef | ast.FunctionDef
    response_model: str | None


@dataclass
class Service:
    tree: ast.Module
    orm: dict[str, OrmModel]
    models: dict[str, RequestModel]
    handlers: list[Handler]

    def model_of_table(self, table: str) -> OrmModel | None:
        return next((model for model in self.orm.values() if model.table.lower() == table.lower()), None)

    @cached_property
    def written(self) -> dict[str, set[str] | None]:
        """Columns that the code writes, by lower-case table; None where it fills a row in a way that can't be read."""
        return _written(self)


@lru_cache(maxsize=8)
def read(code: str, parse: Parser = syntax.module) -> Service:
    """Kept for the verifiers of one environment, which all ask. Raises SyntaxError."""
    tree = parse(code)
    orm: dict[str, OrmModel] = {}
    models: dict[str, RequestModel] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            table = _table_name(node)
            if table is not None:
                orm[node.name] = _orm(node, table)
            else:
                models[node.name] = _request_model(node)
    handlers = [handler for node in ast.walk(tree) for handler in _handlers(node)]
    return Service(tree, orm, models, handlers)


def _table_name(node: ast.ClassDef) -> str | None:
    for statement in node.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            for target in statement.targets:
                if isinstance(target, ast.Name) and target.id == "__tablename__":
                    return str(statement.value.value)
    return None


def _orm(node: ast.ClassDef, table: str) -> OrmModel:
    model = OrmModel(node.name, table)
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            attribute, annotation, value = statement.target.id, ast.unparse(statement.annotation), statement.value
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
            attribute, annotation, value = statement.targets[0].id, "", statement.value
        else:
            continue
        call = value if isinstance(value, ast.Call) else None
        is_column = call is not None and last_name(call.func) in {"Column", "mapped_column"}
        if not is_column and not (annotation.startswith(("Mapped[", "orm.Mapped[")) and value is None):
            continue
        model.columns[attribute] = attribute
        model.types[attribute] = _mapped_type(annotation)
        optional = "Optional" in annotation or "None" in annotation
        nullable = optional if annotation else True
        for argument in call.args if call else []:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                model.columns[attribute] = argument.value
            elif (kind := last_name(argument.func if isinstance(argument, ast.Call) else argument)) and kind != "ForeignKey":
                model.types[attribute] = kind
        for keyword in call.keywords if call else []:
            if keyword.arg == "nullable" and isinstance(keyword.value, ast.Constant):
                nullable = bool(keyword.value.value)
            if keyword.arg == "primary_key":
                nullable = False
        if nullable:
            model.nullable.add(attribute)
    return model


def _mapped_type(annotation: str) -> str:
    inner = re.sub(r"^(?:orm\.)?Mapped\[(.*)\]$", r"\1", annotation)
    inner = re.sub(r"Optional\[(.*)\]", r"\1", inner).replace("| None", "").strip().split(".")[-1]
    return {"datetime": "DateTime", "date": "Date", "Date": "Date", "str": "String", "int": "Integer", "float": "Float"}.get(
        inner, inner
    )


def _request_model(node: ast.ClassDef) -> RequestModel:
    model = RequestModel(node.name, [last_name(base) or "" for base in node.bases])
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            model.fields[statement.target.id] = statement.annotation
            if statement.value is not None:
                model.defaults.add(statement.target.id)
    return model


def _handlers(node: ast.AST) -> Iterator[Handler]:
    if not isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef):
        return
    for decorator in node.decorator_list:
        if (
            not isinstance(decorator, ast.Call)
            or not isinstance(decorator.func, ast.Attribute)
            or decorator.func.attr not in _HTTP
        ):
            continue
        words = {keyword.arg: keyword.value for keyword in decorator.keywords if keyword.arg}
        path = decorator.args[0] if decorator.args else words.get("path")
        named = words.get("operation_id")
        yield Handler(
            name=node.name,
            operation_id=str(named.value) if isinstance(named, ast.Constant) else node.name,
            method=decorator.func.attr.upper(),
            path=str(path.value) if isinstance(path, ast.Constant) else "",
            node=node,
            response_model=ast.unparse(words["response_model"]) if "response_model" in words else None,
        )


def _written(service: Service) -> dict[str, set[str] | None]:
    found: dict[str, set[str] | None] = {}
    by_attribute = [(model, attribute) for model in service.orm.values() for attribute in model.columns]

    def add(model: OrmModel, attribute: str) -> None:
        columns = found.setdefault(model.table.lower(), set())
        if columns is not None:
            columns.add(model.columns.get(attribute, attribute))

    for node in ast.walk(service.tree):
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            model = service.orm.get(name or "")
            if model is not None:
                if any(keyword.arg is None for keyword in node.keywords):
                    found[model.table.lower()] = None
                for keyword in node.keywords:
                    if keyword.arg:
                        add(model, keyword.arg)
            elif name in {"insert", "update", "delete", "setattr", "bulk_insert_mappings", "bulk_save_objects"}:
                mentioned = [
                    service.orm[part.id] for part in ast.walk(node) if isinstance(part, ast.Name) and part.id in service.orm
                ]
                for model in mentioned if name != "setattr" else service.orm.values():
                    found[model.table.lower()] = None
        elif isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            attributes = [target.attr for target in targets if isinstance(target, ast.Attribute)]
            for attribute in attributes:
                for model, known in by_attribute:
                    if known == attribute:
                        add(model, attribute)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            for table in re.findall(r"\b(?:INSERT\s+INTO|UPDATE)\s+[\"`]?(\w+)", node.value, re.I):
                found[table.lower()] = None
    return found


def last_name(node: ast.AST) -> str | None:
    """`sa.Column` and `Column` are both `Column`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None
