"""The parts of the smoke test that need no engine: who listens where, and which calls to try."""

import sqlite3
from typing import Any

import pytest

from awm_factory.bundle import Bundle, Manifest
from awm_factory.images.calls import ToolSpec, candidates, resolved
from awm_factory.images.sockets import listeners
from awm_runtime.contract import ToolCall

HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def socket(address: str, state: str = "0A") -> str:
    return f"   0: {address} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 65532 0 1234 1\n"


def test_a_server_on_loopback_only_is_told_from_one_that_is_silent() -> None:
    assert "listens on 127.0.0.1 only" in listeners(HEADER + socket("0100007F:1F40"), 8000)
    assert "listens on 127.0.0.1 only" in listeners(socket("00000000000000000000000001000000:1F40"), 8000)
    assert "does not answer" in listeners(HEADER + socket("00000000:1F40"), 8000)
    assert "does not answer" in listeners(socket("0100007F:1F40") + socket("00000000:1F40"), 8000)
    assert "nothing listens" in listeners(HEADER + socket("0100007F:1F41"), 8000)
    assert "nothing listens" in listeners(HEADER + socket("00000000:1F40", state="01"), 8000)


def seeded() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "CREATE TABLE hives (id INTEGER PRIMARY KEY, label TEXT); INSERT INTO hives VALUES (7, 'North'), (8, 'South');"
    )
    return connection.serialize()


def bundle(**changes: Any) -> Bundle:
    spec = {
        "api_groups": [
            {
                "endpoints": [
                    {
                        "path": "/hives",
                        "method": "post",
                        "operation_id": "add_hive",
                        "request_params": {"colour": {"example": "blue"}},
                    },
                    {"path": "/hives", "method": "GET", "operation_id": "list_hives", "request_params": {}},
                ]
            }
        ]
    }
    return Bundle(
        manifest=Manifest(env_id="bee_yard", scenario="Bee yard", origin="imported"),
        schema_sql=[],
        seed_sql=[],
        app_code="",
        api_spec=spec,
        seed_db=seeded(),
    ).with_(**changes)


def arguments(schema: dict[str, Any], name: str = "add_hive") -> dict[str, Any]:
    (call,) = candidates(bundle(), [ToolSpec(name, schema)])
    return call.arguments


def required(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def test_reading_tools_are_tried_before_writing_ones() -> None:
    calls = candidates(bundle(), [ToolSpec("add_hive", required()), ToolSpec("list_hives", required())])
    assert [call.tool for call in calls] == ["list_hives", "add_hive"]


def test_a_renamed_tool_is_found_in_the_spec_by_its_operation_id() -> None:
    renamed = bundle(manifest=Manifest(env_id="bee_yard", scenario="x", origin="imported", renamed={"a": "add_hive"}))
    calls = candidates(renamed, [ToolSpec("a", required(colour={"type": "string"})), ToolSpec("list_hives", required())])
    assert [(call.tool, call.arguments) for call in calls] == [("list_hives", {}), ("a", {"colour": "blue"})]


def test_arguments_come_from_the_seeded_database_the_spec_and_the_schema() -> None:
    schema = required(
        hive_id={"type": "integer"},
        label={"type": "string"},
        colour={"type": "string"},
        kind={"enum": ["dadant", "langstroth"]},
        frames={"type": "integer", "minimum": 10},
        when={"type": "string", "format": "date"},
        note={"anyOf": [{"type": "null"}, {"type": "string", "minLength": 8}]},
        size={"$ref": "#/$defs/Size"},
        tags={"type": "array", "items": {"type": "string"}},
    )
    schema["$defs"] = {"Size": required(width={"type": "number", "default": 2.5})}
    schema["properties"]["optional"] = {"type": "string"}
    assert arguments(schema) == {
        "hive_id": 7,
        "label": "North",
        "colour": "blue",
        "kind": "dadant",
        "frames": 10,
        "when": "2026-01-01",
        "note": "samplexx",
        "size": {"width": 2.5},
        "tags": ["sample"],
    }


def test_a_seeded_value_of_another_type_is_not_taken() -> None:
    assert arguments(required(label={"type": "integer"})) == {"label": 1}


def test_a_schema_that_refers_to_itself_comes_to_an_end() -> None:
    schema = {"$ref": "#/$defs/Part", "$defs": {"Part": required(part={"$ref": "#/$defs/Part"})}}
    assert arguments(schema)["part"]["part"]["part"] is not None


def test_a_placeholder_stands_for_a_value_of_an_earlier_result() -> None:
    call = ToolCall(tool="t", arguments={"id": "{{calls[1].hives[0].id}}", "text": "{{ no }}", "deep": [{"all": "{{calls[0]}}"}]})
    assert resolved(call, [5, {"hives": [{"id": 7}]}]).arguments == {"id": 7, "text": "{{ no }}", "deep": [{"all": 5}]}


@pytest.mark.parametrize("placeholder", ["{{calls[1].nothing}}", "{{calls[9].id}}"])
def test_a_placeholder_without_a_value_is_an_error(placeholder: str) -> None:
    with pytest.raises(LookupError):
        resolved(ToolCall(tool="t", arguments={"id": placeholder}), [5, {"id": 7}])
