"""The API in AWM's form, from which an agent's tools are read before any code serves them."""

import re
from collections.abc import Iterable
from typing import Any, Final

from awm_factory.llm.offline.emit.names import Names
from awm_factory.llm.offline.ir import Column, Domain, Entity, Operation, Param, Show
from awm_factory.llm.offline.state import LIMIT, World, plain
from awm_factory.llm.offline.steps import (
    Change,
    Each,
    Field,
    Fill,
    Find,
    Insert,
    Load,
    ReturnPage,
    ReturnRecord,
    ReturnRow,
    ReturnTable,
    Step,
    When,
)

_TYPES: Final = {
    "int": "integer",
    "money": "integer",
    "ref": "integer",
    "bool": "boolean",
    "date": "date",
    "datetime": "datetime",
    "list": "array",
}


def spec(world: World) -> dict[str, Any]:
    """Examples are values of the start state."""
    names = Names(world.domain)
    groups: dict[str, list[dict[str, Any]]] = {}
    for operation in world.domain.operations.values():
        groups.setdefault(operation.tag, []).append(_endpoint(operation, world, names))
    return {
        "api_groups": [
            {"group_name": tag[:1].upper() + tag[1:], "endpoints": sorted(endpoints, key=_has_parameter)}
            for tag, endpoints in groups.items()
        ]
    }


def _has_parameter(endpoint: dict[str, Any]) -> bool:
    """Fixed paths stand before those with a parameter."""
    return "{" in endpoint["path"]


def wire_path(operation: Operation) -> str:
    """The path with its parameters by name."""
    return re.sub(r"\{(\w+)\}", lambda match: f"{{{operation.param(match[1]).name}}}", operation.path)


def _endpoint(operation: Operation, world: World, names: Names) -> dict[str, Any]:
    domain = world.domain
    params = {param.name: _param(param, operation, world) for param in operation.params}
    if operation.kind == "list":
        params["limit"] = _page_param(f"Rows of a page, {LIMIT} unless said otherwise", LIMIT)
        params["offset"] = _page_param("Rows to leave out before the first", 0)
    tables: dict[str, list[str]] = {}
    for role in _entities(operation):
        entity = domain.entity(role)
        tables[entity.plural] = ["id", *(column.name for column in entity.columns)] if role == operation.entity else ["id"]
    return {
        "path": wire_path(operation),
        "method": operation.method,
        "summary": operation.summary,
        "description": operation.description,
        "operation_id": operation.name,
        "tags": [operation.tag],
        "request_params": params,
        "response": _response(operation, domain, names),
        "required_tables": list(tables),
        "required_fields": tables,
    }


def _page_param(about: str, example: int) -> dict[str, Any]:
    return {"type": "integer", "param_type": "query", "required": False, "description": about, "example": example}


def _param(param: Param, operation: Operation, world: World) -> dict[str, Any]:
    about = param.about or f"{param.name.replace('_', ' ').capitalize()}"
    if param.choices:
        about = f"{about}: {', '.join(param.choices)}"
    found: dict[str, Any] = {
        "type": _TYPES.get(param.kind, "string"),
        "param_type": param.where,
        "required": param.required,
        "description": about,
        "example": _example(param, operation, world),
    }
    if param.items:
        found["items"] = {item.name: _param(item, operation, world) for item in param.items}
    return found


def _example(param: Param, operation: Operation, world: World) -> Any:
    if param.kind == "list":
        return [{item.name: _example(item, operation, world) for item in param.items}]
    if param.choices:
        return param.choices[0]
    if param.ref:
        return next((row["id"] for row in world.all(param.ref)), 1)
    key = param.filter.partition("__")[0].partition("|")[0] or param.key
    entity = world.domain.entity(operation.entity)
    if entity.has(key):
        values = [row[key] for row in world.all(entity.role) if row[key] is not None]
        if values and (param.kind != "date" or entity.column(key).kind == "date"):
            return plain(values[0])
    return {
        "int": max(param.low or 0, 2),
        "money": 1500,
        "bool": True,
        "date": plain(world.now.date()),
        "datetime": plain(world.now),
    }.get(param.kind, "A short text")


def _response(operation: Operation, domain: Domain, names: Names) -> dict[str, Any]:
    match operation.returns:
        case ReturnPage():
            return {
                "items": {"type": "array", "items": _fields(domain.entity(operation.entity))},
                "total": {"type": "integer", "description": "Rows on all pages together"},
                "limit": {"type": "integer", "description": "Rows of a page"},
                "offset": {"type": "integer", "description": "Rows left out before the first"},
            }
        case ReturnRow(var=var, children=children):
            found = _fields(domain.entity(row_role(operation, var)))
            for role, _ in children:
                found[names.children(role)] = {"type": "array", "items": _fields(domain.entity(role))}
            return found
        case ReturnRecord(fields=fields):
            return {field.name: _field(field) for field in fields}
        case ReturnTable(fields=fields):
            return {"rows": {"type": "array", "items": {field.name: _field(field) for field in fields}}}


def row_role(operation: Operation, var: str) -> str:
    """The role of the row that a variable holds at the end."""
    found = [role for name, role in _bindings(operation.steps) if name == var]
    return found[-1] if found else operation.entity


def _bindings(steps: Iterable[Step]) -> Iterable[tuple[str, str]]:
    for step in steps:
        match step:
            case Load() | Find() | Insert():
                yield step.var, step.entity
            case Each():
                if step.entity:
                    yield step.var, step.entity
                yield from _bindings(step.steps)
            case When():
                yield from _bindings((*step.steps, *step.otherwise))
            case Change() | Fill():
                pass


def _entities(operation: Operation) -> list[str]:
    roles = [operation.entity, *(role for _, role in _bindings(operation.steps))]
    if isinstance(operation.returns, ReturnRow):
        roles += [role for role, _ in operation.returns.children]
    return list(dict.fromkeys(roles))


def _fields(entity: Entity) -> dict[str, Any]:
    found: dict[str, Any] = {"id": {"type": "integer", "description": f"Id of the {entity.noun}"}}
    found |= {column.name: _field(column) for column in entity.columns}
    return found | {show.name: _field(show) for show in entity.shows}


def _field(field: Field | Column | Show) -> dict[str, Any]:
    return {"type": _TYPES.get(field.kind, "string"), "description": field.about or field.name.replace("_", " ").capitalize()}
