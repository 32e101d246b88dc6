"""How often the solutions of one seed solve an environment of another: whoever learns trajectories by heart fails.

    python benchmarks/bench_reseed.py [--packs 10] [--seeds 3]

Every solution is replayed on the same code over another seed's rows, and judged by the verifier of the task with the same number
there, which is what a trainer would ask of a policy that says what it said before.
"""

import argparse
import json
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
from awm_runtime.contract import CheckFailed, Trial, TrialsReply, TrialsRequest, VerifierSource  # noqa: E402
from offline_support import bundle_of  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--packs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    replays, exceptions = 0, []
    with ProcessSandbox(2) as sandbox:
        for name in sorted(packs())[: options.packs]:
            authors = {seed: Author(name, seed=seed) for seed in range(options.seeds)}
            for one, other in permutations(authors, 2):
                for number, is_complete in enumerate(replayed(authors[one], authors[other], sandbox)):
                    replays += 1
                    if is_complete:
                        exceptions.append(f"{name}: task {number} of seed {one} on seed {other}")
            print(f"{name}: {replays} replays, {len(exceptions)} complete", file=sys.stderr)
    share = 1 - len(exceptions) / replays
    if options.json:
        print(json.dumps({"replays": replays, "failed": share, "exceptions": exceptions}))
        return
    print(f"{share:.1%} of {replays} replays fail")
    print("\n".join(exceptions))


def replayed(solver: Author, there: Author, sandbox: Sandbox) -> list[bool]:
    source, _, _ = served(bundle_of(there), sandbox)
    count = min(len(solver.tasks), len(there.tasks))
    trials = [
        Trial(calls=task.solution.calls, final_answer=task.solution.final_answer, task_id=number)
        for number, task in enumerate(solver.tasks[:count])
    ]
    verifiers = [
        VerifierSource(task_id=number, mode="code", code=task.code_verifier) for number, task in enumerate(there.tasks[:count])
    ]
    reply = expect(
        TrialsReply, sandbox.check(TrialsRequest(source=source, trials=trials, verifiers=verifiers, results=False), 300.0)
    )
    if isinstance(reply, CheckFailed):
        raise SandboxError(f"the replays on {there.env_id} could not be played: {reply.message}; look at the environment")
    return [any(verdict.classification == "complete" for verdict in run.verdicts) for run in reply.runs]


if __name__ == "__main__":
    main()
