"""Expressions as SQL: the checks of a table, and the queries that find the rows by which an invariant is broken."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from awm_factory.llm.offline.conditions import split
from awm_factory.llm.offline.expr import parse
from awm_factory.llm.offline.ir import Domain, Entity

_COMPARE: Final[Mapping[type[ast.cmpop], str]] = {
    ast.Eq: "=",
    ast.NotEq: "<>",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "IS",
    ast.IsNot: "IS NOT",
    ast.In: "IN",
    ast.NotIn: "NOT IN",
}
_BINARY: Final[Mapping[type[ast.operator], str]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "/",
    ast.Mod: "%",
}
_CONDITIONS: Final = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "in": "IN"}
_NESTED: Final = ast.BoolOp | ast.BinOp | ast.Compare | ast.UnaryOp
_SELF: Final = "this"


def check_sql(expression: str, entity: Entity, states: Mapping[str, str]) -> str:
    """A check over the row's own columns."""
    return _Printer(entity, states).text(parse(expression))


def invariants(domain: Domain) -> dict[str, str]:
    """What always holds, by its sentence: a SELECT of the ids that break it, which finds none (as a manifest has it)."""
    found: dict[str, str] = {}
    for one in domain.invariants:
        entity, module = domain.entity(one.entity), one.entity.partition(".")[0]
        printer = _Printer(entity, domain.states.get(module, {}), domain, domain.policies.get(module, {}), module)
        holds = printer.text(parse(one.condition))
        found[f"in {entity.plural}, {one.about}"] = (
            f"SELECT {_SELF}.id FROM {entity.plural} AS {_SELF} WHERE ({holds}) IS NOT TRUE"
        )
    return found


@dataclass(frozen=True)
class _Printer:
    entity: Entity
    """Whose columns are meant, by their bare names in a check and as `self.…` in an invariant."""
    states: Mapping[str, str]
    domain: Domain | None = None
    """None for a check, which sees one row and no other."""
    policies: Mapping[str, int] | None = None
    module: str = ""

    def text(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=value):
                return sql_literal(value)
            case ast.Name(id=name):
                return self.entity.column(name).name
            case ast.Attribute(value=ast.Name(id="self"), attr=key):
                return f"{_SELF}.{_column(self.entity, key)}"
            case ast.Attribute(value=ast.Name(id="state"), attr=key):
                return sql_literal(self.states[key])
            case ast.Attribute(value=ast.Name(id="policy"), attr=key) if self.policies is not None:
                return sql_literal(self.policies[key])
            case ast.Tuple(elts=elements):
                return f"({', '.join(map(self.text, elements))})"
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return f"{self._inner(left)} {_COMPARE[type(op)]} {self._inner(right)}"
            case ast.BinOp(left=left, op=op, right=right):
                return f"{self._inner(left)} {_BINARY[type(op)]} {self._inner(right)}"
            case ast.BoolOp(op=op, values=values):
                return (" AND " if isinstance(op, ast.And) else " OR ").join(map(self._inner, values))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"NOT {self._inner(operand)}"
            case ast.Call(func=ast.Name(id="count" | "exists" | "total" as name), args=arguments) if self.domain is not None:
                return self._aggregate(self.domain, name, [_literal(one) for one in arguments], node.keywords)
        raise ValueError(f"{ast.unparse(node)!r} can't be asked of {self.entity.role} in SQL; say it with columns and counts")

    def _inner(self, node: ast.expr) -> str:
        return f"({self.text(node)})" if isinstance(node, _NESTED) else self.text(node)

    def _aggregate(self, domain: Domain, name: str, arguments: list[str], keywords: list[ast.keyword]) -> str:
        """Unqualified names are those of the inner table, whatever the outer one has."""
        role = arguments[0] if arguments[0] in domain.entities else f"{self.module}.{arguments[0]}"
        entity = domain.entity(role)
        where = " AND ".join(self._condition(entity, one.arg or "", one.value) for one in keywords) or "TRUE"
        rows = f"FROM {entity.plural} WHERE {where}"
        if name == "exists":
            return f"EXISTS (SELECT 1 {rows})"
        figure = "count(*)" if name == "count" else f"coalesce(sum({entity.column(arguments[1]).name}), 0)"
        return f"(SELECT {figure} {rows})"

    def _condition(self, entity: Entity, key: str, value: ast.expr) -> str:
        path, comparator = split(key)
        return f"{_column(entity, path)} {_CONDITIONS[comparator]} {self._inner(value)}"


def _column(entity: Entity, key: str) -> str:
    return "id" if key == "id" else entity.column(key).name


def _literal(node: ast.expr) -> str:
    assert isinstance(node, ast.Constant) and isinstance(node.value, str)
    return node.value


def sql_literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool | int):
        return str(int(value))
    text = str(value).replace("'", "''")
    return f"'{text}'"
