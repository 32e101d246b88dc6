"""How long proving takes: `.venv/bin/python benchmarks/bench_certify.py [ENV…]`, by default the hand-written environment.

Prints wall and processor seconds, tasks and calls a second, on two lanes of the child-process sandbox; of all gates, then of the
quick ones alone. Names are of registry/ or of the recorded answers of the tests.
"""

import os
import sys
import time
from pathlib import Path

from awm_factory.certify import Options, certify, is_current
from awm_factory.certify.run import QUICK
from awm_factory.sandbox import ProcessSandbox

ROOT = Path(__file__).parents[1]
LANES = 2
TICKS = os.sysconf("SC_CLK_TCK")
sys.path.insert(0, str(ROOT / "tests"))

from certify_support import environment  # noqa: E402


def main() -> None:
    for name in sys.argv[1:] or ["playhouse_box_office"]:
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
        figures = certified.certificate.figures["behaviour"]
        trials = sum(int(str(task.rates.get("near_misses", 0))) for task in certified.certificate.tasks)
        print(f"{name}: {len(certified.bundle.manifest.tools)} tools, {len(bundle.tasks)} tasks, {trials} near misses, {figures}")
        print(f"  {wall:.1f} s wall, {spent:.1f} s of processor time, {len(bundle.tasks) / wall:.2f} tasks a second")
        print(
            f"  near misses {certified.certificate.counts('near_misses', 'killed')}, current: {current} in {cached * 1000:.0f} ms"
        )
        print(f"  quick gates: {quick_wall:.1f} s wall on warm lanes, clean: {quick.certificate.clean}")


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
