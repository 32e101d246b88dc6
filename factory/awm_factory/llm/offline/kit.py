"""What a module builds with: short ways to declare entities and operations, in which most of it follows from the columns.

A module speaks by keys (`slot`, `slot_id`), never by a domain's words; texts hold `<slot>` for those. Names of entities are
short inside a module (`slot` for `booking.slot`) and those of the frame are plain everywhere: user, party, place, item,
category. docs/offline-author.md shows a whole module.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Literal

from awm_factory.llm.offline.ir import (
    Column,
    Domain,
    Each,
    Entity,
    Field,
    Fill,
    Find,
    Insert,
    Invariant,
    Load,
    Log,
    Operation,
    OperationKind,
    Param,
    Remove,
    Require,
    Return,
    ReturnPage,
    ReturnRecord,
    ReturnRow,
    ReturnTable,
    Rule,
    Show,
    Step,
    When,
    Where,
)
from awm_factory.llm.offline.packs import ModulePart, Pack
from awm_factory.llm.offline.words import article, domain_text, snake

FRAME: Final = ("user", "party", "place", "item", "category", "activity")
MOST_SUMMARY: Final = 80
"""Characters; the checks of the API refuse longer ones."""
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Names = str | Sequence[str]
"""Keys, as a list or as one text with spaces between them."""

NOT_BLOCKED: Final = Require(
    "not party.is_blocked", 409, "{party.name} is blocked; nothing new may be entered.", "party_not_blocked"
)
"""Before whatever is entered for a party."""


# Columns, shortly. The key comes first, then what differs from the plain case.


def text(key: str, about: str = "", **more: Any) -> Column:
    return Column(key, "text", about=about, **more)


def number(key: str, about: str = "", low: int = 0, **more: Any) -> Column:
    return Column(key, "int", about=about, low=low, **more)


def cents(key: str, about: str = "", low: int | None = 0, **more: Any) -> Column:
    """An amount; the key ends in `_cents`."""
    return Column(key, "money", about=about, low=low, **more)


def day(key: str, about: str = "", **more: Any) -> Column:
    return Column(key, "date", about=about, **more)


def moment(key: str, about: str = "", **more: Any) -> Column:
    return Column(key, "datetime", about=about, **more)


def flag(key: str, about: str = "", default: bool = False, **more: Any) -> Column:
    return Column(key, "bool", about=about, default=default, **more)


def ref(key: str, to: str, about: str = "", **more: Any) -> Column:
    """The id of a row of another entity; `owned=True` where it goes with that row."""
    return Column(key, "ref", ref=to, about=about, **more)


def choice(key: str, values: Iterable[str], about: str = "", **more: Any) -> Column:
    return Column(key, "choice", choices=tuple(values), about=about, **more)


def created(key: str = "created_at", about: str = "When it was entered") -> Column:
    return Column(key, "datetime", about=about, server=True)


def keys(names: Names) -> tuple[str, ...]:
    return tuple(names.split()) if isinstance(names, str) else tuple(names)


class Kit:
    """One for each module of a scenario; `compose` makes the domain of them all."""

    def __init__(self, scenario: "Scenario", part: ModulePart, features: frozenset[str]) -> None:
        self.scenario = scenario
        self.module = part.module
        self.part = part
        self.features = features
        self.state: Mapping[str, str] = {key: snake(word) for key, word in part.states.items()}
        self.policy: dict[str, int] = dict(part.policy)
        self.nouns: dict[str, tuple[str, str]] = dict(part.nouns)

    # What there is

    def has(self, feature: str) -> bool:
        """Whether this variant has the feature. Raises ValueError for one that the module does not declare."""
        if feature not in self.scenario.declared[self.module]:
            raise ValueError(f"the module {self.module} declares no feature {feature!r}")
        return feature in self.features

    def joined(self, role: str) -> bool:
        """Whether another module's entity is in this scenario, and declared before this module."""
        return role in self.scenario.entities

    def status(self, *states: str, key: str = "status", about: str = "State") -> Column:
        """A column of the domain's words for these states; new rows get the first, unless an Insert says otherwise."""
        words = tuple(self.state[state] for state in states)
        return Column(key, "choice", choices=words, default=words[0], about=about)

    def text(self, words: str) -> str:
        """In domain words, with `{policy.…}` and `{state.…}` filled in."""
        known = {**self.scenario.nouns, **self.nouns}
        filled = re.sub(
            r"\{(policy|state)\.(\w+)\}", lambda m: str((self.policy if m[1] == "policy" else self.state)[m[2]]), words
        )
        return domain_text(filled, known)

    def role(self, name: str) -> str:
        return name if name in FRAME or "." in name else f"{self.module}.{name}"

    def entity_of(self, name: str) -> Entity:
        return self.scenario.entities[self.role(name)]

    # Entities

    def entity(
        self,
        key: str,
        columns: Sequence[Column | None],
        *,
        label: Names,
        noun: tuple[str, str] | None = None,
        uniques: Sequence[Names] = (),
        checks: Sequence[str] = (),
        shows: Sequence[Show] = (),
        about: str = "",
    ) -> None:
        """A table. `noun` (with `<…>`) names it where the pack does not; columns that are None are left out (features).

        Every reference shows the label of its row besides, where that is one text column: `party_name` beside `party_id`.
        """
        if key not in self.nouns:
            if noun is None:
                raise ValueError(f"the pack has no noun for {self.module}.{key}, and the module gives none")
            self.nouns[key] = (self.text(noun[0]), self.text(noun[1]))
        name, plural = ("user", "users") if key == "user" else (snake(word) for word in self.nouns[key])
        if any(name == other.name or plural == other.plural for other in self.scenario.entities.values()):
            name, plural = f"{self.module}_{name}", f"{self.module}_{plural}"
        made = [self._resolved(column) for column in columns if column is not None]
        own = [replace(show, about=self.text(show.about), name=show.name or self._field_name(show.key)) for show in shows]
        taken = {name for show in own for name in (show.key, show.name)} | {column.name for column in made}
        labels = [*(show for show in self._labels(made) if not {show.key, show.name} & taken), *own]
        self.scenario.nouns.setdefault(key, self.nouns[key])
        self.scenario.nouns[self.role(key)] = self.nouns[key]
        self.scenario.entities[self.role(key)] = Entity(
            role=self.role(key),
            name=name,
            plural=plural,
            columns=tuple(made),
            label=keys(label),
            uniques=tuple(keys(unique) for unique in uniques),
            checks=tuple(checks),
            shows=tuple(labels),
            about=self.text(about) if about else "",
        )

    def extend(self, role: str, *columns: Column) -> None:
        """More columns for an entity of the frame or of an earlier module; they must be NULL-able or have a default."""
        entity = self.scenario.entities[role]
        made = [self._resolved(column) for column in columns]
        self.scenario.entities[role] = replace(
            entity, columns=(*entity.columns, *made), shows=(*entity.shows, *self._labels(made))
        )

    def _resolved(self, column: Column) -> Column:
        if column.kind != "ref":
            return replace(column, about=self.text(column.about), name=column.name or snake(column.key))
        role = self.role(column.ref)
        about = self.text(column.about) if column.about else f"Id of the {self.scenario.entities[role].noun}"
        return replace(column, ref=role, about=about, name=column.name or self._reference_name(column.key, role))

    def _reference_name(self, key: str, role: str) -> str:
        """`party_id` is `member_id`, `to_place_id` is `to_branch_id`; any other key stays."""
        short = f"{role.rpartition('.')[2]}_id"
        if not key.endswith(short):
            return key
        target = self.scenario.entities.get(role)
        return f"{key[: -len(short)]}{target.name}_id" if target is not None else key

    def _labels(self, columns: Sequence[Column]) -> list[Show]:
        shows = []
        for column in columns:
            target = self.scenario.entities.get(column.ref) if column.kind == "ref" else None
            if target is None or len(target.label) != 1 or target.column(target.label[0]).kind == "ref":
                continue
            label = target.column(target.label[0])
            suffix = "name" if label.key in ("name", "full_name") else label.key
            path = f"self.{column.key.removesuffix('_id')}"
            value = f"{path}.{label.key}" if not column.null else f"{path}.{label.key} if {path} is not None else None"
            key = f"{column.key.removesuffix('_id')}_{suffix}"
            name = f"{column.name.removesuffix('_id')}_{'name' if suffix == 'name' else label.name}"
            shows.append(Show(key, label.kind, value, f"{label.about or suffix.capitalize()} of the {target.noun}", name))
        return shows

    # Operations that follow from the columns

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
            made.append(Param("q", "text", "query", False, low=1, high=80, about=f"Part of the {_or(names)}", filter=filter_))
        for column in keys(filters):
            made += self._filter(entity, column)
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

    def _filter(self, entity: Entity, key: str) -> list[Param]:
        column = entity.column(key)
        noun = column.name.removesuffix("_id").removesuffix("_cents").replace("_", " ")
        if column.kind == "ref":
            return [Param(key, "ref", "query", False, ref=column.ref, filter=key, about=f"Only those of this {noun}")]
        if column.kind in ("choice", "bool", "text"):
            about = (
                f"Only those with this {noun}"
                if column.kind != "bool"
                else f"Only those that are, or are not, {noun.removeprefix('is ')}"
            )
            return [Param(key, column.kind, "query", False, choices=column.choices, filter=key, about=about, name=column.name)]
        stem = key.removesuffix("_at").removesuffix("_on") if column.kind in ("date", "datetime") else key
        name = column.name.removesuffix("_at").removesuffix("_on") if column.kind in ("date", "datetime") else column.name
        if column.kind in ("date", "datetime"):
            return [
                Param(
                    f"{stem}_from", "date", "query", False, filter=f"{key}__ge", about=f"First day ({noun})", name=f"{name}_from"
                ),
                Param(f"{stem}_to", "date", "query", False, filter=f"{key}__le", about=f"Last day ({noun})", name=f"{name}_to"),
            ]
        return [
            Param(
                f"min_{key}", column.kind, "query", False, low=0, filter=f"{key}__ge", about=f"Least {noun}", name=f"min_{name}"
            ),
            Param(
                f"max_{key}", column.kind, "query", False, low=0, filter=f"{key}__le", about=f"Highest {noun}", name=f"max_{name}"
            ),
        ]

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
            summary=summary or _fitting(f"Show one {entity.noun}{with_}", f"Show one {entity.noun} and what belongs to it"),
            description=description or f"Answers the {entity.noun}{with_}; 404 where there is none with this id.",
            steps=[self.load(key)],
            returns=ReturnRow(_short(entity.role), tuple(pairs)),
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
        var = _short(entity.role)
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
        var = _short(entity.role)
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
            or _fitting(f"Change {_or(words)} of {_a(entity.noun)}", f"Change what is kept about {_a(entity.noun)}"),
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
        var = _short(entity.role)
        self.operation(
            f"{verb}_{key}",
            "act",
            key,
            method,
            path or f"/<<one>>/{verb.replace('_', '-')}",
            name=name or f"{verb}_{entity.name}",
            summary=summary or f"{verb.replace('_', ' ').capitalize()} {_a(entity.noun)}",
            description=description or f"Answers the {entity.noun}.",
            params=params,
            steps=[self.load(key), *steps, Log(action or _past(verb), var)],
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
        var = _short(entity.role)
        self.operation(
            f"{verb}_{key}",
            "delete",
            key,
            "DELETE",
            "/<<one>>",
            name=f"{verb}_{entity.name}",
            summary=summary or f"{verb.capitalize()} {_a(entity.noun)}",
            description=description or f"Answers the id of the {entity.noun} that is gone.",
            steps=[self.load(key), *before, Log(f"{_past(verb)}", var), Remove(var), *after],
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

    # Parts of operations

    def load(self, key: str) -> Load:
        short = _short(self.role(key))
        return Load(short, self.role(key), f"{short}_id")

    def field(self, entity: Entity | str, key: str, *, optional: bool = False) -> Param:
        """The parameter that gives a column its value."""
        column = (self.entity_of(entity) if isinstance(entity, str) else entity).column(key)
        low, high = column.low, column.high
        if column.kind == "text":
            low, high = low or 1, high or 200
        return Param(
            key,
            column.kind,
            required=not (optional or column.null or column.default is not None),
            ref=column.ref,
            choices=column.choices,
            low=low,
            high=high,
            default=column.default if not optional else None,
            about=column.about,
            name=column.name,
        )

    def _lookup(self, entity: Entity, key: str) -> Sequence[Step]:
        column = entity.column(key)
        if column.kind != "ref":
            return ()
        load = Load(key.removesuffix("_id"), column.ref, key)
        return (When(f"{key} is not None", (load,)),) if column.null else (load,)

    def _value(self, entity: Entity, key: str) -> str:
        column = entity.column(key)
        return f"{key.removesuffix('_id')}.id" if column.kind == "ref" and not column.null else key

    def _untaken(self, entity: Entity, key: str, unless: str = "", **more: str) -> Require:
        conditions = "".join(f", {name}={value}" for name, value in more.items())
        what = f"{entity.noun} with the {entity.column(key).name.replace('_', ' ')}"
        return Require(
            f"{unless}not exists('{entity.role}', {key}={key}{conditions})",
            409,
            f"There is {_a(what)} {{{key}}} already; choose another.",
            f"{entity.role.rpartition('.')[2]}_{key}_unique",
        )

    def rule(self, sentence: str) -> None:
        """A sentence of the house rules."""
        self.scenario.rules.append(Rule(self.module, self.text(sentence)))

    def invariant(self, key: str, condition: str, about: str) -> None:
        self.scenario.invariants.append(Invariant(self.text(about), self.role(key), condition))

    # Any operation

    def operation(
        self,
        key: str,
        kind: OperationKind,
        entity: str,
        method: Method,
        path: str,
        *,
        name: str,
        summary: str,
        description: str,
        params: Sequence[Param] = (),
        steps: Sequence[Step] = (),
        returns: Return | None = None,
        where: Where | None = None,
        order: tuple[str, ...] = ("id",),
        sorts: tuple[str, ...] = (),
        phrases: Names = (),
    ) -> None:
        """`<<all>>` in the path stands for the entity's rows, `<<one>>` for one of them, whose id becomes a path parameter."""
        role = self.role(entity)
        of = self.scenario.entities[role]
        own = f"{_short(role)}_id"
        path = path.replace("<<one>>", f"<<all>>/{{{own}}}").replace("<<all>>", of.plural.strip("_").replace("_", "-"))
        path = re.sub(r"<\w+>", lambda m: self.text(m[0]).replace(" ", "-"), path)
        wanted = list(params)
        in_path = [name for name in re.findall(r"\{(\w+)\}", path) if name not in {param.key for param in wanted}]
        wanted[:0] = [Param(own, "ref", "path", ref=role, about=f"Id of the {of.noun}") for name in in_path if name == own]
        read = method in ("GET", "DELETE")
        made = [self._param(replace(param, where="query" if read and param.where == "body" else param.where)) for param in wanted]
        if sorts:
            made.append(self._sort(of, sorts))
        if f"{self.module}.{key}" in self.scenario.operations:
            raise ValueError(f"{self.module} declares two operations {key!r}; give one another verb")
        self.scenario.operations[f"{self.module}.{key}"] = Operation(
            key=f"{self.module}.{key}",
            kind=kind,
            entity=role,
            method=method,
            path=path,
            summary=self.text(summary),
            description=self.text(description),
            params=tuple(made),
            steps=tuple(self._step(step) for step in steps),
            returns=self._return(returns or ReturnPage()),
            where=where or {},
            order=order,
            sorts=sorts,
            tag=of.nouns,
            phrases=tuple(self.text(phrase) for phrase in ([phrases] if isinstance(phrases, str) else phrases)),
            name=name,
        )

    def _sort(self, entity: Entity, sorts: tuple[str, ...]) -> Param:
        names = tuple(sign + entity.column(key).name for key in sorts for sign in ("", "-"))
        return Param("sort", "choice", "query", False, choices=names, about="Order of the rows, descending with -", name="sort")

    def _param(self, param: Param) -> Param:
        role = self.role(param.ref) if param.ref else ""
        if not param.name:
            param = replace(param, name=self._reference_name(param.key, role) if role else snake(param.key))
        return replace(param, ref=role, about=self.text(param.about), items=tuple(self._param(item) for item in param.items))

    def _step(self, step: Step) -> Step:
        match step:
            case Load() | Find() | Insert():
                return replace(step, entity=self.role(step.entity))
            case Require():
                return replace(step, detail=domain_text(step.detail, {**self.scenario.nouns, **self.nouns}))
            case Log():
                return replace(step, detail=domain_text(step.detail, {**self.scenario.nouns, **self.nouns}))
            case Each():
                role = self.role(step.entity) if step.entity else ""
                return replace(step, entity=role, steps=tuple(self._step(inner) for inner in step.steps))
            case When():
                return replace(
                    step,
                    steps=tuple(self._step(inner) for inner in step.steps),
                    otherwise=tuple(self._step(inner) for inner in step.otherwise),
                )
        return step

    def _return(self, returns: Return) -> Return:
        match returns:
            case ReturnRow():
                return replace(returns, children=tuple((self.role(role), column) for role, column in returns.children))
            case ReturnRecord():
                return replace(returns, fields=self._fields(returns.fields))
            case ReturnTable():
                return replace(returns, entity=self.role(returns.entity), fields=self._fields(returns.fields))
        return returns

    def _fields(self, fields: tuple[Field, ...]) -> tuple[Field, ...]:
        """A field called like a reference (`place_id`, `place_name`) is named like it."""
        return tuple(
            replace(field, about=self.text(field.about), name=field.name or self._field_name(field.key)) for field in fields
        )

    def _field_name(self, key: str) -> str:
        short, _, suffix = key.rpartition("_")
        role = self.role(short)
        return f"{self.scenario.entities[role].name}_{suffix}" if role in self.scenario.entities else snake(key)


class Scenario:
    """What the kits of one scenario have declared so far."""

    def __init__(self, pack: Pack, declared: Mapping[str, frozenset[str]]) -> None:
        self.pack = pack
        self.declared = declared
        self.entities: dict[str, Entity] = {}
        self.operations: dict[str, Operation] = {}
        self.nouns: dict[str, tuple[str, str]] = {}
        self.rules: list[Rule] = []
        self.invariants: list[Invariant] = []

    def domain(self, kits: Sequence[Kit], world_time: datetime) -> Domain:
        return Domain(
            name=self.pack.name,
            description=self.pack.description,
            category=self.pack.category,
            currency=self.pack.currency,
            world_time=world_time,
            modules=tuple(kit.module for kit in kits),
            entities=self.entities,
            operations=self.operations,
            states={kit.module: kit.state for kit in kits},
            policies={kit.module: kit.policy for kit in kits},
            nouns=self.nouns,
            features={kit.module: kit.features for kit in kits},
            rules=tuple(self.rules),
            invariants=tuple(self.invariants),
        )


def _short(role: str) -> str:
    return role.rpartition(".")[2]


def _fitting(*summaries: str) -> str:
    """The first that is short enough for a summary."""
    return next((summary for summary in summaries if len(summary) <= MOST_SUMMARY), summaries[-1])


def _a(noun: str) -> str:
    return f"{article(noun)} {noun}"


def _or(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


_IRREGULAR: Final = {"send": "sent", "sell": "sold", "withdraw": "withdrawn", "pay": "paid", "hold": "held", "begin": "begun"}


def _past(verb: str) -> str:
    """`cancel` is `cancelled`, `mark_missed` is `marked_missed`."""
    first, _, rest = verb.partition("_")
    if first in _IRREGULAR:
        past = _IRREGULAR[first]
    elif first.endswith("e"):
        past = f"{first}d"
    elif first.endswith("y") and first[-2:-1] not in "aeiou":
        past = f"{first[:-1]}ied"
    elif re.search(r"[^aeiou][aeiou][bdglmnprt]\Z", first) and first not in ("order", "enter", "offer", "open", "deliver"):
        past = f"{first}{first[-1]}ed"
    else:
        past = f"{first}ed"
    return f"{past}_{rest}" if rest else past
