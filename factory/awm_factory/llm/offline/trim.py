"""Fewer tools where a scenario has more than an agent is to see: what is least missed goes first, by a lot of its name.

What stays makes sense by itself: every id that a tool takes is shown by another, every table by some tool, and the states of a
record can all be reached that its creation leads to.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from awm_factory.llm.offline.ir import Domain, Operation
from awm_factory.llm.offline.steps import Change, Each, ReturnRow, Step, When


def trimmed(domain: Domain, most: int) -> Domain:
    """With at most so many operations, as far as some can be spared."""
    kept = dict(domain.operations)
    spare = sorted((rank, _lot(domain.name, op.key), op.key) for op in kept.values() if (rank := _rank(domain, op)))
    unshown = _unshown(domain, kept)
    for _, _, key in spare:
        if len(kept) <= most:
            break
        left = {other: op for other, op in kept.items() if other != key}
        if _unshown(domain, left) <= unshown:
            kept = left
    return replace(domain, operations=kept)


def _lot(*words: str) -> bytes:
    return hashlib.sha256("\0".join(words).encode()).digest()


def _rank(domain: Domain, operation: Operation) -> int:
    """How soon it may go, 1 first; 0 for what stays."""
    entity = domain.entity(operation.entity)
    if operation.kind == "act" and operation.method == "PATCH" and operation.entity in ("party", "item"):
        return 0 if operation.entity == "party" else 5  # slips in the records are put right by these
    if operation.kind == "report" or (operation.kind == "act" and operation.method == "PATCH"):
        return 1
    if operation.kind in ("list", "delete"):
        return 2
    if operation.kind == "get":
        return 3
    if operation.kind == "create":
        return 0 if entity.has("status") else 4 if entity.has("name") else 6
    return 7 if _changes_state(operation.steps) else 5


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


def _unshown(domain: Domain, operations: Mapping[str, Operation]) -> set[str]:
    """Entities whose rows no tool shows, and those whose ids are asked for and not listed."""
    listed = {op.entity for op in operations.values() if op.kind == "list"}
    shown = {role for op in operations.values() if isinstance(op.returns, ReturnRow) for role, _ in op.returns.children}
    asked = {param.ref for op in operations.values() for param in op.params if param.ref}
    asked |= {item.ref for op in operations.values() for param in op.params for item in param.items if item.ref}
    return (set(domain.entities) - listed - shown) | {f"{role} by id" for role in _named_by(domain, asked) - listed}


def _named_by(domain: Domain, roles: set[str]) -> set[str]:
    """These entities and those by whose rows theirs are named: a booking is found by its party."""
    found: set[str] = set()
    left = sorted(roles)
    while left:
        role = left.pop()
        if role not in found:
            found.add(role)
            entity = domain.entity(role)
            left += [column.ref for key in entity.label if (column := entity.column(key)).kind == "ref"]
    return found
