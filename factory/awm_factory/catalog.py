"""registry/: which environments there are, and what became of each. One folder an environment, and no index beside them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from awm_factory.bundle import Bundle, Origin, dump_json, write_file
from awm_factory.errors import BundleError, CatalogError
from awm_factory.ids import is_env_id

CertificateState = Literal["none", "stale", "partial", "passed", "failed"]


class Pushed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    reference: str
    digest: str
    """As the registry gave it back: `sha256:…`."""


class Record(BaseModel):
    """record.json: what was built of a bundle and where it went. Outside all digests."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bundle_digest: str
    """Of the bundle the image was made of; when it differs from the bundle's own, the image is out of date."""
    base: str = ""
    """Tag of the base image."""
    images: dict[str, str] = {}
    """Image id by tag: `awm/kiosk:latest` to `sha256:…`."""
    pushed: list[Pushed] = []
    checks: dict[str, JsonValue] = {}
    """Outcome by check: `{"smoke": "passed"}`."""
    sizes: dict[str, int] = {}
    """Bytes by what they measure: `{"image": …, "unique": …}`."""


@dataclass(frozen=True)
class Row:
    """One line of `awm-factory list`. A folder that can't be read has its `error` and nothing else."""

    env_id: str
    error: str | None = None
    scenario: str = ""
    origin: Origin | None = None
    tools: int = 0
    tasks: int = 0
    shipped_tasks: int | None = None
    """None where no certificate says it."""
    digest: str = ""
    certificate: CertificateState = "none"
    image: str = ""
    """Tag by digest, or empty if none was built."""
    current: bool = False
    """True if the image was made of the bundle as it is now."""
    pushed: list[Pushed] = field(default_factory=list)


def find_workspace(given: Path | None, cwd: Path, checkout: Path | None) -> Path:
    """The folder that holds registry/: the one given, else the current one, else the checkout.

    Raises CatalogError where none can be had. A folder that is given needs no registry/ yet; the first bundle makes it.
    """
    if given is not None:
        if not given.is_dir():
            raise CatalogError(f"the workspace {given} is no folder; make it, or name another")
        return given
    if (cwd / "registry").is_dir():
        return cwd
    if checkout is not None:
        return checkout
    raise CatalogError(f"{cwd} is no workspace, for it has no registry/ folder; `mkdir registry` here, or name a workspace")


class Catalog:
    """The environments of one workspace."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.registry = workspace / "registry"

    def directory(self, env_id: str) -> Path:
        """Raises CatalogError for what is no env_id, so that no name leads out of registry/."""
        if not is_env_id(env_id):
            raise CatalogError(f"{env_id!r} is no env_id; `awm-factory list` shows those there are")
        return self.registry / env_id

    def context(self, env_id: str) -> Path:
        """Where its image's context is rendered."""
        return self.workspace / "images" / self.directory(env_id).name

    def env_ids(self) -> list[str]:
        """Folders that hold anything, sorted; whether it can be read is another matter."""
        if not self.registry.is_dir():
            return []
        try:
            folders = [path for path in self.registry.iterdir() if not path.name.startswith(".") and path.is_dir()]
            return sorted(path.name for path in folders if any(_counts(entry) for entry in path.iterdir()))
        except OSError as error:
            raise CatalogError(f"{self.registry} can't be listed: {error.strerror}; look at its permissions") from error

    def read(self, env_id: str) -> Bundle:
        """Raises CatalogError if there is none, BundleError if it is broken or another's."""
        directory = self.directory(env_id)
        if not directory.is_dir():
            raise CatalogError(f"{self.registry} has no environment {env_id}; `awm-factory list` shows those there are")
        bundle = Bundle.read(directory)
        if bundle.env_id != env_id:
            raise BundleError(
                f"{directory} holds the environment {bundle.env_id}; rename the folder, or correct its manifest.json"
            )
        return bundle

    def write(self, bundle: Bundle) -> None:
        """Hold `lock` meanwhile."""
        try:
            bundle.write(self.directory(bundle.env_id))
        except OSError as error:
            raise CatalogError(
                f"{self.registry} can't be written: {error.strerror}; free space or look at its permissions"
            ) from error

    def record(self, env_id: str) -> Record | None:
        """None before the first build. Raises CatalogError if record.json is broken."""
        path = self.directory(env_id) / "record.json"
        try:
            return Record.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except (ValidationError, OSError) as error:
            raise CatalogError(f"{path} can't be read: {error}; delete it and build {env_id} again") from error

    def write_record(self, env_id: str, record: Record) -> None:
        try:
            write_file(self.directory(env_id) / "record.json", dump_json(record.model_dump(mode="json"), indent=1))
        except OSError as error:
            raise CatalogError(f"the record of {env_id} can't be written: {error.strerror}; is it in {self.registry}?") from error

    @contextmanager
    def lock(self, env_id: str, timeout: float = 0) -> Iterator[Self]:
        """Keep other processes and threads from building `env_id` meanwhile; waits at most `timeout` seconds for them.

        Raises CatalogError if one is at it. The lock goes with its process, however that ends.
        """
        locks = self.registry / ".locks"
        try:
            locks.mkdir(parents=True, exist_ok=True)
            lock = FileLock(locks / f"{self.directory(env_id).name}.lock", thread_local=False)
            lock.acquire(timeout=timeout)
        except Timeout:
            raise CatalogError(f"another awm-factory is working on {env_id}; wait until it is done") from None
        except OSError as error:
            raise CatalogError(f"{locks} can't be used: {error.strerror}; look at its permissions") from error
        try:
            yield self
        finally:
            lock.release()

    def rows(self) -> Iterator[Row]:
        for env_id in self.env_ids():
            try:
                yield _row(env_id, self.read(env_id), self.record(env_id))
            except (BundleError, CatalogError) as error:
                yield Row(env_id, error=str(error))


def _counts(entry: Path) -> bool:
    """What an interrupted first write left, or a file manager, is no environment; a bundle committed but not settled is."""
    return not entry.name.startswith(".") or entry.name == ".commit"


def _row(env_id: str, bundle: Bundle, record: Record | None) -> Row:
    digest = bundle.digest()
    certificate = bundle.certificate
    state: CertificateState = "none"
    if certificate is not None:
        subject = certificate.subject
        fresh = subject.bundle_digest == digest and subject.solutions_digest == bundle.solutions_digest()
        state = "stale" if not fresh else "failed" if not certificate.clean else "partial" if certificate.left_out else "passed"
    tags = [tag for tag in record.images if not tag.endswith(":latest")] if record else []
    return Row(
        env_id=env_id,
        scenario=bundle.manifest.scenario,
        origin=bundle.manifest.origin,
        tools=len(bundle.manifest.tools),
        tasks=len(bundle.tasks),
        shipped_tasks=len(certificate.shipped_tasks) if certificate is not None else None,
        digest=digest,
        certificate=state,
        image=tags[-1] if tags else "",
        current=record is not None and record.bundle_digest == digest,
        pushed=record.pushed if record else [],
    )
