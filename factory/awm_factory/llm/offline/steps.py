"""What an operation does, step by step, and what it answers with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from awm_factory.llm.offline.values import Kind, Where

# Steps of an operation, executed in order. A variable that is called like the last part of its role (`slot` for `booking.slot`)
# gets the domain's word in the code.


@dataclass(frozen=True)
class Load:
    """The row whose id the expression gives; 404 with a detail that names the id, where there is none."""

    var: str
    entity: str
    id: str


@dataclass(frozen=True)
class Find:
    """The first row, by id or by `order`, that fulfils all conditions, or None."""

    var: str
    entity: str
    where: Where
    order: str = ""
    """A column key, with `-` before it for descending."""


@dataclass(frozen=True)
class Require:
    """Refuses with the detail where the condition does not hold."""

    condition: str
    status: Literal[409, 422, 403]
    detail: str
    """What is wrong and what would be right, with `{expression}` for values: `{booking.status}`, `{policy.cancel_hours}`."""
    rule: str = ""
    """A name for the rule, by which a goal may ask for its breach: `cancel_in_time`. Empty for a mere plausibility check."""


@dataclass(frozen=True)
class Let:
    var: str
    expr: str


@dataclass(frozen=True)
class Insert:
    var: str
    entity: str
    values: Mapping[str, str]
    """Column key to expression; columns left out get their default, or NULL."""


@dataclass(frozen=True)
class Change:
    var: str
    values: Mapping[str, str]


@dataclass(frozen=True)
class Fill:
    """Sets those columns of the row whose parameter of the same key was given; refuses where none of them would differ."""

    var: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Remove:
    """Deletes the row, and with it those that are `owned` by it."""

    var: str


@dataclass(frozen=True)
class Each:
    """The steps for every row of an entity that fulfils the conditions (by id), or for every object of a list parameter."""

    var: str
    entity: str = ""
    where: Where = field(default_factory=dict)
    param: str = ""
    steps: tuple["Step", ...] = ()


@dataclass(frozen=True)
class When:
    condition: str
    steps: tuple["Step", ...]
    otherwise: tuple["Step", ...] = ()


@dataclass(frozen=True)
class Log:
    """A row in the activity log about the variable's row, in domains that keep one; nothing in others."""

    action: str
    """`cancelled`, a past participle."""
    var: str
    detail: str = ""
    """A text as in Require."""


Step = Load | Find | Require | Let | Insert | Change | Fill | Remove | Each | When | Log


# What an operation answers with.


@dataclass(frozen=True)
class ReturnRow:
    """The variable's row: its columns and shows, and under each child's plural the rows that refer to it."""

    var: str
    children: tuple[tuple[str, str], ...] = ()
    """(role, ref column of it): `("order.line", "order_id")`."""


@dataclass(frozen=True)
class ReturnPage:
    """Of a list operation: `{"items": […], "total": n, "limit": …, "offset": …}`."""


@dataclass(frozen=True)
class Field:
    key: str
    kind: Kind
    expr: str
    about: str = ""
    name: str = ""


@dataclass(frozen=True)
class ReturnRecord:
    """One object with these fields."""

    fields: tuple[Field, ...]


@dataclass(frozen=True)
class ReturnTable:
    """`{"rows": […]}`: an object for every row (`var`) of the entity that fulfils the conditions; `when` leaves others out."""

    var: str
    entity: str
    fields: tuple[Field, ...]
    where: Where = field(default_factory=dict)
    when: str = ""
    order: tuple[str, ...] = ()
    """Field keys, with `-` for descending."""


Return = ReturnRow | ReturnPage | ReturnRecord | ReturnTable
