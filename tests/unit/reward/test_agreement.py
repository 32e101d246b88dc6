import pytest

from awm_factory.reward import Judgement, agreement


def said(mode: str, classification: str | None) -> Judgement:
    if classification is None:
        return Judgement.failed("llm", "no reward: broken")
    return Judgement.model_validate(Judgement.of("sql", classification).model_dump() | {"mode": mode})  # type: ignore[arg-type]


def test_agreement_is_about_complete_or_not_and_disputes_are_listed() -> None:
    rows = [
        ("complete", "complete", "complete"),
        ("complete", "complete", "incomplete"),
        ("others", "agent_error", "agent_error"),
        ("others", "incomplete", "server_error"),
        ("others", "complete", "complete"),
        ("others", None, "complete"),
    ]
    episodes = {f"t{n}": {m: said(m, c) for m, c in zip(("code", "sql", "llm"), row, strict=True)} for n, row in enumerate(rows)}
    found = agreement(episodes)
    assert (found.episodes, found.complete, found.failed) == (
        6,
        {"code": 2, "llm": 3, "sql": 3},
        {"code": 0, "llm": 0, "sql": 1},
    )
    pairs = {(pair.first, pair.second): pair for pair in found.pairs}
    code_sql = pairs["code", "sql"]
    assert (code_sql.both, code_sql.agreed, code_sql.rate, code_sql.only_first, code_sql.only_second) == (5, 4, 0.8, 0, 1)
    assert code_sql.kappa == pytest.approx((0.8 - 0.48) / 0.52)
    assert (pairs["code", "llm"].agreed, pairs["code", "llm"].only_first, pairs["code", "llm"].only_second) == (3, 1, 2)
    assert [dispute.episode for dispute in found.disputes] == ["t1", "t4", "t5"]
    assert found.disputes[0].judgements["llm"].classification == "incomplete"


def test_nothing_in_common_is_no_agreement_and_no_division() -> None:
    found = agreement({"a": {"code": said("code", "complete")}, "b": {"sql": said("sql", "complete")}})
    assert (found.pairs[0].both, found.pairs[0].rate, found.pairs[0].kappa) == (0, None, None)
    assert agreement({}).pairs == ()
    same = agreement({"a": {"code": said("code", "complete"), "sql": said("sql", "complete")}})
    assert (same.pairs[0].rate, same.pairs[0].kappa) == (1.0, None)
