import pytest

from awm_runtime.module_state import written_names


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("SEEN.append(1)", {"SEEN": "f"}),
        ("CACHE['a'] = 1", {"CACHE": "f"}),
        ("CACHE['a'] += 1", {"CACHE": "f"}),
        ("del CACHE['a']", {"CACHE": "f"}),
        ("global N\n    N = 1", {"N": "f"}),
        ("return next(IDS)", {"IDS": "f"}),
        ("return len(SEEN), CACHE.get('a')", {}),
        ("SEEN = []\n    SEEN.append(1)", {}),
        ("OTHER.append(1)", {}),
        ("session.add(1)", {}),
    ],
)
def test_what_a_function_writes_of_its_module(body: str, names: dict[str, str]) -> None:
    head = "import itertools\nSEEN = []\nCACHE: dict = dict()\nIDS = itertools.count(1)\nN = 0\nsession = Session()\n"
    code = f"{head}def f():\n    {body}\n"
    assert written_names(code) == names


def test_a_parameter_hides_the_modules_name() -> None:
    assert written_names("ROWS = []\nasync def f(ROWS):\n    ROWS.append(1)\n") == {}


def test_code_that_does_not_parse_has_none() -> None:
    assert written_names("def f(:") == {}
