import json
from collections.abc import Callable
from typing import Any

import pytest

from awm_factory.errors import BudgetSpent, OutOfQuota, UsageError
from awm_factory.llm.metered import Ledger, MeteredModel
from awm_factory.llm.prices import Prices
from awm_factory.llm.protocol import ModelReply, ModelRequest
from awm_factory.reward import REWARDS, Case, Judge, from_code_verifier
from awm_factory.store import Store
from awm_runtime.contract import RowChange, StateDiff, Verdict
from llm_support import FunctionModel

pytestmark = pytest.mark.anyio

CASE = Case(
    task="Rent kayak 6 to Liv.",
    trajectory=[{"role": "assistant", "tool": "rent", "arguments": {"id": 6}}, {"role": "tool", "content": '{"ok": true}'}],
    final_answer="Done.",
    evidence={"owner_before": None, "owner_after": "Liv"},
    changes=StateDiff(tables={"kayaks": [RowChange(key=[6], before={"owner": None}, after={"owner": "Liv"})]}),
    env_id="kayaks",
    task_id=3,
)


def verdict(classification: str, reason: str = "So it is.") -> str:
    return json.dumps({"reason": reason, "classification": classification})


@pytest.mark.parametrize(
    ("said", "reward"), [("complete", 1.0), ("incomplete", 0.1), ("agent_error", 0.0), ("server_error", 0.0)]
)
async def test_each_classification_has_its_reward(said: str, reward: float) -> None:
    judgement = await Judge(FunctionModel(lambda _: f"Let me see.\n```json\n{verdict(said)}\n```")).judge(CASE)
    assert (judgement.classification, judgement.reward, judgement.reason, judgement.error) == (said, reward, "So it is.", None)
    filled = judgement.fill(Verdict(mode="sql", evidence={"a": 1}))
    assert (filled.classification, filled.reward, filled.evidence) == (said, reward, {"a": 1})


async def test_one_opinion_is_asked_for_steadily_and_several_where_they_may_differ() -> None:
    for votes, temperature in ((1, 0.0), (3, 1.0)):
        model = FunctionModel(lambda _: verdict("complete"))
        await Judge(model, votes=votes).judge(CASE)
        assert [request.temperature for request in model.asked] == [temperature] * votes


async def test_there_is_nothing_to_judge_in_code_mode() -> None:
    with pytest.raises(UsageError, match="from_code_verifier"):
        await Judge(FunctionModel()).judge(CASE, "code")


def test_a_code_verifiers_verdict_has_awms_rewards() -> None:
    assert from_code_verifier(Verdict(mode="code", classification="complete")).reward == 1.0
    assert from_code_verifier(Verdict(mode="code", classification="others")).reward == 0.0
    assert set(REWARDS.values()) == {1.0, 0.1, 0.0}


@pytest.mark.parametrize(
    "broken",
    [
        Verdict(mode="code", error="AttributeError: 'NoneType' object has no attribute 'strip'"),
        Verdict(mode="code", error="no verdict after 10 s", classification="others", reward=0.0),
        Verdict(mode="code"),
        Verdict(mode="sql", evidence={}),
        Verdict(mode="code", classification="incomplete"),
    ],
)
def test_a_broken_verifier_gives_no_reward_and_its_error_never_zero(broken: Verdict) -> None:
    judgement = from_code_verifier(broken)
    assert judgement.reward is None
    assert judgement.classification is None
    assert judgement.error is not None
    assert (broken.error or "no reward") in judgement.error


async def test_without_evidence_nothing_is_asked() -> None:
    model = FunctionModel(lambda _: verdict("complete"))
    case = CASE.model_copy(update={"evidence_error": "KeyError: 'x'"})
    judgement = await Judge(model).judge(case, "sql")
    assert (judgement.reward, judgement.error) == (None, "no reward, the verifier failed: KeyError: 'x'")
    assert model.asked == []
    assert (await Judge(model).judge(case, "llm")).reward == 1.0


BAD: list[Any] = [
    "I think it is complete.",
    '{"classification": "complete"}',
    '{"reason": "x", "classification": "Complete"}',
    '{"reason": "x", "classification": "others"}',
    '{"reason": 3, "classification": "complete"}',
    '{"reason": "x", "classification": "complete", "reward": 1}',
    '{"reason": "x", "classification": null}',
    '{"reason": "x", "classification": "complete"',
    '{"reason": "a", "classification": "complete"} {"reason": "b", "classification": "agent_error"}',
]


@pytest.mark.parametrize("answer", BAD)
async def test_a_judge_that_talks_nonsense_is_asked_three_times_and_gives_no_reward(answer: str) -> None:
    model = FunctionModel(lambda _: answer)
    judgement = await Judge(model).judge(CASE)
    assert (judgement.reward, judgement.classification) == (None, None)
    assert (judgement.error or "").startswith("no reward, the judge failed: ")
    assert [request.sample for request in model.asked] == [0, 1, 2]


async def test_a_usable_second_answer_is_taken() -> None:
    model = FunctionModel(lambda request: verdict("incomplete") if request.sample else "hm")
    assert (await Judge(model).judge(CASE)).reward == 0.1


class Outcomes(FunctionModel):
    def __init__(self, reply: Callable[[ModelRequest], ModelReply]) -> None:
        super().__init__()
        self._reply = reply

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request)
        return self._reply(request)


async def test_a_refusal_is_repeated_once_and_an_empty_account_never() -> None:
    refusing = Outcomes(lambda _: ModelReply(model="m", outcome="refused", detail="I won't."))
    judgement = await Judge(refusing).judge(CASE)
    assert len(refusing.asked) == 2
    assert "I won't." in (judgement.error or "")

    def broke(_: ModelRequest) -> ModelReply:
        raise OutOfQuota("the account is out of quota")

    poor = Outcomes(broke)
    assert (await Judge(poor).judge(CASE)).reward is None
    assert len(poor.asked) == 1


async def test_a_spent_budget_ends_the_judging_rather_than_the_case() -> None:
    def spent(_: ModelRequest) -> ModelReply:
        raise BudgetSpent("spent")

    with pytest.raises(BudgetSpent):
        await Judge(Outcomes(spent)).judge(CASE)


@pytest.mark.parametrize(
    ("said", "classification"),
    [
        (["complete", "agent_error", "complete"], "complete"),
        (["complete", "hm", "complete"], "complete"),
        (["agent_error", "agent_error", "complete"], "agent_error"),
        (["complete", "hm", "agent_error"], None),
        (["complete", "hm", "hm"], None),
        (["complete", "incomplete", "agent_error"], None),
        (["complete", "agent_error"], None),
        (["incomplete", "incomplete"], "incomplete"),
    ],
)
async def test_more_than_half_of_the_votes_decide(said: list[str], classification: str | None) -> None:
    answers = [verdict(word, f"vote {number}") if word != "hm" else word for number, word in enumerate(said)]
    model = FunctionModel(lambda request: answers[request.sample % len(answers)])
    judgement = await Judge(model, votes=len(said)).judge(CASE)
    assert judgement.classification == classification
    assert (judgement.reward is None) == (classification is None)
    assert len(judgement.votes) == len(said)
    if classification is None:
        assert "the judge is undecided (" in (judgement.error or "")
    else:
        assert judgement.reason == f"vote {said.index(classification)}"


def test_a_number_of_votes_below_one_and_code_mode_are_mistakes_of_the_caller() -> None:
    with pytest.raises(UsageError):
        Judge(FunctionModel(), votes=0)


async def test_an_episode_judged_again_costs_nothing() -> None:
    store = Store.open("sqlite://")
    store.start_run("r1", "m", {})
    model = FunctionModel(lambda _: verdict("complete"))
    first, again = [
        await Judge(MeteredModel(model, Ledger(store.calls("r1"), Prices.load())), votes=3).judge(CASE) for _ in range(2)
    ]
    assert first == again
    assert len(model.asked) == 3
    assert [(cost.env_id, cost.stage, cost.calls, cost.hits) for cost in store.costs("r1")] == [("kayaks", "judge", 6, 3)]


def seen(case: Case, mode: Any) -> str:
    return "\n".join(message.content for message in case.messages(mode))


def test_the_judge_sees_evidence_and_changes_in_sql_mode_only() -> None:
    for text in ("Rent kayak 6 to Liv.", '"tool": "rent"', "Done."):
        assert text in seen(CASE, "sql")
        assert text in seen(CASE, "llm")
    assert "owner_after" in seen(CASE, "sql")
    assert '"key": [6]' in seen(CASE, "sql")
    assert "owner_after" not in seen(CASE, "llm")
    assert "You see no database" in seen(CASE, "llm")


def test_a_long_episode_is_shortened_and_one_beyond_that_has_no_reward() -> None:
    long = CASE.model_copy(update={"trajectory": [{"content": f"start {number} " + "x" * 100_000} for number in range(30)]})
    text = seen(long, "sql")
    assert len(text) < 450_000
    assert "characters left out" in text
    assert all(f"start {number} " in text for number in range(30))
    with pytest.raises(ValueError, match="too long to be judged"):
        CASE.model_copy(update={"trajectory": [{"content": "x" * 300}] * 5000}).messages("sql")


async def test_an_episode_too_long_is_a_judgement_without_reward() -> None:
    case = CASE.model_copy(update={"trajectory": [{"content": "x" * 300}] * 5000})
    assert (await Judge(FunctionModel()).judge(case)).error == (
        "no reward: the episode is too long to be judged: more than 400,000 characters when shortened"
    )
