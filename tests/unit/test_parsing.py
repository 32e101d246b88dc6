"""Code in newer syntax than the host's: its tree comes from where the code runs."""

import ast
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from awm_factory import syntax as host_syntax
from awm_factory.sandbox import parsing
from awm_factory.sandbox.pool import Reply, Request, Sandbox
from awm_runtime import syntax
from awm_runtime.contract import CheckFailed, ParseReply, ParseRequest

LITERALS = "x = [1, -2.5, 1e999, 3j, b'\\x00', ..., None, True, 'ä', 10**30]\ndef f(*, a, b=1): ...\nprint({**x})\n"


class Newer(Sandbox):
    """Says what a newer Python would."""

    base = "newer"

    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    def check(self, request: Request, time_limit: float = 60.0) -> Reply:
        assert isinstance(request, ParseRequest)
        return self._reply

    def close(self) -> None:
        pass


def test_a_tree_comes_back_as_it_was() -> None:
    files = [path.read_text() for path in Path(parsing.__file__).parents[1].glob("synthesis/**/*.py")]
    for code in [LITERALS, *files]:
        packed = syntax.parse(code).tree
        assert packed is not None
        tree = parsing.unpacked(json.loads(packed))
        assert ast.dump(tree) == ast.dump(ast.parse(code))
        assert [n.lineno for n in ast.walk(tree) if isinstance(n, ast.stmt)] == [
            n.lineno for n in ast.walk(ast.parse(code)) if isinstance(n, ast.stmt)
        ]


def test_what_the_host_has_no_node_for_is_left_out_or_read_as_its_like() -> None:
    tree = json.loads(syntax.parse("class Box:\n    pass\nIds = list[int]\n").tree or "")
    box, ids = tree["body"]
    box["type_params"] = [{"node": "TypeVar", "lineno": 1, "col_offset": 10, "name": "T", "bound": None}]
    tree["body"][1] = {"node": "TypeAlias", "lineno": 3, "name": ids["targets"][0], "type_params": [], "value": ids["value"]}
    sandbox = Newer(ParseReply(tree=json.dumps(tree)))
    read = parsing.parse("def f(:", sandbox)
    assert [node.lineno for node in read.body] == [1, 3]
    assert isinstance(read.body[0], ast.ClassDef)
    assert ast.unparse(read).endswith("list[int]")


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (ParseReply(tree=None, fault="expected ':'", line=2), "expected ':'"),
        (CheckFailed(reason="memory", message="too much"), "gave up \\(too much\\)"),
        (ParseReply(tree='{"node": "Hologram", "lineno": 4}'), "Hologram is newer"),
        (ParseReply(tree='{"node": "parse"}'), "parse is newer"),
    ],
)
def test_what_is_no_python_there_either_is_a_syntax_error(reply: Reply, fault: str) -> None:
    with pytest.raises(SyntaxError, match=fault):
        parsing.parse("def f(:", Newer(reply))


def test_what_the_host_can_parse_goes_to_no_sandbox() -> None:
    assert isinstance(parsing.parse("x = 1", Newer(CheckFailed(reason="crashed", message="asked"))), ast.Module)


def test_a_null_byte_is_a_fault_and_no_crash() -> None:
    assert syntax.parse("x = 1\0").tree is None


class Littered:
    """Runs Python code when it is collected, which lets another thread in."""

    other: "Littered"

    def __del__(self) -> None:
        sum(range(50))


def test_threads_make_trees_side_by_side() -> None:
    code = Path(host_syntax.__file__).with_name("problems.py").read_text() * 4

    def read(_: int) -> int:
        found = 0
        for _ in range(40):
            for _ in range(200):
                one, two = Littered(), Littered()
                one.other, two.other = two, one
            found += len(host_syntax.module(code).body)
        return found

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            assert len(set(threads.map(read, range(4)))) == 1
    finally:
        sys.setswitchinterval(before)
