"""The judge over HTTP, against a server that does what servers do."""

import asyncio
import json

import pytest

from awm_factory.llm.metered import Ledger, MeteredModel
from awm_factory.llm.prices import ModelFacts, Prices
from awm_factory.llm.stub_faults import Faults
from awm_factory.llm.stub_server import Stub, running_stub
from awm_factory.reward import Case, Judge
from awm_factory.store import Store, total
from llm_support import FunctionModel, connected

pytestmark = pytest.mark.anyio


async def test_votes_over_a_faulty_endpoint_end_in_rewards_or_in_their_absence() -> None:
    answer = json.dumps({"reason": "Asked and done.", "classification": "complete"})
    faults = Faults(server_error=0.2, rate_limit=0.1, disconnect=0.1, fence=0.3, thinking=0.3, invalid_json=0.3, truncate=0.1)
    stub = Stub(FunctionModel(lambda _: answer), faults=faults, seed=11)
    store = Store.open("sqlite://")
    store.start_run("r1", "stub-model", {})
    cases = [Case(task=f"Task {n}.", trajectory=[], env_id="kiosk", task_id=n) for n in range(40)]
    with running_stub(stub) as url:
        async with connected(url) as real:
            ledger = Ledger(store.calls("r1"), Prices({"stub-model": ModelFacts(input=1, output=1)}))
            judge = Judge(MeteredModel(real, ledger), votes=3)
            judgements = await asyncio.gather(*(judge.judge(case) for case in cases))
    judged = [judgement for judgement in judgements if judgement.reward is not None]
    assert {judgement.reward for judgement in judged} == {1.0}
    assert len(judged) >= 36
    assert all(judgement.error for judgement in judgements if judgement.reward is None)
    cost = total(store.costs("r1"))
    delivered = [entry["usage"] for entry in stub.log if entry["delivered"]]
    assert cost.prompt_tokens == sum(usage["prompt_tokens"] for usage in delivered)
    assert cost.completion_tokens == sum(usage["completion_tokens"] for usage in delivered)
    assert cost.calls >= 120
