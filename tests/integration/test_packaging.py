"""The wheel and the sdist, built and installed: what a user of the package index gets."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def build(source: Path, target: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    [made] = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_a_wheel_holds_both_packages_and_the_data_and_nothing_generated(wheel: Path) -> None:
    held = names(wheel)
    data = "awm_factory/_data"
    assert {
        "awm_factory/cli/__init__.py",
        "awm_runtime/contract.py",
        f"{data}/images/base/Dockerfile",
        f"{data}/images/base/requirements.linux-arm64.lock",
        f"{data}/templates/image/Dockerfile.j2",
        f"{data}/compose/registry.yaml",
    } <= held
    assert not [name for name in held if "os.lock" in name or ".pyc" in name]
    environments = {name.split("/")[3] for name in held if name.startswith(f"{data}/images/")}
    assert environments <= {"base", "lease"}


def test_an_installed_wheel_finds_its_data_and_works_in_the_users_folder(wheel: Path, tmp_path: Path) -> None:
    target, user = tmp_path / "site", tmp_path / "user"
    user.mkdir()
    subprocess.run([sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--target", target, wheel], check=True)
    script = (
        "from awm_factory import resources\n"
        "from awm_factory.config import Config\n"
        "config = Config.load({})\n"
        "print(resources.checkout(), resources.images(), config.workspace, config.cache, config.os_lock, sep='\\n')\n"
    )
    env = {"PYTHONPATH": str(target), "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    said = subprocess.run([sys.executable, "-c", script], cwd=user, env=env, check=True, capture_output=True, text=True).stdout
    checkout, images, workspace, cache, lock = said.splitlines()
    assert checkout == "None"
    assert Path(images) == target / "awm_factory" / "_data" / "images"
    assert Path(workspace) == user
    assert tmp_path in Path(cache).parents
    assert Path(lock).parent == Path(cache)


def test_a_wheel_made_from_the_sdist_is_the_same(wheel: Path, tmp_path: Path) -> None:
    subprocess.run(["tar", "-xf", build(ROOT, "sdist", tmp_path / "sdist"), "-C", tmp_path], check=True)
    [source] = tmp_path.glob("awm_factory-*")
    again = build(source, "wheel", tmp_path / "wheel")
    assert names(again) == names(wheel)
