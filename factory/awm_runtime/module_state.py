"""Module state that handlers write, seen in the source: such an environment can't share a process between episodes."""

import ast
from typing import Final

_MUTATORS: Final = {
    "append", "extend", "insert", "remove", "pop", "popitem", "clear", "update", "setdefault", "add", "discard", "sort",
    "reverse", "appendleft", "popleft", "put", "put_nowait",
}  # fmt: skip
_CONTAINERS: Final = {
    "list",
    "dict",
    "set",
    "defaultdict",
    "deque",
    "Counter",
    "OrderedDict",
    "Queue",
    "count",
    "cycle",
    "bytearray",
}


def written_names(code: str) -> dict[str, str]:
    """Names of module state, each with the function that writes it. Code that does not parse has none."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return {}
    containers = {name for node in tree.body for name in _containers(node)}
    found: dict[str, str] = {}
    for function in (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))):
        nodes = list(ast.walk(function))
        written = [(name, isinstance(node, ast.Global)) for node in nodes for name in _written(node)]
        suspect = [(name, is_global) for name, is_global in written if is_global or name in containers]
        local = _locals(function, nodes) if suspect else set()
        for name, is_global in suspect:
            if is_global or name not in local:
                found.setdefault(name, function.name)
    return found


def _containers(node: ast.stmt) -> list[str]:
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
        return []
    value = node.value
    name = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else None
    name = value.func.attr if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else name
    is_container = (
        isinstance(value, (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)) or name in _CONTAINERS
    )
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)] if is_container else []


def _locals(function: ast.FunctionDef | ast.AsyncFunctionDef, nodes: list[ast.AST]) -> set[str]:
    arguments = function.args
    names = {a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def _written(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Global):
        return list(node.names)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _MUTATORS and isinstance(node.func.value, ast.Name):
            return [node.func.value.id]
        if isinstance(node.func, ast.Name) and node.func.id == "next" and node.args and isinstance(node.args[0], ast.Name):
            return [node.args[0].id]
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.Delete)):
        targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
        return [t.value.id for t in targets if isinstance(t, ast.Subscript) and isinstance(t.value, ast.Name)]
    return []
