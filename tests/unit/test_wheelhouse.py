"""Fetching wheels for the image's platform, from a folder of little wheels instead of an index."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from awm_factory.errors import BuildError
from awm_factory.images import wheelhouse


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where pip finds wheels, and nowhere else."""
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setattr(wheelhouse, "lock", lambda *_: tmp_path / "pins.lock")
    return folder


def wheel(shop: Path, name: str, tag: str) -> str:
    """A wheel of version 1 without any code; returns its line for a lock."""
    path = shop / f"{name}-1-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}-1.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        archive.writestr(f"{name}-1.dist-info/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n")
        archive.writestr(f"{name}-1.dist-info/RECORD", "")
    return f"{name}==1 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def pin(shop: Path, *lines: str) -> None:
    (shop.parent / "pins.lock").write_text("\n".join(lines) + "\n")


def test_wheels_are_for_the_images_platform_and_python_whatever_the_host_is(shop: Path, tmp_path: Path) -> None:
    tags = ["cp313-cp313-manylinux_2_28_x86_64", "cp313-cp313-manylinux_2_28_aarch64", "cp311-cp311-manylinux_2_28_aarch64"]
    lines = [wheel(shop, "fast", tag) for tag in tags]
    hashes = " ".join(line.split(" ", 1)[1] for line in lines)
    pin(shop, f"fast==1 {hashes}", wheel(shop, "plain", "py3-none-any"), wheel(shop, "stable", "cp39-abi3-manylinux2014_aarch64"))

    house = wheelhouse.ensure_wheelhouse("linux/arm64", tmp_path / "cache")

    assert sorted(path.name for path in house.iterdir()) == [
        "fast-1-cp313-cp313-manylinux_2_28_aarch64.whl",
        "plain-1-py3-none-any.whl",
        "stable-1-cp39-abi3-manylinux2014_aarch64.whl",
    ]


def test_what_was_fetched_is_not_fetched_again_until_the_lock_changes(shop: Path, tmp_path: Path) -> None:
    pin(shop, wheel(shop, "plain", "py3-none-any"))
    house = wheelhouse.ensure_wheelhouse("linux/amd64", tmp_path)
    (shop / "plain-1-py3-none-any.whl").unlink()
    assert wheelhouse.ensure_wheelhouse("linux/amd64", tmp_path) == house
    pin(shop, wheel(shop, "other", "py3-none-any"))
    assert [path.name for path in wheelhouse.ensure_wheelhouse("linux/amd64", tmp_path).iterdir()] == ["other-1-py3-none-any.whl"]


def test_a_wheel_with_another_hash_is_refused_and_nothing_half_fetched_stays(shop: Path, tmp_path: Path) -> None:
    wheel(shop, "plain", "py3-none-any")
    pin(shop, f"plain==1 --hash=sha256:{'0' * 64}")
    with pytest.raises(BuildError, match=r"DO NOT MATCH THE HASHES[\s\S]*run the command again"):
        wheelhouse.ensure_wheelhouse("linux/amd64", tmp_path / "cache")
    assert list((tmp_path / "cache" / "wheels").iterdir()) == []


def test_a_source_archive_is_never_taken(shop: Path, tmp_path: Path) -> None:
    (shop / "plain-1.tar.gz").write_bytes(b"")
    pin(shop, f"plain==1 --hash=sha256:{hashlib.sha256(b'').hexdigest()}")
    with pytest.raises(BuildError, match="No matching distribution"):
        wheelhouse.ensure_wheelhouse("linux/amd64", tmp_path)


def test_a_pin_without_a_hash_is_refused(shop: Path, tmp_path: Path) -> None:
    pin(shop, wheel(shop, "plain", "py3-none-any").split()[0])
    with pytest.raises(BuildError, match="hash"):
        wheelhouse.ensure_wheelhouse("linux/amd64", tmp_path)
