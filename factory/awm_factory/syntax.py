"""Python code as syntax trees, one at a time.

Some Pythons (3.11.7 is one) count the depth of the tree that they make in one place for all threads. When two make one at once
(a collection in the midst of the first lets the second in), the first ends in `SystemError: AST constructor recursion depth
mismatch`. Checks read code in several threads, so everything that makes trees does it here.
"""

import ast
from threading import Lock
from typing import Final

_ONE: Final = Lock()


def module(code: str) -> ast.Module:
    """Raises what `ast.parse` does: SyntaxError, ValueError, RecursionError, MemoryError."""
    with _ONE:
        return ast.parse(code)


def expression(code: str) -> ast.expr:
    """Raises what `ast.parse` does."""
    with _ONE:
        return ast.parse(code, mode="eval").body
