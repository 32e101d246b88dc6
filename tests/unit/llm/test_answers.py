"""Answers as models really write them."""

import json

import pytest

from awm_factory.errors import Malformed, ModelError, Truncated
from awm_factory.llm import answers
from awm_factory.llm.answers import fenced_python, json_answer, python_answer, without_thinking

PROGRAM = 'import os\n\nNAME = "kiosk"\n\n\ndef run(x):\n    return "use ```mono``` only"\n'
OBJECT = {"tables": [{"name": "boats", "rows": ["INSERT INTO boats VALUES (1, '{');"]}, {"name": "```"}]}
TEXT = json.dumps(OBJECT, indent=1)


@pytest.mark.parametrize(
    "answer",
    [
        PROGRAM,
        f"```python\n{PROGRAM}```",
        f"```Python\n{PROGRAM}```\n",
        f"```PY\n{PROGRAM}```\n",
        f"Of course! First:\n\n```bash\npip install fastapi\n```\n\n```Python\n{PROGRAM}```\n\nTell me if you want tests.",
        f"~~~python\n{PROGRAM}~~~",
        f"````\n{PROGRAM}````",
        f"<think>\nShall I write ```python\nimport sys\n``` or more?\n</think>\n\n```python\n{PROGRAM}```",
        f"reasoning whose opening tag stood in the prompt </think>\n```python\n{PROGRAM}```",
        f"<Thinking>one</Thinking><think>two</think>\n{PROGRAM}",
        "\ufeff" + PROGRAM.replace("\n", "\r\n"),
        "1. The file:\n\n   ```python\n"
        + "".join(f"   {line}\n" if line else "\n" for line in PROGRAM.splitlines())
        + "   ```\n",
    ],
)
def test_a_program_is_taken_out_of_whatever_surrounds_it(answer: str) -> None:
    assert python_answer(answer) == PROGRAM


def test_a_fence_inside_a_docstring_does_not_end_the_block() -> None:
    code = 'def f():\n    """Usage:\n\n```\nf()\n```\n"""\n    return 1\n'
    assert python_answer(f"Here:\n```python\n{code}```\nDone.") == code


def test_an_answer_that_begins_with_a_fence_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    monkeypatch.setattr(answers, "_syntax_error", parsed.append)
    assert python_answer(fenced_python("answer = 42")) == "answer = 42\n"
    assert parsed == ["answer = 42\n"]


def test_the_newest_syntax_is_read_on_any_host() -> None:
    code = 'type Pair = tuple[int, int]\n\n\ndef first[T](x: list[T]) -> str:\n    return f"{x["a"]}"\n'
    assert python_answer(f"```python\n{code}```") == code


def test_the_block_that_defines_the_name_asked_for_is_taken() -> None:
    answer = f"```python\n{PROGRAM}```\nand it is called so:\n```python\nimport kiosk\nkiosk.run(1)\n```"
    assert python_answer(answer, defines="run") == PROGRAM
    with pytest.raises(Malformed, match="2 blocks of Python"):
        python_answer(answer)
    with pytest.raises(Malformed, match="does not define verify_task"):
        python_answer(answer, defines="verify_task")


@pytest.mark.parametrize(
    ("answer", "error", "cause"),
    [
        ("Of course! I would do it so.", Malformed, "no code block"),
        ("x = " + "-" * 100_000 + "1", Malformed, "too deep"),
        ("Done", Malformed, "imports, defines and assigns nothing"),
        ("", Malformed, "no code block"),
        ("First:\n```bash\nls\n```\nthen\n```json\n{}\n```", Malformed, r"prose and 2 fenced blocks \(bash, json\)"),
        ("```python\ndef f(:\n    pass\n```", Malformed, r"not Python: .* \(line 1"),
        (f"```python\n{PROGRAM}", Truncated, "before its code block closes"),
        ("```python\nimport os\n\ndef f(a,", Truncated, "before its code block closes"),
        ("<think>I could write", Truncated, "inside its thinking"),
    ],
)
def test_what_is_no_program_is_refused_with_its_cause(answer: str, error: type[ModelError], cause: str) -> None:
    with pytest.raises(error, match=cause):
        python_answer(answer)


@pytest.mark.parametrize(
    "answer",
    [
        TEXT,
        f"```json\n{TEXT}\n```",
        f"```JSON\n{TEXT}```",
        f"Here you are [1]: {TEXT} — I used {{curly}} names and `{{}}` for nothing.",
        f'<think>maybe {{"tables": [</think>{TEXT}',
        f'no opening tag, a draft {{"tables": 3}} </think>\n{TEXT}',
        f"{TEXT}\n\nThe same again:\n\n{TEXT}",
        f"```json\n{TEXT}",
    ],
)
def test_an_object_is_taken_out_of_whatever_surrounds_it(answer: str) -> None:
    assert json_answer(answer) == OBJECT


def test_an_array_is_found_when_one_is_asked_for() -> None:
    assert json_answer('Sure: [{"a": 1}]', root=list) == [{"a": 1}]
    with pytest.raises(Malformed, match="1 other JSON values where one JSON object"):
        json_answer('[{"a": 1}]')


def test_thinking_tags_inside_a_value_are_left_alone() -> None:
    assert json_answer('{"a": "<think>x</think>"}') == {"a": "<think>x</think>"}
    assert without_thinking('{"a": "</think>"}') == '{"a": "</think>"}'


@pytest.mark.parametrize("cut", range(1, len(TEXT)))
def test_an_object_cut_anywhere_is_refused_and_no_part_of_it_is_taken(cut: int) -> None:
    with pytest.raises(Truncated):
        json_answer("```json\n" + TEXT[:cut])


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        ("I cannot do that.", "holds no JSON"),
        ('{\'tables\': [{"name": "a"}]}', "holds no JSON"),
        ('{tables: [{"name": "a"}]}', "holds no JSON"),
        ('{"a": 1,}', "not valid JSON"),
        ('{"a": 1} or {"a": 2}', "2 different JSON objects"),
        ('{"a": 1, "a": 2}', "key 'a' twice"),
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "-Infinity"),
        ('{"a": 1e999}', "1e999"),
        ('{"a": ' + "9" * 5000 + "}", "number out of range"),
        ('{"a": "\\ud83d"}', "surrogate"),
        ('{"a": "line\nbreak"}', "Invalid control character"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deep"),
        ('{"a": 1 // note\n}', "not valid JSON"),
    ],
)
def test_json_that_is_not_strict_is_refused_with_its_cause(answer: str, cause: str) -> None:
    with pytest.raises(Malformed, match=cause):
        json_answer(answer)
