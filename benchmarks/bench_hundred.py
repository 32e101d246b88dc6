"""All gates on what the offline author writes for the packs' own hundred scenarios, one JSON line each.

    python benchmarks/bench_hundred.py RESULTS.jsonl [--lanes 2] [--again ENV…] [--envs ENV…] [--json]

Goes on where it was stopped: environments that RESULTS holds are left alone but for those of `--again`. At the end, or at once
where nothing is left, it prints the totals and every error and warning. Tasks that fail a gate stay in the counts.
"""

import argparse
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "benchmarks"))

from bench_certify import processor_seconds  # noqa: E402

from awm_factory.certificate import TaskCertificate  # noqa: E402
from awm_factory.certify import Options, certify  # noqa: E402
from awm_factory.errors import AwmError  # noqa: E402
from awm_factory.llm.offline.author import Author  # noqa: E402
from awm_factory.llm.offline.packs import packs  # noqa: E402
from awm_factory.sandbox import ProcessSandbox  # noqa: E402
from offline_support import bundle_of  # noqa: E402

COUNTS = (("near_misses", "killed"), ("equivalents", "accepted"), ("alternatives", "alternatives_accepted"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--lanes", type=int, default=2)
    parser.add_argument("--again", nargs="*", default=[], metavar="ENV")
    parser.add_argument("--envs", nargs="*", default=[], metavar="ENV")
    parser.add_argument("--json", action="store_true", help="print the totals as JSON")
    options = parser.parse_args()
    known = read(options.results)
    left = [name for name in options.envs or sorted(packs()) if name not in known or name in options.again]
    with ProcessSandbox(options.lanes) as sandbox:
        for name in left:
            row = measured(name, sandbox)
            with options.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{name}: {row.get('error') or [row['near_misses'], row['shipped'], row['wall']]}", file=sys.stderr)
    found = totals(list(read(options.results).values()))
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        report(found)


def read(results: Path) -> dict[str, Any]:
    """By env_id; of several lines the last one counts."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    return {row["env_id"]: row for row in map(json.loads, lines)}


def measured(name: str, sandbox: ProcessSandbox) -> dict[str, Any]:
    start, before = time.monotonic(), processor_seconds(os.getpid())
    try:
        author = Author(name)
        bundle = bundle_of(author)
        written, spent = time.monotonic() - start, processor_seconds(os.getpid()) - before
        certificate = certify(bundle, sandbox, Options()).certificate
    except AwmError as error:
        return {"env_id": name, "error": f"{type(error).__name__}: {error}"}
    problems = [
        problem.model_dump(mode="json", include={"gate", "severity", "where", "what"}) for problem in certificate.problems
    ]
    return {
        "env_id": name,
        "tasks": len(bundle.tasks),
        "shipped": len(certificate.shipped_tasks),
        **{gate: sum(task.gates[gate] == "passed" for task in certificate.tasks) for gate in ("null", "solvable", "hygiene")},
        "passed": certificate.passed,
        **{tried: certificate.counts(tried, right) for tried, right in COUNTS},
        "other_choices": sum(len(choices(task)) for task in certificate.tasks),
        "figures": certificate.figures,
        "kinds": [task.kind for task in author.tasks],
        "problems": problems,
        "instructions": [task.instruction for task in author.tasks],
        "wall": round(time.monotonic() - start, 1),
        "cpu": round(processor_seconds(os.getpid()) - before, 1),
        "wall_written": round(written, 1),
        "cpu_written": round(spent, 1),
    }


def choices(task: TaskCertificate) -> list[Any]:
    found = task.rates.get("other_choices", [])
    return found if isinstance(found, list) else []


def totals(rows: list[dict[str, Any]]) -> dict[str, Any]:
    made = [row for row in rows if "error" not in row]
    return {
        "environments": len(rows),
        "written": len(made),
        "passed": sum(row["passed"] for row in made),
        "tasks": sum(row["tasks"] for row in made),
        **{key: sum(row[key] for row in made) for key in ("solvable", "null", "hygiene", "shipped")},
        **{tried: [sum(row[tried][place] for row in made) for place in (0, 1)] for tried, _ in COUNTS},
        "other_choices": sum(row["other_choices"] for row in made),
        **{
            key: {"sum": round(sum(row[key] for row in made)), "most": max((row[key] for row in made), default=0)}
            for key in ("wall_written", "cpu_written", "wall", "cpu")
        },
        "unwritten": [{"env_id": row["env_id"], "what": row["error"]} for row in rows if "error" in row],
        "problems": [{"env_id": row["env_id"]} | one for row in made for one in row["problems"]],
    }


def report(found: dict[str, Any]) -> None:
    print(f"{found['environments']} environments, {found['written']} written; {found['passed']} passed the gates of environments")
    for key in ("solvable", "null", "hygiene", "shipped"):
        print(f"{key}: {found[key]} of {found['tasks']} tasks")
    for tried, right in COUNTS:
        good, every = found[tried]
        print(f"{tried.replace('_', ' ')} {right.rpartition('_')[2]}: {good} of {every}")
    print(f"other choices: {found['other_choices']}")
    for key in ("wall_written", "cpu_written", "wall", "cpu"):
        print(f"{key}: {found[key]['sum']} s, {found[key]['most']:.1f} s at most")
    for severity in ("error", "warning"):
        problems = [one for one in found["problems"] if one["severity"] == severity]
        print(f"{severity}s: {len(problems)}, {dict(Counter(one['gate'] for one in problems))}")
        for one in problems:
            print(f"  {one['env_id']} [{one['gate']}] {one['where']}: {one['what']}")
    for row in found["unwritten"]:
        print(f"  {row['env_id']}: {row['what']}")


if __name__ == "__main__":
    main()
