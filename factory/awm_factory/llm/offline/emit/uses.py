"""What the steps of an operation speak of: variables that must be bound, ids that must be there."""

import ast
import re
from collections.abc import Iterator, Sequence

from awm_factory.llm.offline.expr import parse, pieces
from awm_factory.llm.offline.ir import Operation
from awm_factory.llm.offline.steps import (
    Change,
    Each,
    Fill,
    Find,
    Insert,
    Let,
    Load,
    Log,
    Remove,
    Require,
    ReturnRecord,
    ReturnRow,
    ReturnTable,
    Step,
    When,
)


def used(operation: Operation) -> set[str]:
    """Variables that some later step or the answer speaks of."""
    found: set[str] = set()
    for text in expressions(operation.steps):
        found |= {node.id for node in ast.walk(parse(text)) if isinstance(node, ast.Name)}
    match operation.returns:
        case ReturnRow(var=var):
            found.add(var)
        case ReturnRecord(fields=fields):
            texts = [field.expr for field in fields]
        case ReturnTable(fields=fields, where=where, when=when):
            texts = [*(field.expr for field in fields), *where.values(), *([when] if when else [])]
    if isinstance(operation.returns, ReturnRecord | ReturnTable):
        for text in texts:
            found |= {node.id for node in ast.walk(parse(text)) if isinstance(node, ast.Name)}
    return found


def expressions(steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        match step:
            case Load():
                yield step.id
            case Find():
                yield from step.where.values()
            case Require():
                yield step.condition
                yield from (part for kind, part in pieces(step.detail) if kind == "expr")
            case Let():
                yield step.expr
            case Insert():
                yield from step.values.values()
            case Change():
                yield step.var
                yield from step.values.values()
            case Fill() | Remove():
                yield step.var
            case Each():
                yield from step.where.values()
                yield from expressions(step.steps)
            case When():
                yield step.condition
                yield from expressions((*step.steps, *step.otherwise))
            case Log():
                yield step.var
                yield from (part for kind, part in pieces(step.detail) if kind == "expr")


def names_id(step: Step, var: str) -> bool:
    """Whether the step needs the id that the database gives to a new row."""
    return any(re.search(rf"\b{var}\.id\b", text) for text in expressions([step]))
