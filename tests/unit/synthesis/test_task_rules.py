"""Tasks as the stage *tasks* refuses them, and the good ones that it must let through."""

import pytest

from awm_factory.synthesis.checks import tasks
from awm_factory.synthesis.checks.wording import dated, quotes
from synthesis_support import part, said


def test_good_tasks_pass() -> None:
    assert tasks.check(part("tasks.json"), 3) == []


def test_nine_tasks_are_not_ten() -> None:
    assert "There are 3, not 10" in said(tasks.check(part("tasks.json"), 10))


def test_the_same_task_twice_is_one() -> None:
    twice = ["Take back the Tile Cutter.", "Take  back the tile cutter."]
    assert "It is task 0 again" in said(tasks.check(twice, 2))


@pytest.mark.parametrize(
    ("task", "fault"),
    [
        ("Log in and show my loans.", "signing in"),
        ('Change my password to "hunter2".', "signing in"),
        ("Click on the loan of the Edger and end it.", "screen"),
        ("Upload a photo of the Edger.", "files"),
        ("Export all loans as CSV.", "files"),
        ("End the loan you created in the previous task.", "leans on another task"),
        ("Lend the Edger to [member name].", "blank"),
    ],
)
def test_what_no_api_does_or_nobody_could_know_is_refused(task: str, fault: str) -> None:
    assert fault in said(tasks.check([task], 1))


@pytest.mark.parametrize(
    "task",
    [
        "Sign Omar Saleh up for the sharpening course on 2026-02-01.",
        'Note on the Edger that "the next upload of the manual is due".',
        "Add the check-in time 09:00 to the visit of 2026-01-05.",
    ],
)
def test_words_in_another_sense_are_let_through(task: str) -> None:
    assert tasks.check([task], 1) == []


def test_a_task_that_needs_what_another_makes_is_refused() -> None:
    story = [
        'Create a new programme named "Winter Repairs" with a budget of 500 USD.',
        'Add a workshop on 2026-02-01 to the programme "Winter Repairs".',
    ]
    found = tasks.check(story, 2)
    assert [problem.task_id for problem in found] == [1]
    assert "which task 0 is to make" in said(found)


def test_two_tasks_may_speak_of_one_thing_that_exists() -> None:
    both = ['Rename the programme "Winter Repairs" to "Cold Repairs".', 'Close the programme "Winter Repairs".']
    assert tasks.check(both, 2) == []


@pytest.mark.parametrize(
    ("task", "made", "noun"),
    [
        ('Create a new playlist named "Dawn".', True, None),
        ('Add a customer called "Olga Pek".', True, None),
        ('Add the song "Tide" to the playlist "Dawn".', False, "playlist"),
        ('Move the card "Fix tap" to done.', False, "card"),
        ('Add a new blue card "Fix tap".', True, None),
        ('Start a new sailing for the cabin "Cabin 340".', False, "cabin"),
    ],
)
def test_a_quoted_name_is_told_by_the_words_before_it(task: str, made: bool, noun: str | None) -> None:
    quote = quotes(task)[-1]
    assert (quote.is_made, quote.noun if not made else None) == (made, noun)


@pytest.mark.parametrize("task", ["Lend the Edger until next Friday.", "Which loans are due today?"])
def test_a_task_that_moves_with_the_clock_gets_the_date(task: str) -> None:
    assert dated(task, "2026-01-01T00:00:00Z") == f"{task} (Today is Thursday, 2026-01-01.)"


@pytest.mark.parametrize(
    "task", ["Which loans are due today, 2026-01-05?", 'Note on the Edger that "it is due today".', "Take back the Edger."]
)
def test_a_task_that_says_its_date_or_needs_none_stays_as_it_is(task: str) -> None:
    assert dated(task, "2026-01-01T00:00:00Z") == task
