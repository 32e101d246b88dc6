"""What things are called in the code of one domain."""

from functools import cached_property

from awm_factory.llm.offline.ir import Column, Domain, Entity, Operation
from awm_factory.llm.offline.words import camel, class_name, variable


class Names:
    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def model(self, role: str) -> str:
        """The ORM class."""
        return class_name(self.domain.entity(role).name)

    def out(self, role: str, *, detail: bool = False) -> str:
        return f"{camel(self.domain.entity(role).name)}{'Detail' if detail else 'Out'}"

    def reference(self, column: Column) -> str:
        """The relationship's attribute beside the column: `member` for `member_id`."""
        return variable(column.name.removesuffix("_id"))

    def children(self, role: str) -> str:
        """The attribute of a parent that holds these rows."""
        return self.domain.entity(role).plural

    @cached_property
    def _models(self) -> set[str]:
        return {self.model(role) for role in self.domain.entities}

    def literal(self, entity: Entity, column: Column) -> str:
        """The type of a column with words of its own: no class is called so, as that of a wine estate by a wine's estate."""
        plain = column.name.rstrip("_")
        name = camel(plain) if plain.startswith(f"{entity.name}_") else f"{camel(entity.name)}{camel(plain)}"
        return f"{name}Choice" if name in self._models else name

    def body(self, operation: Operation) -> str:
        return f"{camel(operation.name)}In"

    def record(self, operation: Operation, part: str = "Out") -> str:
        return f"{camel(operation.name)}{part}"

    def variable(self, var: str, role: str = "") -> str:
        """A variable that is called like its role gets the domain's word."""
        if role and var == role.rpartition(".")[2]:
            return variable(self.domain.entity(role).name)
        nouns = self.domain.nouns
        words = nouns[var][0] if var in nouns else var
        return variable(words.lower().replace(" ", "_").replace("-", "_"))

    @cached_property
    def constants(self) -> dict[tuple[str, str], str]:
        """Policies by module and key; one that several modules have is told apart by the module."""
        found: dict[tuple[str, str], str] = {}
        every = [key for policies in self.domain.policies.values() for key in policies]
        for module, policies in self.domain.policies.items():
            for key in policies:
                found[module, key] = key.upper() if every.count(key) == 1 else f"{module}_{key}".upper()
        return found
