"""How often scripted agents solve the offline author's tasks, level by level.

    python benchmarks/bench_difficulty.py [--tasks 200] [--packs 12] [--seed 0] [--keep FILE]

Tasks come from `--packs` packs, drawn by the seed, in turn, with one seed after another, until every level has `--tasks` of them.
An agent plays in the world as the author predicts it; its calls are then made again in the real app (child-process sandbox), and
the real verifiers judge.
Printed: successes a level with their 95 % interval (Wilson), and whether success falls with the level and rises with the agent.
"""

import argparse
import json
import math
import random
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from awm_factory.bundle import Bundle  # noqa: E402
from awm_factory.certify.gathering import loaded  # noqa: E402
from awm_factory.certify.statements import numbered  # noqa: E402
from awm_factory.errors import SandboxError  # noqa: E402
from awm_factory.llm.offline.author import Author  # noqa: E402
from awm_factory.llm.offline.packs import packs  # noqa: E402
from awm_factory.rollout.agents import AGENTS, Agent, SolutionAgent, agent  # noqa: E402
from awm_factory.sandbox import ProcessSandbox, Sandbox  # noqa: E402
from awm_factory.sandbox.pool import expect  # noqa: E402
from awm_runtime.contract import (  # noqa: E402
    AppReply,
    AppRequest,
    CheckFailed,
    EnvironmentSource,
    LoadReply,
    LoadRequest,
    Trial,
    TrialsReply,
    TrialsRequest,
    VerifierSource,
)
from offline_support import bundle_of, play  # noqa: E402

LEVELS = (1, 2, 3, 4, 5)
PER_ENVIRONMENT = 60
BATCH = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=200, help="a level")
    parser.add_argument("--packs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--agents", nargs="*", default=list(AGENTS))
    parser.add_argument(
        "--keep", type=Path, help="a file that gets a line of JSON a task: where it is from, its figures, who solved it"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    successes: dict[str, Counter[int]] = {name: Counter() for name in options.agents}
    kinds: dict[str, Counter[tuple[str, bool]]] = {name: Counter() for name in options.agents}
    counts: Counter[int] = Counter()
    names = random.Random(options.seed).sample(sorted(packs()), options.packs)
    started, seed, barren = time.monotonic(), options.seed, 0
    with ProcessSandbox(2) as sandbox:
        while any(counts[level] < options.tasks for level in LEVELS) and barren < len(names):
            name = names[(seed - options.seed) % len(names)]
            author = Author(name, seed=seed, count=PER_ENVIRONMENT)
            seed += 1
            chosen = []
            for number, task in enumerate(author.tasks):
                level = task.difficulty.level
                if counts[level] < options.tasks:
                    counts[level] += 1
                    chosen.append(number)
            barren = 0 if chosen else barren + 1
            found = solved_by(author, chosen, options.agents, sandbox)
            for number in chosen:
                task, who = author.tasks[number], [one for one, solved in found.items() if solved[number]]
                for one in options.agents:
                    successes[one][task.difficulty.level] += one in who
                    kinds[one][task.kind, one in who] += 1
                line = {"env": author.env_id, "seed": seed - 1, "task": number, "instruction": task.instruction, "solved_by": who}
                if options.keep is not None:
                    with options.keep.open("a") as file:
                        file.write(json.dumps(line | task.difficulty.model_dump(mode="json")) + "\n")
            print(f"{name} seed {seed - 1}: {dict(sorted(counts.items()))}", file=sys.stderr)
    report(successes, counts, kinds, time.monotonic() - started, as_json=options.json)


def solved_by(author: Author, chosen: list[int], names: list[str], sandbox: Sandbox) -> dict[str, dict[int, bool]]:
    if not chosen:
        return {}
    bundle = bundle_of(author)
    source, tools, bundle = served(bundle, sandbox)
    found: dict[str, dict[int, bool]] = defaultdict(dict)
    trials: list[tuple[str, int, Trial]] = []
    for name in names:
        player: Agent = SolutionAgent.of(bundle) if name == "solution" else agent(name)
        for number in chosen:
            played = play(player, author.world, author.tasks[number].instruction, tools)
            trials.append((name, number, Trial(calls=list(played.calls), final_answer=played.answer, task_id=number)))
    verifiers = [VerifierSource(task_id=number, mode="code", code=bundle.verifiers[number, "code"]) for number in chosen]
    for start in range(0, len(trials), BATCH):
        batch = trials[start : start + BATCH]
        request = TrialsRequest(
            source=source, trials=[trial for *_, trial in batch], verifiers=verifiers, results=False, reuse=True
        )
        reply = expect(TrialsReply, sandbox.check(request, 600.0))
        if isinstance(reply, CheckFailed):
            raise SandboxError(f"the trials of {author.env_id} could not be played: {reply.message}; look at the environment")
        for (name, number, _), run in zip(batch, reply.runs, strict=True):
            found[name][number] = any(verdict.classification == "complete" for verdict in run.verdicts)
    return found


def served(bundle: Bundle, sandbox: Sandbox):  # type: ignore[no-untyped-def]
    """What trials need: the source, the tools as they are listed, and the bundle with its database."""
    world_time = bundle.manifest.world_time
    load = expect(
        LoadReply,
        sandbox.check(
            LoadRequest(
                world_time=world_time, statements_schema=numbered(bundle.schema_sql), statements_data=numbered(bundle.seed_sql)
            )
        ),
    )
    assert isinstance(load, LoadReply), load
    source = EnvironmentSource(env_id=bundle.env_id, app_code=bundle.app_code, db=load.db, world_time=world_time)
    app = expect(AppReply, sandbox.check(AppRequest(source=source), 60.0))
    assert isinstance(app, AppReply), app
    return source, app.tools, loaded(bundle, load)


def interval(right: int, count: int) -> tuple[float, float]:
    """Wilson's, 95 %."""
    if count == 0:
        return 0.0, 1.0
    z, share = 1.96, right / count
    middle = share + z * z / (2 * count)
    spread = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(0.0, (middle - spread) / (1 + z * z / count)), min(1.0, (middle + spread) / (1 + z * z / count))


def report(
    successes: dict[str, Counter[int]],
    counts: Counter[int],
    kinds: dict[str, Counter[tuple[str, bool]]],
    seconds: float,
    *,
    as_json: bool,
) -> None:
    table = {
        name: {level: (solved[level], counts[level], *interval(solved[level], counts[level])) for level in LEVELS}
        for name, solved in successes.items()
    }
    faults = list(disorder(table))
    if as_json:
        print(json.dumps({"tasks": dict(counts), "success": table, "disorder": faults, "seconds": round(seconds)}))
        return
    print("| agent | " + " | ".join(f"level {level}" for level in LEVELS) + " |")
    print("| --- |" + " --- |" * len(LEVELS))
    for name, row in table.items():
        cells = [f"{right / max(1, count):.0%} ({low:.0%} to {high:.0%})" for right, count, low, high in row.values()]
        print(f"| {name} | " + " | ".join(cells) + " |")
    print(f"\n{sum(counts.values())} tasks ({dict(sorted(counts.items()))}) in {seconds:.0f} s")
    for name, found in kinds.items():
        parts = [
            f"{kind} {found[kind, True] / (found[kind, True] + found[kind, False]):.0%}"
            for kind in sorted({kind for kind, _ in found})
        ]
        print(f"{name} by kind: {', '.join(parts)}")
    print("\n".join(faults) or "success falls with the level and rises with the agent, within the intervals")


def disorder(table: dict[str, dict[int, tuple[int, int, float, float]]]):  # type: ignore[no-untyped-def]
    """Where a harder level is surely solved more often, or a weaker agent surely more often than a stronger one."""
    for name, row in table.items():
        for easy in LEVELS:
            for hard in LEVELS:
                if easy < hard and row[hard][2] > row[easy][3]:
                    yield f"{name}: level {hard} is solved more often than level {easy}"
    order = [name for name in AGENTS if name in table]
    for place, weaker in enumerate(order):
        for stronger in order[place + 1 :]:
            for level in LEVELS:
                if table[weaker][level][2] > table[stronger][level][3]:
                    yield f"level {level}: {weaker} solves more than {stronger}"


if __name__ == "__main__":
    main()
