"""Environments of a workspace to verified images, several side by side; each is a row, whatever happens to it."""

import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import docker

from awm_factory.build.report import BatchReport, Progress, Row, row
from awm_factory.build.workshop import Workshop
from awm_factory.bundle import Bundle
from awm_factory.catalog import Catalog, Pushed, Record
from awm_factory.certify import Options, certify, is_current
from awm_factory.errors import AwmError
from awm_factory.images.build import BuiltImage, build, discard, find, tag_verified
from awm_factory.images.docker_client import reap, session_id
from awm_factory.images.render import render
from awm_factory.images.smoke import smoke
from awm_factory.sandbox import Sandbox


@dataclass(frozen=True)
class Knobs:
    """What a user may say about a batch."""

    jobs: int = 1
    certify: Options = field(default_factory=Options)
    allow_problems: bool = False
    """Build whatever starts; its certificate, and so its labels, say what is wrong."""
    force: bool = False
    """Check and build again, even where nothing changed."""


class CalledOffError(Exception):
    """Tells a worker thread that the batch was called off."""


def check_one(bundle: Bundle, catalog: Catalog, sandbox: Sandbox, knobs: Knobs) -> Bundle:
    """The bundle with a certificate that speaks of it as it is now; written to the workspace where it is new."""
    if not knobs.force and is_current(bundle, sandbox.base, knobs.certify):
        return bundle
    certified = certify(bundle, sandbox, knobs.certify).bundle
    catalog.write(certified)
    return certified


def check_envs(env_ids: Sequence[str], catalog: Catalog, sandbox: Sandbox, knobs: Knobs, progress: Progress) -> BatchReport:
    def one(env_id: str, clock: "Clock") -> Row:
        with catalog.lock(env_id), clock.stage("check"):
            bundle = check_one(catalog.read(env_id), catalog, sandbox, knobs)
        clean = bundle.certificate is not None and bundle.certificate.clean
        return row(env_id, "checked" if clean else "refused", bundle.certificate, seconds=clock.seconds)

    return run_batch(env_ids, one, knobs.jobs, progress)


def build_envs(env_ids: Sequence[str], shop: Workshop, knobs: Knobs, progress: Progress) -> BatchReport:
    """check -> render -> build -> smoke -> tag -> record, for each environment on its own."""

    def one(env_id: str, clock: "Clock") -> Row:
        with shop.catalog.lock(env_id):
            return _build_one(env_id, shop, knobs, clock)

    return run_batch(env_ids, one, knobs.jobs, progress, on_interrupt=lambda: _stop_containers(shop.client))


def _build_one(env_id: str, shop: Workshop, knobs: Knobs, clock: "Clock") -> Row:
    with clock.stage("check"):
        bundle = check_one(shop.catalog.read(env_id), shop.catalog, shop.sandbox, knobs)
    certificate = bundle.certificate
    assert certificate is not None
    starts = bundle.seed_db is not None and bool(bundle.manifest.tools)
    if not certificate.passed and not (knobs.allow_problems and starts):
        return row(env_id, "refused", certificate, seconds=clock.seconds)
    with clock.stage("render"):
        context = render(bundle, shop.base, shop.images_dir)
        built = None if knobs.force else find(shop.client, context)
    record = shop.catalog.record(env_id)
    if built is not None and record is not None and record.images.get(built.reference) == built.image_id:
        tag_verified(shop.client, built)  # another workspace may have moved `latest` to its own
        return row(env_id, "unchanged", certificate, reference=context.reference, seconds=clock.seconds)
    if built is None:
        with clock.stage("build"):
            built = build(shop.client, context, shop.base.reference, shop.log_dir, shop.base.platform)
    try:
        with clock.stage("smoke"):
            report = smoke(shop.client, built.image_id, bundle, shop.base.image_id, session_id())
        tag_verified(shop.client, built)
    except BaseException:
        discard(shop.client, built.image_id)
        raise
    pushed = record.pushed if record is not None and record.images.get(built.reference) == built.image_id else []
    shop.catalog.write_record(env_id, _record(built, bundle, shop, report.checks, pushed))
    return row(env_id, "built", certificate, reference=context.reference, seconds=clock.seconds)


def _record(built: BuiltImage, bundle: Bundle, shop: Workshop, checks: dict[str, str], pushed: list[Pushed]) -> Record:
    latest = f"{built.context.repository}:latest"
    return Record(
        bundle_digest=bundle.digest(),
        base=shop.base.tag,
        images={built.reference: built.image_id, latest: built.image_id},
        pushed=pushed,
        checks={**checks, "certificate": bundle.certificate.summary() if bundle.certificate is not None else None},
        sizes=_sizes(shop.client, built.image_id, shop.base.image_id),
    )


def _sizes(client: docker.DockerClient, image_id: str, base_id: str) -> dict[str, int]:
    """Bytes of the image, and of what it adds to its base."""
    image, base = (int(client.images.get(which).attrs["Size"]) for which in (image_id, base_id))
    return {"image": image, "unique": image - base}


def _stop_containers(client: docker.DockerClient) -> None:
    """Let steps that wait for a container of ours fail at once; their own clean-up does the rest."""
    reap(client, session_id())


class Clock:
    """Tells the progress which stage an environment is in, notes how long each took, and stops where the batch was called off."""

    def __init__(self, env_id: str, progress: Progress, stop: threading.Event) -> None:
        self._env_id, self._progress, self._stop = env_id, progress, stop
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        if self._stop.is_set():
            raise CalledOffError
        self._progress.stage(self._env_id, name)
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - start, 3)


def run_batch(
    env_ids: Sequence[str],
    one: Callable[[str, Clock], Row],
    jobs: int,
    progress: Progress,
    on_interrupt: Callable[[], None] = lambda: None,
) -> BatchReport:
    """Run `one` for each environment on `jobs` threads; rows come back in the order asked for.

    An environment that fails is a row. On KeyboardInterrupt no new step begins, what runs is ended and cleaned up, and the
    interrupt goes on.
    """
    stop = threading.Event()
    progress.total(len(env_ids))

    def guarded(env_id: str) -> Row:
        clock = Clock(env_id, progress, stop)
        try:
            result = one(env_id, clock)
        except CalledOffError:
            raise
        except AwmError as error:
            result = Row(env_id, "failed", error=str(error), seconds=clock.seconds)
        except Exception as error:  # noqa: BLE001 - the boundary of one environment in a batch
            progress.say(f"{env_id}: unexpected fault\n{traceback.format_exc()}")
            result = Row(env_id, "failed", error=f"{type(error).__name__}: {error}; please report this", seconds=clock.seconds)
        progress.done(result)
        return result

    with ThreadPoolExecutor(max_workers=max(1, jobs), thread_name_prefix="env") as pool:
        futures: list[Future[Row]] = [pool.submit(guarded, env_id) for env_id in env_ids]
        try:
            return BatchReport([future.result() for future in futures])
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            on_interrupt()
            raise
