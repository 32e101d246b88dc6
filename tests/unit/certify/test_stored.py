"""What the seeded database says of an argument: whether the task names the row that it leads to; and which texts are SQL."""

import pytest

from awm_factory.certify.hygiene import _is_sql
from awm_factory.certify.stored import Stored

STORED = Stored(
    columns={"loans": {"id": [7, 8, 9], "status": ["lent", "lent", "returned"], "title": ["Emma", "Dracula", "Emma"]}},
    keys={"loans": "id"},
)


def test_a_row_is_named_by_a_text_that_it_alone_holds() -> None:
    assert STORED.is_named("loan_id", 8, "Renew the loan of Dracula.")
    assert not STORED.is_named("loan_id", 7, "Renew the loan of Dracula.")


def test_a_text_that_other_rows_hold_as_well_names_none_of_them() -> None:
    assert not STORED.is_named("loan_id", 8, "Renew any loan that is lent.")
    assert not STORED.is_named("loan_id", 9, "Renew any loan of Emma.")


@pytest.mark.parametrize(
    ("text", "is_sql"),
    [("VACUUM", True), (" vacuum main;", True), ("VACUUM INTO 'x'", True), ("Vacuum cleaner", False), ("Update by post", False)],
)
def test_goods_and_titles_are_no_statements(text: str, is_sql: bool) -> None:
    assert _is_sql(text) == is_sql
