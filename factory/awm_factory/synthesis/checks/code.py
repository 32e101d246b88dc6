"""Environment code: faults that a start-up test passes and an agent meets on its second call; found by reading."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from awm_factory import syntax
from awm_factory.problems import Problem
from awm_factory.synthesis.checks import spelling
from awm_factory.synthesis.checks.finding import error, listed
from awm_factory.synthesis.checks.reading import Handler, OrmModel, Parser, RequestModel, Service, last_name, read
from awm_factory.synthesis.workbench import TableRows

GATE: Final = "code"
_TIMES: Final = {"DateTime", "Date", "TIMESTAMP", "DATETIME", "DATE"}
_DROPPING: Final = re.compile(r"\.drop_all\s*\(")


def check(code: str, rows: dict[str, TableRows], parse: Parser = syntax.module) -> list[Problem]:
    """`rows`: the start state by lower-case table name."""
    try:
        service = read(code, parse)
    except SyntaxError as fault:
        return [error(GATE, "app.py", f"It can't be parsed: {fault.msg} in line {fault.lineno}.", "Write plain Python.")]
    problems = [*_shape(code), *_tuples(service.tree), *_columns(service, rows), *spelling.check(service, rows)]
    for handler in service.handlers:
        problems += [*_commits(handler), *_texts_for_times(service, handler)]
    return problems + list(_nulls(service, rows))


def _shape(code: str) -> Iterator[Problem]:
    first = next((line for line in code.splitlines() if line.strip()), "")
    if not first.startswith(("import ", "from ")):
        yield error(
            GATE, "app.py", f"Its first line is no import: {first[:60]!r}.", "Begin with an import; no docstring, no comment."
        )
    if _DROPPING.search(code):
        yield error(GATE, "app.py", "It drops the tables, which exist and are filled.", "Leave the tables alone.")
    if re.search(r"\borm_mode\b", code):
        yield error(
            GATE, "app.py", "It sets orm_mode, which Pydantic 2 ignores.", "Set model_config = ConfigDict(from_attributes=True)."
        )


def _tuples(tree: ast.AST) -> Iterator[Problem]:
    """`if (not exists(…),):` is always true, for a comma makes a tuple."""
    for node in ast.walk(tree):
        match node:
            case ast.If() | ast.IfExp() | ast.While() | ast.Assert():
                asked = [node.test]
            case ast.BoolOp():
                asked = node.values
            case ast.UnaryOp(op=ast.Not()):
                asked = [node.operand]
            case _:
                continue
        for part in asked:
            if isinstance(part, ast.Tuple) and part.elts:
                yield error(GATE, "app.py", f"Line {part.lineno} asks a tuple, which is always true.", "Leave out the comma.")


def _columns(service: Service, rows: dict[str, TableRows]) -> Iterator[Problem]:
    for model in service.orm.values():
        table = rows.get(model.table.lower())
        if table is None:
            if rows:
                yield error(
                    GATE, f"class {model.name}", f"Its table {model.table!r} is not in the schema.", "Use the schema's tables."
                )
            continue
        lost = sorted(column for column in model.columns.values() if column not in table.columns)
        if lost:
            what = f"{model.table} has no column {listed(lost)}: every use of the class answers 500."
            yield error(GATE, f"class {model.name}", what, "Use the schema's columns; the schema is right.")


# --- commit, then fail ----------------------------------------------------------------------------------------------


def _commits(handler: Handler) -> list[Problem]:
    found: list[Problem] = []

    def scan(block: list[ast.stmt], later: list[ast.stmt]) -> None:
        leaves = any(isinstance(statement, ast.Return | ast.Raise) for statement in block)
        for index, statement in enumerate(block):
            follows = block[index + 1 :] + ([] if leaves else later)
            if _is_commit(statement):
                if any(isinstance(part, ast.Raise) for step in follows for part in ast.walk(step)):
                    found.append(
                        error(
                            GATE,
                            f"tool {handler.operation_id}",
                            f"It commits in line {statement.lineno} and may raise an error after that: "
                            "the caller hears that it failed, and the change stays.",
                            "Check everything first; commit last.",
                        )
                    )
                elif any(_is_commit(part) for step in follows for part in ast.walk(step) if isinstance(part, ast.stmt)):
                    found.append(
                        error(
                            GATE,
                            f"tool {handler.operation_id}",
                            "It commits more than once; a failure between leaves half of the change.",
                            "Use flush() on the way, and one commit() at the end.",
                            severity="warning",
                        )
                    )
            for name in ("body", "orelse", "finalbody"):
                inner = getattr(statement, name, None)
                if isinstance(inner, list) and not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    beyond = statement.orelse + statement.finalbody if isinstance(statement, ast.Try) and name == "body" else []
                    scan(inner, beyond + follows)

    scan(handler.node.body, [])
    return found[:1]


def _is_commit(statement: ast.AST) -> bool:
    if not isinstance(statement, ast.Expr):
        return False
    call = statement.value.value if isinstance(statement.value, ast.Await) else statement.value
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "commit"


# --- texts where the ORM wants a time -------------------------------------------------------------------------------


def _texts_for_times(service: Service, handler: Handler) -> Iterator[Problem]:
    arguments = handler.node.args.posonlyargs + handler.node.args.args + handler.node.args.kwonlyargs
    annotations = {argument.arg: argument.annotation for argument in arguments if argument.annotation is not None}
    bodies = {name: model for name, node in annotations.items() if (model := service.models.get(last_name(_bare(node)) or ""))}
    texts = {name for name, node in annotations.items() if _is_text(node)}
    for target, value, line in _assignments(service, handler, bodies):
        name = value.attr if isinstance(value, ast.Attribute) else ""
        body = bodies.get(value.value.id) if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) else None
        is_text = (body is not None and name in body.fields and _is_text(body.fields[name])) or (
            isinstance(value, ast.Name) and value.id in texts
        )
        if is_text:
            yield error(
                GATE,
                f"tool {handler.operation_id}",
                f"Line {line} puts the text {ast.unparse(value)} into the time column {target}; SQLAlchemy answers 500.",
                "Declare it as datetime or date in the request model.",
            )


def _assignments(service: Service, handler: Handler, bodies: dict[str, RequestModel]) -> Iterator[tuple[str, ast.expr, int]]:
    """What this handler puts into columns that hold times."""
    for node in ast.walk(handler.node):
        if isinstance(node, ast.Call) and (model := service.orm.get(last_name(node.func) or "")):
            for keyword in node.keywords:
                if keyword.arg and model.types.get(keyword.arg) in _TIMES:
                    yield f"{model.table}.{keyword.arg}", keyword.value, node.lineno
                elif keyword.arg is None:
                    yield from _spread(keyword.value, [model], bodies)
        elif isinstance(node, ast.Call) and last_name(node.func) == "setattr":
            for loop in ast.walk(handler.node):
                if isinstance(loop, ast.For) and node in ast.walk(loop):
                    yield from _spread(loop.iter, list(service.orm.values()), bodies)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and _always_time(service, target.attr):
                    yield target.attr, node.value, node.lineno


def _spread(node: ast.expr, models: list[OrmModel], bodies: dict[str, RequestModel]) -> Iterator[tuple[str, ast.expr, int]]:
    """`Model(**body.model_dump())`: each field of the body goes into the column of its name."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in bodies:
            for name in bodies[part.id].fields:
                kinds = [model.types[name] for model in models if name in model.types]
                if kinds and all(kind in _TIMES for kind in kinds):
                    yield name, ast.Attribute(value=ast.Name(id=part.id), attr=name), node.lineno


def _always_time(service: Service, attribute: str) -> bool:
    kinds = [model.types[attribute] for model in service.orm.values() if attribute in model.types]
    return bool(kinds) and all(kind in _TIMES for kind in kinds)


def _bare(node: ast.expr) -> ast.expr:
    """`Annotated[Body, …]` and `Optional[Body]` are about Body."""
    while isinstance(node, ast.Subscript) and last_name(node.value) in {"Annotated", "Optional"}:
        node = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
    return node


def _is_text(node: ast.expr) -> bool:
    bare = _bare(node)
    if isinstance(bare, ast.BinOp):
        return _is_text(bare.left) and not isinstance(bare.left, ast.Constant)
    return isinstance(bare, ast.Name) and bare.id == "str"


# --- NULL in an answer that forbids it ------------------------------------------------------------------------------

_LIKE = 0.8
"""Share of a response model's fields that must be columns of a table for the one to stand for the other."""


def _nulls(service: Service, rows: dict[str, TableRows]) -> Iterator[Problem]:
    answers = {name for handler in service.handlers for name in re.findall(r"\w+", handler.response_model or "")}
    for name in sorted(answers & service.models.keys()):
        response = service.models[name]
        model = _stands_for(response, service)
        table = rows.get(model.table.lower()) if model else None
        if model is None or table is None:
            continue
        for attribute, annotation in response.fields.items():
            column = model.columns.get(attribute)
            text = ast.unparse(annotation)
            if column not in table.columns or re.search(r"\b(Optional|None|Any)\b", text):
                continue
            if empty := sum(value is None for value in table.column(column)):
                yield error(
                    GATE,
                    f"class {name}",
                    f"Its field {attribute} is {text}, but {empty} rows of {model.table} hold NULL there: "
                    "answering with them is a 500, after whatever was committed.",
                    "Make it Optional with the default None.",
                )


def _stands_for(response: RequestModel, service: Service) -> OrmModel | None:
    fields = set(response.fields)
    fitting = [model for model in service.orm.values() if fields and len(fields & model.columns.keys()) >= _LIKE * len(fields)]
    exact = [model for model in fitting if response.name.lower().startswith(model.name.lower())]
    chosen = exact or fitting
    return chosen[0] if len(chosen) == 1 else None
