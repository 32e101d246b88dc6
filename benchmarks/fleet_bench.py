"""What the fleet's benchmark and soak share: a fleet that is there for a while, scripts to play in it, and its memory.

A script is a task's reference solution, filled up with reads to the number of calls asked for. What an episode must come to is
learned from one that plays alone: its answers and its database, byte for byte. So a row of another episode in either is seen.
"""

import contextlib
import hashlib
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import docker

from awm_factory import resources
from awm_factory.build import Silent
from awm_factory.bundle import Solution
from awm_factory.catalog import Catalog, Record
from awm_factory.client import AwmEnv, Fleet
from awm_factory.config import Config
from awm_factory.fleet import operate, orchestrators
from awm_factory.fleet.planning import Planned, Wish, plan
from awm_factory.images.base import ensure_base
from awm_factory.images.build import BuiltImage, build, find, tag_verified
from awm_factory.images.engine import ensure_engine
from awm_factory.images.render import render
from awm_runtime.contract import ToolResult
from awm_runtime.references import filled_in

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fleet_yard import crash, renamed

__all__ = ["crash"]

NAME: Final = "bench"
PATIENT: Final = 300.0
"""Seconds for an answer."""


@dataclass(frozen=True, eq=False)
class Script:
    env_id: str
    task_id: int
    calls: list[tuple[str, dict[str, Any]]]
    answer: str | None


@dataclass(frozen=True)
class Expected:
    """What a script comes to in an episode of its own."""

    texts: str
    """Digest of the calls' answers."""
    database: str
    reward: float | None


@dataclass
class Times:
    lease: list[float] = field(default_factory=list)
    call: list[float] = field(default_factory=list)
    verify: list[float] = field(default_factory=list)


class Progress(Silent):
    def say(self, message: str) -> None:
        sys.stderr.write(message + "\n")


@contextlib.contextmanager
def workspace(names: Sequence[str], scenarios: int) -> Iterator[tuple[Config, list[str]]]:
    """A workspace with that many environments that have an image: those named, or all, and copies of them under other names.

    A copy is the same bundle under another env_id, not proved again; its image is removed afterwards.
    """
    config = Config.load(workspace=resources.checkout() or Path.cwd())
    catalog = Catalog(config.workspace)
    chosen = list(names) or [row.env_id for row in catalog.rows() if row.image]
    if not chosen:
        sys.exit("no environment has an image; run `awm-factory build` first")
    chosen = chosen[:scenarios]
    folder = Path(tempfile.mkdtemp(prefix="awm-bench-"))
    made: list[BuiltImage] = []
    engine = ensure_engine(config)
    try:
        (folder / "registry").mkdir()
        for env_id in chosen:
            (folder / "registry" / env_id).symlink_to(catalog.directory(env_id))
        if len(chosen) < scenarios:
            base = ensure_base(engine, config, Progress().say)
        copies = Catalog(folder)
        for number in range(scenarios - len(chosen)):
            original = catalog.read(chosen[number % len(chosen)])
            bundle = renamed(original, f"{original.env_id}_copy_{number}")
            context = render(bundle, base, folder / "images")
            image = find(engine.client, context)
            if image is None:
                image = build(engine.client, context, base.reference, config.cache / "logs")
                tag_verified(engine.client, image)
            made.append(image)
            copies.write(bundle)
            copies.write_record(
                bundle.env_id, Record(bundle_digest=bundle.digest(), base=base.tag, images={image.reference: image.image_id})
            )
        yield config.model_copy(update={"workspace": folder}), copies.env_ids()
    finally:
        for image in made:
            for tag in (image.context.tag, "latest"):
                with contextlib.suppress(docker.errors.DockerException):
                    engine.client.api.remove_image(f"{image.context.repository}:{tag}")
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def fleet(config: Config, envs: list[str], replicas: int, capacity: int) -> Iterator[tuple[Planned, operate.Running, Fleet]]:
    wish = Wish(envs, NAME, "compose", replicas, capacity, 4096, None, None, None, None)
    planned = plan(wish, config, Progress())
    try:
        running = planned.start(Progress().say)
        # With a thousand at once on a busy machine, most of an answer's time is its turn's.
        yield planned, running, Fleet.connect(running.url, planned.files.token(), timeout=PATIENT)
    finally:
        operate.down(planned.files, planned.orchestrator, planned.client)


def left_over(planned: Planned) -> list[str]:
    found = orchestrators.present(planned.client, planned.orchestrator.label(planned.files))
    files = [str(path) for path in (planned.files.document, planned.files.secrets) if path.exists()]
    return [*found.containers, *found.networks, *found.volumes, *files]


async def scripts(there: Fleet, catalog: Catalog, envs: list[str], calls: int) -> dict[Script, Expected]:
    """By script, what it comes to alone; of every task whose solution has no more calls."""
    found: dict[Script, Expected] = {}
    for env_id in envs:
        bundle = catalog.read(env_id)
        assert bundle.certificate is not None
        reads = await _reads(there, env_id)
        if not reads:
            raise SystemExit(f"{env_id} has no tool that reads without arguments, to fill episodes up with; name another")
        for task_id in bundle.certificate.shipped_tasks:
            solution = bundle.solutions.get(task_id)
            if solution is None or len(solution.calls) > calls:
                continue
            async with there.lease(env_id, task_id) as env:
                own, texts = await _resolved(env, solution)
                filled: list[tuple[str, dict[str, Any]]] = [(reads[n % len(reads)], {}) for n in range(calls - len(own))]
                texts += [await play(env, name, arguments) for name, arguments in filled]
                script = Script(env_id, task_id, [*own, *filled], solution.final_answer)
                found[script] = await outcome(env, script, texts)
    return found


async def _resolved(env: AwmEnv, solution: Solution) -> tuple[list[tuple[str, dict[str, Any]]], list[str]]:
    """A solution's calls with references to earlier results filled in, as those are the same each time; and their answers."""
    calls: list[tuple[str, dict[str, Any]]] = []
    texts: list[str] = []
    results: list[ToolResult] = []
    for call in solution.calls:
        calls.append((call.tool, filled_in(dict(call.arguments), results)))
        texts.append(await play(env, *calls[-1]))
        results.append(ToolResult(is_error=False, kind="ok", status=200, content=json.loads(texts[-1])))
    return calls, texts


async def _reads(there: Fleet, env_id: str) -> list[str]:
    """Tools that want no argument, succeed, and change nothing."""
    found = []
    async with there.lease(env_id) as env:
        before = await env.database()
        for tool in await env.tools():
            if not tool.input_schema.get("required"):
                result = await env.call(tool.name, {})
                if not result.is_error and len(result.text) < 20_000 and await env.database() == before:
                    found.append(tool.name)
                else:
                    await env.reset()
    return found


async def play(env: AwmEnv, name: str, arguments: dict[str, Any]) -> str:
    return (await env.call(name, arguments)).text


async def outcome(env: AwmEnv, script: Script, texts: list[str], reward: float | None = None) -> Expected:
    if reward is None:
        reward = (await env.submit(script.answer)).reward
    joined = "\0".join(texts).encode()
    return Expected(hashlib.sha256(joined).hexdigest(), hashlib.sha256(await env.database()).hexdigest(), reward)


def memory(client: docker.DockerClient, label: str) -> float:
    """MiB of all containers of the fleet, less the page cache that the kernel can take back."""
    total = 0
    for one in client.api.containers(filters={"label": label}):
        with contextlib.suppress(docker.errors.NotFound, KeyError):
            stats = client.api.stats(one["Id"], stream=False, one_shot=True)["memory_stats"]
            inner = stats["stats"]
            total += stats["usage"] - inner.get("total_inactive_file", inner.get("inactive_file", 0))
    return total / 2**20


def percentiles(seconds: list[float]) -> tuple[float, float]:
    """p50 and p99, ms."""
    if len(seconds) < 2:
        return (0.0, 0.0) if not seconds else (seconds[0] * 1000, seconds[0] * 1000)
    cut = statistics.quantiles(seconds, n=100)
    return cut[49] * 1000, cut[98] * 1000


@contextlib.contextmanager
def timed(into: list[float]) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    into.append(time.perf_counter() - begin)
