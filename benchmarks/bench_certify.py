"""How long proving takes: `.venv/bin/python benchmarks/bench_certify.py [ENV…]`, by default the hand-written environment.

Prints wall and processor seconds, tasks and calls a second, on two lanes of the child-process sandbox.
"""

import resource
import sys
import time
from pathlib import Path

from awm_factory.bundle import Bundle
from awm_factory.certify import Options, certify, is_current
from awm_factory.sandbox import ProcessSandbox

ROOT = Path(__file__).parents[1]
LANES = 2


def main() -> None:
    for name in sys.argv[1:] or ["playhouse_box_office"]:
        bundle = Bundle.read(ROOT / "registry" / name)
        before = _processor()
        with ProcessSandbox(LANES) as sandbox:
            start = time.monotonic()
            certified = certify(bundle, sandbox, Options())
            wall = time.monotonic() - start
        spent = _processor() - before
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


def _processor() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    main()
