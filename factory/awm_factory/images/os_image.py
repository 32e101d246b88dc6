"""The OS image under the base image: the hub's Python image, or one made with mmdebstrap where the hub can't be had.

What was taken is pinned in `os.lock`, so that the base image stays the same until someone removes the pin. Either way the
image gets a local name, `awm/os:<kind>-<digest>`, because the classic builder looks on a hub for what has none.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Literal

import docker
from docker.errors import ImageNotFound
from pydantic import BaseModel, ConfigDict, ValidationError

from awm_factory.config import Config
from awm_factory.errors import ConfigError, EngineError, HubUnavailable
from awm_factory.images import os_debian, os_hub
from awm_factory.images.engine import Engine, Say, say_on_stderr

Kind = Literal["hub", "debian"]


class Pin(BaseModel):
    """One OS image as it was first taken."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    platform: str
    kind: Kind
    source: str
    """What it was made from: the hub's reference, or the recipe for mmdebstrap. Another source makes another pin."""
    digest: str
    """Of the manifest on the hub, or of the one layer of a made image; `sha256:…`."""

    @property
    def reference(self) -> str:
        """Local name of the image."""
        return f"awm/os:{self.kind}-{self.digest.removeprefix('sha256:')[:16]}-{self.platform.rpartition('/')[2]}"


class _Lock(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    pins: list[Pin] = []


def ensure_os(engine: Engine, config: Config, say: Say = say_on_stderr) -> Pin:
    """The pinned OS image, present in the engine under its local name.

    Without a pin: the hub's where it answers, else one made here; `config.base_os` forces either. Raises EngineError that
    says why neither can be had.
    """
    pins = read(config.os_lock)
    recipe = os_debian.recipe(config)
    sources: dict[Kind, str] = {"hub": config.os_image, "debian": recipe.digest()}
    known: dict[Kind, Pin] = {
        pin.kind: pin for pin in pins if pin.platform == engine.platform and pin.source == sources[pin.kind]
    }
    wanted: Kind | None = None if config.base_os == "auto" else config.base_os
    pinned = known.get(wanted) if wanted else known.get("hub") or known.get("debian")
    if pinned and _present(engine.client, pinned.reference):
        return pinned
    kind = wanted or (pinned.kind if pinned else None)
    pin = _take(engine, config, recipe, kind, pinned, say)
    kept = [other for other in pins if (other.platform, other.kind) != (pin.platform, pin.kind)]
    _write(config.os_lock, [*kept, pin])
    return pin


def _take(engine: Engine, config: Config, recipe: os_debian.Recipe, kind: Kind | None, pinned: Pin | None, say: Say) -> Pin:
    def hub() -> Pin:
        digest = os_hub.resolve(engine, config.os_image, pinned.digest if pinned else None)
        pin = Pin(platform=engine.platform, kind="hub", source=config.os_image, digest=digest)
        say(f"OS image: {config.os_image} from its registry, {digest} ({engine.platform})")
        os_hub.pull(engine, config.os_image, digest, pin.reference)
        return pin

    def debian() -> Pin:
        digest = os_debian.make(engine, config, recipe, pinned.digest if pinned else None, say)
        pin = Pin(platform=engine.platform, kind="debian", source=recipe.digest(), digest=digest)
        os_debian.load(engine, config, digest, pin.reference)
        return pin

    if kind == "hub":
        return hub()
    if kind == "debian":
        return debian()
    try:
        return hub()
    except HubUnavailable as unavailable:
        if reason := os_debian.impossible():
            raise EngineError(f"{unavailable}\nAnd an OS image can't be made here: {reason}") from unavailable
        say(f"OS image: {unavailable.short}; making one from Debian trixie instead (BASE_OS=hub forces the other)")
        return debian()


def _present(client: docker.DockerClient, reference: str) -> bool:
    try:
        client.api.inspect_image(reference)
    except ImageNotFound:
        return False
    return True


def read(path: Path) -> list[Pin]:
    """What is pinned, for every platform and kind; nothing where there is no lock yet."""
    try:
        return _Lock.model_validate_json(path.read_bytes()).pins
    except FileNotFoundError:
        return []
    except ValidationError as error:
        raise ConfigError(f"{path} is not what awm-factory wrote: {error}; remove it to pin the OS image anew") from error


def _write(path: Path, pins: list[Pin]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pins = sorted(pins, key=lambda pin: (pin.platform, pin.kind))
    content = json.dumps(_Lock(pins=pins).model_dump(mode="json"), indent=2) + "\n"
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)
