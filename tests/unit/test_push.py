"""Pushing against a stand-in engine: what the stream says decides, and the registry has the last word."""

from pathlib import Path
from typing import Any

import pytest

from awm_factory.errors import PushError, UsageError
from awm_factory.images.push import checked_prefix, push
from standin_engine import StandInEngine, standin_engine

SOURCE = "awm/lamp_hire:0123456789abcdef"
IMAGE = "sha256:" + "5" * 64
DIGEST = "sha256:" + "c" * 64
NAME = "127.0.0.1:5000/awm/lamp_hire"

BEGINNING: list[dict[str, Any]] = [
    {"status": f"The push refers to repository [{NAME}]"},
    {"status": "Preparing", "progressDetail": {}, "id": "a1b2c3d4e5f6"},
]
PUSHED: list[dict[str, Any]] = [
    *BEGINNING,
    {"status": "Pushed", "progressDetail": {}, "id": "a1b2c3d4e5f6"},
    {"status": f"v1: digest: {DIGEST} size: 528"},
    {"progressDetail": {}, "aux": {"Tag": "v1", "Digest": DIGEST, "Size": 528}},
]


def engine_with(stream: list[dict[str, Any]], held: str | None = DIGEST) -> Any:
    return standin_engine(images={SOURCE: IMAGE}, push_stream=stream, held={f"{NAME}:v1": held} if held else {})


def pushed(engine: StandInEngine, logs: Path, tags: tuple[str, ...] = ("v1",)) -> Any:
    return push(engine.client, SOURCE, "127.0.0.1:5000/awm", tags, logs)


def test_a_push_that_the_registry_confirms_is_known_by_its_digest(tmp_path: Path) -> None:
    with engine_with(PUSHED) as engine:
        image = pushed(engine, tmp_path)
        assert image.reference == f"{NAME}@{DIGEST}"
        assert image.tags == ("v1",)
        assert engine.images[f"{NAME}:v1"] == IMAGE
    assert not list(tmp_path.iterdir())


def test_an_error_on_the_stream_fails_the_push_although_the_status_was_200(tmp_path: Path) -> None:
    refusal = "unauthorized: authentication required"
    with engine_with([*BEGINNING, {"errorDetail": {"message": refusal}, "error": refusal}]) as engine:
        with pytest.raises(PushError, match=refusal) as caught:
            pushed(engine, tmp_path)
        assert f"{NAME}:v1" in str(caught.value)
        assert "docker login 127.0.0.1:5000" in str(caught.value)
        assert f"{NAME}:v1" not in engine.images, "the name it was given must be taken back"


def test_a_stream_that_just_ends_is_a_failure(tmp_path: Path) -> None:
    with engine_with(BEGINNING) as engine, pytest.raises(PushError, match="ended without a digest") as caught:
        pushed(engine, tmp_path)
    log = next(tmp_path.iterdir())
    assert str(log) in str(caught.value)
    assert "The push refers to repository" in log.read_text()


def test_a_registry_that_holds_something_else_afterwards_is_a_failure(tmp_path: Path) -> None:
    other = "sha256:" + "d" * 64
    with engine_with(PUSHED, held=other) as engine, pytest.raises(PushError, match=other):
        pushed(engine, tmp_path)


def test_a_registry_that_does_not_know_the_image_afterwards_is_a_failure(tmp_path: Path) -> None:
    with engine_with(PUSHED, held=None) as engine, pytest.raises(PushError, match="can't be read back"):
        pushed(engine, tmp_path)


def test_a_name_that_stood_for_another_image_stands_for_it_again_after_a_failed_push(tmp_path: Path) -> None:
    before = "sha256:" + "7" * 64
    with engine_with(BEGINNING) as engine:
        engine.images[f"{NAME}:v1"] = before
        with pytest.raises(PushError):
            pushed(engine, tmp_path)
        assert engine.images[f"{NAME}:v1"] == before


def test_an_image_that_this_engine_lacks_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with standin_engine() as engine, pytest.raises(PushError, match="awm-factory build"):
        pushed(engine, tmp_path)


@pytest.mark.parametrize(
    "prefix",
    ["ghcr.io/acme", "127.0.0.1:5000/awm", "localhost/x", "docker.io/acme", "registry.example.org:443/a/b-c", "ghcr.io/acme/"],
)
def test_a_prefix_is_a_host_and_a_path(prefix: str) -> None:
    assert checked_prefix(prefix) == prefix.rstrip("/")


@pytest.mark.parametrize(
    "prefix", ["", "https://ghcr.io/acme", "ghcr.io/Acme", "acme", "ghcr.io/acme:v1", "ghcr.io//acme", "ghcr.io/acme $(id)"]
)
def test_what_no_registry_takes_as_prefix_is_refused_before_anything_happens(prefix: str) -> None:
    with pytest.raises(UsageError, match="registry prefix"):
        checked_prefix(prefix)


@pytest.mark.parametrize("tag", ["", ".v1", "-v1", "a/b", "x" * 129])
def test_what_is_no_tag_is_refused_before_anything_happens(tag: str, tmp_path: Path) -> None:
    with engine_with(PUSHED) as engine:
        with pytest.raises(UsageError, match="no image tag"):
            pushed(engine, tmp_path, (tag,))
        assert not engine.asked("POST", "push|tag")
