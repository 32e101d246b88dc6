from collections.abc import Iterator
from pathlib import Path

import pytest

from client_support import TOKEN
from runtime_support import Served, serve, write_environment

RAISES = """
def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    return {"result": None.lower()}
"""

ODD = """
def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    while final_answer == "hang":
        pass
    return {"true": True, "capital": {"result": "Complete"}, "nan": {"result": float("nan")}}.get(final_answer)
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three tasks: the first with a sound verifier, the others with broken ones."""
    directory = write_environment(
        tmp_path_factory.mktemp("client") / "env", tasks=("Lend the Kite book to Ada.", "Lend anything.", "Lend something.")
    )
    (directory / "verifiers" / "1.code.py").write_text(RAISES)
    (directory / "verifiers" / "2.code.py").write_text(ODD)
    return directory


@pytest.fixture(scope="session")
def container(directory: Path) -> Iterator[Served]:
    """The runtime as a container runs it, without the container."""
    with serve(directory, AWM_TOKEN=TOKEN, AWM_WORKERS="2") as served:
        yield served


@pytest.fixture
def url(container: Served) -> str:
    return f"http://127.0.0.1:{container.port}"
