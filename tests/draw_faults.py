"""Draws planted faults by chance from every place of the environments where one of a kind fits, so that nobody chooses them.

`python tests/draw_faults.py SEED` prints entries for tests/data/planted_faults. Endpoints, helpers and verifiers in which a fault
was planted before are left out. What is drawn and changes nothing that can be observed is told by reading, before it is run.
"""

import ast
import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from certify_support import PLANTED, environment

ENVIRONMENTS = ("playhouse_box_office", "makers_tool_library", "community_vaccination_drive", "regional_courier_dispatch_desk")
WANTED = (
    *("dropped commit", "wrong filter", "wrong filter", "off by one", "missing check", "swallowed error", "forgotten write"),
    *("verifier too loose", "verifier too loose", "verifier too strict"),
)
TURNED = {ast.Gt: ">=", ast.GtE: ">", ast.Lt: "<=", ast.LtE: "<"}
REVERSED = {ast.Eq: "!=", ast.NotEq: "==", ast.Gt: "<=", ast.GtE: "<", ast.Lt: ">=", ast.LtE: ">"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Place:
    env: str
    part: str
    function: Function
    start: int
    end: int
    """Characters of the source that are replaced."""
    replace: str


def places(kind: str) -> Iterator[Place]:
    taken = used()
    for env in ENVIRONMENTS:
        bundle = environment(env)
        sources = {"app.py": bundle.app_code} if not kind.startswith("verifier") else {}
        if kind.startswith("verifier"):
            sources = {f"verifiers/{task}.code.py": code for (task, mode), code in bundle.verifiers.items() if mode == "code"}
        for part, source in sorted(sources.items()):
            if (env, part) in taken:
                continue
            at = offsets(source)
            for function in [node for node in ast.walk(ast.parse(source)) if isinstance(node, Function)]:
                if part != "app.py" or (env, function.name) not in taken:
                    yield from (
                        Place(env, part, function, at(first), at(last, ended=True), text)
                        for first, last, text in KINDS[kind](function)
                    )


def used() -> set[tuple[str, str]]:
    """Functions and verifiers that a fault was planted in before, by environment."""
    found = set()
    for path in PLANTED.glob("*.json"):
        for fault in json.loads(path.read_text(encoding="utf-8")):
            if fault["part"].startswith("verifiers/"):
                found.add((fault["env"], fault["part"]))
            else:
                named = re.findall(r"(?:def |operation_id=\")(\w+)", fault["after"] + " " + fault["find"])
                found |= {(fault["env"], name) for name in named}
    return found


def offsets(source: str) -> Callable[..., int]:
    """Places of a syntax tree as characters; the tree counts columns in bytes."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def at(node: ast.AST, *, ended: bool = False) -> int:
        line, column = (node.end_lineno, node.end_col_offset) if ended else (node.lineno, node.col_offset)  # type: ignore[attr-defined]
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    return at


Edit = tuple[ast.AST, ast.AST, str]
"""First and last node of what is replaced, and by what."""


def method(function: Function) -> str:
    """`get`, `post`…; empty for a helper."""
    decorators = [one.func for one in function.decorator_list if isinstance(one, ast.Call)]
    return next((one.attr for one in decorators if isinstance(one, ast.Attribute)), "")


def dropped_commit(function: Function) -> Iterator[Edit]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "commit":
            yield node, node, f"{ast.unparse(node.func.value)}.flush()"


def wrong_filter(function: Function) -> Iterator[Edit]:
    if method(function) != "get":
        return
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("where", "filter"):
            for one in node.args:
                if isinstance(one, ast.Compare) and len(one.ops) == 1 and type(one.ops[0]) in REVERSED:
                    yield one, one, compared(one, REVERSED[type(one.ops[0])])


def refusing(function: Function) -> Iterator[ast.If]:
    for node in ast.walk(function):
        if isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ast.Raise) and not node.orelse:
            yield node


def off_by_one(function: Function) -> Iterator[Edit]:
    for node in refusing(function):
        for one in ast.walk(node.test):
            if isinstance(one, ast.Compare) and len(one.ops) == 1 and type(one.ops[0]) in TURNED:
                yield one, one, compared(one, TURNED[type(one.ops[0])])


def missing_check(function: Function) -> Iterator[Edit]:
    if method(function) not in ("", "get"):
        yield from ((node.test, node.test, "False") for node in refusing(function))


def swallowed_error(function: Function) -> Iterator[Edit]:
    if not method(function):
        yield from ((node.body[0], node.body[0], "pass") for node in refusing(function))


def forgotten_write(function: Function) -> Iterator[Edit]:
    if method(function) in ("", "get"):
        return
    for node in ast.walk(function):
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if all(isinstance(target, ast.Attribute) for target in targets):
                yield node, node, "pass"


def too_loose(function: Function) -> Iterator[Edit]:
    for node in ast.walk(function):
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            yield from ((one, one, "True") for one in node.values)
        if isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ast.Return) and not node.orelse:
            yield node.test, node.test, "False"


def too_strict(function: Function) -> Iterator[Edit]:
    """Case and blanks made to matter, and bounds made narrower."""
    for node in ast.walk(function):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("lower", "casefold", "strip")
        ):
            yield node, node, ast.unparse(node.func.value)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.GtE | ast.LtE | ast.In):
            yield node, node, compared(node, {ast.GtE: ">", ast.LtE: "<"}.get(type(node.ops[0]), "=="))


def compared(node: ast.Compare, sign: str) -> str:
    return f"{ast.unparse(node.left)} {sign} {ast.unparse(node.comparators[0])}"


KINDS: dict[str, Callable[[Function], Iterator[Edit]]] = {
    "dropped commit": dropped_commit,
    "wrong filter": wrong_filter,
    "off by one": off_by_one,
    "missing check": missing_check,
    "swallowed error": swallowed_error,
    "forgotten write": forgotten_write,
    "verifier too loose": too_loose,
    "verifier too strict": too_strict,
}


def entry(kind: str, place: Place) -> dict[str, object]:
    """As the lists hold it: a text that is found again by what stands before it in the same function."""
    bundle = environment(place.env)
    source = bundle.app_code if place.part == "app.py" else bundle.verifiers[int(place.part.split("/")[1].split(".")[0]), "code"]
    line = source.rfind("\n", 0, place.start) + 1
    stop = source.find("\n", place.end)
    find = source[line:stop]
    after = next(text for text in (f"def {place.function.name}(",) if text in source)
    began = source.index(after)
    if source.index(find, began) != line:  # the same lines stand further up in the function: begin with those before
        find = source[source.rfind("\n", 0, line - 1) + 1 : stop]
        assert source.index(find, began) < line, place
        line = source.rfind("\n", 0, line - 1) + 1
    replace = source[line : place.start] + place.replace + source[place.end : stop]
    task = place.part.split("/")[1].split(".")[0] if "/" in place.part else ""
    return {
        "id": f"{kind.split()[-1]}-{place.function.name if not task else place.env.split('_')[0] + '-' + task}".replace("_", "-"),
        "env": place.env,
        "part": place.part,
        "kind": kind,
        "why": "",
        "after": after,
        "find": find,
        "replace": replace,
        "held_out": True,
    }


def main() -> None:
    """SEED, and the ids of what was drawn and turned out to be no fault, each of which is drawn anew when all are drawn."""
    chance, taken = random.Random(sys.argv[1]), set[tuple[str, str]]()

    def draw(kind: str) -> dict[str, object]:
        found = [place for place in places(kind) if _spot(place) not in taken]
        place = chance.choice(found)
        taken.add(_spot(place))
        return entry(kind, place)

    drawn = [(kind, draw(kind)) for kind in WANTED]
    kept = [draw(kind) if fault["id"] in sys.argv[2:] else fault for kind, fault in drawn]
    sys.stdout.write(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def _spot(place: Place) -> tuple[str, str]:
    return place.env, place.function.name if place.part == "app.py" else place.part


if __name__ == "__main__":
    main()
