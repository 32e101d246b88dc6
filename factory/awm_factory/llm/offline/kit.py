"""What a module builds with: short ways to declare operations, in which most of it follows from the columns.

docs/offline-author.md shows a whole module.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from awm_factory.llm.offline.columns import Names, keys
from awm_factory.llm.offline.ir import Param
from awm_factory.llm.offline.operations import Method, Operations, short
from awm_factory.llm.offline.steps import (
    Field,
    Fill,
    Insert,
    Load,
    Log,
    Remove,
    Require,
    ReturnRecord,
    ReturnRow,
    ReturnTable,
    Step,
    When,
)
from awm_factory.llm.offline.values import Where
from awm_factory.llm.offline.words import fitting, listed, past, snake, with_article

NOT_BLOCKED: Final = Require(
    "not party.is_blocked", 409, "{party.name} is blocked; nothing new may be entered.", "party_not_blocked"
)
"""Before whatever is entered for a party."""


class Kit(Operations):
    """One for each module of a scenario; `compose` makes the domain of them all."""

    def listing(
        self,
        key: str,
        *,
        search: Names = (),
        filters: Names = (),
        sorts: Names = (),
        order: Names = "id",
        where: Where | None = None,
        params: Sequence[Param] = (),
        verb: str = "list",
        name: str = "",
        path: str = "",
        summary: str = "",
        description: str = "",
        phrases: Names = (),
    ) -> None:
        """A page of rows. `search` columns share one parameter `q`; a filter on a date, amount or number is a pair of bounds."""
        entity = self.entity_of(key)
        made: list[Param] = []
        if search:
            names = [entity.column(column).name.replace("_", " ") for column in keys(search)]
            filter_ = "|".join(keys(search)) + "__contains"
            made.append(
                Param("q", "text", "query", False, low=1, high=80, about=f"Part of the {listed(names, 'or')}", filter=filter_)
            )
        for column in keys(filters):
            made += self.filtering(entity, column)
        made += params
        self.operation(
            f"{verb}_{key}",
            "list",
            key,
            "GET",
            path or "/<<all>>",
            name=name or f"{verb}_{entity.plural}",
            summary=summary or f"{verb.capitalize()} {entity.nouns}",
            description=description
            or f"Answers a page of {entity.nouns}{' that fit the filters given' if made else ''}; an empty one where none do.",
            params=made,
            where=where or {},
            order=keys(order),
            sorts=keys(sorts),
            phrases=phrases,
        )

    def get(self, key: str, *, children: Sequence[str] = (), summary: str = "", description: str = "") -> None:
        """One row by id; a child is an entity (of any module, short or full name) with a reference to it."""
        entity = self.entity_of(key)
        pairs = []
        for child in children:
            other = self.entity_of(child)
            column = next(column.key for column in other.columns if column.ref == entity.role)
            pairs.append((other.role, column))
        with_ = " with its " + " and ".join(self.scenario.entities[role].nouns for role, _ in pairs) if pairs else ""
        self.operation(
            f"get_{key}",
            "get",
            key,
            "GET",
            "/<<one>>",
            name=f"get_{entity.name}",
            summary=summary or fitting(f"Show one {entity.noun}{with_}", f"Show one {entity.noun} and what belongs to it"),
            description=description or f"Answers the {entity.noun}{with_}; 404 where there is none with this id.",
            steps=[self.load(key)],
            returns=ReturnRow(short(entity.role), tuple(pairs)),
        )

    def create(
        self,
        key: str,
        fields: Names,
        *,
        values: Mapping[str, str] | None = None,
        params: Sequence[Param] = (),
        before: Sequence[Step] = (),
        after: Sequence[Step] = (),
        verb: str = "create",
        path: str = "",
        name: str = "",
        optional: Names = (),
        children: Sequence[tuple[str, str]] = (),
        action: str = "created",
        summary: str = "",
        description: str = "",
        phrases: Names = (),
    ) -> None:
        """A new row of the given fields and of `values` (expressions). References are looked up and unique texts tried first.

        `before` are steps between those and the insert (what must hold), `after` those between it and the answer.
        """
        entity = self.entity_of(key)
        wanted = [*(self.field(entity, column, optional=column in keys(optional)) for column in keys(fields)), *params]
        var = short(entity.role)
        steps: list[Step] = [step for column in keys(fields) for step in self._lookup(entity, column)]
        steps += [*before, *(self._untaken(entity, column) for column in keys(fields) if entity.column(column).unique)]
        given = {column: self._value(entity, column) for column in keys(fields)}
        steps.append(Insert(var, entity.role, {**given, **(values or {})}))
        steps += [*after, Log(action, var)]
        self.operation(
            f"{verb}_{key}",
            "create",
            key,
            "POST",
            path or "/<<all>>",
            name=name or f"{verb}_{entity.name}",
            summary=summary or f"{verb.capitalize()} a new {entity.noun}",
            description=description or f"Answers the new {entity.noun} with its id.",
            params=wanted,
            steps=steps,
            returns=ReturnRow(var, tuple(children)),
            phrases=phrases,
        )

    def update(
        self,
        key: str,
        fields: Names,
        *,
        before: Sequence[Step] = (),
        after: Sequence[Step] = (),
        action: str = "updated",
        name: str = "",
        summary: str = "",
        description: str = "",
        phrases: Names = (),
    ) -> None:
        """Change those of the fields that are given."""
        entity = self.entity_of(key)
        var = short(entity.role)
        wanted = [self.field(entity, column, optional=True) for column in keys(fields)]
        steps: list[Step] = [self.load(key), *before]
        for column in keys(fields):
            if entity.column(column).kind == "ref":
                target = entity.column(column).ref
                steps.append(When(f"{column} is not None", (Load(column.removesuffix("_id"), target, column),)))
            if entity.column(column).unique:
                steps.append(self._untaken(entity, column, f"{column} is None or ", id__ne=f"{var}.id"))
        steps += [Fill(var, keys(fields)), *after, Log(action, var)]
        words = [
            entity.column(column).name.removesuffix("_id").removesuffix("_cents").replace("_", " ") for column in keys(fields)
        ]
        self.operation(
            f"update_{key}",
            "act",
            key,
            "PATCH",
            "/<<one>>",
            name=name or f"update_{entity.name}",
            summary=summary
            or fitting(
                f"Change {listed(words, 'or')} of {with_article(entity.noun)}",
                f"Change what is kept about {with_article(entity.noun)}",
            ),
            description=description or f"What is left out stays as it is. Answers the {entity.noun}.",
            params=wanted,
            steps=steps,
            returns=ReturnRow(var),
            phrases=phrases,
        )

    def act(
        self,
        verb: str,
        key: str,
        steps: Sequence[Step],
        *,
        params: Sequence[Param] = (),
        method: Method = "POST",
        path: str = "",
        name: str = "",
        action: str = "",
        children: Sequence[tuple[str, str]] = (),
        summary: str = "",
        description: str = "",
        phrases: Names = (),
    ) -> None:
        """Something done to one row, which is loaded under the entity's key first: `POST /<bookings>/{id}/cancel`."""
        entity = self.entity_of(key)
        var = short(entity.role)
        self.operation(
            f"{verb}_{key}",
            "act",
            key,
            method,
            path or f"/<<one>>/{verb.replace('_', '-')}",
            name=name or f"{verb}_{entity.name}",
            summary=summary or f"{verb.replace('_', ' ').capitalize()} {with_article(entity.noun)}",
            description=description or f"Answers the {entity.noun}.",
            params=params,
            steps=[self.load(key), *steps, Log(action or past(verb), var)],
            returns=ReturnRow(var, tuple(children)),
            phrases=phrases,
        )

    def delete(
        self,
        key: str,
        *,
        before: Sequence[Step] = (),
        after: Sequence[Step] = (),
        verb: str = "delete",
        summary: str = "",
        description: str = "",
        phrases: Names = (),
    ) -> None:
        """`before` are steps before the row goes (what must hold); it answers the id."""
        entity = self.entity_of(key)
        var = short(entity.role)
        self.operation(
            f"{verb}_{key}",
            "delete",
            key,
            "DELETE",
            "/<<one>>",
            name=f"{verb}_{entity.name}",
            summary=summary or f"{verb.capitalize()} {with_article(entity.noun)}",
            description=description or f"Answers the id of the {entity.noun} that is gone.",
            steps=[self.load(key), *before, Log(f"{past(verb)}", var), Remove(var), *after],
            returns=ReturnRecord((Field("deleted_id", "int", f"{var}_id", f"Id that the {entity.noun} had"),)),
            phrases=phrases,
        )

    def report(
        self,
        name: str,
        key: str,
        returns: ReturnRecord | ReturnTable,
        *,
        path: str,
        summary: str,
        description: str,
        params: Sequence[Param] = (),
        steps: Sequence[Step] = (),
        phrases: Names = (),
    ) -> None:
        """Figures over many rows. `name` is the tool's and may hold `<booking>`."""
        self.operation(
            snake(re.sub(r"<\w+>", lambda m: m[0][1:-1], name)),
            "report",
            key,
            "GET",
            path,
            name=snake(self.text(name)),
            summary=summary,
            description=description,
            params=params,
            steps=steps,
            returns=returns,
            phrases=phrases,
        )
