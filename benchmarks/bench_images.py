"""What one further environment costs: verify, render, build and smoke-test it; its bytes; its start; its idle memory.

    .venv/bin/python benchmarks/bench_images.py [ENV]... [--repeat N] [--json]

Environments of the workspace that can be built; medians of N runs. Builds go past the engine's cache: each context holds
a file with a nonce. Memory is what the control group counts, less the page cache that the kernel can take back.
"""

import argparse
import json
import secrets
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import docker
from tenacity import Retrying, stop_after_delay, wait_fixed

from awm_factory.build import Silent, Workshop, open_workshop
from awm_factory.certify import Options, certify
from awm_factory.cli import settings
from awm_factory.images.build import build, discard
from awm_factory.images.docker_client import Owner, session_id
from awm_factory.images.hardened import LOOPBACK, boxed
from awm_factory.images.render import render
from awm_factory.images.smoke import smoke
from awm_factory.images.trial import list_tools, run
from awm_runtime.contract import CONTROL_PORT

T = TypeVar("T")


@dataclass(frozen=True)
class Figures:
    env_id: str
    verify_s: float
    render_s: float
    build_s: float
    smoke_s: float
    start_to_tools_s: float
    unique_bytes: int
    idle_mib: float


def measure(env_id: str, shop: Workshop, repeat: int) -> Figures:
    bundle = shop.catalog.read(env_id)
    verify = [timed(lambda: certify(bundle, shop.sandbox, Options()))[0] for _ in range(repeat)]
    certified = certify(bundle, shop.sandbox, Options()).bundle
    renders, builds, smokes, starts, sizes, memories = [], [], [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(repeat):
            seconds, context = timed(lambda number=number: render(certified, shop.base, Path(folder) / str(number)))
            renders.append(seconds)
            (context.directory / "env" / "nonce").write_text(secrets.token_hex())
            seconds, built = timed(lambda context=context: build(shop.client, context, shop.base.reference, shop.log_dir))
            builds.append(seconds)
            sizes.append(size(shop.client, built.image_id) - size(shop.client, shop.base.image_id))
            report = smoke(shop.client, built.image_id, certified, shop.base.image_id, session_id())
            smokes.append(report.seconds)
            starts.append(report.start_seconds)
            memories.append(idle_memory(shop.client, built.image_id))
            discard(shop.client, built.image_id)
            shutil.rmtree(context.directory)
    middle = statistics.median
    return Figures(
        env_id,
        *(round(middle(times), 3) for times in (verify, renders, builds, smokes, starts)),
        max(sizes),
        round(middle(memories), 1),
    )


def timed(call: Callable[[], T]) -> tuple[float, T]:
    begin = time.perf_counter()
    value = call()
    return time.perf_counter() - begin, value


def size(client: docker.DockerClient, image_id: str) -> int:
    return int(client.images.get(image_id).attrs["Size"])


def idle_memory(client: docker.DockerClient, image_id: str) -> float:
    """MiB of a container that has answered one tools/list."""
    with boxed(image_id, Owner(session_id())) as box:
        url = f"http://{LOOPBACK}:{box.port(CONTROL_PORT)}/mcp"
        Retrying(stop=stop_after_delay(60), wait=wait_fixed(0.05), reraise=True)(lambda: run(list_tools(url)))
        stats = box.container.stats(stream=False)["memory_stats"]
    reclaimable = stats["stats"].get("inactive_file", stats["stats"].get("total_inactive_file", 0))
    return (stats["usage"] - reclaimable) / (1 << 20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("envs", nargs="*", metavar="ENV")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with open_workshop(settings.load(None), Silent()) as shop:
        rows = [measure(env_id, shop, arguments.repeat) for env_id in settings.chosen(arguments.envs, shop.catalog)]
    if arguments.json:
        json.dump([asdict(row) for row in rows], sys.stdout, indent=2)
        return
    columns = ["env_id", "verify_s", "render_s", "build_s", "smoke_s", "start_to_tools_s", "unique_bytes", "idle_mib"]
    print("| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
    for row in rows:
        print("| " + " | ".join(str(value) for value in asdict(row).values()) + " |")


if __name__ == "__main__":
    main()
