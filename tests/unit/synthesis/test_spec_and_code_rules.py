"""API specs and services with faults that start-up tests pass: one fault at a time, and the rule must name it."""

from typing import Any

import pytest

from awm_factory.problems import Problem
from awm_factory.synthesis.artifacts import ApiSpec
from awm_factory.synthesis.checks import code, spec, tools
from awm_factory.synthesis.checks.reading import read
from awm_runtime.contract import Tool
from synthesis_support import api, changed, part, said, shelf_rows

SPEC = part("spec.json")
CODE = part("code.py")


def spec_with(operation: str, **changes: Any) -> list[Problem]:
    """The spec with one endpoint changed."""
    groups = [
        group | {"endpoints": [e | (changes if e["operation_id"] == operation else {}) for e in group["endpoints"]]}
        for group in SPEC["api_groups"]
    ]
    return spec.check(ApiSpec.model_validate({"api_groups": groups}), shelf_rows())


def code_with(*pairs: tuple[str, str], rows: Any = None) -> list[Problem]:
    return code.check(changed(CODE, *pairs), rows or shelf_rows())


def test_a_good_spec_passes() -> None:
    assert spec.check(api(), shelf_rows()) == []


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"operation_id": "LendTool"}, "not snake_case"),
        ({"summary": "x" * 81}, "Its summary has 81 characters"),
        ({"description": "x" * 201}, "Its description has 201 characters"),
        ({"method": "FETCH"}, "no method of HTTP"),
        ({"operation_id": "list_loans"}, "2 endpoints have this operation_id"),
        ({"path": "/loans/{loan_id}/return"}, "{loan_id} of the path is not among its path parameters"),
        ({"required_tables": ["lendings"]}, "It needs lendings, which the schema lacks"),
        ({"required_fields": {"loans": ["due_at"]}}, "It needs loans.due_at, which the schema lacks"),
    ],
)
def test_an_endpoint_against_the_form_is_refused(changes: dict[str, Any], fault: str) -> None:
    assert fault in said(spec_with("lend_tool", **changes))


def test_two_operations_on_one_route_are_refused_whatever_their_parameters_are_called() -> None:
    params = {"id": {"type": "integer", "param_type": "path", "required": True}}
    found = spec_with("lend_tool", path="/loans/{id}/return", request_params=params)
    assert "shares POST /loans" in said(found)


def test_an_id_that_no_tool_reveals_is_refused() -> None:
    params = {"shelf_id": {"type": "integer", "param_type": "query", "required": True}}
    assert "requires 'shelf_id', which no endpoint's response shows" in said(spec_with("list_tools", request_params=params))


def test_a_spec_without_endpoints_is_refused() -> None:
    assert "holds no endpoint" in said(spec.check(api(api_groups=[]), shelf_rows()))


def test_good_code_passes() -> None:
    assert code_with() == []


@pytest.mark.parametrize(
    ("pairs", "fault"),
    [
        ([("import os\n", '"""Tool Shelf."""\nimport os\n')], "first line is no import"),
        ([("from_attributes=True", "orm_mode=True")], "orm_mode"),
        (
            [
                (
                    "class Base(DeclarativeBase):\n    pass\n",
                    "class Base(DeclarativeBase):\n    pass\n\n\nBase.metadata.drop_all(engine)\n",
                )
            ],
            "drops the tables",
        ),
        ([('__tablename__ = "loans"', '__tablename__ = "lendings"')], "'lendings' is not in the schema"),
        (
            [("    due_on: Mapped[date]\n", "    due_on: Mapped[date]\n    note: Mapped[Optional[str]]\n")],
            "loans has no column note",
        ),
        ([("def now() -> datetime:", "def now() -> datetime")], "can't be parsed"),
    ],
)
def test_code_of_the_wrong_shape_is_refused(pairs: list[tuple[str, str]], fault: str) -> None:
    assert fault in said(code_with(*pairs))


def test_a_commit_before_a_check_is_refused() -> None:
    end = (
        '        answer = LoanOut.model_validate(loan)\n        session.commit()\n        return answer\n\n\n@app.post("/loans/{'
    )
    late = """        session.commit()
        if body.due_on < now().date():
            raise HTTPException(422, "the due day is past")
        return LoanOut.model_validate(loan)


@app.post("/loans/{"""
    found = code_with((end, late))
    assert [(problem.where, problem.severity) for problem in found] == [("tool lend_tool", "error")]
    assert "commits in line" in said(found)


def test_a_commit_in_one_branch_and_an_error_in_the_other_is_fine() -> None:
    begin = "        tool = session.get(ToolRow, body.tool_id)\n"
    early = """        if body.due_on == now().date():
            session.commit()
            return LoanOut.model_validate(session.get(Loan, 1))
"""
    assert code_with((begin, early + begin)) == []


def test_two_commits_in_a_row_are_a_warning() -> None:
    found = code_with(
        ("        session.add(loan)\n        session.flush()\n", "        session.add(loan)\n        session.commit()\n")
    )
    assert [(problem.severity, problem.where) for problem in found] == [("warning", "tool lend_tool")]


@pytest.mark.parametrize(
    "pairs",
    [
        [("    due_on: date\n\n\ndef now", "    due_on: str\n\n\ndef now")],
        [("    due_on: date\n\n\ndef now", "    due_on: Optional[str] = None\n\n\ndef now")],
        [
            ("    due_on: date\n\n\ndef now", "    due_on: str\n\n\ndef now"),
            (
                "Loan(tool_id=tool.id, member_id=member.id, due_on=body.due_on, lent_at=now())",
                "Loan(**body.model_dump(), lent_at=now())",
            ),
        ],
    ],
)
def test_a_text_that_goes_into_a_time_column_is_refused(pairs: list[tuple[str, str]]) -> None:
    assert "into the time column" in said(code_with(*pairs))


def test_code_and_data_that_differ_in_case_are_refused() -> None:
    found = code_with(('Status = Literal["available"', 'Status = Literal["Available"'))
    assert "compares with 'Available', but tools.status holds 'available'" in said(found)


def test_a_value_of_an_enumeration_that_another_column_spells_otherwise_is_fine() -> None:
    assert code_with(('Status = Literal["available"', 'Status = Literal["Wood", "available"')) == []


def test_a_tuple_for_a_condition_is_refused() -> None:
    found = code_with(('if tool.status != "available":', 'if (tool.status != "available",):'))
    assert "asks a tuple, which is always true" in said(found)


def test_what_a_list_is_sorted_by_is_no_value_of_a_column() -> None:
    sorts = ('Status = Literal["available"', 'Sort = Literal["lent_at", "due_on"]\nStatus = Literal["available"')
    assert code_with(sorts, rows=shelf_rows(("'Tile Cutter'", "'Due_On'"))) == []


def test_a_value_folded_on_one_side_only_is_refused() -> None:
    found = code_with(("ToolRow.category == category", "ToolRow.category == category.upper()"))
    assert "turned by .upper(), but the data holds 'wood'" in said(found)


def test_a_comparison_folded_on_both_sides_is_fine() -> None:
    assert code_with(("ToolRow.name == name", "func.lower(ToolRow.name) == name.lower()")) == []


def test_null_rows_that_the_answer_forbids_are_refused() -> None:
    found = code_with(("    returned_at: Optional[datetime] = None\n", "    returned_at: datetime\n"))
    assert "class LoanOut" in said(found)
    assert "2 rows of loans hold NULL there" in said(found)


def test_what_code_writes_is_read_from_constructors_and_assignments() -> None:
    written = read(CODE).written
    assert written["loans"] == {"tool_id", "member_id", "due_on", "lent_at", "returned_at"}
    assert written["tools"] == {"status"}
    assert "users" not in written


def test_code_that_writes_in_ways_nobody_can_read_is_left_open() -> None:
    assert read(CODE + "\n\ndef fill(row):\n    session.execute(insert(Loan).values(**row))\n").written["loans"] is None


def tool(schema: dict[str, Any]) -> Tool:
    return Tool(name="find", operation_id="find", method="GET", path="/find", description="", input_schema=schema)


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({"type": "array"}, "of type 'array'"),
        ({"type": "object", "anyOf": [{}]}, "anyOf at the top"),
        ({"type": "object", "properties": {"from day": {}}}, "'from day' has a name that clients refuse"),
        ({"type": "object", "properties": {"code": {"pattern": "^(?!x)"}}}, "looks around"),
        ({"type": "object", "properties": {"pair": {"prefixItems": [{}]}}}, "tuple"),
        ({"type": "objekt"}, "invalid"),
        ({"type": "object", "properties": {"code": {"pattern": "(("}}}, "invalid"),
        ({"type": "object", "properties": {"inner": {"$ref": "#/$defs/Gone"}}}, "'/$defs/Gone' does not exist"),
        ({"type": "object", "properties": {"inner": {"$ref": "http://127.0.0.1:9/x"}}}, "ValueError"),
    ],
)
def test_input_schemas_that_clients_refuse_are_refused(schema: dict[str, Any], fault: str) -> None:
    assert fault in said(tools.check([tool(schema)]))


def test_a_plain_input_schema_passes() -> None:
    assert list(tools.check([tool({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})])) == []
