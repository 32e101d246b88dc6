"""Verifiers, read beside the code they judge: what no handler writes, what is stored otherwise, what only one wording passes."""

import ast
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Final

from awm_factory import syntax
from awm_factory.problems import Problem
from awm_factory.synthesis.checks.finding import error, excerpt
from awm_factory.synthesis.checks.reading import Parser, Service, last_name, read
from awm_factory.synthesis.workbench import TableRows

GATE: Final = "verifiers"
_TIME_TEXT: Final = re.compile(r"'?\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2})?'?\Z")
_TIME_IN_SQL: Final = re.compile(
    r"(\w+)\s*(?:=|IN\s*\()\s*'\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:?\d{2})?'", re.I
)
_FROM: Final = re.compile(r"\b(?:FROM|JOIN)\s+[\"`\[]?(\w+)", re.I)
_PARSES: Final = {"fromisoformat", "strptime", "parse"}
_WEEKDAYS: Final = (
    (re.compile(r"(?<!iso)weekday\(\)"), "0 is Monday (weekday())"),
    (re.compile(r"isoweekday\(\)"), "1 is Monday (isoweekday())"),
    (re.compile(r"strftime\(\s*['\"]%w"), "0 is Sunday (%w)"),
    (re.compile(r"strftime\(\s*['\"]%u"), "1 is Monday (%u)"),
)


def check(
    task_id: int,
    mode: str,
    verifier: str,
    code: str,
    rows: dict[str, TableRows],
    ddl: list[str],
    parse: Parser = syntax.module,
) -> list[Problem]:
    """`rows`: the start state; `ddl`: the schema's statements, against which the verifier's own SQL is prepared, not run."""
    where = f"verifiers/{task_id}.{mode}.py"
    try:
        tree = parse(verifier)
    except SyntaxError as fault:
        return [error(GATE, where, f"It can't be parsed: {fault.msg} in line {fault.lineno}.", "Write plain Python.", task_id)]
    queries = [text for text in _texts(tree) if re.match(r"\s*(SELECT|WITH)\b", text, re.I)]
    found = [*_prepared(queries, ddl)]
    try:
        service: Service | None = read(code, parse)
    except SyntaxError:
        service = None
    if service is not None:
        found += [*_never_written(queries, service, rows), *_stored_times(tree, queries, service), *_conventions(verifier, code)]
    if mode == "code":
        found += [*_swallowed(tree), *_binary_floats(tree, queries, rows), *_one_wording(tree)]
    return [error(GATE, where, what, fix, task_id) for what, fix in found]


Finding = tuple[str, str]


def _texts(tree: ast.AST) -> Iterator[str]:
    """Plain strings; what is put together at run time is left to the run."""
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value


def _prepared(queries: list[str], ddl: list[str]) -> Iterator[Finding]:
    """SQL that names what the schema lacks. Some verifiers catch that error and say `others` whatever was done."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.set_authorizer(_schema_only)
        for statement in ddl:
            try:
                connection.execute(statement)
            except (sqlite3.Error, sqlite3.Warning):
                continue
        for query in queries:
            try:
                connection.execute(
                    f"EXPLAIN {query}", dict.fromkeys(re.findall(r"[:@$](\w+)", query)) or [None] * query.count("?")
                )
            except sqlite3.OperationalError as fault:
                if str(fault).startswith("no such"):
                    yield f"Its SQL fails: {fault} ({excerpt(query)}).", "Use tables and columns of the schema."
            except (sqlite3.Error, sqlite3.Warning):
                continue


def _schema_only(action: int, *_: object) -> int:
    return (
        sqlite3.SQLITE_DENY
        if action in {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA}
        else sqlite3.SQLITE_OK
    )


def _never_written(queries: list[str], service: Service, rows: dict[str, TableRows]) -> Iterator[Finding]:
    written = service.written
    told = set()
    for query in queries:
        tables = {name.lower() for name in _FROM.findall(query)} & rows.keys()
        for name in sorted(tables):
            table = rows[name]
            if name not in written and not table.rows:
                if name not in told:
                    told.add(name)
                    yield (
                        f"It reads {table.name}, which is empty at the start and which no handler writes.",
                        "Judge by what the code writes.",
                    )
            elif len(tables) == 1 and (columns := written.get(name, set())) is not None:
                for column in _conditions(query) & set(table.columns):
                    never = column not in columns and all(value is None for value in table.column(column))
                    if never and (name, column) not in told and column != "id":
                        told.add((name, column))
                        yield (
                            f"It wants a value in {table.name}.{column}, which no handler writes and no row holds.",
                            "Judge by columns that the code writes.",
                        )


def _conditions(query: str) -> set[str]:
    return {name.split(".")[-1] for name in re.findall(r"([\w.]+)\s*(?:=|LIKE\b|IN\b|>=|<=|<>|!=)", query, re.I)}


def _stored_times(tree: ast.Module, queries: list[str], service: Service) -> Iterator[Finding]:
    """SQLAlchemy writes `2026-03-01 00:00:00.000000`; a verifier that compares texts rejects every honest solution."""
    times = {
        column
        for model in service.orm.values()
        for attribute, column in model.columns.items()
        if model.types.get(attribute) in {"DateTime", "TIMESTAMP"}
    }
    fix = "Parse both sides with datetime.fromisoformat, or compare substr(column, 1, 19) after replacing 'T'."
    for query in queries:
        for column in _TIME_IN_SQL.findall(query):
            if column in times:
                yield f"Its SQL compares {column} with a text, but the code stores '2026-03-01 00:00:00.000000' there.", fix
    parses = any(isinstance(node, ast.Call) and last_name(node.func) in _PARSES for node in ast.walk(tree))
    if parses or not times:
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare) or not all(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops):
            continue
        operands = [node.left, *node.comparators]
        literal = next(
            (
                part.value
                for part in operands
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and _TIME_TEXT.match(part.value)
            ),
            None,
        )
        named = {text for part in operands for text in _texts(part)} | {last_name(part) for part in operands}
        if literal is not None and named & times:
            yield f"It compares a stored time with the text {literal!r}, but the code stores '2026-03-01 00:00:00.000000'.", fix


def _conventions(verifier: str, code: str) -> Iterator[Finding]:
    used, own = ({name for rule, name in _WEEKDAYS if rule.search(text)} for text in (code, verifier))
    if used and own and not used & own:
        yield (
            f"It counts weekdays as {sorted(own)[0]}, the code as {sorted(used)[0]}.",
            "Use the code's convention.",
        )


def _swallowed(tree: ast.AST) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            kinds = {last_name(kind) for kind in ast.walk(node.type)} if node.type is not None else {None}
            if kinds & {None, "Exception", "BaseException", "Error", "OperationalError", "DatabaseError"} and not any(
                isinstance(part, ast.Raise) for part in ast.walk(node)
            ):
                yield (
                    f"Line {node.lineno} catches its own faults, which then pass for an agent that failed.",
                    "Let exceptions surface: they are no verdict.",
                )
                return


def _binary_floats(tree: ast.AST, queries: list[str], rows: dict[str, TableRows]) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops):
            operands = [node.left, *node.comparators]
            if any(
                isinstance(part, ast.Constant) and isinstance(part.value, float) and not part.value.is_integer()
                for part in operands
            ):
                yield f"Line {node.lineno} compares a fraction with ==.", "Compare cents as integers, or abs(a - b) < 0.005."
                return
    real = {
        column.lower()
        for query in queries
        for name in _FROM.findall(query)
        if (table := rows.get(name.lower()))
        for column, kind in zip(table.columns, table.types, strict=True)
        if any(word in kind for word in ("REAL", "FLOA", "DOUB"))
    }
    for query in queries:
        if real & {name.lower().split(".")[-1] for name in re.findall(r"([\w.]+)\s*=\s*[?:\d]", query)}:
            yield f"Its SQL compares a REAL column with = ({excerpt(query)}).", "Compare abs(column - ?) < 0.005."
            return


def _one_wording(tree: ast.AST) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Eq):
            continue
        operands = [node.left, *node.comparators]
        from_answer = any(
            isinstance(part, ast.Name) and part.id == "final_answer" for operand in operands for part in ast.walk(operand)
        )
        literal = any(
            isinstance(operand, ast.Constant) and isinstance(operand.value, str) and operand.value for operand in operands
        )
        if from_answer and literal:
            yield (
                f"Line {node.lineno} accepts one wording of the answer only.",
                "Look for the figures and names in it, without regard to case and form.",
            )
            return
