"""The lease service's image: `awm/lease:<digest of its inputs>`, made here as the base image is, and standing on it."""

from typing import Final

from docker.errors import DockerException
from filelock import FileLock

from awm_factory import resources
from awm_factory.config import Config
from awm_factory.errors import EngineError
from awm_factory.images import wheelhouse
from awm_factory.images.base import archive, ensure_base, inputs_digest
from awm_factory.images.build import image_id_of, run_build
from awm_factory.images.engine import Engine, Say, say_on_stderr

REPOSITORY: Final = "awm/lease"
NAME: Final = "lease"

_PARTS: Final = ("client/wire.py", "fleet/lease")
"""What of awm_factory the service is; the packages above are empty there."""


def ensure_lease_image(engine: Engine, config: Config, say: Say = say_on_stderr) -> str:
    """Its reference, built where the engine does not have it. Raises EngineError, BuildError."""
    base = ensure_base(engine, config, say)
    files = _files()
    reference = f"{REPOSITORY}:{inputs_digest(files, wheelhouse.lock(engine.platform, NAME).read_bytes(), base.reference)[:16]}"
    with FileLock(config.cache / "lease.lock"):
        if image_id_of(engine.client, reference) is None:
            say(f"lease service: building {reference}")
            house = wheelhouse.ensure_wheelhouse(engine.platform, config.cache, NAME)
            log = config.cache / "logs" / f"lease-{reference.rpartition(':')[2]}.log"
            image_id = run_build(
                engine.client,
                archive(files, house),
                log,
                what=reference,
                build_args={"BASE": base.reference},
                platform=engine.platform,
            )
            try:
                engine.client.api.tag(image_id, REPOSITORY, reference.rpartition(":")[2], force=True)
            except DockerException as error:
                raise EngineError(f"the engine would not tag {image_id} as {reference}: {error}") from error
    return reference


def _files() -> dict[str, bytes]:
    package = resources.package()
    files = {"Dockerfile": (resources.images() / NAME / "Dockerfile").read_bytes()}
    for part in _PARTS:
        for path in sorted([package / part] if part.endswith(".py") else (package / part).glob("*.py")):
            inside = path.relative_to(package.parent)
            files[inside.as_posix()] = path.read_bytes()
            files |= {(folder / "__init__.py").as_posix(): b"" for folder in inside.parents if folder.name}
    return files
