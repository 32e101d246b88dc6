"""Which episodes a trainer must leave out, by their verdict."""

from typing import Any

import pytest

from awm_factory.client import Verdict
from awm_factory.errors import EnvironmentFault


@pytest.mark.parametrize(
    ("said", "masked", "code"),
    [
        ({"classification": "complete", "reward": 1.0}, False, None),
        ({"classification": "others", "reward": 0.0}, False, None),
        ({"classification": "complete", "reward": 1.0, "internal_errors": 2}, False, None),
        ({"classification": "others", "reward": 0.0, "internal_errors": 1}, True, "calls"),
        ({"classification": "incomplete", "reward": 0.1, "internal_errors": 1}, True, "calls"),
        ({"classification": "server_error", "reward": 0.0}, True, "calls"),
        ({"error": "KeyError: 'owner'"}, True, "verifier"),
        ({"error": "KeyError: 'owner'", "internal_errors": 1}, True, "verifier"),
        ({"evidence": {"rows": 1}}, True, None),
        ({"evidence": {"rows": 1}, "internal_errors": 1}, True, None),
    ],
    ids=[
        "complete",
        "not complete",
        "complete though calls failed",
        "not complete, calls failed",
        "in part, calls failed",
        "a judge blames the environment",
        "broken verifier",
        "broken verifier and calls",
        "not judged yet",
        "not judged yet, calls failed",
    ],
)
def test_what_a_trainer_must_mask_and_whose_fault_it_is(said: dict[str, Any], masked: bool, code: str | None) -> None:
    verdict = Verdict(mode="sql" if "evidence" in said else "code", **said)
    assert verdict.masked is masked
    assert verdict.fault == (None if code is None else "environment")
    if code is None:
        verdict.raise_for_fault()
    else:
        with pytest.raises(EnvironmentFault) as caught:
            verdict.raise_for_fault()
        assert (caught.value.code, caught.value.masked) == (code, True)
