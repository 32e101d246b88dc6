"""Answers from files: an attempt's own file, or the common one with the attempt's edits."""

import json
from pathlib import Path

import pytest

from awm_factory.errors import FormatError
from awm_factory.synthesis.scripted import written


def test_an_attempt_has_its_own_file_or_the_common_one_with_its_edits(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("a = 1\nb = 2\n")
    (tmp_path / "code.1.py").write_text("nothing\n")
    (tmp_path / "code.2.edits.json").write_text(json.dumps([{"old": "a = 1", "new": "a = 3"}, {"old": "b = 2\n", "new": ""}]))
    assert [written(tmp_path, "code.py", attempt) for attempt in (1, 2, 3)] == ["nothing\n", "a = 3\n", "a = 1\nb = 2\n"]
    assert written(tmp_path, "data.json", 1) is None


@pytest.mark.parametrize("old", ["c", "= "])
def test_an_edit_that_does_not_fit_names_its_file(tmp_path: Path, old: str) -> None:
    (tmp_path / "code.py").write_text("a = 1\nb = 2\n")
    (tmp_path / "code.1.edits.json").write_text(json.dumps([{"old": old, "new": ""}]))
    with pytest.raises(FormatError, match=r"code\.1\.edits\.json: '.*' does not stand once in code\.py"):
        written(tmp_path, "code.py", 1)
