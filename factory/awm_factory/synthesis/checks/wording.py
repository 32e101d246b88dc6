"""Tasks as text: what they quote, what they are about to make, and what they take for granted."""

import re
from dataclasses import dataclass
from datetime import datetime

from awm_factory.certify.answers import relative_day

_QUOTED = re.compile(
    r"""["\u201c\u201d]([^"\u201c\u201d]{2,200})["\u201c\u201d]|(?<!\w)['\u2018]([^'\u2018\u2019]{2,200})['\u2019](?!\w)"""
)
_MAKES = re.compile(
    r"\b(create|add|register|open|set up|start|draft|make|launch|publish|record|log|enter|book|schedule|design|define)\b", re.I
)
_NEW = re.compile(
    r"\b(?:a|an|another|new|one)\b[^\"“”]{0,60}\b(?:named|called|titled|entitled|labell?ed|with the (?:name|title|code))\s*$",
    re.I,
)
_NEW_DIRECT = re.compile(r"\b(?:a|an|another|new)\s+(?:(?!(?:for|of|in|on|at|to|from|with|under|by|the)\b)[\w-]+\s+){1,4}$", re.I)
_EXISTING = re.compile(
    r"\b(?:the|my|our|existing|for|in|on|from|to|of|under|at|into|with)\s+(?:(?:the|my|our|existing|current)\s+)?(?:[\w-]+\s+){0,2}?([\w-]+)"
    r"(?:\s+(?:named|called|titled|entitled))?\s*$",
    re.I,
)


_PERSON = re.compile(r"\b(?:[Rr]egister|[Ee]nrol+|[Aa]dd|[Cc]reate)\s+((?:[A-Z][\w'-]+ ){1,3}[A-Z][\w'-]+)\b(?=.*\bas an? new\b)")


@dataclass(frozen=True)
class Quote:
    """A text in quotation marks inside a task, and what stands before it; or the name of someone to be registered."""

    text: str
    before: str
    person: bool = False

    @property
    def is_made(self) -> bool:
        """True where the task is about to make a thing of this name."""
        if self.person:
            return True
        verbs = list(_MAKES.finditer(self.before))
        if not verbs:
            return False
        since = self.before[verbs[-1].start() :]
        if re.search(r"[.;]|\bthen\b", since):
            return False
        return bool(_NEW.search(since) or _NEW_DIRECT.search(since))

    @property
    def noun(self) -> str | None:
        """The kind of thing that is taken to exist: `program` in `for the program "STEM Grant"`."""
        if self.is_made:
            return None
        found = _EXISTING.search(self.before)
        return found[1].lower() if found else None


def quotes(task: str) -> list[Quote]:
    people = [Quote(match[1], task[: match.start()], person=True) for match in _PERSON.finditer(task)]
    return people + [Quote((match[1] or match[2]).strip(), task[: match.start()]) for match in _QUOTED.finditer(task)]


def names_table(noun: str, tables: list[str]) -> str | None:
    """The table that holds things of this kind, by plain English plurals."""
    for table in tables:
        last = table.lower().split("_")[-1]
        if last in _plurals(noun) or table.lower().replace("_", "") in _plurals(noun):
            return table
    return None


def _plurals(noun: str) -> set[str]:
    forms = {noun, f"{noun}s", f"{noun}es"}
    if noun.endswith("y"):
        forms.add(f"{noun[:-1]}ies")
    return forms


def dated(task: str, world_time: str) -> str:
    """The task, with the date of its first day where its words would otherwise move with a clock that nobody sees."""
    if relative_day(task) is None:
        return task
    day = datetime.fromisoformat(world_time)
    return f"{task} (Today is {day:%A}, {day:%Y-%m-%d}.)"
