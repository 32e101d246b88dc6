"""Arguments that speak of earlier results: `{{calls[0].items[2].id}}` stands for a value of the first call's result."""

import re
from collections.abc import Sequence
from typing import Any, Final

from jsonpath import JSONPathMatch, finditer

from awm_runtime.contract import ToolResult

_REFERENCE: Final = re.compile(r"\{\{\s*calls\[(\d+)\]\s*(.*?)\s*\}\}")


def filled_in(value: Any, results: Sequence[ToolResult]) -> Any:
    """`value` with every reference in it replaced. Raises LookupError."""
    if isinstance(value, dict):
        return {key: filled_in(item, results) for key, item in value.items()}
    if isinstance(value, list):
        return [filled_in(item, results) for item in value]
    if not isinstance(value, str):
        return value
    if whole := _REFERENCE.fullmatch(value):
        return _earlier(whole, results)
    return _REFERENCE.sub(lambda match: str(_earlier(match, results)), value)


def _earlier(match: "re.Match[str]", results: Sequence[ToolResult]) -> Any:
    index, path = int(match[1]), match[2]
    if index >= len(results):
        raise LookupError(f"{match[0]} speaks of call {index}, but only {len(results)} came before")
    content: Any = results[index].content
    found: list[JSONPathMatch] = list(finditer("$" + path, content))
    if not found:
        raise LookupError(f"{match[0]} finds nothing in the result of call {index}")
    return found[0].obj
