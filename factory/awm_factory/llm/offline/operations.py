"""Operations as a module declares them, and as the domain holds them: full roles, the domain's words, a path."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from awm_factory.llm.offline.columns import Names
from awm_factory.llm.offline.declaring import Declaring
from awm_factory.llm.offline.ir import Entity, Operation, OperationKind, Param
from awm_factory.llm.offline.steps import (
    Each,
    Field,
    Find,
    Insert,
    Load,
    Log,
    Require,
    Return,
    ReturnPage,
    ReturnRecord,
    ReturnRow,
    ReturnTable,
    Step,
    When,
)
from awm_factory.llm.offline.values import Where
from awm_factory.llm.offline.wording import bounded, narrowed, words
from awm_factory.llm.offline.words import domain_text, snake, with_article

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


class Operations(Declaring):
    """Any operation, and the parts that operations are made of."""

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
        own = f"{short(role)}_id"
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

    # Parts of operations

    def load(self, key: str) -> Load:
        var = short(self.role(key))
        return Load(var, self.role(key), f"{var}_id")

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

    def filtering(self, entity: Entity, key: str) -> list[Param]:
        """The parameters by which a list is narrowed on a column: one, or a pair of bounds."""
        column = entity.column(key)
        name = column.name
        if column.kind in ("date", "datetime"):
            stem, name = (one.removesuffix("_at").removesuffix("_on") for one in (key, name))
            said = words(column.name)
            bounds = [(f"{stem}_from", f"{name}_from", f"First day ({said})"), (f"{stem}_to", f"{name}_to", f"Last day ({said})")]
            like = Param("", "date", "query", False)
        elif column.kind in ("int", "money") and not key.endswith("_id"):
            said = bounded(column)
            bounds = [(f"min_{key}", f"min_{name}", f"Least {said}"), (f"max_{key}", f"max_{name}", f"Highest {said}")]
            like = Param("", column.kind, "query", False, low=0)
        else:
            about, low = f"Only those {narrowed(column)}", 1 if column.kind == "int" else None
            one = Param(key, column.kind, "query", False, ref=column.ref, choices=column.choices, low=low)
            return [replace(one, filter=key, about=about, name=name)]
        return [
            replace(like, key=bound, filter=f"{key}__{test}", about=about, name=called)
            for (bound, called, about), test in zip(bounds, ("ge", "le"), strict=True)
        ]

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
            f"There is {with_article(what)} {{{key}}} already; choose another.",
            f"{entity.role.rpartition('.')[2]}_{key}_unique",
        )


def short(role: str) -> str:
    return role.rpartition(".")[2]
