"""Gate *hygiene*: a verifier only reads two databases, by the standard library's data modules, fast, and repeats itself.

Example: `total == sum(quantity * price)` on REAL columns rejects a receipt over 2.65, for the sum is 2.6500000000000004.
"""

import ast
import re
from collections.abc import Iterator
from typing import Final

from awm_factory.bundle import Bundle
from awm_factory.certify.evidence import Evidence, Options, modes_of, severity
from awm_factory.problems import Problem, Severity
from awm_runtime.contract import CheckFailed, LoadReply, Observation

NAME = "hygiene"
VERSION = 1

SECONDS: Final = 5.0
MEMORY: Final = 256 << 20

DATA_MODULES: Final = frozenset(
    {
        *("__future__", "abc", "array", "ast", "base64", "binascii", "bisect", "calendar", "collections", "contextlib", "copy"),
        *("csv", "dataclasses", "datetime", "decimal", "difflib", "enum", "fractions", "functools", "hashlib", "heapq", "html"),
        *("io", "itertools", "json", "locale", "logging", "math", "numbers", "operator", "os", "pathlib", "pprint", "re"),
        *("sqlite3", "statistics", "string", "struct", "sys", "textwrap", "time", "traceback", "types", "typing"),
        *("typing_extensions", "unicodedata", "urllib", "uuid", "warnings", "zoneinfo"),
    }
)
"""What a verifier may import: data, text and numbers; of `os`, `sys`, `pathlib`, `io` only what its calls below leave."""
_CALLS: Final = {
    "eval": "evaluates text as code",
    "exec": "executes text as code",
    "compile": "compiles text as code",
    "__import__": "imports by name",
    "open": "opens a file",
    "input": "waits for input",
    "breakpoint": "stops for a debugger",
}
_ATTRIBUTES: Final = {
    "os": {
        *("system", "popen", "remove", "unlink", "rename", "mkdir", "makedirs", "rmdir", "chmod", "environ", "getenv", "putenv"),
        *("listdir", "walk", "kill", "fork", "_exit", "execv"),
    },
    "urllib": {"request"},
    "sys": {"exit", "settrace", "setprofile"},
    "logging": {"FileHandler", "basicConfig"},
}
_METHODS: Final = {
    *("write_text", "write_bytes", "read_text", "read_bytes", "unlink"),
    *("executescript", "load_extension", "enable_load_extension"),
}
_WRITING_SQL: Final = re.compile(
    r"\s*(?:INSERT\s+(?:OR\s+\w+\s+)?INTO\b|REPLACE\s+INTO\b|UPDATE\s+\S+\s+SET\b|DELETE\s+FROM\b|ATTACH\s+(?:DATABASE|'|\?)|"
    r"VACUUM(?:\s+(?:main|temp))?\s*(?:INTO\b|;|\Z)|"
    r"ALTER\s+TABLE\b|DROP\s+(?:TABLE|INDEX|VIEW|TRIGGER)\b|CREATE\s+(?:UNIQUE\s+)?(?:TABLE|INDEX|VIEW|TRIGGER)\b)",
    re.IGNORECASE,
)
_PRAGMA: Final = re.compile(r"\s*PRAGMA\s+(?:writable_schema|journal_mode|user_version\s*=|application_id\s*=)", re.IGNORECASE)


def check(bundle: Bundle, evidence: Evidence, options: Options) -> list[Problem]:
    if isinstance(evidence.load, CheckFailed):
        return []
    problems = []
    for task in bundle.tasks:
        for mode in modes_of(bundle, task):
            where = f"verifiers/{task.task_id}.{mode}.py"
            floats = severity(bundle.manifest.origin)
            found = [*_observed(evidence.observed.get((task.task_id, mode)), floats)]
            found += dict.fromkeys(_read(bundle.verifiers[task.task_id, mode], mode, evidence, evidence.load, floats))
            problems += [
                Problem(gate=NAME, severity=how, where=where, what=what, fix=fix, task_id=task.task_id)
                for how, what, fix in found
            ]
    return problems


Finding = tuple[Severity, str, str]


def _observed(seen: Observation | None, floats: Severity) -> Iterator[Finding]:
    if seen is None:
        return
    if seen.acts:
        yield "error", f"While it runs, it {'; it '.join(seen.acts)}.", "Only read the two databases that it is given."
    if seen.seconds > SECONDS:
        yield "error", f"It takes {seen.seconds:.1f} s of processor time.", f"Stay within {SECONDS:g} s."
    if seen.memory > MEMORY:
        yield "error", f"It needs {seen.memory >> 20} MB.", f"Stay within {MEMORY >> 20} MB."
    for cause in seen.unstable:
        yield "error", f"Its word on the same databases changes with {cause}.", "Let databases and answer alone decide."
    for column in seen.exact_floats:
        yield (
            floats,
            f"It compares {column} to the last binary digit: the solution fails when that digit differs.",
            "Compare cents as integers, or abs(a - b) < 0.005.",
        )


def _read(code: str, mode: str, evidence: Evidence, load: LoadReply, floats: Severity) -> Iterator[Finding]:
    """What its text alone shows, whether or not a run comes by it."""
    try:
        tree = evidence.parse(code)
    except SyntaxError as fault:
        yield "error", f"It can't be parsed: {fault.msg} in line {fault.lineno}.", "Write plain Python."
        return
    for node in ast.walk(tree):
        yield from _imports(node)
        if isinstance(node, ast.Call):
            yield from _called(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_sql(node.value):
            yield "error", f"Line {node.lineno} holds a statement that writes: {node.value.strip()[:60]!r}.", "Only SELECT."
    if mode == "code":
        yield from _exact_money(tree, load, floats)


def _imports(node: ast.AST) -> Iterator[Finding]:
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        names = [node.module]
        if node.module == "urllib":
            names = [f"urllib.{alias.name}" for alias in node.names]
    for name in names:
        root = name.split(".")[0]
        if root not in DATA_MODULES or name in ("urllib.request", "logging.handlers"):
            yield "error", f"It imports {name}.", "Use the standard library's data modules, such as sqlite3, json, re, datetime."


def _called(node: ast.Call) -> Iterator[Finding]:
    function = node.func
    if isinstance(function, ast.Name) and function.id in _CALLS:
        yield "error", f"Line {node.lineno} {_CALLS[function.id]}.", "Only read the two databases that it is given."
    if isinstance(function, ast.Attribute):
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        if function.attr in _ATTRIBUTES.get(owner, ()) or function.attr in _METHODS:
            yield (
                "error",
                f"Line {node.lineno} calls {owner + '.' if owner else ''}{function.attr}.",
                "Only read the two databases.",
            )


def _is_sql(text: str) -> bool:
    return bool(_WRITING_SQL.match(text) or _PRAGMA.match(text))


def _exact_money(tree: ast.AST, load: LoadReply, floats: Severity) -> Iterator[Finding]:
    """`==` where one side is computed or written as a fraction, and the other comes from a column that holds fractions."""
    real = {
        column.name.lower()
        for table in load.tables
        for column in table.columns
        if re.search("REAL|FLOA|DOUB", column.type.upper())
    }
    fix = "Compare cents as integers, or abs(a - b) < 0.005."
    texts = " ".join(
        node.value.lower() for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    used = {name for name in real if re.search(rf"\b{re.escape(name)}\b", texts)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare) or not any(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops):
            continue
        sides = [node.left, *node.comparators]
        fraction = any(isinstance(s, ast.Constant) and isinstance(s.value, float) and not s.value.is_integer() for s in sides)
        if fraction or (used and any(_sums(side) for side in sides)):
            yield floats, f"Line {node.lineno} compares REAL values with ==.", fix
            return


def _sums(node: ast.AST) -> bool:
    """True for an expression that adds up or multiplies what it read."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id == "sum" and any(isinstance(part, ast.Mult | ast.Div) for part in ast.walk(node))
    return isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div))
