"""The sandbox in containers of the base image: what is checked there, and what it survives."""

import base64
import hashlib
from collections.abc import Iterator

import pytest

from awm_factory.images.base import BaseImage
from awm_factory.images.docker_client import session_id
from awm_factory.images.engine import Engine
from awm_factory.sandbox import ContainerSandbox, ProcessSandbox, Sandbox
from awm_factory.sandbox.pool import expect
from awm_runtime.contract import AppReply, AppRequest, CheckFailed, EnvironmentSource, LoadReply, LoadRequest, Statement

WORLD = "2026-01-01T00:00:00Z"
SCHEMA = [
    Statement(sql="CREATE TABLE hives (id INTEGER PRIMARY KEY, seen TEXT DEFAULT CURRENT_TIMESTAMP)", table="hives", index=0)
]
DATA = [Statement(sql="INSERT INTO hives (id) VALUES (1)", table="hives", index=0)]
LOAD = LoadRequest(world_time=WORLD, statements_schema=SCHEMA, statements_data=DATA)

TELLING = """
import os, socket
from fastapi import FastAPI
app = FastAPI()
found = []
for attempt in (
    lambda: open("/tmp/mark", "w"),
    lambda: open("/etc/passwd").read(),
    lambda: socket.create_connection(("192.0.2.1", 9), 1),
    lambda: os.fork(),
):
    try:
        attempt()
        found.append("let through")
    except BaseException as error:
        found.append(type(error).__name__)
@app.get("/found", operation_id="found", summary=" ".join(found))
async def found_() -> list[str]:
    return found
"""


@pytest.fixture(scope="module")
def sandbox(engine: Engine, base: BaseImage) -> Iterator[Sandbox]:
    with ContainerSandbox(engine.client, base.image_id, base.tag, 1, session_id()) as opened:
        yield opened


def sandboxes(engine: Engine) -> list[str]:
    filters = {"label": [f"awm.owner={session_id()}", "awm.role=sandbox"]}
    return [str(container["Id"]) for container in engine.client.api.containers(all=True, filters=filters)]


def loaded(sandbox: Sandbox) -> LoadReply:
    reply = expect(LoadReply, sandbox.check(LOAD))
    assert isinstance(reply, LoadReply)
    return reply


def test_a_database_is_the_same_bytes_every_time_and_the_same_content_in_both_sandboxes(sandbox: Sandbox) -> None:
    first, second = loaded(sandbox), loaded(sandbox)
    assert hashlib.sha256(base64.b64decode(first.db)).digest() == hashlib.sha256(base64.b64decode(second.db)).digest()
    assert first.seed_sql != [DATA[0].sql]
    assert "2026-01-01 00:00:00" in first.seed_sql[0]
    with ProcessSandbox() as process:
        assert loaded(process).dump_sha256 == first.dump_sha256


def test_environment_code_reaches_no_file_no_network_and_starts_no_process(sandbox: Sandbox) -> None:
    source = EnvironmentSource(env_id="telling", app_code=TELLING, db=loaded(sandbox).db, world_time=WORLD)
    reply = sandbox.check(AppRequest(source=source), 30)
    assert isinstance(reply, AppReply), reply
    told = reply.tools[0].description if reply.tools else str(reply.findings)
    assert "let through" not in told
    assert "Error" in told


def test_code_that_never_ends_is_a_failed_check_and_the_next_one_is_answered(sandbox: Sandbox) -> None:
    source = EnvironmentSource(env_id="loop", app_code="while True:\n    pass\n", db=loaded(sandbox).db, world_time=WORLD)
    reply = sandbox.check(AppRequest(source=source), 3)
    assert isinstance(reply, CheckFailed), reply
    assert reply.reason == "timeout"
    assert loaded(sandbox).failures == []


def test_a_sandbox_whose_container_was_killed_gets_a_new_one_and_leaves_none(engine: Engine, base: BaseImage) -> None:
    before = set(sandboxes(engine))
    with ContainerSandbox(engine.client, base.image_id, base.tag, 1, session_id()) as mortal:
        loaded(mortal)
        (mine,) = set(sandboxes(engine)) - before
        engine.client.api.kill(mine)
        assert loaded(mortal).failures == []
        assert set(sandboxes(engine)) - before != {mine}
    assert set(sandboxes(engine)) <= before


def test_a_sandbox_is_not_asked_for_its_health(engine: Engine, base: BaseImage) -> None:
    before = set(sandboxes(engine))
    with ContainerSandbox(engine.client, base.image_id, base.tag, 1, session_id()) as sandbox:
        loaded(sandbox)
        (mine,) = set(sandboxes(engine)) - before
        assert "Health" not in engine.client.api.inspect_container(mine)["State"]
