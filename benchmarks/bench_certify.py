"""How long proving takes: `python benchmarks/bench_certify.py [ENV…] [--json]`, by default the hand-written environment.

Prints wall and processor seconds, tasks and calls a second, on two lanes of the child-process sandbox; of all gates, then of the
quick ones alone. Names are of registry/ or of the recorded answers of the tests.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from awm_factory.certify import Options, certify, is_current
from awm_factory.certify.run import QUICK
from awm_factory.sandbox import ProcessSandbox

ROOT = Path(__file__).parents[1]
LANES = 2
TICKS = os.sysconf("SC_CLK_TCK")
sys.path.insert(0, str(ROOT / "tests"))

from certify_support import environment  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("envs", nargs="*", default=["playhouse_box_office"], metavar="ENV")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = [measured(name) for name in options.envs]
    if options.json:
        print(json.dumps(found, indent=2))
        return
    for row in found:
        print(
            f"{row['env_id']}: {row['tools']} tools, {row['tasks']} tasks, {row['near_misses']} near misses, {row['behaviour']}"
        )
        print(f"  {row['wall_s']} s wall, {row['cpu_s']} s of processor time, {row['tasks_per_s']} tasks a second")
        print(f"  near misses killed: {row['killed']}, current: {row['current']} in {row['current_ms']} ms")
        print(f"  quick gates: {row['quick_wall_s']} s wall on warm lanes, clean: {row['quick_clean']}")


def measured(name: str) -> dict[str, Any]:
    bundle = environment(name)
    before = processor_seconds(os.getpid())
    with ProcessSandbox(LANES) as sandbox:
        start = time.monotonic()
        certified = certify(bundle, sandbox, Options())
        wall = time.monotonic() - start
        spent = processor_seconds(os.getpid()) - before
        start = time.monotonic()
        quick = certify(bundle, sandbox, Options(gates=QUICK))
        quick_wall = time.monotonic() - start
    start = time.monotonic()
    current = is_current(certified.bundle, "process", Options())
    cached = time.monotonic() - start
    certificate = certified.certificate
    killed, near_misses = certificate.counts("near_misses", "killed")
    return {
        "env_id": name,
        "tools": len(certified.bundle.manifest.tools),
        "tasks": len(bundle.tasks),
        "near_misses": near_misses,
        "killed": killed,
        "behaviour": certificate.figures["behaviour"],
        "wall_s": round(wall, 1),
        "cpu_s": round(spent, 1),
        "tasks_per_s": round(len(bundle.tasks) / wall, 2),
        "current": current,
        "current_ms": round(cached * 1000),
        "quick_wall_s": round(quick_wall, 1),
        "quick_clean": quick.certificate.clean,
    }


def processor_seconds(process: int) -> float:
    """Seconds that a process and all beneath it have used, those that have ended among them."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS + sum(processor_seconds(int(child)) for child in children)


if __name__ == "__main__":
    main()
