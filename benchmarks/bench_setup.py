"""What set-up costs: a fresh clone, an engine with an empty store, and then again with nothing or little changed.

    .venv/bin/python benchmarks/bench_setup.py [--json] [--build-envs]

As root on Linux with dockerd installed, the base image is built on a second engine with an empty store of its own (no network
for containers, which no step needs); elsewhere on the engine at hand, whose cache may know some steps. `--build-envs` adds
`make build-envs` in the clone on the engine at hand, first and with nothing changed. pip's own cache is used as it is found.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]


@contextmanager
def own_engine(folder: Path) -> Iterator[str | None]:
    """Address of an empty engine that lives as long as this block; None where we can't start one."""
    dockerd = shutil.which("dockerd", path=f"{os.environ['PATH']}:/usr/sbin")
    if sys.platform != "linux" or os.geteuid() != 0 or dockerd is None:
        yield None
        return
    folder.mkdir()
    host = f"unix://{folder}/docker.sock"
    command = [
        # In a network namespace of its own: without a bridge, dockerd deletes the docker0 it finds, even a running engine's.
        *("unshare", "--net"),
        *(dockerd, "-H", host, "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid"),
        *("--bridge=none", "--iptables=false", "--ip-forward=false", "--ip-masq=false"),
    ]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while not answers(host):
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"the second engine did not start:\n{(folder / 'log').read_text()[-2000:]}")
        yield host
    finally:
        process.terminate()
        process.wait(timeout=30)


def answers(host: str) -> bool:
    try:
        with docker_client(host) as client:
            return bool(client.ping())
    except (docker.errors.DockerException, OSError):
        return False


@contextmanager
def docker_client(host: str | None) -> Iterator[docker.DockerClient]:
    client = docker.DockerClient(base_url=host, timeout=10) if host else docker.from_env()
    try:
        yield client
    finally:
        client.close()


def make(clone: Path, target: str, host: str | None) -> float:
    """Seconds that `make <target>` takes. What it says goes to stderr."""
    env = os.environ | ({"DOCKER_HOST": host} if host else {})
    start = time.perf_counter()
    done = subprocess.run(["make", target], cwd=clone, env=env, stdout=sys.stderr)
    if done.returncode:
        sys.exit(f"`make {target}` failed in {clone}")
    return time.perf_counter() - start


def measure(folder: Path, build_envs: bool) -> dict[str, float]:
    clone = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    figures = {"make .venv, s": make(clone, ".venv", None)}
    with own_engine(folder / "engine") as host:
        figures["make base, empty engine and cache, s" if host else "make base, engine at hand, s"] = make(clone, "base", host)
        figures["make base, unchanged, s"] = make(clone, "base", host)
        reference = subprocess.run(
            [clone / ".venv/bin/awm-factory", "base"],
            env=os.environ | ({"DOCKER_HOST": host} if host else {}),
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()[0]
        with docker_client(host) as client:
            figures["base image, MB"] = client.images.get(reference).attrs["Size"] / 1e6
        contract = clone / "factory" / "awm_runtime" / "contract.py"
        original = contract.read_text()
        contract.write_text(original + "\nCHANGED = True\n")
        figures["make base, runtime changed, s"] = make(clone, "base", host)
        contract.write_text(original)
    if build_envs:
        figures["make build-envs, all else set up, s"] = make(clone, "build-envs", None)
        figures["make build-envs, unchanged, s"] = make(clone, "build-envs", None)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--build-envs", action="store_true", help="measure `make build-envs` too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="awm-bench-") as folder:
        figures = measure(Path(folder), options.build_envs)
    if options.json:
        print(json.dumps({name: round(value, 2) for name, value in figures.items()}))
        return
    table = Table("what", "value")
    for name, value in figures.items():
        table.add_row(name, f"{value:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
