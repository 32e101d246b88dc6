"""Training tests run where torch and TRL are installed (`make test-train`); elsewhere they are not even collected."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("trl") and find_spec("torch"):
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "examples")]
else:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
