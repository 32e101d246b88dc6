"""How different the offline author's scenarios are: `python benchmarks/bench_diversity.py [COUNT] [--json]`, by default all.

They are written, and compared as `awm-factory diversity` compares, but nothing of them is executed: 0.3 s of a processor each.
"""

import argparse
import dataclasses
import statistics
from collections.abc import Iterator

import numpy as np

from awm_factory.cli.diversity import show
from awm_factory.cli.output import print_json, table
from awm_factory.diversity import features, measure
from awm_factory.llm.offline.author import Author
from awm_factory.llm.offline.catalogue import described, shuffled
from awm_factory.synthesis.artifacts import SampleData, Scenario, Schema
from awm_factory.synthesis.draft import Draft
from awm_factory.synthesis.scenarios.local import CALIBRATED, LocalEmbedder


def drafts(count: int) -> Iterator[Draft]:
    for key in shuffled(0)[:count]:
        author = Author(key)
        yield Draft(
            scenario=Scenario.model_validate(described(key)),
            tasks=tuple(task.instruction for task in author.tasks),
            schema=Schema.model_validate(author.schema),
            data=SampleData.model_validate(author.data),
            spec=author.spec,
            code=author.code,
            solutions={number: task.solution for number, task in enumerate(author.tasks)},
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("count", nargs="?", type=int, default=len(shuffled(0)))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found, sizes, calls, tasks = [], [], [], set()
    for draft in drafts(options.count):
        bundle = draft.bundle()
        found.append(features(bundle))
        tables = sum(isinstance(node, str) for node in found[-1].schema)
        sizes.append((tables, len(bundle.seed_sql), len(found[-1].tools), bundle.app_code.count("\n")))
        calls += [len(solution.calls) for solution in bundle.solutions.values()]
        tasks |= {task.instruction for task in bundle.tasks}
    embedder = LocalEmbedder()
    vectors = np.stack([embedder.vector(one.text) for one in found]).astype(np.float64)
    result = measure(found, vectors, CALIBRATED.refuse_above)
    names = ("tables", "rows", "tools", "lines of code", "calls a solution")
    medians = dict(zip(names, map(statistics.median, (*zip(*sizes, strict=True), calls)), strict=True))
    if options.json:
        counts = {"tasks": len(calls), "distinct tasks": len(tasks)}
        print_json({"diversity": dataclasses.asdict(result), "medians": medians, **counts})
        return
    show(result, f"{embedder.name}, near-duplicates above {CALIBRATED.refuse_above}")
    table([*medians, "tasks, distinct"], [[*(f"{value:g}" for value in medians.values()), f"{len(calls)}, {len(tasks)}"]])


if __name__ == "__main__":
    main()
