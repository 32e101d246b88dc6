"""Environments with one planted fault each, and which gate sees it. `python tests/certify_support.py` prints the table."""

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from awm_factory.bundle import Bundle, Manifest, Solution, Task
from awm_factory.bundle.sql import split_statements
from awm_factory.certificate import Certificate
from awm_factory.certify import Options, certify
from awm_factory.problems import Problem
from awm_factory.sandbox import ProcessSandbox, Sandbox

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
PLANTED = DATA / "planted_faults"
OF_APPS = ("schema", "data", "interface", "behaviour", "reset", "solvable")
"""Gates that a fault of an app can show to; those of verifiers look at what verifiers do and say, each time the same."""


@dataclass(frozen=True)
class Fault:
    id: str
    env: str
    part: str
    kind: str
    why: str
    after: str
    find: str
    replace: str
    held_out: bool
    list: str = "faults"
    """The file that it stands in."""

    def planted(self, bundle: Bundle) -> Bundle:
        """The environment with the fault in it. A text that is not there is a mistake of the list's."""
        if self.part.startswith("verifiers/"):
            key = int(self.part.split("/")[1].split(".")[0])
            return bundle.with_(verifiers={**bundle.verifiers, (key, "code"): self._edit(bundle.verifiers[key, "code"])})
        if self.part == "seed.sql":
            return bundle.with_(seed_sql=split_statements(self._edit(";\n".join(bundle.seed_sql) + ";\n")))
        return bundle.with_(app_code=self._edit(bundle.app_code))

    def _edit(self, text: str) -> str:
        start = text.index(self.after) if self.after else 0
        place = text.index(self.find, start)
        return text[:place] + self.replace + text[place + len(self.find) :]


LISTS = ("faults", "held_out", "held_out_again")


def faults() -> list[Fault]:
    """Those that gates may be tuned with; ten that were run when the gates were tuned; ten more, drawn by `draw_faults`."""
    lists = {name: json.loads((PLANTED / f"{name}.json").read_text(encoding="utf-8")) for name in LISTS}
    return [Fault(**entry, list=name) for name, entries in lists.items() for entry in entries]


def environment(name: str) -> Bundle:
    registry = ROOT / "registry" / name
    return Bundle.read(registry) if registry.is_dir() else recorded(name)


def recorded(name: str) -> Bundle:
    """An environment of the recorded answers, put together without the synthesis."""
    folder = DATA / "answers" / name

    def read(part: str) -> object:
        return json.loads((folder / part).read_text(encoding="utf-8"))

    scenario, schema, data, tasks, solutions = (
        read(f"{part}.json") for part in ("scenario", "schema", "data", "tasks", "solutions")
    )
    instructions = tasks["tasks"] if isinstance(tasks, dict) else tasks
    code = (folder / "code.py").read_text(encoding="utf-8")
    return Bundle(
        manifest=Manifest(env_id=name, scenario=scenario["name"], origin="synthesized"),
        schema_sql=[sql for table in schema["tables"] for sql in (table["ddl"], *table.get("indexes", []))],
        seed_sql=[sql for table in data["tables"] for sql in table["insert_statements"]],
        app_code=code,
        api_spec=read("spec.json"),
        tasks=[Task(task_id=number, instruction=text) for number, text in enumerate(instructions)],
        verifiers={
            (int(path.name.split(".")[0]), mode): path.read_text(encoding="utf-8")
            for mode in ("code", "sql")
            for path in sorted((folder / "verifiers").glob(f"*.{mode}.py"))
            if path.name.count(".") == 2
        },
        solutions={
            entry["task_id"]: Solution.model_validate({key: entry.get(key) for key in ("calls", "final_answer")})
            for entry in solutions
        },
    )


def seen_by(before: Certificate, after: Certificate) -> list[Problem]:
    """What the gates say of the planted environment and not of the sound one."""
    known = {(problem.gate, problem.where, problem.what) for problem in before.problems}
    return [problem for problem in after.problems if (problem.gate, problem.where, problem.what) not in known]


def part_of(fault: Fault, bundle: Bundle) -> tuple[Bundle, Options]:
    """What a fault can bear on: of a verifier, its own task; of an app or its data, the app and the solutions."""
    if not fault.part.startswith("verifiers/"):
        judged = {key: code for key, code in bundle.verifiers.items() if key[1] == "code"}
        return bundle.with_(verifiers=judged), Options(mutants=0, solvable_runs=2, gates=OF_APPS)
    task_id = int(fault.part.split("/")[1].split(".")[0])
    return bundle.with_(tasks=[task for task in bundle.tasks if task.task_id == task_id]), Options(calls=120, solvable_runs=2)


def run(chosen: Iterable[Fault], sandbox: Sandbox) -> Iterable[tuple[Fault, list[Problem]]]:
    sound: dict[tuple[str, int], Certificate] = {}
    for fault in chosen:
        bundle, options = part_of(fault, environment(fault.env))
        key = fault.env, bundle.tasks[0].task_id if len(bundle.tasks) == 1 else -1
        if key not in sound:
            sound[key] = certify(bundle, sandbox, options).certificate
            if errors := [problem.what for problem in sound[key].problems if problem.severity == "error"]:
                raise AssertionError(f"{fault.env} is not sound without a fault: {errors[0]}")
        yield fault, seen_by(sound[key], certify(fault.planted(bundle), sandbox, options).certificate)


def main() -> None:
    """Names of faults, or a list of them, of which `--part 2/4` is the second quarter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--held-out", dest="list", action="store_const", const="held_out", default="faults")
    parser.add_argument("--held-out-again", dest="list", action="store_const", const="held_out_again")
    parser.add_argument("--part", default="1/1", help="2/4 is the second quarter")
    wanted = parser.parse_args()
    chosen = [fault for fault in faults() if (fault.id in wanted.names if wanted.names else fault.list == wanted.list)]
    part, parts = map(int, wanted.part.split("/"))
    chosen = chosen[(part - 1) * len(chosen) // parts : part * len(chosen) // parts]
    caught = 0
    with ProcessSandbox(2) as sandbox:
        for fault, problems in run(chosen, sandbox):
            gates = sorted({f"{problem.gate} ({problem.severity})" for problem in problems})
            caught += bool(gates)
            first = problems[0].what[:160] if problems else ""
            sys.stdout.write(f"| {fault.id} | {fault.kind} | {fault.why} | {', '.join(gates) or 'missed'} | {first}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{caught} of {len(chosen)} caught\n")


if __name__ == "__main__":
    main()
