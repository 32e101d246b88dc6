"""The printer of expressions: the same that `expr.py` interprets, as SQLAlchemy code (as SQL: `sql.py`)."""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from awm_factory.llm.offline.conditions import split
from awm_factory.llm.offline.emit.names import Names
from awm_factory.llm.offline.expr import AGGREGATES, parse, pieces
from awm_factory.llm.offline.ir import Column, Operation
from awm_factory.syntax import expression

_ORDER: Final = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_INVERSE: Final[Mapping[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_TIMES: Final = {"days": "days", "hours": "hours", "minutes": "minutes"}


@dataclass
class Known:
    """What the printer has to know of a variable."""

    text: str
    """As the code says it: `body.member_id`, `reservation`."""
    role: str = ""
    """Of a row's entity."""
    items: Mapping[str, str] = field(default_factory=dict)
    """Of an object of a list parameter: names by key."""


@dataclass
class Printer:
    names: Names
    module: str
    variables: dict[str, Known] = field(default_factory=dict)
    helpers: set[str] = field(default_factory=set)
    """Functions that the code needs for what was printed so far."""

    def text(self, expression: str) -> str:
        return double_quoted(ast.unparse(self.node(parse(expression))))

    def negated(self, expression: str) -> str:
        return double_quoted(ast.unparse(negation(self.node(parse(expression)))))

    def message(self, detail: str) -> str:
        """A detail as a string or an f-string."""
        parts = pieces(detail)
        body = "".join(
            part.replace("\\", "\\\\").replace('"', '\\"') if kind == "text" else f"{{{ast.unparse(self.node(parse(part)))}}}"
            for kind, part in parts
        )
        return f'f"{body}"' if any(kind == "expr" for kind, _ in parts) else f'"{body}"'

    def role_of(self, expression: str) -> str:
        """The entity of the row that an expression leads to; empty for a value."""
        node = parse(expression)
        is_path = isinstance(node, ast.Attribute) and "state." not in expression and "policy." not in expression
        return self._path(node)[1] if is_path else ""

    def role(self, name: str) -> str:
        return name if name in self.names.domain.entities else f"{self.module}.{name}"

    # Nodes

    def node(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.Name(id=name):
                return self._name(name)
            case ast.Attribute(value=ast.Name(id="state"), attr=key):
                return ast.Constant(self.names.domain.states[self.module][key])
            case ast.Attribute(value=ast.Name(id="policy"), attr=key):
                return ast.Name(self.names.constants[self.module, key])
            case ast.Attribute():
                return self._path(node)[0]
            case ast.Call(func=ast.Name(id=name)):
                return self._call(name, node)
            case ast.BinOp(left=left, op=op, right=right):
                return ast.BinOp(self.node(left), op, self.node(right))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return negation(self.node(operand))
            case ast.UnaryOp(op=op, operand=operand):
                return ast.UnaryOp(op, self.node(operand))
            case ast.BoolOp(op=bool_op, values=values):
                return ast.BoolOp(bool_op, [self.node(value) for value in values])
            case ast.Compare(left=left, ops=ops, comparators=comparators):
                return self._compare(self.node(left), ops, [self.node(part) for part in comparators])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return ast.IfExp(self.node(test), self.node(body), self.node(orelse))
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return ast.Tuple([self.node(element) for element in elements], ast.Load())
            case ast.JoinedStr(values=values):
                return ast.JoinedStr(
                    [
                        ast.FormattedValue(self.node(value.value), -1) if isinstance(value, ast.FormattedValue) else value
                        for value in values
                    ]
                )
        return node

    def _name(self, name: str) -> ast.expr:
        if name in ("now", "today"):
            self.helpers |= {"now", name}
            return expression(f"{name}()")
        return expression(self.variables[name].text)

    def _compare(self, left: ast.expr, ops: list[ast.cmpop], comparators: list[ast.expr]) -> ast.expr:
        """`x == True` is `x`, as people write it."""
        if len(ops) == 1 and isinstance(ops[0], ast.Eq) and isinstance(comparators[0], ast.Constant):
            if comparators[0].value is True:
                return left
            if comparators[0].value is False:
                return negation(left)
        return ast.Compare(left, ops, comparators)

    def _path(self, node: ast.expr) -> tuple[ast.expr, str]:
        """A path and the role of the row it ends at, empty where it ends at a value."""
        if isinstance(node, ast.Name):
            known = self.variables[node.id]
            return expression(known.text), known.role
        assert isinstance(node, ast.Attribute)
        if isinstance(node.value, ast.Name) and (items := self.variables[node.value.id].items):
            return ast.Attribute(expression(self.variables[node.value.id].text), items[node.attr]), ""
        owner, role = self._path(node.value)
        name, target = self.attribute(role, node.attr)
        return ast.Attribute(owner, name), target

    def attribute(self, role: str, key: str) -> tuple[str, str]:
        """The name of a row's column, reference or shown field, and the role that a reference leads to."""
        entity = self.names.domain.entity(role)
        if entity.has(key):
            return entity.column(key).name, ""
        if entity.has(f"{key}_id"):
            column = entity.column(f"{key}_id")
            return self.names.reference(column), column.ref
        return next(show.name for show in entity.shows if show.key == key), ""

    # Functions

    def _call(self, name: str, node: ast.Call) -> ast.expr:
        arguments = [ast.unparse(self.node(argument)) for argument in node.args]
        if name in AGGREGATES:
            return self._aggregate(name, node)
        if name in _TIMES:
            self.helpers.add("timedelta")
            return expression(f"timedelta({_TIMES[name]}={arguments[0]})")
        if name == "day":
            return expression(f"({arguments[0]}).date()")
        if name == "days_between":
            return expression(f"({arguments[0]} - ({arguments[1]})).days")
        if name == "is_first_of_month":
            return expression(f"({arguments[0]}).day == 1")
        if name == "lower":
            return expression(f"({arguments[0]}).lower()")
        if name == "serial":
            self.helpers.add("next_reference")
            return expression(f"next_reference(db, {self.names.model(self.role(_word(node.args[0])))}, {arguments[1]})")
        if name in ("money", "add_months"):
            self.helpers.add(name)
        return expression(f"{name}({', '.join(arguments)})")

    def _aggregate(self, name: str, node: ast.Call) -> ast.expr:
        self.helpers.add(name)
        role = self.role(_word(node.args[0]))
        where = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords if keyword.arg}
        conditions = self.conditions(role, where)
        first = self.names.model(role)
        if name in ("total", "highest", "lowest"):
            first = f"{first}.{self.names.domain.entity(role).column(_word(node.args[1])).name}"
        return expression(f"{name}({', '.join(['db', first, *conditions])})")

    def conditions(self, role: str, where: Mapping[str, str]) -> list[str]:
        """One text a condition; those along one reference are told together."""
        found: list[str] = []
        along: dict[str, dict[str, str]] = {}
        for key, value in where.items():
            path, comparator = split(key)
            first, _, rest = path.partition("__")
            if rest:
                along.setdefault(first, {})[f"{rest}__{comparator}"] = value
            else:
                found.append(self.condition(role, path, comparator, ast.unparse(self.node(parse(value)))))
        entity, model = self.names.domain.entity(role), self.names.model(role)
        for first, inner in along.items():
            column = entity.column(f"{first}_id")
            inside = self.conditions(column.ref, inner)
            if len(inside) > 1:
                self.helpers.add("and_")
            criterion = inside[0] if len(inside) == 1 else f"and_({', '.join(inside)})"
            found.append(f"{model}.{self.names.reference(column)}.has({criterion})")
        return found

    def condition(self, role: str, path: str, comparator: str, value: str, *, day: bool = False) -> str:
        """`value` is code. `day`: a date that is held against a moment."""
        first, _, rest = path.partition("__")
        entity, model = self.names.domain.entity(role), self.names.model(role)
        if rest:
            column = entity.column(f"{first}_id")
            inner = self.condition(column.ref, rest, comparator, value, day=day)
            return f"{model}.{self.names.reference(column)}.has({inner})"
        column = entity.column(path)
        attribute = f"{model}.{column.name}"
        if day and column.kind == "datetime":
            self.helpers.add("start_of" if comparator in ("ge", "lt") else "end_of")
            value = f"{'start_of' if comparator in ('ge', 'lt') else 'end_of'}({value})"
        if comparator == "contains":
            return f"{attribute}.icontains({value}, autoescape=True)"
        if comparator == "in":
            return f"{attribute}.in_({value})"
        if value in ("None", "True", "False") and comparator in ("eq", "ne"):
            return f"{attribute}.{'is_' if comparator == 'eq' else 'is_not'}({value})"
        return f"{attribute} {_ORDER[comparator]} {value}"


def negation(node: ast.expr) -> ast.expr:
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Compare(left=left, ops=[op], comparators=comparators):
            return ast.Compare(left, [_INVERSE[type(op)]()], comparators)
        case ast.BoolOp(op=ast.And(), values=values):
            return ast.BoolOp(ast.Or(), [negation(value) for value in values])
        case ast.BoolOp(op=ast.Or(), values=values):
            return ast.BoolOp(ast.And(), [negation(value) for value in values])
        case ast.Constant(value=bool() as value):
            return ast.Constant(not value)
    return ast.UnaryOp(ast.Not(), node)


_SINGLE: Final = re.compile(r"(?<![\w\"])'([^'\"\\{}]*)'")


def double_quoted(code: str) -> str:
    return code if 'f"' in code or "f'" in code else _SINGLE.sub(r'"\1"', code)


def _word(node: ast.expr) -> str:
    """Of a role or a column, which an aggregate names by a literal."""
    assert isinstance(node, ast.Constant) and isinstance(node.value, str)
    return node.value


_PYTHON: Final = {"int": "int", "money": "int", "ref": "int", "bool": "bool", "date": "date", "datetime": "datetime"}


def written(column: Column) -> str:
    """The column's Python type."""
    return _PYTHON.get(column.kind, "str")


def module_of(operation: Operation) -> str:
    return operation.key.partition(".")[0]
