"""Printing: expressions as code, and long lines broken as formatters break them."""

import ast
import subprocess

import pytest
from ruff.__main__ import find_ruff_bin  # type: ignore[import-untyped]

from awm_factory.llm.offline.author import pack_of
from awm_factory.llm.offline.compose import compose, recipe
from awm_factory.llm.offline.emit import layout
from awm_factory.llm.offline.emit.code import code
from awm_factory.llm.offline.emit.expressions import Known, Printer
from awm_factory.llm.offline.emit.layout import WIDTH, wrapped
from awm_factory.llm.offline.emit.names import Names
from awm_factory.llm.offline.ir import Domain
from awm_factory.llm.offline.packs import packs


def composed(env_id: str) -> Domain:
    pack = pack_of(env_id)
    return compose(pack, recipe(pack, env_id))[0]


def printer() -> Printer:
    domain = composed("spare_parts_counter")
    variables = {"party": Known("customer", "party"), "limit": Known("body.limit")}
    return Printer(Names(domain), "frame", variables)


@pytest.mark.parametrize(
    ("expression", "printed"),
    [
        ("limit + 1 <= 3", "body.limit + 1 <= 3"),
        ("party.is_blocked == False", "not customer.is_blocked"),
        ("today + days(3)", "today() + timedelta(days=3)"),
        ("limit in ('a', 'b')", 'body.limit in ("a", "b")'),
        ("not party.is_blocked", "not customer.is_blocked"),
    ],
)
def test_an_expression_is_printed_as_people_write_it(expression: str, printed: str) -> None:
    assert printer().text(expression) == printed


@pytest.mark.parametrize(
    ("condition", "refusal"),
    [
        ("limit <= 3", "body.limit > 3"),
        ("not party.is_blocked", "customer.is_blocked"),
        ("limit > 0 and limit < 9", "body.limit <= 0 or body.limit >= 9"),
        ("party is not None", "customer is None"),
    ],
)
def test_a_condition_is_negated_without_a_not_where_there_is_a_way(condition: str, refusal: str) -> None:
    assert printer().negated(condition) == refusal


def test_an_aggregate_is_a_query_with_its_conditions() -> None:
    made = printer()
    model = made.names.model("party")
    group = made.names.domain.entity("party").column("group").name
    assert made.text("count('party', group='a', name__contains='b')") == (
        f'count(db, {model}, {model}.{group} == "a", {model}.{made.names.domain.entity("party").column("name").name}'
        '.icontains("b", autoescape=True))'
    )
    assert "count" in made.helpers


def test_long_lines_are_broken_at_brackets_and_operators() -> None:
    call = f"    value = function({', '.join(f'argument_{number}=value_{number}' for number in range(8))})"
    condition = f"    if {' and '.join(f'condition_number_{number}' for number in range(8))}:"
    for line in (call, condition):
        pieces = wrapped([line])
        assert len(pieces) > 1 and all(len(piece) <= WIDTH for piece in pieces)
    assert wrapped([condition])[0] == "    if (" and wrapped([condition])[-1] == "    ):"


def test_broken_lines_mean_what_they_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comma behind what stands in brackets alone would make a tuple, which is always true."""
    domains = [composed(env_id) for env_id in ("equine_physiotherapy_rounds", "tree_register", "corner_shop_till")]
    broken = [code(domain) for domain in domains]
    monkeypatch.setattr(layout, "_wrap", lambda line: iter([line]))
    for domain, text in zip(domains, broken, strict=True):
        whole = code(domain)
        assert len(text.splitlines()) > len(whole.splitlines()) + 50
        assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(whole))


def test_the_words_of_a_column_are_never_called_like_a_class() -> None:
    domain = composed("bulk_wine_collective")
    names = Names(domain)
    models = {names.model(role) for role in domain.entities}
    assert "WineEstate" in models
    assert not models & {names.literal(entity, one) for entity in domain.entities.values() for one in entity.columns}


def test_emitted_code_is_formatted_and_holds_nothing_unused() -> None:
    """A formatter may break a few lines otherwise; most stay as they are."""
    pack = packs()["corner_shop_till"]
    domain, _ = compose(pack, recipe(pack, "corner_shop_till"))
    source = code(domain)
    checked = subprocess.run(
        [
            find_ruff_bin(),
            "check",
            "--isolated",
            "--line-length",
            str(WIDTH),
            "--select",
            "F,I,E9",
            "--stdin-filename",
            "app.py",
            "-",
        ],
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
    formatted = subprocess.run(
        [find_ruff_bin(), "format", "--isolated", "--line-length", str(WIDTH), "--stdin-filename", "app.py", "-"],
        input=source,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lines, wanted = source.splitlines(), set(formatted.splitlines())
    assert sum(line not in wanted for line in lines) <= len(lines) // 100
