"""How often the solutions of one seed solve an environment of another: whoever learns trajectories by heart fails.

    python benchmarks/bench_reseed.py [--packs 10] [--seeds 3] [--seed 0]

Every solution is replayed on the same code over another seed's rows, and judged by the verifier of the task with the same number
there, which is what a trainer would ask of a policy that says what it said before.
"""

import argparse
import json
import random
import sys
from itertools import permutations
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "benchmarks"))

from bench_difficulty import served  # noqa: E402

from awm_factory.errors import SandboxError  # noqa: E402
from awm_factory.llm.offline.author import Author  # noqa: E402
from awm_factory.llm.offline.packs import packs  # noqa: E402
from awm_factory.sandbox import ProcessSandbox, Sandbox  # noqa: E402
from awm_factory.sandbox.pool import expect  # noqa: E402
from awm_runtime.contract import CheckFailed, EnvironmentSource, Trial, TrialsReply, TrialsRequest, VerifierSource  # noqa: E402
from offline_support import bundle_of  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--packs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="of the packs that are drawn, and the first of their seeds")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    replays, exceptions = 0, []
    with ProcessSandbox(2) as sandbox:
        for name in random.Random(options.seed).sample(sorted(packs()), options.packs):
            authors = [Author(name, seed=seed) for seed in range(options.seed, options.seed + options.seeds)]
            sources = [served(bundle_of(author), sandbox)[0] for author in authors]
            for one, other in permutations(range(options.seeds), 2):
                for number, is_complete in enumerate(replayed(authors[one], authors[other], sources[other], sandbox)):
                    replays += 1
                    if is_complete:
                        exceptions.append(told(number, authors[one], authors[other]))
            print(f"{name}: {replays} replays, {len(exceptions)} complete", file=sys.stderr)
    share = 1 - len(exceptions) / replays
    if options.json:
        print(json.dumps({"replays": replays, "failed": share, "exceptions": exceptions}))
        return
    print(f"{share:.1%} of {replays} replays fail")
    print("\n".join(exceptions))


def told(number: int, solver: Author, there: Author) -> str:
    task, other = solver.tasks[number], there.tasks[number]
    return (
        f"{solver.env_id}: task {number} of seed {solver.seed} ({task.kind}: {task.instruction}) on seed {there.seed} "
        f"({other.kind}: {other.instruction})"
    )


def replayed(solver: Author, there: Author, source: EnvironmentSource, sandbox: Sandbox) -> list[bool]:
    count = min(len(solver.tasks), len(there.tasks))
    trials = [
        Trial(calls=task.solution.calls, final_answer=task.solution.final_answer, task_id=number)
        for number, task in enumerate(solver.tasks[:count])
    ]
    verifiers = [
        VerifierSource(task_id=number, mode="code", code=task.code_verifier) for number, task in enumerate(there.tasks[:count])
    ]
    request = TrialsRequest(source=source, trials=trials, verifiers=verifiers, results=False, reuse=True)
    reply = expect(TrialsReply, sandbox.check(request, 300.0))
    if isinstance(reply, CheckFailed):
        raise SandboxError(f"the replays on {there.env_id} could not be played: {reply.message}; look at the environment")
    return [any(verdict.classification == "complete" for verdict in run.verdicts) for run in reply.runs]


if __name__ == "__main__":
    main()
