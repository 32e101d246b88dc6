"""The endpoints of a service: one handler an operation, its steps one after another."""

import re
from collections.abc import Iterator, Sequence

from awm_factory.llm.offline.conditions import split
from awm_factory.llm.offline.emit.expressions import Known, Printer, module_of
from awm_factory.llm.offline.emit.layout import MESSAGE, broken, wrapped
from awm_factory.llm.offline.emit.models import detail_name, in_query
from awm_factory.llm.offline.emit.names import Names
from awm_factory.llm.offline.emit.spec import row_role, wire_path
from awm_factory.llm.offline.emit.tables import has_body, quoted
from awm_factory.llm.offline.emit.uses import names_id, used
from awm_factory.llm.offline.ir import Operation
from awm_factory.llm.offline.state import UNCHANGED
from awm_factory.llm.offline.steps import (
    Change,
    Each,
    Fill,
    Find,
    Insert,
    Let,
    Load,
    Log,
    Remove,
    Require,
    ReturnPage,
    ReturnRecord,
    ReturnRow,
    ReturnTable,
    Step,
    When,
)


class Handler:
    def __init__(self, names: Names, operation: Operation, helpers: set[str]) -> None:
        self.names = names
        self.operation = operation
        self.helpers = helpers
        self.printer = Printer(names, module_of(operation), {}, helpers)
        for param in operation.params:
            text = f"body.{param.name}" if param.where == "body" else param.name
            self.printer.variables[param.key] = Known(text, items={item.key: item.name for item in param.items})
        self.used = used(operation)

    def lines(self) -> list[str]:
        lines = [*self._decorator(), *self._signature()]
        body = list(self._body())
        return wrapped([*lines, *(f"    {line}" if line else "" for line in body)])

    # The head

    def _decorator(self) -> Iterator[str]:
        operation = self.operation
        yield f"@app.{operation.method.lower()}("
        yield f'    "{wire_path(operation)}",'
        yield f'    operation_id="{operation.name}",'
        yield f"    summary={quoted(operation.summary)},"
        yield f"    description={quoted(operation.description)},"
        yield f"    tags=[{quoted(operation.tag)}],"
        yield f"    response_model={self._answer()},"
        if operation.kind == "create":
            yield "    status_code=201,"
        yield ")"

    def _answer(self) -> str:
        match self.operation.returns:
            case ReturnPage():
                return f"Page[{self.names.out(self.operation.entity)}]"
            case ReturnRow(var=var, children=children):
                role = row_role(self.operation, var)
                return detail_name(self.names, self.operation, role) if children else self.names.out(role)
        return self.names.record(self.operation)

    def _returned(self) -> str:
        match self.operation.returns:
            case ReturnPage():
                return "dict[str, Any]"
            case ReturnRow(var=var):
                return self.names.model(row_role(self.operation, var))
        return self.names.record(self.operation)

    def _signature(self) -> Iterator[str]:
        operation = self.operation
        plain = [param for param in operation.params if param.where != "body"]
        plain.sort(key=lambda param: not param.required)
        arguments = [in_query(self.names, operation, param).strip().removesuffix(",") for param in plain]
        required = sum(param.required for param in plain)
        if has_body(operation):
            arguments.insert(required, f"body: {self.names.body(operation)}")
        if operation.kind == "list":
            arguments += ["limit: Limit = 20", "offset: Offset = 0"]
        head, tail = f"async def {operation.name}(", f") -> {self._returned()}:"
        line = f"{head}{', '.join(['db: Db', *arguments])}{tail}"
        if len(line) <= 120:
            yield line
            return
        yield head
        yield from (f"    {argument}," for argument in ["db: Db", *arguments])
        yield tail

    # The body

    def _body(self) -> Iterator[str]:
        operation = self.operation
        yield from self._steps(operation.steps)
        if operation.writes:
            yield "db.commit()"
        match operation.returns:
            case ReturnPage():
                yield from self._page()
            case ReturnRow(var=var):
                yield f"return {self.printer.variables[var].text}"
            case ReturnRecord(fields=fields):
                values = ", ".join(f"{field.name}={self.printer.text(field.expr)}" for field in fields)
                yield f"return {self.names.record(operation)}({values})"
            case ReturnTable() as table:
                yield from self._table(table)

    def _steps(self, steps: Sequence[Step]) -> Iterator[str]:
        for index, step in enumerate(steps):
            yield from self._step(step, steps[index + 1 :])

    def _step(self, step: Step, later: Sequence[Step]) -> Iterator[str]:
        printer, names = self.printer, self.names
        match step:
            case Load():
                self.helpers.add("find")
                found = (
                    f'find(db, {names.model(step.entity)}, {printer.text(step.id)}, "{names.domain.entity(step.entity).noun}")'
                )
                yield f"{self._bind(step.var, step.entity)} = {found}" if step.var in self.used else found
            case Find():
                conditions = printer.conditions(step.entity, step.where)
                model = names.model(step.entity)
                order = self._order(step.entity, (step.order,) if step.order else ("id",))
                variable = self._bind(step.var, step.entity)
                yield f"{variable} = db.scalars(select({model}).where({', '.join(conditions)}).order_by({order})).first()"
            case Require():
                yield f"if {printer.negated(step.condition)}:"
                yield from self._refusal(step)
            case Let():
                value, role = printer.text(step.expr), printer.role_of(step.expr)
                printer.variables.setdefault(step.var, Known(names.variable(step.var, role), role))
                yield f"{printer.variables[step.var].text} = {value}"
            case Insert():
                yield from self._insert(step, later)
            case Change():
                yield from self._change(step)
            case Fill():
                yield from self._fill(step)
            case Remove():
                yield f"db.delete({printer.variables[step.var].text})"
            case Each():
                yield from self._each(step)
            case When():
                yield f"if {printer.text(step.condition)}:"
                yield from (f"    {line}" for line in self._steps(step.steps))
                if step.otherwise:
                    yield "else:"
                    yield from (f"    {line}" for line in self._steps(step.otherwise))
            case Log():
                if "activity" in names.domain.entities:
                    self.helpers.add("record")
                    known = printer.variables[step.var]
                    detail = f", {printer.message(step.detail)}" if step.detail else ""
                    noun = names.domain.entity(known.role).name
                    yield f'record(db, "{step.action}", "{noun}", {known.text}{detail})'

    def _bind(self, var: str, role: str) -> str:
        text = self.names.variable(var, role)
        self.printer.variables[var] = Known(text, role)
        return text

    def _refusal(self, step: Require) -> Iterator[str]:
        message = self.printer.message(step.detail)
        if len(message) <= MESSAGE:
            yield f"    raise HTTPException({step.status}, {message})"
            return
        yield "    raise HTTPException("
        yield f"        {step.status},"
        yield from (f"        {part}" for part in broken(message))
        yield "    )"

    def _insert(self, step: Insert, later: Sequence[Step]) -> Iterator[str]:
        entity, model = self.names.domain.entity(step.entity), self.names.model(step.entity)
        values = ", ".join(f"{entity.column(key).name}={self.printer.text(text)}" for key, text in step.values.items())
        needed = any(names_id(other, step.var) for other in later)
        if step.var not in self.used:
            yield f"db.add({model}({values}))"
            return
        variable = self._bind(step.var, step.entity)
        yield f"{variable} = {model}({values})"
        yield f"db.add({variable})"
        if needed:
            yield "db.flush()"

    def _change(self, step: Change) -> Iterator[str]:
        known = self.printer.variables[step.var]
        entity = self.names.domain.entity(known.role)
        targets = [f"{known.text}.{entity.column(key).name}" for key in step.values]
        values = [self.printer.text(text) for text in step.values.values()]
        if any(_says(value, earlier) for index, value in enumerate(values) for earlier in targets[:index]):
            yield f"{', '.join(targets)} = {', '.join(values)}"
            return
        for target, value in zip(targets, values, strict=True):
            match = re.fullmatch(rf"{re.escape(target)} ([+-]) (.+)", value)
            if match and not re.search(r" [+-] ", match[2]):
                yield f"{target} {match[1]}= {match[2]}"
            else:
                yield f"{target} = {value}"

    def _fill(self, step: Fill) -> Iterator[str]:
        known = self.printer.variables[step.var]
        in_body = [param.key for param in self.operation.params if param.where == "body"]
        chosen = [self.operation.param(key).name for key in step.keys]
        only = "" if set(in_body) == set(step.keys) else f", include={{{', '.join(quoted(name) for name in chosen)}}}"
        yield f"given = body.model_dump(exclude_none=True{only})"
        yield f"changes = {{name: value for name, value in given.items() if getattr({known.text}, name) != value}}"
        yield "if not changes:"
        yield f"    raise HTTPException(409, {quoted(UNCHANGED)})"
        yield "for name, value in changes.items():"
        yield f"    setattr({known.text}, name, value)"

    def _each(self, step: Each) -> Iterator[str]:
        if step.param:
            known = self.printer.variables[step.param]
            variable = self.names.variable(step.var)
            self.printer.variables[step.var] = Known(variable, items=known.items)
            yield f"for {variable} in {known.text}:"
        else:
            conditions = self.printer.conditions(step.entity, step.where)
            model = self.names.model(step.entity)
            variable = self._bind(step.var, step.entity)
            where = f".where({', '.join(conditions)})" if conditions else ""
            yield f"for {variable} in db.scalars(select({model}){where}.order_by({model}.id)).all():"
        yield from (f"    {line}" for line in self._steps(step.steps))

    def _order(self, role: str, order: Sequence[str]) -> str:
        model, entity = self.names.model(role), self.names.domain.entity(role)
        keys = [*order, *(() if order[-1].lstrip("-") == "id" else ("id",))]
        return ", ".join(
            f"{model}.{entity.column(key.lstrip('-')).name}{'.desc()' if key.startswith('-') else ''}" for key in keys
        )

    def _page(self) -> Iterator[str]:
        operation, printer = self.operation, self.printer
        role, model = operation.entity, self.names.model(operation.entity)
        self.helpers.add("page_of")
        fixed = printer.conditions(role, operation.where)
        yield f"statement = select({model})" + (f".where({', '.join(fixed)})" if fixed else "")
        for param in operation.params:
            if not param.filter:
                continue
            columns, comparator = split(param.filter)
            tests = [
                printer.condition(role, column, comparator, param.name, day=param.kind == "date") for column in columns.split("|")
            ]
            if len(tests) > 1:
                self.helpers.add("or_")
            yield f"if {param.name} is not None:"
            test = tests[0] if len(tests) == 1 else f"or_({', '.join(tests)})"
            yield f"    statement = statement.where({test})"
        if operation.sorts:
            self.helpers.add("sorted_by")
            entity = self.names.domain.entity(role)
            first = operation.order[0]
            default = ("-" if first.startswith("-") else "") + entity.column(first.lstrip("-")).name
            yield f'return page_of(db, sorted_by(statement, {model}, sort or "{default}"), limit, offset)'
        else:
            yield f"return page_of(db, statement.order_by({self._order(role, operation.order)}), limit, offset)"

    def _table(self, table: ReturnTable) -> Iterator[str]:
        model, record = self.names.model(table.entity), self.names.record(self.operation, "Row")
        conditions = self.printer.conditions(table.entity, table.where)
        where = f".where({', '.join(conditions)})" if conditions else ""
        variable = self._bind(table.var, table.entity)
        values = ", ".join(f"{field.name}={self.printer.text(field.expr)}" for field in table.fields)
        yield "table = ["
        yield f"    {record}({values})"
        yield f"    for {variable} in db.scalars(select({model}){where}.order_by({model}.id))"
        if table.when:
            yield f"    if {self.printer.text(table.when)}"
        yield "]"
        fields = {field.key: field for field in table.fields}
        numbers = all(fields[key.lstrip("-")].kind in ("int", "money") for key in table.order if key.startswith("-"))
        if table.order and numbers:
            keys = [f"{'-' if key.startswith('-') else ''}row.{fields[key.lstrip('-')].name}" for key in table.order]
            yield f"table.sort(key=lambda row: {keys[0] if len(keys) == 1 else '(' + ', '.join(keys) + ')'})"
        else:
            for key in reversed(table.order):
                reverse = ", reverse=True" if key.startswith("-") else ""
                yield f"table.sort(key=lambda row: row.{fields[key.lstrip('-')].name}{reverse})"
        yield f"return {self.names.record(self.operation)}(rows=table)"


def _says(code: str, target: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(target)}\b", code) is not None
