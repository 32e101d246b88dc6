"""An OS image made here with mmdebstrap: Debian trixie with its Python 3.13 and nothing to install more with.

The result is kept as an archive that any engine can load, image ID included: an engine whose store was emptied gets the
same OS again, and so the same base image.
"""

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from docker.errors import DockerException
from requests.exceptions import RequestException

from awm_factory.config import Config
from awm_factory.errors import BuildError, EngineError
from awm_factory.images import daemon
from awm_factory.images.engine import Engine, Say

SUITE: Final = "trixie"
EPOCH: Final = 1767225600
"""2026-01-01T00:00:00Z: no file is younger, so the same packages make the same bytes."""
CREATED: Final = "2026-01-01T00:00:00Z"

_LOADED: Final = re.compile(r"Loaded image ID: (sha256:[0-9a-f]{64})")
_EXCLUDED: Final = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/lintian/*")
_KEPT: Final = ("/usr/share/doc/*/copyright",)
"""Licences ask to come along."""
_HOOKS: Final = (
    # Setting files' times back makes Debian's bytecode stale; the Dockerfile makes it anew, once, for either OS image.
    'find "$1/usr" -depth -name __pycache__ -exec rm -rf {} +',
    # What is of this machine and this day: its names, mirrors and logs.
    'cd "$1" && rm -rf etc/hostname etc/resolv.conf etc/apt/sources.list var/cache/ldconfig/aux-cache var/log && mkdir var/log',
)


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what mmdebstrap makes, less the day's package versions."""

    suite: str
    variant: str
    include: tuple[str, ...]
    excluded: tuple[str, ...]
    kept: tuple[str, ...]
    apt: tuple[str, ...]
    hooks: tuple[str, ...]
    epoch: int
    mirrors: tuple[str | None, str | None]
    """Of the archive and of its security updates, where the user chose them."""

    def digest(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


def recipe(config: Config) -> Recipe:
    return Recipe(
        suite=SUITE,
        variant="essential",
        include=("python3", "ca-certificates"),
        excluded=_EXCLUDED,
        kept=_KEPT,
        apt=("Acquire::Retries 3",),
        hooks=_HOOKS,
        epoch=EPOCH,
        mirrors=(config.debian_mirror, config.debian_security_mirror),
    )


def impossible() -> str | None:
    """Why no OS image can be made on this machine, or None where it can."""
    if sys.platform != "linux":
        return "that takes mmdebstrap, which runs on Linux only."
    if daemon.program("mmdebstrap") or (os.geteuid() == 0 and daemon.debian_like()):
        return None
    return "that takes mmdebstrap; install it, or run the command as root on Debian or Ubuntu."


def make(engine: Engine, config: Config, how: Recipe, pinned: str | None, say: Say) -> str:
    """Digest of the OS image's only layer; its archive lies in the cache afterwards.

    Without the pinned one's archive a new one is made, which may hold newer packages. Raises EngineError where it can't be
    made, BuildError with mmdebstrap's last lines where making it failed.
    """
    if pinned and archive(config, engine.platform, pinned).is_file():
        return pinned
    if reason := impossible():
        raise EngineError(f"an OS image can't be made here: {reason} BASE_OS=hub takes {config.os_image} instead.")
    if daemon.program("mmdebstrap") is None:
        daemon.apt_install(["mmdebstrap", "debian-archive-keyring"], "an OS image is made with mmdebstrap", say)
    say(f"OS image: making Debian {how.suite} with mmdebstrap for {engine.platform} (half a minute)")
    folder = config.cache / "os"
    folder.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".partial-", dir=folder))
    try:
        layer = scratch / "layer.tar"
        _mmdebstrap(how, engine.platform, layer)
        digest = f"sha256:{_sha256(layer)}"
        _pack(layer, engine.platform, digest, scratch / "image.tar")
        for old in folder.glob(archive(config, engine.platform, "*").name):
            old.unlink()
        (scratch / "image.tar").replace(archive(config, engine.platform, digest))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if pinned and digest != pinned:
        say(f"OS image: Debian's packages have moved on, so this is not the pinned one ({digest}); images are built anew")
    return digest


def archive(config: Config, platform: str, digest: str) -> Path:
    return config.cache / "os" / f"{SUITE}-{platform.rpartition('/')[2]}-{digest.removeprefix('sha256:')[:16]}.tar"


def load(engine: Engine, config: Config, digest: str, local: str) -> None:
    """Give the archive to the engine, under the local name. Raises EngineError where it refuses."""
    path = archive(config, engine.platform, digest)
    said = ""
    try:
        with path.open("rb") as file:
            for entry in engine.client.api.load_image(file):
                said += entry.get("stream") or entry.get("error") or ""
        loaded = _LOADED.search(said)
        if loaded:
            name, _, tag = local.rpartition(":")
            engine.client.api.tag(loaded.group(1), name, tag, force=True)
    except (DockerException, RequestException) as error:
        raise EngineError(f"the engine would not load {path}: {error}; remove that file and run the command again") from error
    if not loaded:
        raise EngineError(f"the engine would not load {path}: {said.strip()}; remove that file and run the command again")


def _mmdebstrap(how: Recipe, platform: str, target: Path) -> None:
    options = [f"--dpkgopt=path-exclude={pattern}" for pattern in how.excluded]
    options += [f"--dpkgopt=path-include={pattern}" for pattern in how.kept]
    options += [f"--aptopt={option}" for option in how.apt]
    options += [f"--customize-hook={hook}" for hook in how.hooks]
    command = [
        *("env", f"SOURCE_DATE_EPOCH={how.epoch}", "LC_ALL=C.UTF-8", daemon.program("mmdebstrap") or "mmdebstrap"),
        *(f"--variant={how.variant}", f"--architectures={platform.rpartition('/')[2]}", "--format=tar"),
        f"--include={','.join(how.include)}",
        *options,
        *(how.suite, str(target)),
        *_sources(how),
    ]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise BuildError(
            f"mmdebstrap could not make Debian {how.suite} for {platform}:\n{tail}\nCheck that the mirror can be reached, or "
            "name another with AWM_DEBIAN_MIRROR; another platform than the machine's own needs qemu-user-static as well."
        )


def _sources(how: Recipe) -> list[str]:
    """apt's lines for the mirrors chosen or found; none where there are none, for mmdebstrap knows Debian's own."""
    main, security = (chosen or found for chosen, found in zip(how.mirrors, mirrors(), strict=True))
    if main is None:
        return []
    lines = [f"deb {main} {how.suite} main", f"deb {main} {how.suite}-updates main"]
    return lines if security is None else [*lines, f"deb {security} {how.suite}-security main"]


def mirrors() -> tuple[str | None, str | None]:
    """Mirrors of Debian and of its security updates that this machine's apt uses, if it uses any."""
    found: dict[str, str | None] = {"Debian": None, "Debian-Security": None}
    command = ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)", "Created-By: Packages"]
    listed = subprocess.run(command, capture_output=True, text=True) if daemon.program("apt-get") else None
    for line in reversed(listed.stdout.splitlines() if listed else []):
        origin, label, uri = line.split("|", 2)
        if origin == "Debian" and label in found:
            found[label] = uri.rstrip("/")
    return found["Debian"], found["Debian-Security"]


def _pack(layer: Path, platform: str, digest: str, target: Path) -> None:
    """The layer with a config and a manifest, in the form that `docker load` reads."""
    config = _image_config(platform, digest)
    name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = json.dumps([{"Config": name, "RepoTags": None, "Layers": ["layer.tar"]}]).encode()
    with tarfile.open(target, "w") as archive:
        for entry, content in ((name, config), ("manifest.json", manifest)):
            info = tarfile.TarInfo(entry)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        archive.add(layer, "layer.tar")


def _image_config(platform: str, digest: str) -> bytes:
    system, _, architecture = platform.partition("/")
    return json.dumps(
        {
            "architecture": architecture,
            "os": system,
            "created": CREATED,
            "config": {"Cmd": ["bash"], "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [digest]},
            "history": [{"created": CREATED, "created_by": f"mmdebstrap {SUITE}"}],
        },
        sort_keys=True,
    ).encode()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
