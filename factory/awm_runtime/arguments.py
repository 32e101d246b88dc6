"""Arguments for exploration: from a tool's schema, and from values that were seen in results, so that calls get deep.

A name such as `booking_id` is given what results called `booking_id`, or the `id` of a row that came out of /bookings.
"""

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from awm_runtime import canonical, dump
from awm_runtime.canonical import named_table

Schema = dict[str, Any]

_KEPT: Final = 40
"""Values of one name that are remembered."""
_DEEP: Final = 6
_MISSING_ID: Final = 987_654
_WORDS: Final = ("Amber", "Birch", "Copper", "Delta", "Ember", "Fjord", "Garnet", "Harbour", "Indigo", "Juniper")
_ENVELOPES: Final = {"items", "data", "results", "rows", "entries", "records", "list"}


class Pool:
    """Values by the name they go by."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, Any]] = {}

    def add(self, name: str, value: Any) -> None:
        known = self._seen.setdefault(name.lower(), {})
        key = repr(value)
        if key not in known and len(known) >= _KEPT:
            del known[next(iter(known))]
        known[key] = value

    def copy(self) -> "Pool":
        twin = Pool()
        twin._seen = {name: dict(values) for name, values in self._seen.items()}
        return twin

    def named(self, name: str) -> list[Any]:
        return list(self._seen.get(name.lower(), {}).values())

    def ending(self, word: str) -> list[Any]:
        """Numbers whose name ends in a word: for `amount_cents` those of `due_cents` and `total_cents`."""
        found = [value for name, values in self._seen.items() if name.rpartition("_")[2] == word for value in values.values()]
        return [value for value in found if isinstance(value, (int, float)) and not isinstance(value, bool)]

    def fitting(self, name: str) -> list[Any]:
        """Values for an argument of this name, or of a name that ends like it: `new_owner_user_id` takes what `user_id` has."""
        words = name.lower().split("_")
        for start in range(len(words)):
            if found := self.named("_".join(words[start:])):
                last = "_".join(words[start:])
                if last not in {"id", "name", "at", "on", "date", "time", "type", "code", "status"} or start == 0:
                    return found
        return []

    def learn(self, result: Any, resource: str, depth: int = 0) -> None:
        """Take in a result; `resource` is what the `id` of its rows belongs to."""
        if depth > _DEEP:
            return
        if isinstance(result, list):
            for item in result[:_KEPT]:
                self.learn(item, resource, depth + 1)
        elif isinstance(result, dict):
            for name, value in result.items():
                if isinstance(value, (dict, list)):
                    inner = resource if name.lower() in _ENVELOPES else singular(name)
                    if isinstance(value, list) and value and not isinstance(value[0], (dict, list)):
                        for item in value[:_KEPT]:
                            self.add(singular(name), item)
                    self.learn(value, inner, depth + 1)
                elif value is not None and not isinstance(value, bool):
                    self.add(f"{resource}_id" if name == "id" else name, value)


def singular(name: str) -> str:
    lower = name.lower()
    if lower.endswith("ies") and len(lower) > 4:
        return lower[:-3] + "y"
    if lower.endswith(("sses", "ches", "shes", "xes")):
        return lower[:-2]
    return lower[:-1] if lower.endswith("s") and not lower.endswith(("ss", "us")) else lower


def resource_of(path: str) -> str:
    """`/api/bookings/{booking_id}` speaks of a booking."""
    fixed = [part for part in path.split("/") if part and not part.startswith("{")]
    return singular(fixed[-1].replace("-", "_")) if fixed else ""


def table_of(argument: str, names: Iterable[str]) -> str | None:
    """The table that an argument such as `customer_id` is a key of; of `lot_id` also `vaccine_lots`, where no other ends so."""
    stem = argument.lower().removesuffix("id").removesuffix("_")
    by_name = {name.lower(): name for name in names}
    if not stem or (found := named_table(stem, by_name)) is not None:
        return found if stem else None
    endings = (stem, stem + "s", stem + "es", stem.removesuffix("y") + "ies")
    alike = [name for lower, name in by_name.items() if any(lower.endswith("_" + ending) for ending in endings)]
    return alike[0] if len(alike) == 1 else None


class Maker:
    """Makes arguments. Seeded: the same draws for the same seed and results."""

    def __init__(self, seeded: canonical.Start, live: Pool, world_time: int, seed: int) -> None:
        self.random = random.Random(f"explore {seed}")
        self.live = live
        self.recent = Pool()
        """What this run's own writes have answered; the next calls are likely to go on with it."""
        self._rows = Pool()
        """What the database held at the start; for ids that no tool has shown yet."""
        self._now = datetime.fromtimestamp(world_time, UTC)
        self._by_name = {name.lower(): name for name in seeded.tables}
        self._tables = seeded
        for name, rows in seeded.rows.items():
            for place, column in enumerate(seeded.tables[name].columns):
                for row in list(rows.values())[:_KEPT]:
                    value = row[place]
                    if value is not None and not isinstance(value, (bytes, float)):
                        self._rows.add(f"{singular(name)}_id" if column == "id" else column, dump.json_value(value))

    def arguments(self, schema: Schema) -> dict[str, Any]:
        required = set(schema.get("required", ()))
        chosen = {}
        for name, inner in schema.get("properties", {}).items():
            if name in required or self.random.random() < 0.45:
                chosen[name] = self.value(inner, name)
        return chosen

    def value(self, schema: Schema, name: str, depth: int = 0) -> Any:
        options = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
        if options:
            full = [option for option in options if option.get("type") != "null"]
            if not full or (len(full) < len(options) and self.random.random() < 0.1):
                return None
            return self.value({**schema, "anyOf": None, "oneOf": None, "allOf": None, **self.random.choice(full)}, name, depth)
        if schema.get("enum"):
            return self.random.choice(schema["enum"])
        if "const" in schema:
            return schema["const"]
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((one for one in kind if one != "null"), None)
        if kind == "boolean":
            return self.random.random() < 0.5
        if kind == "object" or "properties" in schema:
            return self.arguments(schema) if depth < _DEEP else {}
        if kind == "array":
            if depth >= _DEEP:
                return []
            count = max(int(schema.get("minItems", 0)), self.random.choice((1, 1, 2)))
            made = [self.value(schema.get("items", {}), singular(name), depth + 1) for _ in range(count)]
            return [item for place, item in enumerate(made) if item not in made[:place]]
        if kind in ("integer", "number"):
            return self._number(schema, name, kind)
        return self._text(schema, name)

    def known(self, name: str) -> list[Any]:
        """All values that may stand for a name: seen in results, then stored."""
        return list(dict.fromkeys([*self.live.fitting(name), *self._rows.fitting(name)]))

    def _known(self, name: str) -> list[Any]:
        """Mostly what results have shown; sometimes, and where they have shown nothing, what the start held."""
        if (recent := self.recent.fitting(name)) and self.random.random() < 0.6:
            return recent
        live, stored = self.live.fitting(name), self._rows.fitting(name)
        if not stored and name.lower().endswith("_id") and (table := named_table(name.lower()[:-3], self._by_name)):
            key = self._tables.tables[table].surrogate
            if key is not None:
                stored = [row[key] for row in list(self._tables.rows[table].values())[:_KEPT]]
        return live if live and (not stored or self.random.random() < 0.85) else stored

    def _number(self, schema: Schema, name: str, kind: str) -> Any:
        low, high = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum", schema.get("exclusiveMaximum"))
        known = [v for v in self._known(name) if isinstance(v, (int, float)) and not isinstance(v, bool)]
        is_id = name.lower().endswith("id") or name.lower().endswith("ids")
        alike = [] if is_id else self.recent.ending(name.lower().rpartition("_")[2])
        if alike and self.random.random() < 0.5:
            known = alike
        if is_id and self.random.random() < 0.04:
            return _MISSING_ID
        if known and self.random.random() < (0.95 if is_id else 0.5):
            value = self.random.choice(known)
        elif schema.get("default") is not None and self.random.random() < 0.3:
            value = schema["default"]
        else:
            start = int(low) if low is not None else 1
            value = self.random.choice([start, start + 1, start + 2, start + 5, start + 50])
            if low is None and self.random.random() < 0.06:
                value = self.random.choice([0, -1])
        if kind == "number" and self.random.random() < 0.4 and not is_id:
            value = round(float(value) + 0.5, 2)
        if low is not None:
            value = max(value, low + ("exclusiveMinimum" in schema))
        if high is not None:
            value = min(value, high - ("exclusiveMaximum" in schema))
        return int(value) if kind == "integer" else value

    def _text(self, schema: Schema, name: str) -> str:
        lower = name.lower()
        form = schema.get("format")
        known = [str(v) for v in self._known(name) if isinstance(v, (str, int, float))]
        shown = [str(v) for v in [schema.get("default"), schema.get("example"), *schema.get("examples", ())] if v is not None]
        draw = self.random.random()
        if known and draw < 0.7:
            return self.random.choice(known)
        if shown and draw < 0.85:
            return self.random.choice(shown)
        if form == "date-time" or lower.endswith(("_at", "datetime", "timestamp")):
            return (self._now + timedelta(hours=self.random.choice((-26, 1, 5, 24, 49, 200)))).strftime("%Y-%m-%dT%H:%M:%SZ")
        if form == "date" or lower.endswith(("date", "_on", "_day")) or "date_" in lower:
            return (self._now + timedelta(days=self.random.choice((-20, -1, 0, 1, 3, 14, 60)))).strftime("%Y-%m-%d")
        if form == "time" or lower.endswith("_time"):
            return f"{self.random.randint(8, 20):02d}:00"
        if form == "email" or "email" in lower:
            return f"{self.random.choice(_WORDS).lower()}{self.random.randint(1, 999)}@mail.example"
        if form == "uuid":
            return f"00000000-0000-4000-8000-{self.random.randint(0, 10**12 - 1):012d}"
        text = f"{self.random.choice(_WORDS)} {self.random.choice(_WORDS)} {self.random.randint(1, 99)}"
        shortest, longest = int(schema.get("minLength") or 0), schema.get("maxLength")
        text = text.ljust(shortest, "x")
        return text[: int(longest)] if longest else text
