"""Code and data that spell one value in two ways, so that a look-up answers 200 and an empty list for ever."""

import ast
from collections.abc import Iterator
from typing import Final

from awm_factory.problems import Problem
from awm_factory.synthesis.checks.finding import error
from awm_factory.synthesis.checks.reading import Service, last_name
from awm_factory.synthesis.workbench import TableRows

GATE: Final = "code"
MOST_VALUES, MOST_LENGTH = 30, 40
"""A column with more or longer values is no enumeration. Names of columns are what lists are sorted by, and no values."""


def check(service: Service, rows: dict[str, TableRows]) -> Iterator[Problem]:
    spelt: dict[str, list[tuple[str, str, set[str]]]] = {}
    exact: set[str] = set()
    for table in rows.values():
        for place, column in enumerate(table.columns):
            values = {row[place] for row in table.rows if isinstance(row[place], str)}
            texts = {value for value in values if isinstance(value, str)}
            exact |= texts
            if len(texts) <= MOST_VALUES and all(len(value) <= MOST_LENGTH for value in texts):
                for value in sorted(texts):
                    spelt.setdefault(value.lower(), []).append((value, f"{table.name}.{column}", texts))
    columns = {name for model in service.orm.values() for pair in model.columns.items() for name in pair}
    told: set[str] = set()
    for group in _compared(service.tree):
        known = group & exact
        for literal in sorted(group - exact - columns - told):
            # Where others of the group are stored as they are written, only a column that holds one of them is what it is about.
            places = [place for place in spelt.get(literal.lower(), []) if not known or known & place[2]]
            if places:
                told.add(literal)
                value, where, _ = places[0]
                yield error(
                    GATE,
                    "app.py",
                    f"It compares with {literal!r}, but {where} holds {value!r}: the look-up never finds it.",
                    f"Write {value!r}, as the data does.",
                )
    yield from _folded(service, rows)


def _compared(tree: ast.AST) -> Iterator[set[str]]:
    """Texts that the code holds against others, those of one place together: in comparisons, `in_` lists and `Literal` types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for operand in (node.left, *node.comparators):
                if not _folds(operand) and not (_folds(node.left) or any(map(_folds, node.comparators))):
                    yield set(_texts(operand))
        elif isinstance(node, ast.Call) and last_name(node.func) == "in_":
            for argument in node.args:
                yield set(_texts(argument))
        elif isinstance(node, ast.Subscript) and last_name(node.value) == "Literal":
            yield set(_texts(node.slice))


def _texts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        for element in node.elts:
            yield from _texts(element)


def _folds(node: ast.expr) -> bool:
    """True for an expression that changes the case of what it holds."""
    return any(
        isinstance(part, ast.Call) and last_name(part.func) in {"upper", "lower", "casefold", "title", "capitalize"}
        for part in ast.walk(node)
    )


def _folded(service: Service, rows: dict[str, TableRows]) -> Iterator[Problem]:
    """`Region.code == value.upper()` where the stored codes are not all upper case."""
    for node in ast.walk(service.tree):
        if not isinstance(node, ast.Compare) or len(node.comparators) != 1 or not isinstance(node.ops[0], ast.Eq):
            continue
        for column, value in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
            if (
                not isinstance(column, ast.Attribute)
                or not isinstance(column.value, ast.Name)
                or column.value.id not in service.orm
            ):
                continue
            name, attribute = column.value.id, column.attr
            model = service.orm[name]
            table = rows.get(model.table.lower())
            how = _method(value)
            stored_as = model.columns.get(attribute)
            if how is None or table is None or stored_as not in table.columns:
                continue
            stored = [text for text in table.column(stored_as) if isinstance(text, str)]
            other = [text for text in stored if text != getattr(text, how)()]
            if other:
                yield error(
                    GATE,
                    "app.py",
                    f"Line {node.lineno} compares {name}.{attribute} with a value turned by .{how}(), but the data holds "
                    f"{other[0]!r}: the look-up never finds it.",
                    f"Compare func.{how}({name}.{attribute}), or leave the value as it comes.",
                )


def _method(node: ast.expr) -> str | None:
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and not node.args
        and node.func.attr in {"upper", "lower"}
    ):
        return node.func.attr
    return None
