"""Fewer tools where a scenario has more than an agent is to see: what is least missed goes first, by a lot of its name.

What stays makes sense by itself: every id that a tool takes is shown by another, every table by some tool, and the states of a
record can all be reached that its creation leads to.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from awm_factory.llm.offline.ir import Change, Domain, Each, Operation, ReturnRow, Step, When


def trimmed(domain: Domain, most: int) -> Domain:
    """With at most so many operations, as far as some can be spared."""
    kept = dict(domain.operations)
    spare = sorted((rank, _lot(domain.name, op.key), op.key) for op in kept.values() if (rank := _rank(domain, op)))
    for _, _, key in spare:
        if len(kept) <= most:
            break
        left = {other: op for other, op in kept.items() if other != key}
        if _shows_all(domain, left) or not _shows_all(domain, kept):
            kept = left
    return replace(domain, operations=kept)


def _lot(*words: str) -> bytes:
    return hashlib.sha256("\0".join(words).encode()).digest()


def _rank(domain: Domain, operation: Operation) -> int:
    """How soon it may go, 1 first; 0 for what stays."""
    entity = domain.entity(operation.entity)
    if operation.kind == "report" or (operation.kind == "act" and operation.method == "PATCH"):
        return 1
    if operation.kind == "list":
        return 2
    if operation.kind == "delete":
        return 3
    if operation.kind == "get":
        return 4 if isinstance(operation.returns, ReturnRow) and not operation.returns.children else 0
    if operation.kind == "create":
        return 5 if entity.has("name") else 0
    return 0 if _changes_state(operation.steps) else 6


def _changes_state(steps: tuple[Step, ...]) -> bool:
    for step in steps:
        match step:
            case Change(values=values) if "status" in values:
                return True
            case Each(steps=inner) if _changes_state(inner):
                return True
            case When(steps=then, otherwise=otherwise) if _changes_state(then) or _changes_state(otherwise):
                return True
    return False


def _shows_all(domain: Domain, operations: Mapping[str, Operation]) -> bool:
    """Whether every entity has a tool that shows its rows, and every id that is asked for is listed."""
    listed = {op.entity for op in operations.values() if op.kind == "list"}
    shown = listed | {role for op in operations.values() if isinstance(op.returns, ReturnRow) for role, _ in op.returns.children}
    asked = {param.ref for op in operations.values() for param in op.params if param.ref and param.required}
    asked |= {item.ref for op in operations.values() for param in op.params for item in param.items if item.ref}
    return shown >= domain.entities.keys() and listed >= asked
