"""What modules declare, and under which names it is known in the domain's words.

A module speaks by keys (`slot`, `slot_id`), never by a domain's words; texts hold `<slot>` for those. Names of entities are
short inside a module (`slot` for `booking.slot`) and those of the frame are plain everywhere: user, party, place, item,
category.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from awm_factory.llm.offline.columns import Names, keys
from awm_factory.llm.offline.ir import Column, Domain, Entity, Invariant, Operation, Rule, Show
from awm_factory.llm.offline.packs import ModulePart, Pack
from awm_factory.llm.offline.words import domain_text, snake

FRAME: Final = ("user", "party", "place", "item", "category", "activity")


class Declaring:
    """What one module of a scenario has to name: its words, its entities, its rules."""

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

    def rule(self, sentence: str) -> None:
        """A sentence of the house rules."""
        self.scenario.rules.append(Rule(self.module, self.text(sentence)))

    def invariant(self, key: str, condition: str, about: str) -> None:
        self.scenario.invariants.append(Invariant(self.text(about), self.role(key), condition))

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

    def domain(self, kits: Sequence[Declaring], world_time: datetime) -> Domain:
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
