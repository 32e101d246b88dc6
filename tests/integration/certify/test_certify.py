"""The gates on a real sandbox: a small sound environment passes all; each thing broken in it is seen by the gate it is for."""

from collections.abc import Iterator

import pytest

from awm_factory.bundle import Bundle, Solution, Task, Variant
from awm_factory.certify import Certified, Options, certify, is_current, solving
from awm_factory.certify.run import QUICK
from awm_factory.problems import Problem
from awm_factory.sandbox import ProcessSandbox
from awm_runtime.contract import ToolCall
from bee_yard import APP, VERIFIER, working
from certify_support import environment

OPTIONS = Options(calls=180, solvable_runs=2)
IMPORTS = "import sqlite3\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    with ProcessSandbox(2) as opened:
        yield opened


def edited(code: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in code, old
        code = code.replace(old, new)
    return code


def verified(*pairs: tuple[str, str], **changes: object) -> Bundle:
    return working().with_(verifiers={(0, "code"): edited(VERIFIER.lstrip(), *pairs)}, **changes)


def coded(*pairs: tuple[str, str], **changes: object) -> Bundle:
    return working().with_(app_code=edited(APP.lstrip(), *pairs), **changes)


def of(certified: Certified, gate: str) -> list[Problem]:
    return [problem for problem in certified.certificate.problems if problem.gate == gate]


def test_a_sound_environment_passes_every_gate_and_tells_what_was_tried(sandbox: ProcessSandbox) -> None:
    certified = certify(working(), sandbox, OPTIONS)
    certificate = certified.certificate
    assert certificate.problems == [] and set(certificate.gates.values()) == {"passed"}
    (task,) = certificate.tasks
    assert task.shipped and task.gates["near_misses"] == "passed"
    assert task.rates["near_misses"] == task.rates["killed"] == 3
    assert task.rates["equivalents"] == task.rates["accepted"] == 2
    assert certificate.summary()["near_misses"] == [3, 3]
    assert is_current(certified.bundle, sandbox.base, OPTIONS)
    assert not is_current(certified.bundle, sandbox.base, Options(calls=181, solvable_runs=2))


def test_two_runs_give_the_same_certificate(sandbox: ProcessSandbox) -> None:
    assert certify(working(), sandbox, OPTIONS).certificate == certify(working(), sandbox, OPTIONS).certificate


def test_some_gates_give_a_partial_certificate_that_passes_for_no_whole_one(sandbox: ProcessSandbox) -> None:
    quick = Options(solvable_runs=2, calls=180, gates=QUICK)
    certified = certify(working(), sandbox, quick)
    certificate = certified.certificate
    assert certificate.clean and not certificate.passed
    assert certificate.left_out == ["behaviour", "reset", "near_misses", "equivalents", "alternatives"]
    assert certificate.gates["behaviour"] == "not_run" and certificate.gates["interface"] == "passed"
    (task,) = certificate.tasks
    assert task.shipped and task.gates["solvable"] == task.gates["null"] == task.gates["hygiene"] == "passed"
    assert task.gates["near_misses"] == "not_run" and task.rates == {}
    assert "behaviour" not in certificate.figures
    assert is_current(certified.bundle, sandbox.base, quick)
    assert not is_current(certified.bundle, sandbox.base, OPTIONS)
    whole = certify(working(), sandbox, OPTIONS)
    assert is_current(whole.bundle, sandbox.base, quick)


def test_a_gate_that_was_given_no_calls_has_not_passed(sandbox: ProcessSandbox) -> None:
    gates = certify(working(), sandbox, Options(calls=0, mutants=0)).certificate.gates
    assert (gates["behaviour"], gates["reset"], gates["interface"]) == ("not_run", "not_run", "passed")


def test_an_app_that_does_not_start_is_told_once_though_its_solutions_were_played_beside_the_check(
    sandbox: ProcessSandbox,
) -> None:
    certified = certify(working().with_(app_code="raise ValueError('no')"), sandbox, OPTIONS)
    assert [problem.gate for problem in certified.certificate.problems] == ["interface"]
    assert certified.certificate.tasks[0].gates["solvable"] == "not_run"
    gates = certified.certificate.gates
    assert (gates["interface"], gates["behaviour"], gates["reset"]) == ("failed", "not_run", "not_run")


def test_a_verifier_that_looks_at_no_name_lets_a_near_miss_survive_with_the_difference_told(sandbox: ProcessSandbox) -> None:
    loose = verified(
        ('labels(final_db_path) - labels(initial_db_path) == {"South"}', "labels(final_db_path) != labels(initial_db_path)")
    )
    certified = certify(loose, sandbox, OPTIONS)
    problem, twice = of(certified, "near_misses")
    assert problem.severity == twice.severity == "error" and problem.task_id == 0
    assert "done once more under other names" in twice.what
    assert "other text" in problem.what and "label is 'Other', the solution has 'South'" in problem.what
    assert not certified.certificate.tasks[0].shipped


def test_an_import_is_only_warned_of_a_surviving_near_miss(sandbox: ProcessSandbox) -> None:
    loose = verified(
        ('labels(final_db_path) - labels(initial_db_path) == {"South"}', "labels(final_db_path) != labels(initial_db_path)")
    )
    imported = loose.with_(manifest=loose.manifest.model_copy(update={"origin": "imported"}))
    certified = certify(imported, sandbox, OPTIONS)
    assert {problem.severity for problem in of(certified, "near_misses")} == {"warning"}
    assert certified.certificate.tasks[0].shipped and certified.certificate.tasks[0].gates["near_misses"] == "warned"


def test_a_verifier_that_wants_words_nobody_asked_for_rejects_an_equivalent(sandbox: ProcessSandbox) -> None:
    strict = verified(
        ('return {"result": "complete" if', "return {\"result\": \"complete\" if 'South' in (final_answer or '') and"),
        solutions={0: Solution(calls=working().solutions[0].calls, final_answer="South is set up.")},
    )
    problems = of(certify(strict, sandbox, OPTIONS), "equivalents")
    assert [problem.severity for problem in problems] == ["error"]
    assert "answer nobody asked for" in problems[0].what


def test_near_misses_and_alternatives_of_the_author_are_held_to(sandbox: ProcessSandbox) -> None:
    west = Variant(why="the hive is called West", calls=[ToolCall(tool="add_hive", arguments={"label": "West"})])
    solution = working().solutions[0].model_copy(update={"alternatives": [west]})
    problems = of(certify(working().with_(solutions={0: solution}), sandbox, OPTIONS), "alternatives")
    assert "the hive is called West" in problems[0].what
    loose = verified(('== {"South"}', '<= {"South", "West"} and labels(final_db_path) != labels(initial_db_path)'))
    named = working().solutions[0].model_copy(update={"near_misses": [west]})
    problems = of(certify(loose.with_(solutions={0: named}), sandbox, OPTIONS), "near_misses")
    assert any("by its author, the hive is called West" in problem.what for problem in problems)


def test_another_way_to_the_same_end_makes_no_wrong_answer_a_choice(sandbox: ProcessSandbox) -> None:
    calls = [ToolCall(tool="add_hive", arguments={"label": "South"})]
    other_words = Variant(why="other words", calls=calls, final_answer="Two of them, so 2.")
    bundle = working().with_(
        tasks=[Task(task_id=0, instruction='Set up the hive "South", and tell me how many hives there are then.')],
        solutions={0: Solution(calls=calls, final_answer="There are 2 hives.", alternatives=[other_words])},
    )
    certified = certify(bundle, sandbox, OPTIONS)
    problems = of(certified, "near_misses")
    assert any("every figure one too high" in problem.what for problem in problems), certified.certificate.tasks
    assert "other_choices" not in certified.certificate.tasks[0].rates


def test_another_choice_of_an_open_task_is_no_near_miss_but_a_verifier_that_takes_one_row_only_is_told(
    sandbox: ProcessSandbox,
) -> None:
    tables = [
        "CREATE TABLE keepers (id INTEGER PRIMARY KEY, name TEXT)",
        "CREATE TABLE visits (id INTEGER PRIMARY KEY, keeper_id INTEGER)",
    ]
    code = edited(APP.lstrip(), ("class NewHive", "class Visit(BaseModel):\n    keeper_id: int\n\n\nclass NewHive"))
    code += VISITS
    bundle = working().with_(
        schema_sql=[*working().schema_sql, *tables],
        seed_sql=[*working().seed_sql, "INSERT INTO keepers VALUES (1, 'Ruth'), (2, 'Olga'), (3, 'Piet')"],
        app_code=code,
        api_spec=None,
        tasks=[Task(task_id=0, instruction="Let any keeper visit.")],
        verifiers={(0, "code"): COUNTS_VISITS},
        solutions={0: Solution(calls=[ToolCall(tool="add_visit", arguments={"keeper_id": 2})])},
    )
    certified = certify(bundle, sandbox, OPTIONS)
    assert of(certified, "near_misses") == [] and of(certified, "alternatives") == []
    assert certified.certificate.tasks[0].rates["choices_accepted"] == 2
    one_row = bundle.with_(verifiers={(0, "code"): COUNTS_VISITS.replace("len(rows) == 1", "rows == [(2,)]")})
    (warning,) = of(certify(one_row, sandbox, OPTIONS), "alternatives")
    assert warning.severity == "warning" and '"any"' in warning.what
    twice = Variant(why="and comes again", calls=[ToolCall(tool="add_visit", arguments={"keeper_id": 2})] * 2)
    named = one_row.with_(
        verifiers={(0, "code"): COUNTS_VISITS.replace("len(rows) == 1", "set(rows) == {(2,)}")},
        solutions={0: one_row.solutions[0].model_copy(update={"alternatives": [twice]})},
    )
    certified = certify(named, sandbox, OPTIONS)
    assert of(certified, "alternatives") == [] and certified.certificate.tasks[0].rates["choices_accepted"] == 0
    worded = bundle.with_(tasks=[Task(task_id=0, instruction="Let a keeper visit whose name has four letters.")])
    assert of(certify(worded, sandbox, OPTIONS), "near_misses") != []
    others = [Variant(why=f"keeper {n}", calls=[ToolCall(tool="add_visit", arguments={"keeper_id": n})]) for n in (1, 3)]
    told = worded.with_(solutions={0: worded.solutions[0].model_copy(update={"alternatives": others})})
    assert of(certify(told, sandbox, OPTIONS), "near_misses") == []


VISITS = '''

class VisitRow(Base):
    __tablename__ = "visits"
    id = Column(Integer, primary_key=True)
    keeper_id = Column(Integer)


@app.post("/visits", operation_id="add_visit")
def add_visit(new: Visit) -> dict:
    """Note that a keeper was there."""
    if new.keeper_id not in (1, 2, 3):
        raise HTTPException(404, "There is no such keeper.")
    with Session() as session:
        row = VisitRow(keeper_id=new.keeper_id)
        session.add(row)
        session.commit()
        return {"id": row.id, "keeper_id": row.keeper_id}
'''
COUNTS_VISITS = """
import sqlite3


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    def rows(path, table):
        with sqlite3.connect(path) as connection:
            return connection.execute(f"SELECT * FROM {table}").fetchall()

    same = all(rows(initial_db_path, table) == rows(final_db_path, table) for table in ("hives", "keepers"))
    rows = [(keeper,) for _, keeper in rows(final_db_path, "visits")]
    return {"result": "complete" if same and len(rows) == 1 else "others"}
"""


SWALLOWED = "    except (OSError, sqlite3.Error):\n        pass"


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["    try:", "        open('/tmp/notes', 'w')", SWALLOWED], "opens /tmp/notes for writing"),
        (["    import subprocess", "    try:", "        subprocess.run(['id'])", SWALLOWED], "imports subprocess"),
        (["    import random", "    if random.random() < 0.5:", "        return {'result': 'others'}"], "its random numbers"),
        (["    import time", "    if time.time() % 1000 < 500:", "        return {'result': 'others'}"], "the time of the call"),
        (
            ["    try:", "        sqlite3.connect(final_db_path).execute('UPDATE hives SET label = 1')", SWALLOWED],
            "executes UPDATE on hives",
        ),
        (["    sqlite3.connect(':memory:').execute(\"ATTACH DATABASE ':memory:' AS side\")"], "holds a statement that writes"),
    ],
    ids=["file", "process", "chance", "clock", "write", "attach"],
)
def test_a_verifier_that_does_more_than_read_is_seen_even_where_it_swallows_the_refusal(
    sandbox: ProcessSandbox, lines: list[str], says: str
) -> None:
    bundle = verified(("    def labels(path):", "\n".join([*lines, "", "    def labels(path):"])))
    problems = of(certify(bundle, sandbox, Options(calls=0, mutants=0, solvable_runs=2)), "hygiene")
    assert any(says in f"{problem.what} {problem.fix}" for problem in problems), problems
    assert {problem.severity for problem in problems} == {"error"}


def test_money_compared_as_binary_fractions_is_flagged_by_text_and_by_trial(sandbox: ProcessSandbox) -> None:
    """A receipt over 2 x 1.10 + 0.45 holds 2.65; the sum is 2.6500000000000004."""
    by_text = """
import sqlite3


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    with sqlite3.connect(final_db_path) as connection:
        rows = connection.execute("SELECT amount, price FROM honey").fetchall()
    return {"result": "complete" if rows and rows[0][1] == sum(a * p for a, p in rows) else "others"}
"""
    honey = working().with_(
        schema_sql=[*working().schema_sql, "CREATE TABLE honey (id INTEGER PRIMARY KEY, amount INTEGER, price REAL)"],
        verifiers={(0, "code"): by_text},
    )
    problems = of(certify(honey, sandbox, Options(calls=0, mutants=0)), "hygiene")
    assert any("compares REAL values with ==" in problem.what for problem in problems)
    tolerant = {
        (0, "code"): by_text.replace(
            "rows[0][1] == sum(a * p for a, p in rows)", "abs(rows[0][1] - sum(a * p for a, p in rows)) < 0.005"
        )
    }
    assert of(certify(honey.with_(verifiers=tolerant), sandbox, Options(calls=0, mutants=0)), "hygiene") == []


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        (
            ("    label = Column(String, nullable=False, unique=True)\n",) * 2,
            None,
        ),
        (
            (
                "    label = Column(String, nullable=False, unique=True)\n",
                "    label = Column(String, nullable=False, unique=True)\n    colour = Column(String)\n",
            ),
            "maps column colour",
        ),
        (("app = FastAPI()\n", "app = FastAPI()\nOLDEST = 'SELECT id, age FROM hives WHERE label = :label'\n"), "not have: age"),
        (("app = FastAPI()\n", "app = FastAPI()\nALL = 'SELECT id FROM hives WHERE label = ? AND id > :least'\n"), None),
        (("app = FastAPI()\n", "app = FastAPI()\nQUEENS = 'INSERT INTO queens (id) VALUES (?)'\n"), "not have: queens"),
    ],
    ids=["sound", "mapped column", "column in SQL", "sound SQL", "table in SQL"],
)
def test_a_column_that_the_code_uses_and_the_schema_lacks_is_told_by_the_gate_of_the_schema(
    sandbox: ProcessSandbox, pair: tuple[str, str], says: str | None
) -> None:
    told = of(certify(coded(pair), sandbox, Options(gates=("schema", "interface"))), "schema")
    assert [says in problem.what for problem in told if says is not None] == ([True] if says else [])
    assert bool(told) == (says is not None)


@pytest.mark.parametrize(
    ("done", "says"),
    [
        ('"North" in labels(final_db_path)', "done by: hives id 2."),
        ("len(labels(final_db_path)) > 1", "done by: hives id 1, hives id 2."),
        ("labels(final_db_path)", "done by: hives."),
        ("True", "doing nothing is rewarded."),
    ],
    ids=["one row", "each row", "any row", "whatever there is"],
)
def test_a_task_that_is_done_before_it_begins_is_refused_with_the_rows_that_satisfy_it(
    sandbox: ProcessSandbox, done: str, says: str
) -> None:
    bundle = verified(
        ('labels(final_db_path) - labels(initial_db_path) == {"South"}', done),
        seed_sql=["INSERT INTO hives (label) VALUES ('East'), ('North')"],
    )
    certified = certify(bundle, sandbox, Options(gates=("null",)))
    assert of(certified, "null")[0].what.endswith(says)
    assert not certified.certificate.tasks[0].shipped


def test_reads_alone_must_not_be_complete(sandbox: ProcessSandbox) -> None:
    calls = [ToolCall(tool="list_hives", arguments={}), *working().solutions[0].calls]
    eager = verified(('== {"South"}', '<= {"South"}'), solutions={0: Solution(calls=calls)})
    problems = of(certify(eager, sandbox, OPTIONS), "null")
    assert any("reads alone" in problem.what for problem in problems)


STORED = "        session.add(hive)\n        session.commit()\n"
"""What add_hive does when all is well."""


def after_storing(*lines: str) -> tuple[str, str]:
    return STORED, STORED + "".join(f"        {line}\n" for line in lines)


LISTING = "def list_hives() -> list[dict]:\n"
NOTED = """    with Session() as session:
        session.add(Hive(label=str(session.query(Hive).count())))
        session.commit()
"""


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        ((STORED, "        session.add(hive)\n        session.flush()\n"), "no effect"),
        (after_storing("1 / int(new.label[:1] != 'B')"), "exception"),
        (after_storing("if new.label[:1] == 'B':", "    raise HTTPException(400, 'No B, please.')"), "failed call writes"),
        ((LISTING, LISTING + NOTED), "read writes"),
    ],
    ids=["nothing stored", "exception", "half done", "read that writes"],
)
def test_an_app_that_breaks_a_rule_is_told_by_the_shortest_calls(
    sandbox: ProcessSandbox, pair: tuple[str, str], says: str
) -> None:
    certified = certify(coded(pair), sandbox, OPTIONS)
    problems = [problem for problem in of(certified, "behaviour") if problem.what.startswith(says)]
    assert problems and problems[0].severity == "error", certified.certificate.problems
    assert problems[0].what.count("({") == 1, problems[0].what


REFUSED = 'raise HTTPException(409, f"There is a hive {new.label} already; choose another label.")'


def test_a_refusal_that_was_made_a_yes_is_warned_of_as_a_write_that_changes_nothing(sandbox: ProcessSandbox) -> None:
    swallowed = coded((REFUSED, "return {}"))
    problems = [problem for problem in of(certify(swallowed, sandbox, OPTIONS), "behaviour") if problem.what.startswith("idle")]
    assert [(problem.severity, problem.where) for problem in problems] == [("warning", "tool add_hive")]


MADE = "        hive = Hive(label=new.label)\n"


def test_state_outside_the_database_that_no_reset_reaches_is_found(sandbox: ProcessSandbox) -> None:
    counted = ["add_hive.count = getattr(add_hive, 'count', 0) + 1", "hive = Hive(label=f'{new.label} {add_hive.count}')"]
    counting = coded((MADE, "".join(f"        {line}\n" for line in counted)))
    problems = of(certify(counting, sandbox, OPTIONS), "reset")
    assert ["something outlives a reset" in problem.what for problem in problems] == [True]


def test_trials_of_an_app_whose_state_only_a_trial_shows_share_no_process(sandbox: ProcessSandbox) -> None:
    count = "        add_hive.count = getattr(add_hive, 'count', 0) + 1\n"
    numbered = "        hive = Hive(label=new.label if add_hive.count == 1 else f'{new.label} {add_hive.count}')\n"
    told = '"label": hive.label, "added": getattr(add_hive, "count", 0)} for'
    counting = coded((MADE, count + numbered), ('"label": hive.label} for', told))
    certified = certify(counting, sandbox, Options(calls=0, solvable_runs=1, gates=("interface", "solvable", "equivalents")))
    assert {problem.severity for problem in of(certified, "interface")} == {"warning"}
    assert "answers differently when calls of another episode" in of(certified, "interface")[0].what
    (task,) = certified.certificate.tasks
    assert (task.gates["solvable"], task.gates["equivalents"]) == ("passed", "passed")


def test_an_endless_call_costs_its_limit_and_is_told_not_the_whole_check(sandbox: ProcessSandbox) -> None:
    hanging = coded((MADE, "        while ' ' in new.label:\n            pass\n" + MADE))
    certified = certify(hanging, sandbox, Options(calls=120, solvable_runs=1))
    (problem,) = of(certified, "behaviour")
    assert problem.where == "tool add_hive" and problem.what.startswith("hangs")
    assert certified.certificate.tasks[0].shipped


def test_a_bundle_in_several_lots_has_the_certificate_that_it_has_in_one(
    sandbox: ProcessSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle, options = environment("playhouse_box_office"), Options(solvable_runs=2, mutants=4, calls=0)
    whole = certify(bundle, sandbox, options).certificate
    monkeypatch.setattr(solving, "LOT", 3)
    assert certify(bundle, sandbox, options).certificate == whole
    assert whole.counts("near_misses", "killed")[1] > 10
