"""Take a model's answer apart: thinking, prose and fences come off, and what is left is whole JSON, whole Python, or refused.

Nothing is ever mended. An answer that was cut is not closed for it, of two candidates none is guessed, and a part is never taken
for the whole, since half a seed file would load without a complaint. Each refusal says its cause, for the next prompt.

Markdown's own rules don't do here: by them a fence ends at the first line of backticks, even one inside a docstring. A block of
Python ends at the first closing fence where it is a program; JSON needs no fences, it says itself where it ends.
"""

import json
import math
import re
import subprocess
import textwrap
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NoReturn

from pydantic import JsonValue
from ruff.__main__ import find_ruff_bin  # type: ignore[import-untyped]

from awm_factory.errors import Malformed, Truncated

_THINKING = re.compile(r"\s*<(think|thinking|thought|reasoning)>(?P<inside>.*?)</\1>", re.DOTALL | re.IGNORECASE)
_THINKING_STARTS = re.compile(r"\s*<(think|thinking|thought|reasoning)>", re.IGNORECASE)
_THINKING_ENDS = re.compile(r"</(think|thinking|thought|reasoning)>", re.IGNORECASE)
_JSON_STARTS = re.compile(r'\{\s*(?:["}]|\Z)|\[\s*(?:[{\["\]\d-]|\Z)')
_FENCE = re.compile(r"(?P<indent>[ \t]*)(?P<marks>`{3,}|~{3,})[ \t]*(?P<tag>[\w+.#-]*)[^`]*\Z")
_PYTHON: Final = "py313"
"""The base image's Python, whose syntax counts; the host's may be older."""
_DEFINES = re.compile(r"(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)|(\w+)[ \t]*(?::[^=\n]+)?=[^=]", re.MULTILINE)
_CODE = re.compile(r"(?:import|from|async|def|class|@)\b|@\w|\w+[ \t]*(?::[^=\n]+)?=[^=]", re.MULTILINE)
_MOST_ENDS = 20
"""Closing fences tried for one block, lest an answer of nothing but fences takes hours."""


def without_thinking(text: str) -> str:
    """The answer proper. Some servers send only the closing tag, because the opening one stood in the prompt's template.

    Raises Truncated where the thinking never ends: there is no answer behind it.
    """
    text = text.removeprefix("\ufeff")
    while match := _THINKING.match(text):
        text = text[match.end() :]
    if _THINKING_STARTS.match(text):
        raise Truncated(
            "the answer ends inside its thinking text, before anything that was asked for; think less, or allow more tokens"
        )
    end = _THINKING_ENDS.search(text)
    if end is not None and not text.lstrip().startswith(("{", "[", "`", "~")):
        text = text[end.end() :]
    return text.strip()


def json_answer(text: str, root: type[dict[str, Any]] | type[list[Any]] = dict) -> JsonValue:
    """The one JSON object (or array, with `root=list`) in an answer, whatever stands around it.

    Strict: every bracket closes, no key twice, no NaN, no infinite numbers, no half surrogate pairs.

    Raises Truncated where the value never closes (whatever the finish reason said), Malformed for anything else.
    """
    body = without_thinking(text)
    values: list[JsonValue] = []
    position = 0
    while (start := _next_bracket(body, position)) is not None:
        if _JSON_STARTS.match(body, start):
            value, position = _decode(body, start)
            values.append(value)
        else:
            position = _skip_brackets(body, start)
    asked = "object" if root is dict else "array"
    fitting = [value for value in values if isinstance(value, root)]
    distinct = [value for index, value in enumerate(fitting) if value and value not in fitting[:index]] or fitting[:1]
    if not distinct:
        found = f"holds {len(values)} other JSON values" if values else "holds no JSON"
        raise Malformed(f"the answer {found} where one JSON {asked} was asked for; answer with that {asked} and nothing else")
    if len(distinct) > 1:
        raise Malformed(f"the answer holds {len(distinct)} different JSON {asked}s; answer with one {asked} and nothing else")
    return distinct[0]


def python_answer(text: str, defines: str | None = None) -> str:
    """The one Python program in an answer, without prose and fences; `defines` names something it must have at its top level.

    Raises Truncated where a fence never closes, Malformed for anything else.
    """
    whole = text.replace("\r\n", "\n").removeprefix("\ufeff").strip() + "\n"
    body = without_thinking(whole) + "\n" if "</" in whole or whole.startswith("<") else whole
    for plain in dict.fromkeys((whole, body)):
        # No program begins with a fence, and to have one refused costs a process.
        if not plain.startswith("```") and _is_program(plain, defines):
            return plain
    blocks = _blocks(body)
    python = [block for block in blocks if block.python]
    fitting = [block for block in python if block.parses and _defines(block.text, defines)]
    chosen = [block for block in fitting if block.tag] or fitting
    if len(chosen) == 1:
        return chosen[0].text
    if len(chosen) > 1:
        raise Malformed(f"the answer holds {len(chosen)} blocks of Python that fit; answer with one that holds the whole file")
    if any(not block.closed for block in python):
        raise Truncated("the answer stops before its code block closes; answer with less code, or allow more tokens")
    raise _misfit(body, blocks, python, defines)


def _misfit(body: str, blocks: "list[_Block]", python: "list[_Block]", defines: str | None) -> Malformed:
    broken = next((block for block in python if not block.parses), None)
    error = _syntax_error(body)
    if broken is not None:
        cause = f"the code in the answer is not Python: {_syntax_error(broken.text)}"
    elif defines is not None and (python or (error is None and _CODE.match(body))):
        cause = f"the code in the answer does not define {defines} at its top level"
    elif not blocks:
        cause = f"the answer is not plain Python ({error or 'it imports, defines and assigns nothing'}), and holds no code block"
    else:
        tags = ", ".join(block.tag or "untagged" for block in blocks)
        cause = f"the answer is prose and {len(blocks)} fenced blocks ({tags}), none of them Python"
    return Malformed(f"{cause}; answer with one block of Python that holds the whole file")


# --- JSON -----------------------------------------------------------------------------------------------------------


def _next_bracket(text: str, position: int) -> int | None:
    match = re.compile(r"[{\[]").search(text, position)
    return match.start() if match else None


def _skip_brackets(text: str, start: int) -> int:
    """Position behind the bracket that closes the one at `start`: what stands inside something that isn't JSON is only a part."""
    depth = 0
    for position in range(start, len(text)):
        if text[position] in "{[":
            depth += 1
        elif text[position] in "}]":
            depth -= 1
            if depth == 0:
                return position + 1
    return len(text)


def _decode(text: str, start: int) -> tuple[JsonValue, int]:
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
    try:
        value, end = decoder.raw_decode(text, start)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        if error.msg.startswith("Unterminated string") or error.pos >= len(text.rstrip()):
            raise Truncated(
                f"the JSON in the answer stops in line {text.count(chr(10)) + 1} without closing; "
                "answer with the whole of it, or with less"
            ) from None
        excerpt = text[max(error.pos - 40, 0) : error.pos + 20]
        raise Malformed(
            f"the answer is not valid JSON: {error.msg} in line {error.lineno}, column {error.colno}, near {excerpt!r}; "
            "answer with strict JSON"
        ) from None
    except UnicodeEncodeError:
        raise Malformed("the JSON in the answer holds half a surrogate pair; write the characters themselves") from None
    except RecursionError:
        raise Malformed("the JSON in the answer is nested too deep; answer with a flatter structure") from None
    except ValueError as error:
        raise Malformed(f"the JSON in the answer holds a number out of range ({error}); write smaller numbers") from None
    return value, end


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Malformed(f"a JSON object in the answer has the key {twice!r} twice; each key may stand once")
    return found


def _no_constant(name: str) -> NoReturn:
    raise Malformed(f"the JSON in the answer holds {name}, which JSON does not have; use null or a number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise Malformed(f"the JSON in the answer holds {digits}, which is out of range; write smaller numbers")
    return number


# --- Python ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Block:
    tag: str
    text: str
    closed: bool
    parses: bool

    @property
    def python(self) -> bool:
        return not self.tag or self.tag.startswith("py")


def _blocks(text: str) -> list[_Block]:
    lines = text.split("\n")
    blocks = []
    index = 0
    while index < len(lines):
        opening = _FENCE.match(lines[index])
        index += 1
        if opening is None:
            continue
        closing = re.compile(rf"[ \t]*{re.escape(opening['marks'][0])}{{{len(opening['marks'])},}}[ \t]*\Z")
        ends = [end for end in range(index, len(lines)) if closing.match(lines[end])]
        block, index = _block(lines, index, ends[:_MOST_ENDS], opening["tag"].lower(), bool(opening["indent"]))
        blocks.append(block)
    return blocks


def _block(lines: list[str], start: int, ends: list[int], tag: str, indented: bool) -> tuple[_Block, int]:
    """The block from `start` to the first of `ends` where it parses, or to the first at all; and the line behind it."""

    def body(end: int) -> str:
        joined = "\n".join(lines[start:end]).rstrip() + "\n"
        return textwrap.dedent(joined) if indented else joined

    if not tag or tag.startswith("py"):
        for end in ends:
            if _is_program(body(end), None):
                return _Block(tag, body(end), closed=True, parses=True), end + 1
    if ends:
        return _Block(tag, body(ends[0]), closed=True, parses=False), ends[0] + 1
    return _Block(tag, body(len(lines)), closed=False, parses=False), len(lines)


def _is_program(code: str, defines: str | None) -> bool:
    """Whether it parses and imports, defines or assigns something: the single word `Done` parses as well."""
    return any(_CODE.match(line) for line in code.split("\n")) and _defines(code, defines) and _syntax_error(code) is None


def _defines(code: str, name: str | None) -> bool:
    matches = (_DEFINES.match(line) for line in code.split("\n"))
    return name is None or any(match is not None and name in match.groups() for match in matches)


@lru_cache(maxsize=16)
def _syntax_error(code: str) -> str | None:
    """What ruff's parser says, or None. It is a process of its own: an answer that overflows its stack ends nothing else."""
    flags = ["--isolated", "--no-cache", "--quiet", "--select", "E9", "--target-version", _PYTHON, "--output-format", "json"]
    command = [find_ruff_bin(), "check", *flags, "--stdin-filename", "answer.py", "-"]
    done = subprocess.run(command, input=code.encode("utf-8", "replace"), capture_output=True, timeout=60, check=False)
    if done.returncode == 0:
        return None
    if done.returncode != 1:
        return "its expressions are nested or chained too deep"
    first = json.loads(done.stdout)[0]
    return f"{first['message']} (line {first['location']['row']}, column {first['location']['column']})"


def fenced_json(value: JsonValue) -> str:
    """The other way round: a value as the prompts ask for it."""
    return f"```json\n{json.dumps(value, ensure_ascii=False, indent=1)}\n```"


def fenced_python(code: str) -> str:
    return f"```python\n{code.rstrip()}\n```"
