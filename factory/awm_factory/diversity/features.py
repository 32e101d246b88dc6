"""What of an environment is compared with others. Nothing of it is executed: SQL is parsed, the rest is read.

Names differ between environments that are alike otherwise, so schema and tools are described without any: a table by the kinds
of its columns and by what it refers to, a tool by its method, the shape of its path and the kinds of its parameters.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import networkx as nx
import sqlglot
from pydantic import JsonValue
from sqlglot import exp
from sqlglot.errors import SqlglotError

from awm_factory.bundle import Bundle

N_GRAMS: Final = (1, 2, 3)
"""Lengths of the runs of calls that are counted."""
ROUNDS: Final = 4
"""Of Weisfeiler-Lehman refinement, which tells a node apart by what lies up to so many steps away."""

Bag = Counter[str]
Graph: TypeAlias = "nx.Graph[Any]"


@dataclass(frozen=True)
class Features:
    env_id: str
    text: str
    """Name and description, as synthesis embeds them."""
    schema: Graph
    """A node for each table and column, an edge from each column to its table and to the table it refers to."""
    tools: Mapping[str, str]
    """Signature without names, by name of the tool."""
    solutions: tuple[tuple[str, ...], ...]
    """Names of the tools called, by solution."""
    unread: int = 0
    """Statements of the schema that no parser could read."""

    @cached_property
    def schema_bag(self) -> Bag:
        """Weisfeiler-Lehman hashes of the tables, told apart by their foreign keys alone: how the data hangs together."""
        tables: nx.DiGraph[str] = nx.DiGraph()
        for node in self.schema:
            if isinstance(node, str):
                tables.add_node(node)
            else:
                tables.add_edges_from(((node[0], parent) for parent in self.schema[node] if parent != node[0]), label="")
        for node in tables:
            tables.nodes[node]["label"] = f"{tables.out_degree(node)} {tables.in_degree(node)}"
        return _refined(tables.to_undirected())

    @cached_property
    def structure(self) -> tuple[frozenset[tuple[str, int]], frozenset[tuple[str, int]]]:
        """Schema graph, columns included, and tool set up to renaming; equal for two environments that differ in words alone."""
        return frozenset(_refined(self.schema).items()), frozenset(Counter(self.tools.values()).items())

    def call_bags(self, *, named: bool) -> list[Bag]:
        """N-grams of calls, a bag a solution: by the tools' names, or by their signatures."""
        spelled = [[name if named else self.tools.get(name, name) for name in calls] for calls in self.solutions]
        return [Counter(" > ".join(run) for n in N_GRAMS for run in _runs(calls, n)) for calls in spelled if calls]


def _refined(graph: Graph) -> Bag:
    hashes = nx.weisfeiler_lehman_subgraph_hashes(
        graph, node_attr="label", edge_attr="label", iterations=ROUNDS, include_initial_labels=True
    )
    return Counter(value for values in hashes.values() for value in values)


def features(bundle: Bundle) -> Features:
    graph, unread = _schema(bundle.schema_sql)
    return Features(
        env_id=bundle.env_id,
        text=f"{bundle.manifest.scenario}. {bundle.manifest.description}",
        schema=graph,
        tools=_tools(bundle),
        solutions=tuple(tuple(call.tool for call in solution.calls) for _, solution in sorted(bundle.solutions.items())),
        unread=unread,
    )


def _runs(calls: list[str], n: int) -> Iterable[list[str]]:
    return (calls[start : start + n] for start in range(len(calls) - n + 1))


def _schema(statements: Iterable[str]) -> tuple[Graph, int]:
    graph: Graph = nx.Graph()
    unread = 0
    for statement in statements:
        try:
            tree = sqlglot.parse_one(statement, dialect="sqlite")
        except SqlglotError:
            unread += 1
            continue
        if isinstance(tree, exp.Create) and tree.kind == "TABLE" and isinstance(tree.this, exp.Schema):
            _add_table(graph, tree.this)
    return graph, unread


def _add_table(graph: Graph, schema: exp.Schema) -> None:
    table = schema.this.name.lower()
    graph.add_node(table, label="table")
    for part in schema.expressions:
        parents = [str(reference.this.find(exp.Table).name).lower() for reference in part.find_all(exp.Reference)]
        if isinstance(part, exp.ColumnDef):
            _add_column(graph, table, part.name.lower(), _kind(part))
            children = [part.name.lower()]
        else:
            children = [name.name.lower() for key in part.find_all(exp.ForeignKey) for name in key.expressions]
        for parent in parents:
            graph.add_node(parent, label="table")
            for child in children:
                _add_column(graph, table, child)
                graph.add_edge((table, child), parent, label="refers to")


def _add_column(graph: Graph, table: str, name: str, kind: str | None = None) -> None:
    if (table, name) not in graph or kind is not None:
        graph.add_node((table, name), label=kind or "")
    graph.add_edge((table, name), table, label="of")


def _kind(column: exp.ColumnDef) -> str:
    """Type and constraints, such as `TEXT!u` for a text that is never null and unique."""
    kinds = [type(constraint.kind) for constraint in column.constraints]
    marks = {exp.PrimaryKeyColumnConstraint: "p", exp.NotNullColumnConstraint: "!", exp.UniqueColumnConstraint: "u"}
    return str(column.kind or "").upper() + "".join(mark for kind, mark in marks.items() if kind in kinds)


def _tools(bundle: Bundle) -> dict[str, str]:
    """From the API spec where there is one; a tool that it does not name is known by its name alone."""
    renamed = {operation: name for name, operation in bundle.manifest.renamed.items()}
    found = {}
    for endpoint in _endpoints(bundle.api_spec):
        operation = str(endpoint.get("operation_id", ""))
        found[renamed.get(operation, operation)] = _signature(endpoint)
    return {name: found.get(name, name) for name in bundle.manifest.tools} or found


def _endpoints(spec: JsonValue) -> Iterable[dict[str, Any]]:
    groups = spec.get("api_groups") if isinstance(spec, dict) else spec
    for group in groups if isinstance(groups, list) else []:
        endpoints = group.get("endpoints") if isinstance(group, dict) else None
        yield from (endpoint for endpoint in (endpoints if isinstance(endpoints, list) else []) if isinstance(endpoint, dict))


def _signature(endpoint: dict[str, Any]) -> str:
    """Such as `GET /x/{} path:integer query:string?`."""
    path = "/".join("{}" if part.startswith("{") else part and "x" for part in str(endpoint.get("path", "")).split("/"))
    params = endpoint.get("request_params")
    kinds = [_param(param) for param in params.values()] if isinstance(params, dict) else []
    return " ".join([str(endpoint.get("method", "")).upper(), path, *sorted(kinds)])


def _param(param: object) -> str:
    if not isinstance(param, dict):
        return "any"
    return f"{param.get('param_type')}:{param.get('type')}{'' if param.get('required') else '?'}"
