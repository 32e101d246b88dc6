"""The wheels an image of ours is made of, fetched on the host so that building needs no network.

Fetched for the *image's* platform and Python, whatever the host is. Each platform has a lock without markers, as pip would
evaluate them on the host: on a Mac that leaves greenlet out, which SQLAlchemy on linux/arm64 needs.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from awm_factory import resources
from awm_factory.errors import BuildError

PYTHON: Final = "3.13"

_MACHINE: Final = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}
_GLIBC: Final = range(41, 16, -1)
"""Minor versions of glibc 2 whose wheels run on trixie (2.41), newest first, down to manylinux2014's 2.17."""

_PIN: Final = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==(\S+)", re.MULTILINE)


def lock(platform: str, image: str = "base") -> Path:
    return resources.images() / image / f"requirements.{platform.replace('/', '-')}.lock"


def packages(platform: str) -> dict[str, str]:
    """Version by name of what the image holds, as locked; pip installs it and stays out."""
    return {name: version for name, version in _PIN.findall(lock(platform).read_text()) if name != "pip"}


def ensure_wheelhouse(platform: str, cache: Path, image: str = "base") -> Path:
    """Folder with exactly the wheels locked in images/<image>/, named by the lock's digest; fetched with pip where there is none.

    Houses of earlier locks go; the caller sees to it that nobody builds from one (`ensure_base` holds a lock).
    pip runs with the user's own settings (mirror, proxy, certificates). Raises BuildError with pip's last lines.
    """
    pins = lock(platform, image)
    kind = "" if image == "base" else f"{image}-"
    house = cache / "wheels" / f"{kind}{platform.replace('/', '-')}-{hashlib.sha256(pins.read_bytes()).hexdigest()[:16]}"
    if house.is_dir():
        return house
    house.parent.mkdir(parents=True, exist_ok=True)
    for old in house.parent.glob(f"{house.name.rpartition('-')[0]}-*"):
        shutil.rmtree(old)
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=house.parent))
    try:
        _download(pins, platform, partial)
        partial.chmod(0o755)
        partial.rename(house)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return house


def _download(pins: Path, platform: str, folder: Path) -> None:
    tags = [f"--platform=manylinux_2_{minor}_{_MACHINE[platform]}" for minor in _GLIBC]
    abis = [f"--abi={abi}" for abi in (f"cp{PYTHON.replace('.', '')}", "abi3", "none")]
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"),
        *("--only-binary=:all:", "--no-deps", "--require-hashes", "--implementation=cp", f"--python-version={PYTHON}"),
        *abis,
        *tags,
        f"--platform=manylinux2014_{_MACHINE[platform]}",
        f"--dest={folder}",
        f"--requirement={pins}",
    ]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise BuildError(
            f"pip could not fetch the wheels of {pins.parent.name} for {platform}:\n{tail}\n"
            "Check the connection to your package index (pip's own settings apply), then run the command again."
        )
