"""The hand-written environment proves itself: every solution, near misses and alternatives of each task, random calls."""

import base64
import json
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from awm_factory.bundle import Bundle
from awm_factory.certify import Options, certify
from awm_factory.certify.run import Certified
from awm_factory.certify.weighing import weigh
from awm_factory.sandbox import ProcessSandbox, Sandbox
from awm_runtime.contract import CallsReply, CallsRequest, EnvironmentSource, Playthrough, Tool, ToolCall

ROOT = Path(__file__).parents[2]
BUNDLE = Bundle.read(ROOT / "registry" / "playhouse_box_office")
AWM_AVERAGE = {"tables": 18.5, "rows": 129, "tools": 35.1}
"""Means of the environments AWM reports (arXiv 2602.10090)."""
LANES = 2


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with ProcessSandbox(LANES) as opened:
        yield opened


@pytest.fixture(scope="module")
def certified(sandbox: Sandbox) -> Certified:
    return certify(BUNDLE, sandbox, Options())


@pytest.fixture(scope="module")
def source(certified: Certified) -> EnvironmentSource:
    assert certified.bundle.seed_db is not None
    return EnvironmentSource(
        env_id=BUNDLE.env_id,
        app_code=BUNDLE.app_code,
        db=base64.b64encode(certified.bundle.seed_db).decode(),
        world_time=BUNDLE.manifest.world_time,
    )


@pytest.fixture(scope="module")
def tools(certified: Certified) -> list[Tool]:
    app = certified.evidence.app
    assert app is not None and app.op == "app"
    return app.tools


def play(sandbox: Sandbox, request: CallsRequest) -> Playthrough:
    reply = sandbox.check(request)
    assert isinstance(reply, CallsReply), reply
    [run] = reply.runs
    assert all(result.kind not in {"internal", "timeout", "crashed"} for result in run.results), run.results
    return run


def test_every_gate_passes_every_solution_is_complete_three_of_three_and_every_task_ships(certified: Certified) -> None:
    assert certified.certificate.problems == []
    assert set(certified.certificate.gates.values()) == {"passed"}
    assert Options().solvable_runs == 3
    assert all(task.shipped for task in certified.certificate.tasks)
    assert {outcome for task in certified.certificate.tasks for outcome in task.gates.values()} <= {"passed", "not_run"}


def test_the_committed_files_are_what_the_checks_make_of_them(certified: Certified) -> None:
    assert certified.bundle.files() == BUNDLE.files()


def test_it_is_at_least_as_large_as_the_environments_awm_reports(certified: Certified) -> None:
    figures = certified.certificate.figures
    assert {name: value for name, value in AWM_AVERAGE.items() if float(str(figures[name])) < value} == {}
    assert len(BUNDLE.tasks) == 10
    assert {len(solution.calls) for solution in BUNDLE.solutions.values()} >= {1, 8}
    assert max(len(solution.calls) for solution in BUNDLE.solutions.values()) == 8


def test_each_task_has_both_verifiers_a_solution_near_misses_and_alternatives() -> None:
    for task in BUNDLE.tasks:
        assert {(task.task_id, "code"), (task.task_id, "sql")} <= BUNDLE.verifiers.keys()
        assert task.task_id in BUNDLE.solutions
        assert len(BUNDLE.solutions[task.task_id].near_misses) >= 6
        assert len(BUNDLE.solutions[task.task_id].alternatives) >= 2


def test_every_near_miss_of_the_author_is_rejected_and_every_other_way_or_wording_accepted(certified: Certified) -> None:
    for task_id, solution in BUNDLE.solutions.items():
        weighed = weigh(certified.evidence.paths[task_id], certified.evidence.tried[task_id])
        rejected = [one.attempt.what for one in weighed.killed if one.attempt.kind == "by its author"]
        assert sorted(rejected) == sorted({variant.why for variant in solution.near_misses}), task_id
        assert len(rejected) == len(solution.near_misses)
        assert [one.complete for one in weighed.alternatives] == [True] * len(solution.alternatives), task_id


NET = "(t.price_cents - (t.price_cents * t.discount_percent + 50) / 100)"
INVARIANTS = {
    "what a booking costs is what was paid less what was given back": f"""
        SELECT b.reference FROM bookings b WHERE b.status IN ('confirmed', 'refunded') AND b.fee_cents
          + (SELECT coalesce(sum{NET}, 0) FROM tickets t WHERE t.booking_id = b.id AND t.status IN ('held', 'sold'))
          <> (SELECT coalesce(sum(amount_cents), 0) FROM payments WHERE booking_id = b.id)
          - (SELECT coalesce(sum(amount_cents), 0) FROM refunds WHERE booking_id = b.id AND status = 'paid')""",
    "a released booking keeps no money": """
        SELECT b.reference FROM bookings b WHERE b.status = 'released' AND
          (SELECT coalesce(sum(amount_cents), 0) FROM payments WHERE booking_id = b.id)
          <> (SELECT coalesce(sum(amount_cents), 0) FROM refunds WHERE booking_id = b.id AND status = 'paid')""",
    "a voucher's balance is its value less what it paid": """
        SELECT code FROM vouchers v WHERE initial_cents - balance_cents
          <> (SELECT coalesce(sum(amount_cents), 0) FROM payments WHERE voucher_id = v.id)""",
    "no customer has spent more credit than they had": """
        SELECT customer_id FROM credit_entries GROUP BY customer_id HAVING sum(amount_cents) < 0""",
    "tickets are in a state that fits their booking's": """
        SELECT t.id FROM tickets t JOIN bookings b ON b.id = t.booking_id
        WHERE (b.status = 'held' AND t.status NOT IN ('held', 'released')) OR (b.status = 'confirmed' AND t.status = 'held')
          OR (b.status IN ('released', 'refunded') AND t.status IN ('held', 'sold'))
          OR (t.status IN ('held', 'sold') AND t.performance_id <> b.performance_id)""",
    "companions sit beside a wheelchair space of the same booking": """
        SELECT t.booking_id FROM tickets t JOIN seats s ON s.id = t.seat_id WHERE t.status IN ('held', 'sold')
        GROUP BY t.booking_id HAVING sum(s.kind = 'companion') > sum(s.kind = 'wheelchair')""",
    "nobody has two shifts at a time": """
        SELECT a.id FROM shifts a JOIN shifts b ON a.volunteer_id = b.volunteer_id AND a.id < b.id
        WHERE a.starts_at < b.ends_at AND b.starts_at < a.ends_at""",
    "a pending refund has tickets that are still sold": """
        SELECT r.id FROM refunds r WHERE r.status = 'pending'
          AND NOT EXISTS (SELECT 1 FROM tickets t WHERE t.refund_id = r.id AND t.status = 'sold')""",
}
WORDS = (
    "Orla Tiernan",
    "tide",
    "HL-4040",
    "Stalls",
    "SPRING10",
    "GV-7006",
    "2026-03-14",
    "a reason for it",
    "O'Brien %_",
    "",
    "é" * 50,
)
WILD = (None, "x", -1, 0, 2**31, 2**63, 1.5, [], {}, "2026-02-30", "\x00")


def drawn(schema: Any, root: dict[str, Any], chance: random.Random, wild: bool) -> Any:
    """A value that mostly fits the schema, with small numbers so that ids hit rows."""
    if wild and chance.random() < 0.2:
        return chance.choice(WILD)
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    if "anyOf" in schema:
        schema = chance.choice(schema["anyOf"])
    if "enum" in schema:
        return chance.choice(schema["enum"])
    match schema.get("type"):
        case "integer":
            low = int(schema.get("minimum", 0))
            return chance.randint(low, min(int(schema.get("maximum", 10**4)), low + chance.choice((12, 60, 120, 8000))))
        case "boolean":
            return chance.random() < 0.5
        case "array":
            return [drawn(schema["items"], root, chance, wild) for _ in range(chance.randint(1, 3))]
        case "object":
            required = schema.get("required", [])
            return {
                name: drawn(part, root, chance, wild)
                for name, part in schema.get("properties", {}).items()
                if name in required or chance.random() < 0.5
            }
        case "string":
            return chance.choice(WORDS) if schema.get("format") != "date" else f"2026-03-{chance.randint(1, 31):02d}"
    return None


def of(call: str, path: str) -> str:
    return "{{" + call + path + "}}"


class Errands:
    """Calls as staff make them one after another, on rows that earlier calls found; what the rules refuse is refused."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.calls: list[ToolCall] = []

    def call(self, tool: str, **arguments: Any) -> str:
        self.calls.append(ToolCall(tool=tool, arguments=arguments))
        return f"calls[{len(self.calls) - 1}]"

    def book(self) -> None:
        chance = self.chance
        performance = chance.choice((5, 7, 9, 11, 13, 14, 16, 20))
        if chance.random() < 0.2:
            customer: Any = of(self.call("search_customers", needs_wheelchair_space=True), ".items[0].id")
            kinds = ["wheelchair", "companion"]
            types = ["adult", chance.choice(("companion", "companion", "adult"))]
        else:
            customer = chance.randint(1, 22)
            kinds = ["standard"] * chance.randint(1, 4)
            types = [chance.choice(("adult", "adult", "concession", "child")) for _ in kinds]
        tickets = []
        for number, (kind, ticket_type) in enumerate(zip(kinds, types, strict=True)):
            seats = self.call("list_seats", performance_id=performance, state="available", kind=kind)
            tickets.append(
                {"seat_id": of(seats, f".items[{number if kind == 'standard' else 0}].seat_id"), "ticket_type": ticket_type}
            )
        made = self.call("create_booking", customer_id=customer, performance_id=performance, tickets=tickets)
        booking = of(made, ".id")
        if chance.random() < 0.3:
            self.call("apply_promotion", booking_id=booking, code=chance.choice(("SPRING10", "FAMILYTIDE", "FAMILY10")))
        self.pay(booking)
        self.change(booking, of(made, ".tickets[0].id"), performance)

    def pay(self, booking: str) -> None:
        for method in self.chance.choice((("card",), ("voucher", "card"), ("credit", "voucher", "card"), ("voucher",), ())):
            due = of(self.call("get_booking", booking_id=booking), ".due_cents")
            code = {"voucher_code": self.chance.choice(("GV-7001", "GV-7004", "GV-7006"))} if method == "voucher" else {}
            amount: Any = due if method == "card" else self.chance.choice((due, 700))
            self.call("take_payment", booking_id=booking, method=method, amount_cents=amount, **code)

    def change(self, booking: str, ticket: str, performance: int) -> None:
        match self.chance.randrange(5):
            case 0:
                self.call("release_booking", booking_id=booking)
            case 1:
                self.call("request_refund", booking_id=booking, method=self.chance.choice(("original", "credit")))
            case 2:
                self.call("request_refund", booking_id=booking, method="credit", ticket_ids=[ticket])
            case 3:
                self.call("correct_ticket_type", ticket_id=ticket, ticket_type="concession", settle_by="credit")
            case 4:
                seats = self.call("list_seats", performance_id=performance, state="available", section="Circle")
                new = [of(seats, f".items[{number}].seat_id") for number in range(self.chance.randint(1, 3))]
                self.call("exchange_booking", booking_id=booking, performance_id=performance, seat_ids=new)

    def offer(self) -> None:
        """Seats come back, and go to whoever waits."""
        back = self.call("search_bookings", performance_id=10, status="confirmed", sort="-created_at")
        self.call("request_refund", booking_id=of(back, f".items[{self.chance.randrange(5)}].id"), method="credit")
        waiting = self.call("list_waitlist", performance_id=10, status="waiting")
        free = self.call("list_seats", performance_id=10, section="Stalls", state="available", kind="standard")
        entry, wanted = self.chance.choice(((0, 4), (1, 3)))
        seats = [of(free, f".items[{number}].seat_id") for number in range(wanted)]
        self.call("offer_waitlist_seats", entry_id=of(waiting, f".items[{entry}].id"), seat_ids=seats)
        made = self.call("search_bookings", performance_id=10, status="held")
        self.pay(of(made, ".items[0].id"))

    def wait(self) -> None:
        customer, wanted = self.chance.randint(1, 22), self.chance.randint(3, 4)
        entry = self.call("join_waitlist", performance_id=10, customer_id=customer, section_id=1, seats_wanted=wanted)
        if self.chance.random() < 0.3:
            self.call("leave_waitlist", entry_id=of(entry, ".id"))

    def staff(self) -> None:
        self.call("clear_shift", shift_id=self.chance.randint(6, 36))
        vacant = self.call("list_shifts", vacant=True, date_from="2026-03-09")
        for _ in range(4):
            shift = of(vacant, f".items[{self.chance.randrange(7)}].id")
            self.call("assign_shift", shift_id=shift, volunteer_id=self.chance.randint(1, 10))
        decide = self.chance.choice(("approve_refund", "reject_refund"))
        self.call(decide, refund_id=self.chance.randint(1, 11), note="Looked into")


def broken_rules(run: Playthrough) -> dict[str, list[Any]]:
    connection = sqlite3.connect(":memory:")
    connection.deserialize(base64.b64decode(run.db))
    rules = INVARIANTS | {"references lead somewhere": "PRAGMA foreign_key_check"}
    return {rule: rows for rule, query in rules.items() if (rows := connection.execute(query).fetchall())}


@pytest.mark.parametrize("seed", range(4))
def test_random_errands_keep_the_books_straight(sandbox: Sandbox, source: EnvironmentSource, seed: int) -> None:
    errands = Errands(seed)
    for _ in range(25):
        errands.chance.choice((errands.book, errands.book, errands.book, errands.offer, errands.wait, errands.staff))()
    run = play(sandbox, CallsRequest(source=source, calls=errands.calls, seed=seed))
    assert broken_rules(run) == {}
    done = {call.tool for call, result in zip(errands.calls, run.results, strict=True) if result.kind == "ok"}
    assert {"create_booking", "take_payment"} < done


@pytest.mark.parametrize("seed", range(4))
def test_calls_of_any_value_end_in_no_error_of_the_environments_own(
    sandbox: Sandbox, source: EnvironmentSource, tools: list[Tool], seed: int
) -> None:
    chance = random.Random(seed)
    calls = []
    for tool in chance.sample(tools, len(tools)) * 6:
        arguments = drawn(tool.input_schema, tool.input_schema, chance, wild=chance.random() < 0.3)
        calls.append(ToolCall(tool=tool.name, arguments=arguments if isinstance(arguments, dict) else {}))
    run = play(sandbox, CallsRequest(source=source, calls=calls, seed=seed))
    assert broken_rules(run) == {}
    assert sum(result.kind == "ok" for result in run.results) > len(calls) / 4
    assert sum(result.kind in {"refused", "not_found"} for result in run.results) > len(calls) / 20


def test_a_refusal_says_what_is_wrong_how_things_stand_and_what_would_be_accepted(
    sandbox: Sandbox, source: EnvironmentSource
) -> None:
    """Tonight's booking of Conor Hanratty can't be refunded any more."""
    look, refund = (
        (
            ToolCall(tool="search_customers", arguments={"q": "Conor Hanratty"}),
            ToolCall(tool="search_bookings", arguments={"customer_id": "{{calls[0].items[0].id}}", "sort": "starts_at"}),
        ),
        ToolCall(tool="request_refund", arguments={"booking_id": "{{calls[1].items[0].id}}", "method": "original"}),
    )
    run = play(sandbox, CallsRequest(source=source, calls=[*look, refund]))
    refused = run.results[-1]
    assert (refused.kind, refused.status) == ("refused", 409)
    assert isinstance(refused.content, dict)
    text = json.dumps(refused.content)
    assert all(f'"{part}"' in text for part in ("problem", "state", "allowed"))
    assert "2026-03-07T19:30:00" in text
