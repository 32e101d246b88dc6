"""Building against a stand-in engine: what a user sees of a failed build, and what is left behind."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from awm_factory.errors import BuildError
from awm_factory.images.build import build, find, run_build, tag_verified
from awm_factory.images.context import Context, tar
from standin_engine import standin_engine

BASE = "awm/base:00112233445566aa"
IMAGE = "sha256:" + "b" * 64

FAILED: list[dict[str, Any]] = [
    {"stream": "Step 1/3 : FROM awm/base:00112233445566aa\n"},
    {"stream": " ---> aaaaaaaaaaaa\n"},
    {"stream": "Step 2/3 : LABEL a=b\n"},
    {"stream": " ---> Running in 0123456789ab\n"},
    {"stream": " ---> dddddddddddd\n"},
    {"stream": "Step 3/3 : RUN pip install beehive-ledger==9.9\n"},
    {"stream": "ERROR: No matching distribution found for beehive-ledger==9.9\n"},
    {
        "errorDetail": {"code": 1, "message": "The command returned a non-zero code: 1"},
        "error": "The command returned a non-zero code: 1",
    },
]
BUILT: list[dict[str, Any]] = [
    {"stream": "Step 1/2 : FROM awm/base:00112233445566aa\n"},
    {"stream": " ---> aaaaaaaaaaaa\n"},
    {"stream": "Step 2/2 : COPY env /env\n"},
    {"stream": " ---> bbbbbbbbbbbb\n"},
    {"aux": {"ID": IMAGE}},
    {"stream": "Successfully built bbbbbbbbbbbb\n"},
]


@pytest.fixture
def context(tmp_path: Path) -> Context:
    directory = tmp_path / "images" / "bee_yard"
    (directory / "env").mkdir(parents=True)
    (directory / "Dockerfile").write_text("FROM scratch\nCOPY env /env\n")
    (directory / "env" / "app.py").write_text("app = None\n")
    return Context(env_id="bee_yard", directory=directory, digest="fedcba9876543210" * 4)


def test_a_failed_build_shows_the_cause_and_not_only_the_exit_status(context: Context, tmp_path: Path) -> None:
    with standin_engine(images={BASE: "sha256:" + "a" * 64}, build_stream=FAILED) as engine, pytest.raises(BuildError) as caught:
        build(engine.client, context, BASE, tmp_path / "logs")
    message = str(caught.value)
    assert "beehive-ledger==9.9" in message
    assert "awm/bee_yard:fedcba9876543210" in message
    log = next((tmp_path / "logs").iterdir())
    assert str(log) in message
    assert log.read_text().startswith("Step 1/3")


def test_an_error_shows_the_last_fifty_lines_and_the_file_has_all(context: Context, tmp_path: Path) -> None:
    stream = [{"stream": f"line {number}\n"} for number in range(200)] + [{"error": "out of space"}]
    with standin_engine(images={BASE: IMAGE}, build_stream=stream) as engine, pytest.raises(BuildError) as caught:
        build(engine.client, context, BASE, tmp_path / "logs")
    assert "line 151\n" in str(caught.value)
    assert "line 150\n" not in str(caught.value)
    assert len(next((tmp_path / "logs").iterdir()).read_text().splitlines()) == 201


def test_a_stream_that_ends_without_an_image_is_a_failure(context: Context, tmp_path: Path) -> None:
    with (
        standin_engine(images={BASE: IMAGE}, build_stream=BUILT[:3]) as engine,
        pytest.raises(BuildError, match="without an image"),
    ):
        build(engine.client, context, BASE, tmp_path / "logs")


def test_secret_build_arguments_are_masked_in_error_and_log(tmp_path: Path) -> None:
    stream = [
        {"stream": "fetching with hunter2-hunter2 from http://joe:pw77@proxy.example:3128\n"},
        {"error": "refused hunter2-hunter2"},
    ]
    arguments = {"INDEX_TOKEN": "hunter2-hunter2", "http_proxy": "http://joe:pw77@proxy.example:3128", "VERSION": "fetching"}
    with standin_engine(build_stream=stream) as engine, pytest.raises(BuildError) as caught:
        run_build(engine.client, b"", tmp_path / "x.log", what="it", build_args=arguments)
    for text in (str(caught.value), (tmp_path / "x.log").read_text()):
        assert "hunter2" not in text
        assert "pw77" not in text
        assert "fetching with *** from http://***@proxy.example:3128" in text


def test_a_built_image_has_no_tag_until_it_is_verified(context: Context, tmp_path: Path) -> None:
    with standin_engine(images={BASE: "sha256:" + "a" * 64}, build_stream=BUILT) as engine:
        built = build(engine.client, context, BASE, tmp_path / "logs")
        assert built.image_id == IMAGE
        assert list(engine.images) == [BASE]
        assert find(engine.client, context) is None
        tag_verified(engine.client, built)
        assert list(engine.images) == [BASE, "awm/bee_yard:latest", "awm/bee_yard:fedcba9876543210"]
        assert find(engine.client, context) == built
    assert not list((tmp_path / "logs").iterdir())


def test_what_a_failed_build_made_is_removed_and_the_base_is_not(context: Context, tmp_path: Path) -> None:
    with standin_engine(images={BASE: "sha256:" + "a" * 64}, untagged={"dddddddddddd"}, build_stream=FAILED) as engine:
        with pytest.raises(BuildError):
            build(engine.client, context, BASE, tmp_path / "logs")
        assert engine.asked("DELETE", "/images/") == ["/images/dddddddddddd"]


def test_a_build_that_fails_before_it_made_anything_removes_nothing(context: Context, tmp_path: Path) -> None:
    stream = [*FAILED[:2], {"error": "no space left on device"}]
    with standin_engine(images={BASE: "sha256:" + "a" * 64}, untagged={"aaaaaaaaaaaa"}, build_stream=stream) as engine:
        with pytest.raises(BuildError, match="no space left"):
            build(engine.client, context, BASE, tmp_path / "logs")
        assert not engine.asked("DELETE", "/images/")


def test_nothing_is_built_on_a_base_that_would_be_looked_for_on_a_hub(context: Context, tmp_path: Path) -> None:
    with standin_engine(build_stream=BUILT) as engine:
        with pytest.raises(BuildError, match="awm-factory base"):
            build(engine.client, context, BASE, tmp_path / "logs")
        assert not engine.asked("POST", "/build")


def test_the_same_files_make_the_same_archive_whoever_wrote_them_and_when(context: Context, tmp_path: Path) -> None:
    first = tar(context.directory)
    copy = tmp_path / "copy"
    shutil.copytree(context.directory, copy)
    (copy / "env" / "app.py").chmod(0o600)
    os.utime(copy / "env" / "app.py", (1, 1))
    assert tar(copy) == first
    (copy / "env" / "app.py").write_text("app = 1\n")
    assert tar(copy) != first
