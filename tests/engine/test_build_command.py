"""`awm-factory build` as a process: several environments side by side, and interrupted at any stage."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from awm_factory.images.docker_client import OWNER
from awm_factory.images.engine import Engine
from bee_yard import working

ENVS = ("bee_yard_a", "bee_yard_b")


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """A runner in the background ignores SIGINT, and what it starts would inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def workspace(tmp_path: Path, engine: Engine) -> Iterator[Path]:
    for env_id in ENVS:
        working(env_id).write(tmp_path / "registry" / env_id)
    yield tmp_path
    for name in tags(engine):
        engine.client.images.remove(name)


def tags(engine: Engine) -> list[str]:
    return [name for image in engine.client.images.list() for name in image.tags if name.startswith("awm/bee_yard_")]


def started(workspace: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-c",
        "from awm_factory.cli import main; main()",
        "--workspace",
        str(workspace),
        "build",
        *arguments,
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def left_over(engine: Engine, process: subprocess.Popen[str]) -> list[str]:
    mine = f"{socket.gethostname()}.{process.pid}."
    everything = [
        *engine.client.containers.list(all=True, filters={"label": OWNER}),
        *engine.client.networks.list(filters={"label": OWNER}),
    ]
    labels = [(one.attrs.get("Config", one.attrs))["Labels"] for one in everything]
    return [owner for owner in (found[OWNER] for found in labels) if owner.startswith(mine)]


def test_environments_are_built_side_by_side_and_skipped_the_second_time(engine: Engine, workspace: Path) -> None:
    first = started(workspace, "--jobs", "2", "--json")
    out, err = first.communicate(timeout=180)
    assert first.returncode == 0, err
    rows = json.loads(out)["rows"]
    assert [(row["env_id"], row["outcome"]) for row in rows] == [(env_id, "built") for env_id in ENVS]
    assert sorted(tags(engine)) == sorted([row["reference"] for row in rows] + [f"awm/{env_id}:latest" for env_id in ENVS])
    assert left_over(engine, first) == []

    again = started(workspace, "--json")
    out, err = again.communicate(timeout=60)
    assert [row["outcome"] for row in json.loads(out)["rows"]] == ["unchanged", "unchanged"], err


@pytest.mark.parametrize(
    ("stage", "number"),
    [
        ("check", signal.SIGINT),
        ("render", signal.SIGINT),
        ("build", signal.SIGTERM),
        ("smoke", signal.SIGINT),
        ("smoke", signal.SIGTERM),
    ],
)
def test_an_interrupted_build_leaves_no_container_no_half_context_and_no_tag(
    stage: str, number: signal.Signals, engine: Engine, workspace: Path
) -> None:
    process = started(workspace, "--jobs", "2")
    assert process.stderr is not None
    read: list[str] = []
    for line in process.stderr:
        read.append(line)
        if line.strip().endswith(f": {stage}"):
            os.kill(process.pid, number)
            break
    rest = threading.Thread(target=lambda: read.extend(process.stderr or []))
    rest.start()
    assert process.wait(timeout=60) == 130, "".join(read)
    rest.join()
    assert "interrupted" in "".join(read)
    assert "Traceback" not in "".join(read)
    assert left_over(engine, process) == []
    for name in tags(engine):
        assert engine.client.images.get(name).tags != [name], f"{name} is half tagged"
    contexts = list((workspace / "images").iterdir()) if (workspace / "images").is_dir() else []
    assert all((context / "Dockerfile").is_file() and (context / "env" / "certificate.json").is_file() for context in contexts)
    assert not [context for context in contexts if context.name.startswith(".")]
