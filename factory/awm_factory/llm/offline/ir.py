"""The typed domain model: what modules declare, the interpreter runs, and the emitters print.

Names. Everything has a *key*, the same in all domains, by which modules, expressions, `World` and goals speak (`slot_id`,
`party_id`, role `booking.slot`), and a *name* in domain words, by which tables, columns, parameters and tools are called
(`session_id`, table `sessions`). `Domain` resolves names; only emitters, solutions and verifiers use them. Values have no such
pair: a row's `status` holds the domain's own word, and expressions say `state.booked` for it.

Expressions are strings in a small subset of Python (`expr.py`). Texts may hold `<booking>` (noun), `<bookings>` (plural),
`<a booking>` (with article), any of them capitalised, which `Domain` has replaced, and, in details only, `{expression}`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from awm_factory.llm.offline.steps import Return, ReturnPage, Step
from awm_factory.llm.offline.values import Kind, Value, Where

OperationKind = Literal["list", "get", "create", "act", "delete", "report"]


@dataclass(frozen=True)
class Column:
    key: str
    kind: Kind
    null: bool = False
    unique: bool = False
    default: Value = None
    """What an Insert that does not name the column stores, where it may not be NULL."""
    choices: tuple[str, ...] = ()
    ref: str = ""
    """Role of the entity whose id a `ref` column holds."""
    owned: bool = False
    """For `ref`: the row goes with the one it refers to (ON DELETE CASCADE)."""
    low: int | None = None
    high: int | None = None
    about: str = ""
    server: bool = False
    """Set by the service itself (timestamps, references, running numbers): no task asks for its value."""
    name: str = ""
    """In the database and on the wire; filled by Domain (`party_id` becomes `member_id`)."""


ID: Final = Column("id", "int", name="id", about="Id", server=True)


@dataclass(frozen=True)
class Show:
    """A computed field in answers about an entity's rows: `Show("party_name", "text", "self.party.full_name")`."""

    key: str
    kind: Kind
    expr: str
    """Over `self`, the row; it may follow references and nothing else."""
    about: str = ""
    name: str = ""


@dataclass(frozen=True)
class Entity:
    role: str
    """`booking.slot`; the frame's are `user`, `party`, `place`, `item`, `category`, `activity`."""
    name: str
    plural: str
    """Domain words in snake_case: `session`, `sessions`. The table is called by the plural, the class by the singular."""
    columns: tuple[Column, ...]
    """Without `id`, which every entity has."""
    label: tuple[str, ...]
    """The columns by which a user speaks of a row and that single it out; a `ref` among them stands for the label of its row."""
    uniques: tuple[tuple[str, ...], ...] = ()
    checks: tuple[str, ...] = ()
    """Expressions over the row's own column keys that always hold: `ends_at > starts_at`."""
    shows: tuple[Show, ...] = ()
    about: str = ""

    @property
    def noun(self) -> str:
        return self.name.replace("_", " ")

    @property
    def nouns(self) -> str:
        return self.plural.replace("_", " ")

    def column(self, key: str) -> Column:
        """Raises KeyError for a key that the entity lacks."""
        return self._by_key()[key]

    def has(self, key: str) -> bool:
        return key in self._by_key()

    def _by_key(self) -> dict[str, Column]:
        return {"id": ID} | {column.key: column for column in self.columns}


ParamKind = Kind | Literal["list"]


@dataclass(frozen=True)
class Param:
    key: str
    kind: ParamKind
    where: Literal["path", "query", "body"] = "body"
    required: bool = True
    ref: str = ""
    """Role of the entity whose id it takes."""
    choices: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    """Of a number; for text and lists the longest and shortest length."""
    default: Value = None
    about: str = ""
    items: tuple["Param", ...] = ()
    """What each object of a `list` holds."""
    filter: str = ""
    """Of a list operation: the condition it adds, `price_cents__ge`, or on one of several columns, `name|email__contains`."""
    name: str = ""
    """On the wire; filled by Domain."""


@dataclass(frozen=True)
class Operation:
    key: str
    """`booking.cancel`: module and verb, unique in a domain; `booking.list` lists `booking.booking`."""
    kind: OperationKind
    entity: str
    """Role of the entity it is about."""
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    """With parameters by their key: `/bookings/{booking_id}/cancel` is written `/<bookings>/{booking_id}/cancel`."""
    summary: str
    description: str
    params: tuple[Param, ...] = ()
    steps: tuple[Step, ...] = ()
    returns: Return = field(default_factory=ReturnPage)
    where: Where = field(default_factory=dict)
    """Of a list operation: conditions that always hold."""
    order: tuple[str, ...] = ("id",)
    """Of a list operation: its order by default; `id` is appended."""
    sorts: tuple[str, ...] = ()
    """Of a list operation: columns that its `sort` parameter may name, ascending or with `-`."""
    tag: str = ""
    phrases: tuple[str, ...] = ()
    """How a user asks for it, in the imperative, with `{param key}` for what is given: `cancel {booking_id}`."""
    name: str = ""
    """The tool's name: operation_id, in domain words (`cancel_reservation`)."""

    def param(self, key: str) -> Param:
        return next(param for param in self.params if param.key == key)

    @property
    def writes(self) -> bool:
        return self.kind in ("create", "act", "delete")

    @property
    def things(self) -> list[Param]:
        """Parameters that must name a row, people and categories aside."""
        return [
            param for param in self.params if param.kind == "ref" and param.required and param.ref not in ("party", "category")
        ]


@dataclass(frozen=True)
class Invariant:
    """What always holds for every row of an entity: on the start state, and after every call."""

    about: str
    entity: str
    condition: str
    """An expression over `self`."""


@dataclass(frozen=True)
class Rule:
    """A sentence of the house rules, as the application's description and the policy tasks tell it."""

    module: str
    text: str


@dataclass(frozen=True)
class Domain:
    """One application, with all names resolved."""

    name: str
    description: str
    category: str
    currency: str
    world_time: datetime
    modules: tuple[str, ...]
    entities: Mapping[str, Entity]
    """By role, in an order in which every reference points backwards (or to the entity itself)."""
    operations: Mapping[str, Operation]
    """By key, in the order of the file."""
    states: Mapping[str, Mapping[str, str]]
    """By module: `states["booking"]["booked"]` is the word for it here."""
    policies: Mapping[str, Mapping[str, int]]
    """By module: `policies["booking"]["cancel_hours"]`."""
    nouns: Mapping[str, tuple[str, str]]
    """Singular and plural by key (`booking`, `party`), with spaces."""
    features: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By module, those that this variant has."""
    rules: tuple[Rule, ...] = ()
    invariants: tuple[Invariant, ...] = ()

    def entity(self, role: str) -> Entity:
        return self.entities[role]

    def lists(self, role: str) -> tuple[Operation, ...]:
        """The operations that list this entity's rows."""
        return tuple(op for op in self.operations.values() if op.kind == "list" and op.entity == role)
