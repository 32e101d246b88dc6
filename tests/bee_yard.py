"""A small certified bundle for tests of what is made of bundles; nothing serves it."""

from typing import Any

from awm_factory.bundle import Bundle, Manifest, Solution, Task
from awm_factory.certificate import Certificate, Subject, TaskCertificate
from awm_runtime.contract import ToolCall


def certified(scenario: str = "Bee yard", shipped: tuple[int, ...] = (0, 2), **changes: Any) -> Bundle:
    bundle = Bundle(
        manifest=Manifest(env_id="bee_yard", scenario=scenario, origin="handwritten", tools=["add_hive", "list_hives"]),
        schema_sql=["CREATE TABLE hives (id INTEGER PRIMARY KEY)"],
        seed_sql=["INSERT INTO hives VALUES (1)"],
        app_code="app = None\n",
        tasks=[Task(task_id=number, instruction=f"Task number {number}.") for number in range(3)],
        verifiers={(number, "code"): f"# verifier {number}\n" for number in range(3)},
        solutions={0: Solution(calls=[ToolCall(tool="add_hive", arguments={"secret_answer": 1})])},
        source={"gen_envs": {"full_code": "imported as it came"}},
        seed_db=b"SQLite format 3\0",
    ).with_(**changes)
    certificate = Certificate(
        subject=Subject(
            bundle_digest=bundle.digest(), solutions_digest=bundle.solutions_digest(), base="x", gates={}, seed=0, budget={}
        ),
        gates={"schema": "passed"},
        problems=[],
        tasks=[
            TaskCertificate(task_id=number, shipped=number in shipped, reason=None if number in shipped else "unsound", gates={})
            for number in range(3)
        ],
    )
    return bundle.with_(certificate=certificate)
