"""What the committed locks must hold for `make .venv` and the base image to work anywhere."""

import re
import tomllib
from pathlib import Path

import pytest

from awm_factory.config import PLATFORMS
from awm_factory.images import wheelhouse

ROOT = Path(__file__).parents[2]
HOST = ROOT / "requirements.lock"
LOCKS = [HOST, *(wheelhouse.lock(platform) for platform in PLATFORMS)]


def canonical(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def pins(path: Path) -> dict[str, str]:
    return {canonical(line): line for line in path.read_text().splitlines() if "==" in line and not line.startswith((" ", "#"))}


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_every_pin_has_hashes_and_no_server_is_named(path: Path) -> None:
    text = path.read_text()
    for entry in re.split(r"\n(?=[a-z])", text[text.index("\n", text.index("make lock")) + 1 :]):
        assert "--hash=sha256:" in entry, entry
    assert "://" not in text


@pytest.mark.parametrize("platform", PLATFORMS)
def test_an_images_lock_has_all_that_is_asked_for_and_no_marker_for_the_host_to_judge(platform: str) -> None:
    locked = pins(wheelhouse.lock(platform))
    asked = [line for line in (ROOT / "images/base/requirements.in").read_text().splitlines() if line and line[0] != "#"]
    assert {canonical(line) for line in asked} <= set(locked)
    assert "greenlet" in locked, "SQLAlchemy needs it on linux, by a marker that is false on a Mac"
    assert not [line for line in locked.values() if ";" in line]


def test_the_hosts_lock_has_all_that_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    asked = [*project["project"]["dependencies"], *extras["docker"], *extras["factory"], *project["dependency-groups"]["dev"]]
    named = {canonical(line) for line in [*asked, *project["build-system"]["requires"]]} - {"awm-factory"}
    assert named <= set(pins(HOST)), "run `make lock`"


def test_host_and_image_have_the_same_versions() -> None:
    """The runtime's unit tests run on the host; what they prove must hold inside."""
    host, image = (
        {name: line.split(" ")[0] for name, line in pins(path).items()} for path in (HOST, wheelhouse.lock("linux/amd64"))
    )
    assert {name: host.get(name) for name in image} == image
