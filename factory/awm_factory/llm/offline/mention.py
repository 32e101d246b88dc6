"""How a user speaks of a row: by its label, never by its id, and so that no other row can be meant."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from itertools import combinations
from typing import Final, Union

from awm_factory.llm.offline.ir import Column, Entity
from awm_factory.llm.offline.state import World
from awm_factory.llm.offline.values import Row, Value
from awm_factory.llm.offline.wording import (
    attributive,
    column_noun,
    event,
    figure,
    named_place,
    noun_of,
    possessive,
    quality,
    quoted,
    spoken,
    with_more,
    words,
)

PEOPLE: Final = ("party", "user")
_DEEPEST: Final = 3

Fact = Union[Value, "Mention"]


@dataclass(frozen=True)
class Mention:
    """A row, the words for it, and what those words say about it."""

    role: str
    id: int
    text: str
    facts: Mapping[str, Fact]
    """By column: the value that the words name, or the row that they name."""

    def cells(self) -> dict[str, Value]:
        """The same as the cells of the row."""
        return {key: fact.id if isinstance(fact, Mention) else fact for key, fact in self.facts.items()}

    @property
    def constraints(self) -> int:
        return sum(fact.constraints if isinstance(fact, Mention) else 1 for fact in self.facts.values())


def mention(world: World, role: str, row_id: int, depth: int = 0, *, described: bool = False) -> Mention | None:
    """None where no words that a user has single the row out. `described`: rather by whose it is and when than by a reference."""
    entity = world.domain.entity(role)
    row = world.find(role, row_id)
    if row is None or depth > _DEEPEST:
        return None
    if described and all(entity.column(key).server for key in entity.label):
        facts = _description(world, entity, row, depth)
        if facts is not None:
            return Mention(role, row_id, describe(world, entity, facts), facts)
    facts = _facts(world, entity, row, entity.label, depth)
    if facts is None:
        return None
    if not _is_single(world, role, row_id, facts):
        facts = _told_apart(world, entity, row, facts)
        if facts is None:
            return None
    return Mention(role, row_id, describe(world, entity, facts), facts)


def _description(world: World, entity: Entity, row: Row, depth: int) -> dict[str, Fact] | None:
    """The fewest of its references, times and states that single the row out."""
    kinds = ("ref", "date", "datetime", "choice")
    keys = [
        column.key
        for column in entity.columns
        if column.kind in kinds and row[column.key] is not None and not column.server and column.ref != "user"
    ]
    keys.sort(key=lambda key: (entity.column(key).ref != "party", kinds.index(entity.column(key).kind)))
    for size in (1, 2, 3):
        for chosen in combinations(keys, size):
            if not any(entity.column(key).kind == "ref" for key in chosen):
                continue
            if len(_alike(world, entity.role, {key: row[key] for key in chosen})) == 1:
                return _facts(world, entity, row, chosen, depth)
    return None


def _alike(world: World, role: str, cells: Mapping[str, Value]) -> list[Row]:
    return [row for row in world.all(role) if all(row[key] == value for key, value in cells.items())]


def _facts(world: World, entity: Entity, row: Row, keys: tuple[str, ...], depth: int) -> dict[str, Fact] | None:
    facts: dict[str, Fact] = {}
    for key in keys:
        column, value = entity.column(key), row[key]
        if value is None or key == "id":
            continue
        if column.kind == "ref":
            assert isinstance(value, int)
            nested = mention(world, column.ref, value, depth + 1)
            if nested is None:
                return None
            facts[key] = nested
        else:
            facts[key] = value
    return facts or None


def _is_single(world: World, role: str, row_id: int, facts: Mapping[str, Fact]) -> bool:
    return [row["id"] for row in similar(world, role, facts)] == [row_id]


def similar(world: World, role: str, facts: Mapping[str, Fact]) -> list[Row]:
    """Rows of which the same may be said. Texts count without regard to case."""
    wanted = {key: fact.id if isinstance(fact, Mention) else _folded(fact) for key, fact in facts.items()}
    return [row for row in world.all(role) if all(_folded(row[key]) == value for key, value in wanted.items())]


def _folded(value: Value) -> Value:
    return value.casefold() if isinstance(value, str) else value


def _told_apart(world: World, entity: Entity, row: Row, facts: dict[str, Fact]) -> dict[str, Fact] | None:
    """With one or two more columns that make it single."""
    order = {"choice": 0, "datetime": 1, "date": 1, "money": 2, "int": 3, "text": 4}
    spare = [
        column
        for column in entity.columns
        if column.kind in order and column.key not in facts and row[column.key] is not None and not column.server
    ]
    spare.sort(key=lambda column: order[column.kind])
    for column in spare:
        more = {**facts, column.key: row[column.key]}
        if _is_single(world, entity.role, int(row["id"]), more):
            return more
    for place, column in enumerate(spare):
        for other in spare[place + 1 :]:
            more = {**facts, column.key: row[column.key], other.key: row[other.key]}
            if _is_single(world, entity.role, int(row["id"]), more):
                return more
    return None


def describe(world: World, entity: Entity, facts: Mapping[str, Fact], noun: str = "", definite: bool = True) -> str:
    """Words for the row of these facts: `Dana Reyes's reservation for the workbench Bench 3 on 12 March 2026 at 09:00`."""
    currency = world.domain.currency
    noun = noun or noun_of(world.domain, entity.role)
    texts = [key for key in facts if entity.column(key).kind == "text"]
    if entity.role in PEOPLE and texts and definite:
        rest = {key: fact for key, fact in facts.items() if key != texts[0]}
        return str(facts[texts[0]]) + _tail(world, entity, rest)
    before, name, owner, rest = "", "", "", {}
    for key, fact in facts.items():
        column = entity.column(key)
        if isinstance(fact, Mention) and fact.role == "party" and not owner:
            owner = possessive(fact.text)
        elif column.kind == "choice" and not before and _is_state(column):
            before = f"{attributive(str(fact))} "
        elif column.kind == "text" and not name and key == texts[0]:
            name = f" {_named(str(fact), noun)}"
        else:
            rest[key] = fact
    if entity.role == "place" and name and not rest and definite and name[1] != '"':
        return f"the {named_place(name.strip(), noun)}"
    head = owner or ("the" if definite else "")
    return f"{head} {before}{noun}{name}{_tail(world, entity, rest, currency)}".strip()


def _is_state(column: Column) -> bool:
    return re.search(r"(?:^|_)(?:status|state|stage)$", column.key) is not None


def _named(name: str, noun: str) -> str:
    """A name as it is; in quotation marks a title, a sentence, or what begins like its noun (the lane "Lane 3")."""
    parts = name.split()
    proper = len(parts) <= 4 and all(part[:1].isupper() or part[:1].isdigit() or part in _SMALL for part in parts)
    proper = proper and parts[0].lower() != noun.split()[-1].lower()
    return name if proper and not re.search(r"[\"?!.;:]", name) else quoted(name.replace('"', "'"))


_SMALL: Final = {"of", "the", "and", "for", "at", "in", "on", "&", "de", "la", "-"}


def _tail(world: World, entity: Entity, facts: Mapping[str, Fact], currency: str = "") -> str:
    """What follows the noun, in the order of a natural sentence: other rows, then times, then figures and texts."""
    currency = currency or world.domain.currency
    refs, times, others = [], [], []
    for key, fact in facts.items():
        column = entity.column(key)
        if isinstance(fact, Mention):
            joint = "and " if key.startswith("credit_") and "debit_account_id" in facts else ""
            refs.append(f"{joint}{_preposition(entity, column)} {fact.text}")
        elif isinstance(fact, datetime | date):
            said = spoken(fact, column.kind, currency)
            is_month = (column.name or column.key) == "month"
            times.append(f"for {fact:%B %Y}" if is_month else _timed(column, said, isinstance(fact, datetime)))
        elif isinstance(fact, bool):
            others.append(f"with the {column_noun(column)} {spoken(fact, 'bool', currency)}")
        elif column.kind == "choice":
            said = quality(column, words(str(fact)))
            (others if said.startswith("with ") else refs).append(said)
        elif column.kind == "text":
            others.append(f"with the {column_noun(column)} {quoted(str(fact))}")
        else:
            others.append(f"with {figure(column, spoken(fact, column.kind, currency))}")
    text = "".join(f" {part}" for part in (*refs, *times))
    for other in others:
        text = with_more(text, other)
    return text


def _timed(column: Column, said: str, has_time: bool) -> str:
    name = column.name or column.key
    if name in ("starts_at", "starts_on", "held_on", "date", "day", "on_date"):
        return f"on {said}" if has_time else f"of {said}"
    if name == "dated_on":
        return f"dated {said}"
    if column_noun(column) == "date":
        return f"on {said}"
    if (told := event(name)) is not None:
        return f"{'who ' if told[1] == 'joined' else 'that ' if not told[0] else ''}{told[1]} on {said}"
    return f"with the {column_noun(column)} {said}"


def _preposition(entity: Entity, column: Column) -> str:
    if column.key.startswith(("debit_", "credit_")):
        return f"{column.key.partition('_')[0]}ing"
    if column.ref == "place":
        return "at"
    if column.ref == "user":
        return "of"
    if column.ref == "category":
        return "in"
    return "for" if column.ref in ("item", "party") or column.ref.partition(".")[0] != entity.role.partition(".")[0] else "of"
