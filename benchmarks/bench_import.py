"""How fast, and in how much memory, a large run in the AWM format is read, and written back.

The run is made of renamed copies of a given one's environments. Each phase runs in a process of its own, whose peak
resident set the system reports. `python benchmarks/bench_import.py [--run DIR] [--environments 1000] [--json]`
"""

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from awm_factory.awm_format import ARTIFACTS, VERIFIER_FILES, AwmRecordSet, draft_bundle, read_run, write_run
from awm_factory.bundle import Bundle, canonical
from awm_factory.catalog import Catalog
from awm_runtime.contract import WORLD_TIME, LoadReply

SMALL_RUN = Path(__file__).parent.parent / "tests" / "data" / "awm_run_small"


def enlarge(run: Path, out: Path, environments: int) -> int:
    """Copies until there are enough; bytes written."""
    scenarios = sum(1 for _ in read_run(run))
    written = 0
    for name in (*ARTIFACTS, *VERIFIER_FILES):
        source = run / f"{name}.jsonl"
        if not source.exists():
            continue
        with (out / f"{name}.jsonl").open("w", encoding="utf-8") as lines:
            for copy in range(-(-environments // scenarios)):
                for line in source.read_text(encoding="utf-8").split("\n"):
                    if line:
                        record = json.loads(line)
                        key = "scenario" if "scenario" in record else "name"
                        written += lines.write(json.dumps(record | {key: f"{record[key]} {copy}"}, ensure_ascii=False) + "\n")
    return written


def drafts(run: Path) -> Iterator[Bundle]:
    """Without a sandbox: what its executing of the statements costs is another benchmark's matter."""
    for row in read_run(run):
        if not isinstance(row, AwmRecordSet):
            raise SystemExit(f"{row.env_id}: {'; '.join(map(str, row.problems))}")
        reply = LoadReply(
            failures=[],
            statements_total={"schema": len(row.schema), "data": len(row.data)},
            schema_sql=canonical(statement.sql for statement in row.schema),
            seed_sql=canonical(statement.sql for statement in row.data),
            moving=[],
            db="",
            dump_sha256="",
            integrity=[],
            dangling=[],
            tables=[],
        )
        yield draft_bundle(row, reply, WORLD_TIME)


def read(run: Path, _workspace: Path) -> int:
    return sum(1 for _ in read_run(run))


def import_(run: Path, workspace: Path) -> int:
    catalog, count = Catalog(workspace), 0
    for bundle in drafts(run):
        with catalog.lock(bundle.env_id):
            catalog.write(bundle)
        count += 1
    return count


def list_(_run: Path, workspace: Path) -> int:
    return sum(row.error is None for row in Catalog(workspace).rows())


def export(_run: Path, workspace: Path) -> int:
    catalog = Catalog(workspace)
    return len(write_run((catalog.read(env_id) for env_id in catalog.env_ids()), workspace / "out"))


def measured(phase: Any, run: Path, workspace: Path) -> dict[str, float]:
    start = time.perf_counter()
    count = phase(run, workspace)
    seconds = time.perf_counter() - start
    scale = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale
    return {"environments": count, "seconds": seconds, "per_second": count / seconds, "peak_rss_bytes": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=SMALL_RUN, help="run whose environments are copied")
    parser.add_argument("--environments", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-import-") as folder:
        run, workspace = Path(folder) / "run", Path(folder) / "workspace"
        run.mkdir()
        workspace.mkdir()
        result: dict[str, Any] = {"run_bytes": enlarge(arguments.run, run, arguments.environments)}
        for name, phase in {"read": read, "import": import_, "list": list_, "export": export}.items():
            with get_context("spawn").Pool(1) as pool:
                result[name] = pool.apply(measured, (phase, run, workspace))
    if arguments.json:
        print(json.dumps(result, indent=1))
        return
    print(f"run of {result.pop('run_bytes') / 1e6:.0f} MB")
    for name, figures in result.items():
        print(
            f"{name:8} {figures['environments']:6.0f} environments {figures['seconds']:7.2f} s "
            f"{figures['per_second']:8.0f}/s   peak {figures['peak_rss_bytes'] / 1e6:5.0f} MB"
        )


if __name__ == "__main__":
    main()
