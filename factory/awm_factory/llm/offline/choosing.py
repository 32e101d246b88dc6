"""Arguments for a write, chosen from what the world holds, so that they are of the domain and of its own kind."""

import random
import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any, Final

from awm_factory.llm.offline.ir import Column, Entity, Operation, Param
from awm_factory.llm.offline.phrasing import is_update
from awm_factory.llm.offline.state import World

_OPTIONAL_SHARE: Final = 0.45
_LINES: Final = (1, 3)
_REMARKS: Final = (
    "Asked for by phone",
    "Please confirm by e-mail",
    "Customer is in a hurry",
    "Agreed with the manager",
    "Second attempt, first one failed",
    "Keep this one together with the rest",
    "Mentioned at the front desk",
    "Handle with care",
)


_NAMES: Final = ("title", "name")
"""Texts by which people call a thing: a new one is called like no other, where words for it can be found."""


class Chooser:
    """Draws for one world; the same generator gives the same arguments."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self.world, self.rng = world, rng
        self._columns: dict[tuple[str, str], list[Any]] = {}

    def arguments(self, operation: Operation, fixed: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """By key, `fixed` among them; None where something that is demanded can't be thought of."""
        entity = self.world.domain.entity(operation.entity)
        chosen: dict[str, Any] = dict(fixed or {})
        changed = self._changed(operation, entity, chosen) if is_update(operation) else None
        for param in operation.params:
            if param.key in chosen or (not param.required and self.rng.random() > _OPTIONAL_SHARE and changed is None):
                continue
            if changed is not None and not param.required and param.key not in changed:
                continue
            value = self._value(param, entity)
            if value is not None:
                chosen[param.key] = value
            elif param.required:
                return None
        self._person(chosen)
        self._span(chosen, entity)
        return chosen

    def _changed(self, operation: Operation, entity: Entity, fixed: dict[str, Any]) -> set[str]:
        """One or two columns to change, none of those by which the row is called."""
        keys = [
            param.key
            for param in operation.params
            if not param.required and param.key not in entity.label and param.key not in fixed and param.key != "email"
        ]
        return set(self.rng.sample(keys, min(len(keys), self.rng.choice((1, 1, 2)))))

    def rows(self, role: str) -> list[int]:
        """Ids in a drawn order."""
        ids = [int(row["id"]) for row in self.world.all(role)]
        self.rng.shuffle(ids)
        return ids

    def _value(self, param: Param, entity: Entity) -> Any:
        rng = self.rng
        match param.kind:
            case "ref":
                ids = self.rows(param.ref)
                return ids[0] if ids else None
            case "choice":
                return rng.choice(param.choices) if param.choices else None
            case "bool":
                return rng.random() < 0.5
            case "list":
                return self._lines(param, entity)
            case "int" | "money":
                return self._number(param, entity)
            case "date" | "datetime":
                return self._time(param, entity)
            case "text":
                return self._text(param, entity)

    def _lines(self, param: Param, entity: Entity) -> list[dict[str, Any]] | None:
        count = self.rng.randint(max(_LINES[0], param.low or 1), min(_LINES[1], param.high or _LINES[1]))
        lines: list[dict[str, Any]] = []
        used: set[Any] = set()
        for _ in range(count * 4):
            line = {}
            for item in param.items:
                value = self._value(item, self._owner(item, entity))
                if value is None and item.required:
                    return None
                if value is not None and (item.required or self.rng.random() < _OPTIONAL_SHARE):
                    line[item.key] = value
            first = next((line[item.key] for item in param.items if item.kind == "ref"), None)
            if first not in used or first is None:
                used.add(first)
                lines.append(line)
            if len(lines) == count:
                return lines
        return lines or None

    def _owner(self, param: Param, entity: Entity) -> Entity:
        """The entity among whose columns this parameter ends up."""
        if entity.has(param.key):
            return entity
        for other in self.world.domain.entities.values():
            if other.has(param.key) and other.role.partition(".")[0] == entity.role.partition(".")[0]:
                return other
        return entity

    def _existing(self, param: Param, entity: Entity) -> tuple[Column | None, list[Any]]:
        owner = self._owner(param, entity)
        if not owner.has(param.key):
            return None, []
        key = (owner.role, param.key)
        if key not in self._columns:
            self._columns[key] = [row[param.key] for row in self.world.all(owner.role) if row[param.key] is not None]
        return owner.column(param.key), self._columns[key]

    def _number(self, param: Param, entity: Entity) -> int | None:
        _, known = self._existing(param, entity)
        numbers = [value for value in known if isinstance(value, int)]
        if not numbers and param.kind == "money":
            numbers = self._amounts(entity)
        low = param.low if param.low is not None else (min(numbers) if numbers else 1)
        high = param.high if param.high is not None else (max(numbers) if numbers else low + 5)
        if numbers:
            low, high = max(low, min(numbers)), min(high, max(max(numbers), low + 1))
        if low > high:
            low = high
        if param.kind == "money":
            steps = range(-(-low // 50), high // 50 + 1)
            return self.rng.choice(steps) * 50 if steps else low
        return self.rng.randint(low, min(high, low + 40))

    def _amounts(self, entity: Entity) -> list[int]:
        """Amounts of the same kind of thing, where none is called like the parameter."""
        keys = [column.key for column in entity.columns if column.kind == "money"]
        found = [row[key] for row in self.world.all(entity.role) for key in keys if row[key]]
        return [value for value in found if isinstance(value, int)] or [500, 10000]

    def _time(self, param: Param, entity: Entity) -> date | datetime:
        _, known = self._existing(param, entity)
        now = self.world.domain.world_time
        today = now.date()
        is_moment = param.kind == "datetime"
        ahead = [value for value in known if (value if not isinstance(value, datetime) else value.date()) > today]
        if ahead:
            value: date | datetime = self.rng.choice(ahead) + timedelta(days=self.rng.choice((0, 1, 2, 3, 7)))
        else:
            value = today + timedelta(days=self.rng.randint(2, 21))
        if is_moment and not isinstance(value, datetime):
            return datetime.combine(value, time(self.rng.randint(9, 17)))
        if isinstance(value, datetime):
            return value.replace(second=0, microsecond=0) if is_moment else value.date()
        return value

    def _text(self, param: Param, entity: Entity) -> str | None:
        column, known = self._existing(param, entity)
        texts = [value for value in known if isinstance(value, str)]
        if param.key in ("full_name", "name") and entity.role in ("party", "user") and column is not None:
            return self._new_name(texts)
        if param.key == "email":
            return f"{self.rng.choice(_LETTERS)}.contact@{texts[0].partition('@')[2]}" if texts else None
        if param.key == "phone" and texts:
            return self._new_number(texts)
        if column is not None and (column.unique or any(param.key in unique for unique in entity.uniques)):
            return self._recombined(texts)
        if param.key in _NAMES and (made := self._recombined(texts)) is not None:
            return made
        if texts:
            fitting = [text for text in dict.fromkeys(texts) if '"' not in text and not re.search(r"\d{3}", text)]
            return self.rng.choice(fitting or texts)
        others = self._anywhere(param.key)
        return self.rng.choice(others or list(_REMARKS))

    def _anywhere(self, key: str) -> list[str]:
        found: list[str] = []
        for entity in self.world.domain.entities.values():
            if entity.has(key) and entity.column(key).kind == "text":
                found += [str(row[key]) for row in self.world.all(entity.role) if row[key] is not None]
        return list(dict.fromkeys(text for text in found if '"' not in text))

    def _new_name(self, known: Sequence[str]) -> str | None:
        pairs = [name.split() for name in known if len(name.split()) == 2]
        for _ in range(20):
            if len(pairs) < 2:
                return None
            name = f"{self.rng.choice(pairs)[0]} {self.rng.choice(pairs)[1]}"
            if name not in known:
                return name
        return None

    def _new_number(self, known: Sequence[str]) -> str:
        """A telephone number like the others, its last three digits drawn."""
        for _ in range(20):
            number = self.rng.choice(known)
            digits = iter(str(self.rng.randint(100, 999)))
            places = [place for place, letter in enumerate(number) if letter.isdigit()][-3:]
            new = "".join(next(digits) if place in places else letter for place, letter in enumerate(number))
            if new not in known:
                return new
        return known[0]

    def _recombined(self, known: Sequence[str]) -> str | None:
        """A new title of two known ones: the first word of one, the rest of another."""
        pairs = [text.split(" ", 1) for text in known if " " in text and not re.search(r"\d{3}", text)]
        for _ in range(20):
            if len(pairs) < 2:
                return None
            text = f"{self.rng.choice(pairs)[0]} {self.rng.choice(pairs)[1]}"
            if text not in known:
                return text
        return None

    def _span(self, chosen: dict[str, Any], entity: Entity) -> None:
        """An end as long after the beginning as with other rows."""
        for start, end in (("starts_at", "ends_at"), ("starts_on", "ends_on")):
            if start in chosen and end in chosen and entity.has(start) and entity.has(end):
                rows = [row for row in self.world.all(entity.role) if row[start] is not None and row[end] is not None]
                if rows:
                    row = self.rng.choice(rows)
                    chosen[end] = chosen[start] + (row[end] - row[start])

    def _person(self, chosen: dict[str, Any]) -> None:
        """An address that fits the name."""
        name = chosen.get("full_name") or chosen.get("name")
        if isinstance(name, str) and isinstance(chosen.get("email"), str):
            domain = chosen["email"].partition("@")[2]
            local = re.sub(r"[^a-z]+", ".", name.lower()).strip(".")
            chosen["email"] = f"{local}@{domain}"


_LETTERS: Final = "abcdefghijklmnoprstvw"


def leaves(arguments: Any) -> Iterator[Any]:
    if isinstance(arguments, dict):
        for value in arguments.values():
            yield from leaves(value)
    elif isinstance(arguments, list):
        for value in arguments:
            yield from leaves(value)
    else:
        yield arguments
