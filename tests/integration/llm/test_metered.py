"""Ledger, budget and the store's replies, against the stub over HTTP."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from awm_factory.errors import BudgetSpent, ConfigError, ModelError, RateLimited
from awm_factory.llm.metered import Budget, Expected, Ledger, MeteredEmbedder, MeteredModel
from awm_factory.llm.openai_model import OpenAIEmbedder
from awm_factory.llm.patience import AdaptiveLimit, Patience
from awm_factory.llm.prices import ModelFacts, Prices
from awm_factory.llm.protocol import EmbeddingRequest, ModelReply, ModelRequest, Purpose, Usage
from awm_factory.llm.stub_faults import Faults, Latency
from awm_factory.llm.stub_server import Stub, running_stub
from awm_factory.store import Store, total
from llm_support import FunctionModel, ask, client, connected

pytestmark = pytest.mark.anyio

PRICES = Prices({"stub-model": ModelFacts(input=1.0, output=10.0), "e": ModelFacts(input=1.0, output=0.0)})


def counted(log: list[dict[str, Any]]) -> tuple[int, int]:
    usages = [entry["usage"] for entry in log if entry["delivered"]]
    return sum(usage["prompt_tokens"] for usage in usages), sum(usage.get("completion_tokens", 0) for usage in usages)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    opened = Store.open(str(tmp_path / "runs.db"))
    opened.start_run("r1", "stub-model", {})
    return opened


async def test_the_ledgers_tokens_are_the_servers_under_every_fault(store: Store) -> None:
    faults = Faults(rate_limit=0.1, rate_limit_after=0.05, server_error=0.1, disconnect=0.1, empty=0.1, truncate=0.1, fence=0.2)
    stub = Stub(FunctionModel(lambda request: request.messages[1].content * 300), faults=faults, retry_after=0.01, seed=3)
    ledger = Ledger(store.calls("r1"), PRICES)
    with running_stub(stub) as url:
        async with connected(url) as real:
            model = MeteredModel(real, ledger)
            requests = [ask(f"question {n}", purpose=Purpose(env_id=f"env_{n % 7}", stage="tasks")) for n in range(200)]
            await asyncio.gather(*(model.complete(request) for request in requests), return_exceptions=True)
        embedder = OpenAIEmbedder(client(url), "e", Patience(AdaptiveLimit(), 0.01))
        await MeteredEmbedder(embedder, ledger).embed(EmbeddingRequest(texts=("a b c", "d"), purpose=Purpose(stage="embedding")))
        await embedder.close()
    costs = store.costs("r1")
    whole = total(costs)
    assert (whole.prompt_tokens, whole.completion_tokens) == counted(stub.log)
    assert whole.usd == pytest.approx((whole.prompt_tokens + 10 * whole.completion_tokens) / 1_000_000)
    assert whole.calls + whole.retries == len(stub.log)
    assert whole.unmetered == sum("disconnect" in entry["faults"] for entry in stub.log) > 5
    assert [cost.env_id for cost in costs] == ["", *(f"env_{n}" for n in range(7))]
    assert ledger.budget.spent == pytest.approx(whole.usd)


async def test_a_reply_in_the_store_is_not_paid_for_again_and_counts_as_a_hit(store: Store) -> None:
    inner = FunctionModel()
    for _ in range(2):
        model = MeteredModel(inner, Ledger(store.calls("r1"), PRICES))
        replies = [await model.complete(ask(str(n % 3))) for n in range(6)]
    assert len(inner.asked) == 3
    assert all(reply.cached for reply in replies)
    assert (store.costs("r1")[0].calls, store.costs("r1")[0].hits) == (12, 9)


async def test_the_same_request_twice_at_once_is_sent_once(store: Store) -> None:
    stub = Stub(FunctionModel(), latency=Latency(median=0.05))
    with running_stub(stub) as url:
        async with connected(url) as real:
            model = MeteredModel(real, Ledger(store.calls("r1"), PRICES))
            replies = await asyncio.gather(*(model.complete(ask("same")) for _ in range(20)))
    assert len(stub.log) == 1
    assert {reply.text for reply in replies} == {"You said: same"}


async def test_another_model_or_sample_gets_its_own_answer(store: Store) -> None:
    inner = FunctionModel()
    other = FunctionModel()
    other.name = "other"
    ledger = Ledger(store.calls("r1"), PRICES)
    for model in (inner, other):
        for sample in (0, 1):
            await MeteredModel(model, ledger).complete(ask("x", sample=sample))
    assert (len(inner.asked), len(other.asked)) == (2, 2)
    assert store.costs("r1")[0].usd == 0.0


async def test_unusable_replies_are_kept_but_empty_ones_may_be_asked_again(store: Store) -> None:
    class Model(FunctionModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            self.asked.append(request)
            outcome = request.messages[1].content
            return ModelReply.model_validate({"model": "m", "outcome": outcome, "usage": Usage(prompt=1)})

    inner = Model()
    model = MeteredModel(inner, Ledger(store.calls("r1"), PRICES))
    for outcome in ("truncated", "truncated", "refused", "refused", "empty", "empty"):
        assert (await model.complete(ask(outcome))).outcome == outcome
    assert len(inner.asked) == 4
    assert store.costs("r1")[0].prompt_tokens == 4


async def test_a_call_without_an_answer_is_a_row_and_may_be_tried_again(store: Store) -> None:
    class Broken(FunctionModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            error = RateLimited("slow down")
            error.attempts, error.unmetered = 3, 1
            raise error

    with pytest.raises(ModelError):
        await MeteredModel(Broken(), Ledger(store.calls("r1"), PRICES)).complete(ask())
    cost = store.costs("r1")[0]
    assert (cost.calls, cost.failures, cost.retries, cost.unmetered, cost.usd) == (1, 1, 2, 1, 0.0)
    assert (await MeteredModel(FunctionModel(), Ledger(store.calls("r1"), PRICES)).complete(ask())).text


async def test_a_budget_stops_the_run_before_it_is_passed_and_a_larger_one_goes_on(store: Store) -> None:
    stub = Stub(FunctionModel(lambda _: "x" * 40_000), latency=Latency(median=0.02))
    requests = [ask(str(n), max_tokens=20_000) for n in range(100)]
    with running_stub(stub) as url:
        async with connected(url) as real:
            for usd, finished in ((2.05, 20), (3.05, 30)):
                ledger = await Ledger.open(store.calls("r1"), PRICES, ["stub-model"], usd)
                model = MeteredModel(real, ledger)
                results = await asyncio.gather(*(model.complete(request) for request in requests), return_exceptions=True)
                replies = [result for result in results if isinstance(result, ModelReply)]
                stopped = [result for result in results if isinstance(result, BudgetSpent)]
                assert len(replies) + len(stopped) == 100
                assert len(replies) == finished
                assert "run the same command with a larger --budget" in str(stopped[0])
                assert store.calls("r1").spent() <= usd
    assert len(stub.log) == 30


async def test_a_budget_smaller_than_the_longest_answer_still_lets_one_call_begin_at_a_time(store: Store) -> None:
    stub = Stub(FunctionModel(lambda _: "x" * 4_000), latency=Latency(median=0.01))
    with running_stub(stub) as url:
        async with connected(url) as real:
            model = MeteredModel(real, await Ledger.open(store.calls("r1"), PRICES, ["stub-model"], 0.025))
            requests = [ask(str(n), max_tokens=128_000) for n in range(20)]
            results = await asyncio.gather(*(model.complete(request) for request in requests), return_exceptions=True)
    assert [type(result) for result in results].count(ModelReply) == len(stub.log) == 2
    assert store.calls("r1").spent() < 0.025


async def test_a_budget_needs_a_price(store: Store) -> None:
    with pytest.raises(ConfigError, match="the price of mystery is unknown"):
        await Ledger.open(store.calls("r1"), PRICES, ["mystery"], budget=20)
    await Ledger.open(store.calls("r1"), PRICES, ["mystery"])


async def test_a_budget_gives_back_what_a_cancelled_call_held() -> None:
    budget = Budget(1.0)

    async def hold() -> None:
        async with budget.admit(lambda: Expected(0.9, 0.9)):
            await asyncio.Event().wait()

    holder = asyncio.create_task(hold())
    waiter = asyncio.create_task(_enter(budget))
    await asyncio.sleep(0)
    assert not waiter.done()
    holder.cancel()
    assert await asyncio.wait_for(waiter, 5) == "in"


async def _enter(budget: Budget) -> str:
    async with budget.admit(lambda: Expected(0.5, 0.5)):
        return "in"


async def test_an_answer_that_came_is_kept_when_its_asker_is_cancelled(store: Store) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    arrived, busy = asyncio.Event(), threading.Event()

    class Told(FunctionModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            # The store's turn comes only after this, so the asker is cancelled while its answer waits to be written.
            loop.run_in_executor(None, busy.wait)
            arrived.set()
            return await super().complete(request)

    task = asyncio.create_task(MeteredModel(Told(), Ledger(store.calls("r1"), PRICES)).complete(ask()))
    await arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    busy.set()
    assert await asyncio.to_thread(store.reply, ask().key("stub-model")) is not None


COUNT = 400
RUN = """
import asyncio, sys
from llm_support import ask, client
from awm_factory.llm.metered import Ledger, MeteredModel
from awm_factory.llm.openai_model import OpenAIModel
from awm_factory.llm.patience import AdaptiveLimit, Patience
from awm_factory.llm.prices import Prices
from awm_factory.store import Store

async def main(url, path):
    with Store.open(path) as store:
        store.start_run("r1", "stub-model", {})
        real = OpenAIModel(client(url), "stub-model", Patience(AdaptiveLimit(8), 0.01))
        model = MeteredModel(real, Ledger(store.calls("r1"), Prices.load()))
        replies = await asyncio.gather(*(model.complete(ask(str(n))) for n in range(int(sys.argv[3]))))
        print(sorted(reply.text for reply in replies))

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


class Killing:
    """A stub's model that kills the process on the other side as the request number `after` since the last killing arrives."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.after = 0

    def answer(self, request: ModelRequest) -> str:
        self.after -= 1
        if self.process is not None and self.after == 0:
            self.process.kill()
        return f"You said: {request.messages[1].content}"


def test_a_run_killed_at_random_moments_pays_for_nothing_twice(tmp_path: Path) -> None:
    killing = Killing()
    stub = Stub(FunctionModel(killing.answer), latency=Latency(median=0.03))
    path = str(tmp_path / "runs.db")
    draw = random.Random(5)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    stored = {ask(str(n)).key(): ask(str(n)).key("stub-model") for n in range(COUNT)}
    kept: set[str] = set()
    with running_stub(stub) as url:
        command = [sys.executable, "-c", RUN, url, path, str(COUNT)]
        for _ in range(6):
            seen = len(stub.log)
            killing.after = draw.randint(1, 60)
            with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
                killing.process = process
                assert process.wait() == -signal.SIGKILL
            killing.process = None
            assert [entry for entry in stub.log[seen:] if entry["key"] in kept] == []
            with Store.open(path) as store:
                kept = {key for key, name in stored.items() if store.reply(name) is not None}
        assert 20 < len(kept) < COUNT
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == str(sorted(f"You said: {n}" for n in range(COUNT)))
