from collections.abc import Iterator

import pytest

from runtime_support import Checks, Served, checks, serve, write_environment


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Checks]:
    """One checks process for all tests, as the host keeps one: no check may spoil it for the next."""
    with checks() as running:
        yield running


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = write_environment(tmp_path_factory.mktemp("library") / "env")
    with serve(directory, AWM_CALL_TIMEOUT="1", AWM_WORKERS="2") as served:
        yield served
