"""What the main job works with: an engine, the base image, a sandbox in it, and the user's workspace."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import docker

from awm_factory.build.report import Progress
from awm_factory.catalog import Catalog
from awm_factory.config import Config
from awm_factory.errors import EngineError
from awm_factory.images.base import BaseImage, ensure_base
from awm_factory.images.docker_client import session_id
from awm_factory.images.engine import ensure_engine
from awm_factory.sandbox import ContainerSandbox, ProcessSandbox, Sandbox


@dataclass(frozen=True)
class Workshop:
    client: docker.DockerClient
    base: BaseImage
    sandbox: Sandbox
    catalog: Catalog
    images_dir: Path
    log_dir: Path


@contextmanager
def open_workshop(config: Config, progress: Progress) -> Iterator[Workshop]:
    """Engine, base image and sandbox for building. Raises EngineError where there is no engine."""
    engine = ensure_engine(config, progress.say)
    base = ensure_base(engine, config, progress.say)
    with ContainerSandbox(engine.client, base.image_id, base.tag, config.jobs, session_id()) as sandbox:
        yield Workshop(
            client=engine.client,
            base=base,
            sandbox=sandbox,
            catalog=Catalog(config.workspace),
            images_dir=config.workspace / "images",
            log_dir=config.cache / "logs",
        )


@contextmanager
def open_sandbox(config: Config, say: Callable[[str], None]) -> Iterator[Sandbox]:
    """A container of the base image, or, said aloud, a child process where no engine answers."""
    try:
        engine = ensure_engine(config, say)
    except EngineError as error:
        say(
            f"{error}\nChecking in a child process with limits instead: what is certified so ran on this machine's Python and "
            "SQLite, not on the image's."
        )
        with ProcessSandbox(config.jobs) as sandbox:
            yield sandbox
        return
    base = ensure_base(engine, config, say)
    with ContainerSandbox(engine.client, base.image_id, base.tag, config.jobs, session_id()) as container:
        yield container
