"""Tasks: so many, each for itself, decidable, and nothing that no API does."""

import re
from typing import Final

from awm_factory.problems import Problem
from awm_factory.synthesis.checks.finding import error, excerpt
from awm_factory.synthesis.checks.wording import quotes

GATE: Final = "tasks"

_RULES: Final = (
    (
        re.compile(r"\b(log|sign)(ging|s|ed)?[ -]?(in|out)\b(?! sheet)|\bpasswords?\b", re.I),
        "It is about signing in, though the user is signed in already.",
        "Ask for something a signed-in user does with the records.",
    ),
    (
        re.compile(r"\b(click|tap|scroll|drag|hover|navigate to|drop-?down|the (page|screen|button|tab|menu|homepage))\b", re.I),
        "It is about a screen, which no tool has.",
        "Say what is to be done with the records, not where to click.",
    ),
    (
        re.compile(r"\b(upload|download|attach(ed|ment|ing)?|print|export|pdf|csv|spreadsheet|screenshot|photo)\b", re.I),
        "It is about files, which no tool handles.",
        "Ask for something that happens inside the application's own records.",
    ),
    (
        re.compile(
            r"\b(previous(ly)? (task|created|added|made)|(just|you) (created|added|made)|the above|as above|earlier task)\b",
            re.I,
        ),
        "It leans on another task, but the database is put back before each.",
        "Name a thing that exists from the start, with everything needed in this one sentence.",
    ),
    (
        re.compile(r"\[[A-Za-z_ ]{2,40}\]|<[A-Za-z_ ]{2,40}>|\{[A-Za-z_ ]{2,40}\}|\bTBD\b|\bX{3,}\b"),
        "It holds a blank to be filled in.",
        "Write the value itself.",
    ),
)


def check(tasks: list[str], count: int) -> list[Problem]:
    problems = []
    if len(tasks) != count:
        problems.append(error(GATE, "tasks", f"There are {len(tasks)}, not {count}.", f"Write exactly {count}."))
    for number, task in enumerate(tasks):
        problems += _alone(number, task)
    seen: dict[str, int] = {}
    for number, task in enumerate(tasks):
        first = seen.setdefault(" ".join(task.lower().split()), number)
        if first != number:
            problems.append(error(GATE, f"task {number}", f"It is task {first} again.", "Write another one.", number))
    return problems + _one_story(tasks)


def _alone(number: int, task: str) -> list[Problem]:
    bare = re.sub(r"[\"“][^\"“”]*[\"”]", '""', task)
    return [
        error(GATE, f"task {number}", f"{what} ({excerpt(task)})", fix, number) for rule, what, fix in _RULES if rule.search(bare)
    ]


def _one_story(tasks: list[str]) -> list[Problem]:
    """Tasks written as chapters: one makes a thing that another takes for granted. From the start state only one can be right."""
    found = [quotes(task) for task in tasks]
    makers = {quote.text.lower(): number for number in reversed(range(len(tasks))) for quote in found[number] if quote.is_made}
    problems = []
    for number, mine in enumerate(found):
        for quote in mine:
            maker = makers.get(quote.text.lower())
            if maker is not None and maker != number and not quote.is_made:
                problems.append(
                    error(
                        GATE,
                        f"task {number}",
                        f"It speaks of {quote.text!r}, which task {maker} is to make; before each task the database is put back.",
                        "Let this task speak of a thing of another name that exists from the start.",
                        number,
                    )
                )
                break
    return problems
