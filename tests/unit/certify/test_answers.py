"""Final answers read from their text: what asks for one, what is wrong, and what only looks different."""

import pytest

from awm_factory.certify import answers


@pytest.mark.parametrize(
    ("instruction", "surely", "perhaps"),
    [
        ("Tell me how many copies are left.", True, True),
        ("Who has the shift now?", True, True),
        ("Register a new customer called Dermot.", False, False),
        ("Put him on the waiting list for three seats.", False, True),
    ],
)
def test_what_may_ask_for_an_answer_is_told_from_what_surely_does(instruction: str, surely: bool, perhaps: bool) -> None:
    assert answers.asks_for_answer(instruction) is surely
    assert answers.may_ask(instruction) is perhaps


@pytest.mark.parametrize(
    ("instruction", "words"),
    [
        ("Book any free seat.", "any"),
        ("Find a free slot and take it.", "a free"),
        ("Take one of the copies.", "one of"),
        ("Book seat B4 on Friday.", None),
    ],
)
def test_words_that_leave_a_choice_are_found(instruction: str, words: str | None) -> None:
    assert answers.leaves_open(instruction) == words


def test_a_wrong_answer_changes_figures_but_not_those_of_the_question() -> None:
    found = answers.wrong("22 of the 40 tickets are sold, for €1,249.50 by 2026-03-19.", "How many of the 40 tickets are sold?")
    assert found["every figure one too high"] == "23 of the 40 tickets are sold, for €1,250.50 by 2026-03-19."
    assert found["no answer"] == ""


def test_an_answer_without_figures_can_only_be_left_out() -> None:
    assert set(answers.wrong("Helen has it.", "Who has it?")) == {"no answer", "an answer that says nothing"}


def test_other_dress_keeps_the_figures() -> None:
    dressed = answers.other_dress("It is €12500.00 in all.", "How much is it?")
    assert dressed["thousands set off by commas"] == "It is €12,500.00 in all."
    assert dressed["no currency sign"] == "It is 12500.00 euros in all."
    assert "€12500.00" in dressed["words around it"]


def test_a_figure_with_one_decimal_is_the_same_with_two_where_it_is_no_price_and_no_version() -> None:
    dressed = answers.other_dress("41.3 kg of 3.5.1 for €2.5, 12.50 in all.", "How much is it?")
    assert dressed["a figure with one more decimal"] == "41.30 kg of 3.5.1 for €2.5, 12.50 in all."


def test_json_and_strict_forms_are_not_dressed_up() -> None:
    assert answers.other_dress('{"total": 3}', "How many?") == {}
    assert "words around it" not in answers.other_dress("Total: 3", "Answer exactly with Total: N.")
