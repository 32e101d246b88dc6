"""How different the offline author's scenarios are: `python benchmarks/bench_diversity.py [COUNT]`, all 1,000 where not given.

They are written, and compared as `awm-factory diversity` compares, but nothing of them is executed: 0.3 s of a processor each.
"""

import statistics
import sys
from collections.abc import Iterator

import numpy as np

from awm_factory.cli.diversity import show
from awm_factory.cli.output import table
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
    found, sizes, calls, tasks = [], [], [], set()
    for draft in drafts(int(sys.argv[1]) if len(sys.argv) > 1 else len(shuffled(0))):
        bundle = draft.bundle()
        found.append(features(bundle))
        tables = sum(isinstance(node, str) for node in found[-1].schema)
        sizes.append((tables, len(bundle.seed_sql), len(found[-1].tools), bundle.app_code.count("\n")))
        calls += [len(solution.calls) for solution in bundle.solutions.values()]
        tasks |= {task.instruction for task in bundle.tasks}
    embedder = LocalEmbedder()
    vectors = np.stack([embedder.vector(one.text) for one in found]).astype(np.float64)
    show(measure(found, vectors, CALIBRATED.refuse_above), f"{embedder.name}, near-duplicates above {CALIBRATED.refuse_above}")
    medians = [f"{statistics.median(values):g}" for values in (*zip(*sizes, strict=True), calls)]
    table(
        ["tables", "rows", "tools", "lines of code", "calls a solution", "tasks, distinct"],
        [[*medians, f"{len(calls)}, {len(tasks)}"]],
    )


if __name__ == "__main__":
    main()
