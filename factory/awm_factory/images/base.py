"""The base image: OS, locked packages and the runtime; every environment stands on it, and generated code is checked in it.

Its tag is the digest of all that goes in, so an image that exists under the tag is the image that would be built.
"""

import hashlib
import io
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from docker.errors import DockerException
from filelock import FileLock

from awm_factory import resources
from awm_factory.config import Config
from awm_factory.errors import EngineError
from awm_factory.images import wheelhouse
from awm_factory.images.build import image_id_of, run_build
from awm_factory.images.engine import Engine, Say, say_on_stderr
from awm_factory.images.os_image import ensure_os

REPOSITORY: Final = "awm/base"

_PROGRAMS: Final = ("awm-entrypoint", "awm-healthcheck", "awm-runtime")
_IGNORED: Final = ("__pycache__", ".pyc", ".pyo")


@dataclass(frozen=True)
class BaseImage:
    reference: str
    """`awm/base:<16 hex digits of the digest of its inputs>`."""
    image_id: str
    """`sha256:…`; what a local run starts."""
    platform: str
    """`linux/amd64` or `linux/arm64`."""
    packages: dict[str, str] = field(default_factory=dict)
    """Version by name of the packages environment code may import, as locked."""
    built: bool = False
    """True where this call built it, False where the engine had it."""

    @property
    def tag(self) -> str:
        return self.reference.rpartition(":")[2]


def ensure_base(engine: Engine, config: Config, say: Say = say_on_stderr) -> BaseImage:
    """The base image for the engine's chosen platform, built where the engine has none of the same inputs.

    One at a time on a machine: a second process waits, and then finds what the first one built. Raises EngineError where no
    OS image can be had, BuildError where fetching wheels or the build failed.
    """
    config.cache.mkdir(parents=True, exist_ok=True)
    with FileLock(config.cache / "base.lock"):
        return _ensure(engine, config, say)


def _ensure(engine: Engine, config: Config, say: Say) -> BaseImage:
    system = ensure_os(engine, config, say)
    files = _files()
    wheels = wheelhouse.lock(system.platform).read_bytes()
    reference = f"{REPOSITORY}:{inputs_digest(files, wheels, f'{system.kind} {system.digest} {system.platform}')[:16]}"
    packages = wheelhouse.packages(engine.platform)
    if image_id := image_id_of(engine.client, reference):
        return BaseImage(reference, image_id, engine.platform, packages)
    say(f"base image: building {reference} on {system.reference}")
    house = wheelhouse.ensure_wheelhouse(engine.platform, config.cache)
    image_id = run_build(
        engine.client,
        archive(files, house),
        config.cache / "logs" / f"base-{reference.rpartition(':')[2]}.log",
        what=reference,
        build_args={"OS": system.reference},
        platform=engine.platform,
    )
    repository, _, tag = reference.rpartition(":")
    try:
        engine.client.api.tag(image_id, repository, tag, force=True)
    except DockerException as error:
        raise EngineError(f"the engine would not tag {image_id} as {reference}: {error}") from error
    return BaseImage(reference, image_id, engine.platform, packages, built=True)


def _files() -> dict[str, bytes]:
    """The build context by path, less the wheels, which the platform's lock decides."""
    folder = resources.images() / "base"
    runtime = resources.runtime_package()
    return {
        "Dockerfile": (folder / "Dockerfile").read_bytes(),
        **{f"bin/{name}": (folder / name).read_bytes() for name in _PROGRAMS},
        **{
            f"awm_runtime/{path.relative_to(runtime).as_posix()}": path.read_bytes()
            for path in sorted(runtime.rglob("*"))
            if path.is_file() and not any(part.endswith(_IGNORED) for part in path.parts)
        },
    }


def inputs_digest(files: dict[str, bytes], wheels: bytes, system: str) -> str:
    """Of all that goes into an image: its context's files, its packages' lock, and what it stands on."""
    inputs = files | {"wheels": wheels, "os": system.encode()}
    total = hashlib.sha256()
    for name in sorted(inputs):
        total.update(f"{name}\0{len(inputs[name])}\0".encode())
        total.update(inputs[name])
    return total.hexdigest()


def archive(files: dict[str, bytes], house: Path) -> bytes:
    """The context as the engine wants it; times and owners are fixed, so that its cache sees what changed and nothing else."""
    buffer = io.BytesIO()
    wheels = {f"wheels/{wheel.name}": wheel.read_bytes() for wheel in sorted(house.glob("*.whl"))}
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in (files | wheels).items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.mode = 0o755 if name.startswith("bin/") else 0o644
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()
