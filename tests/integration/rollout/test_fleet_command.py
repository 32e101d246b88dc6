"""`awm-factory rollout` on a fleet that is named, with what the workspace keeps of it."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from awm_factory.cli import run
from awm_factory.fleet.files import FleetFiles
from client_support import TOKEN
from lease_support import ENV, FLEET, service
from runtime_support import Served, serve, write_environment

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(write_environment(tmp_path_factory.mktemp("environment") / "env"), AWM_TOKEN=TOKEN) as served:
        yield served


async def test_a_fleet_of_the_workspace_is_played_on_by_its_name_all_of_its_environments_if_none_is_named(
    library: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with service(library) as it:
        files = FleetFiles.of(tmp_path, "trial")
        files.ensure_secrets()
        (files.secrets / "token").write_text(FLEET + "\n")
        port = it.fleet.url.rstrip("/").rpartition(":")[2]
        files.write(f'services: {{lease: {{ports: ["127.0.0.1:{port}:8081"]}}}}'.encode())
        arguments = ["--workspace", str(tmp_path), "rollout", "--fleet", "trial", "--task", "0", "--samples", "2"]
        arguments += ["--agent", "greedy", "--output", str(tmp_path / "out.jsonl"), "--json"]
        assert await asyncio.to_thread(run, arguments) == 0
        assert not it.leases.leases
    own = json.loads(capsys.readouterr().out)[0]
    assert (own["env_id"], own["episodes"], own["masked"]) == (ENV, 2, 0)


def test_a_fleet_that_is_not_there_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--workspace", str(tmp_path), "rollout", "--fleet", "trial", "--agent", "greedy"]
    assert run(arguments) == 2
    assert "there is no fleet trial here" in capsys.readouterr().err
