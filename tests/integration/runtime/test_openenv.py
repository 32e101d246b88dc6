import json
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from runtime_support import Served, serve, write_environment


def step(tool: str, arguments: Any) -> dict[str, Any]:
    return {"type": "step", "data": {"type": "call_tool", "tool_name": tool, "arguments": arguments}}


def ask(socket: ClientConnection, frame: Any) -> Any:
    socket.send(frame if isinstance(frame, str) else json.dumps(frame))
    return json.loads(socket.recv(timeout=20))


def open_socket(library: Served) -> ClientConnection:
    return connect(f"ws://127.0.0.1:{library.port}/ws", additional_headers=library.headers)


def test_an_episode_is_played_over_a_websocket_and_rewarded_once(library: Served) -> None:
    with open_socket(library) as socket:
        names = [
            tool["name"] for tool in ask(socket, {"type": "step", "data": {"type": "list_tools"}})["data"]["observation"]["tools"]
        ]
        assert "lend" in names
        assert "submit" not in names
        first = ask(socket, {"type": "reset", "data": {"task_id": 0, "seed": 3, "episode_id": "mine"}})
        assert first["type"] == "observation"
        assert first["data"]["observation"]["instruction"] == "Lend the Kite book to Ada."
        assert (first["data"]["reward"], first["data"]["done"]) == (None, False)
        played = ask(socket, step("lend", {"member_id": 1, "title": "Kite book"}))["data"]
        assert played["observation"] == {
            "tool_name": "lend",
            "result": {"member_id": 1, "title": "Kite book", "days": 14, "id": 2},
            "error": None,
            "metadata": {},
        }
        assert (played["reward"], played["done"]) == (None, False)
        assert ask(socket, {"type": "state"}) == {"type": "state", "data": {"episode_id": "mine", "step_count": 1}}
        ended = ask(socket, step("submit", {"answer": "done"}))["data"]
        assert (ended["reward"], ended["done"]) == (1.0, True)
        again = ask(socket, step("submit", {"answer": "done"}))
        assert (again["type"], again["data"]["code"]) == ("error", "EXECUTION_ERROR")
        assert ask(socket, {"type": "reset", "data": {}})["data"]["done"] is False
        assert ask(socket, step("submit", {"answer": "done"}))["data"]["reward"] == 0.0


def test_every_connection_has_its_own_episode_and_leaves_none(library: Served) -> None:
    before = library.request("GET", "/health")[1]["episodes"]
    with open_socket(library) as one, open_socket(library) as two:
        ask(one, step("lend", {"member_id": 1, "title": "x"}))
        assert len(ask(two, step("list_loans", {}))["data"]["observation"]["result"]) == 1
        assert library.request("GET", "/health")[1]["episodes"] == before + 2
        one.send(json.dumps({"type": "close"}))
    for _ in range(100):
        if library.request("GET", "/health")[1]["episodes"] == before:
            break
    assert library.request("GET", "/health")[1]["episodes"] == before


@pytest.mark.parametrize(("tool", "arguments"), [("no_such_tool", {}), ("lend", [1])])
def test_a_format_error_ends_the_episode_with_minus_one(library: Served, tool: str, arguments: Any) -> None:
    with open_socket(library) as socket:
        ask(socket, {"type": "reset", "data": {"task_id": 0}})
        ended = ask(socket, step(tool, arguments))["data"]
        assert (ended["reward"], ended["done"]) == (-1.0, True)
        assert ask(socket, step("list_loans", {}))["type"] == "error"


def test_ill_typed_values_are_an_ordinary_tool_error(library: Served) -> None:
    with open_socket(library) as socket:
        ask(socket, {"type": "reset", "data": {"task_id": 0}})
        answer = ask(socket, step("lend", {"member_id": "x", "title": 1}))["data"]
        assert answer["observation"]["error"]["error_type"] == "invalid_args"
        assert (answer["reward"], answer["done"]) == (None, False)


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("{", "INVALID_JSON"),
        ("[]", "VALIDATION_ERROR"),
        ({"type": "dance"}, "UNKNOWN_TYPE"),
        ({"type": "step", "data": {"type": "jump"}}, "VALIDATION_ERROR"),
        ({"type": "step", "data": {"colour": 1}}, "VALIDATION_ERROR"),
        ({"type": "reset", "data": {"task_id": 99}}, "EXECUTION_ERROR"),
        ({"type": "reset", "data": {"seed": -1}}, "VALIDATION_ERROR"),
    ],
)
def test_bad_frames_get_an_error_and_the_connection_goes_on(library: Served, frame: Any, code: str) -> None:
    with open_socket(library) as socket:
        answer = ask(socket, frame)
        assert (answer["type"], answer["data"]["code"]) == ("error", code)
        assert ask(socket, {"type": "state"})["type"] == "state"


def test_mcp_goes_through_a_frame_too(library: Served) -> None:
    with open_socket(library) as socket:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        answer = ask(socket, {"type": "mcp", "data": message})
        assert (answer["type"], len(answer["data"]["result"]["tools"])) == ("mcp", 9)


def test_every_step_is_counted_whether_or_not_it_calls_a_tool(library: Served) -> None:
    with open_socket(library) as socket:
        for _ in range(2):
            ask(socket, {"type": "reset", "data": {"task_id": 0}})
            for number, action in enumerate(
                ({"type": "list_tools"}, step("list_loans", {})["data"], step("submit", {})["data"]), 1
            ):
                ask(socket, {"type": "step", "data": action})
                assert ask(socket, {"type": "state"})["data"]["step_count"] == number


def test_the_http_routes_drive_the_default_episode(library: Served) -> None:
    assert library.request("POST", "/reset", {"task_id": 0})[1]["done"] is False
    action = {"type": "call_tool", "tool_name": "lend", "arguments": {"member_id": 1, "title": "Kite book"}}
    assert library.request("POST", "/step", {"action": action})[1]["observation"]["error"] is None
    assert library.request("GET", "/state")[1]["step_count"] == 1
    library.request("POST", "/step", {"action": {"type": "list_tools"}})
    assert library.request("GET", "/state")[1]["step_count"] == 2
    submit = {"type": "call_tool", "tool_name": "submit", "arguments": {"answer": ""}}
    assert library.request("POST", "/step", {"action": submit})[1]["reward"] == 1.0
    assert library.request("POST", "/step", {"action": submit})[0] == 409
    assert library.request("POST", "/step", b"[]")[0] == 422
    assert library.request("GET", "/state")[1]["step_count"] == 3
    library.request("POST", "/episodes/default/reset", {})
    assert library.request("GET", "/state")[1]["step_count"] == 0
    assert library.request("POST", "/reset", {})[0] == 200


def test_what_validators_look_at_is_there(library: Served) -> None:
    assert library.request("GET", "/metadata")[1].keys() >= {"name", "description"}
    schema = library.request("GET", "/schema")[1]
    assert schema["action"]["title"] == "CallToolAction"
    assert schema.keys() == {"action", "observation", "reset_observation", "state"}
    document = library.request("GET", "/openapi.json")[1]
    assert isinstance(document["info"]["version"], str)
    assert document["paths"].keys() >= {"/reset", "/step", "/state"}
    assert library.request("POST", "/mcp", {})[1]["jsonrpc"] == "2.0"


def test_sessions_on_mcp_have_an_episode_each(library: Served) -> None:
    def rpc(method: str, **params: Any) -> Any:
        return library.rpc("/mcp", method, params, port=library.port)

    one, two = (rpc("openenv/session/create")["result"]["session_id"] for _ in range(2))
    rpc("tools/call", session_id=one, name="lend", arguments={"member_id": 1, "title": "x"})
    listed = rpc("tools/call", session_id=two, name="list_loans", arguments={})
    assert len(json.loads(listed["result"]["content"][0]["text"])) == 1
    assert len(rpc("tools/list", session_id=one)["result"]["tools"]) == 9
    assert rpc("openenv/session/close", session_id=one)["result"]["closed"] is True
    assert "error" in rpc("tools/list", session_id=one)
    rpc("openenv/session/close", session_id=two)


def test_tasks_are_listed_in_the_open_reward_standards_shape(library: Served) -> None:
    assert library.request("GET", "/list_environments")[1] == ["library"]
    assert library.request("GET", "/library/splits")[1] == [{"name": "train", "type": "train"}]
    task = {"task_id": 0, "instruction": "Lend the Kite book to Ada."}
    assert library.request("POST", "/library/tasks", {"split": "train"})[1] == {"tasks": [task], "env_name": "library"}
    assert library.request("POST", "/library/num_tasks", {"split": "train"})[1] == {"num_tasks": 1}
    assert library.request("POST", "/library/task", {"split": "train", "index": 0})[1] == {"task": task}
    assert library.request("POST", "/library/task_range", {"split": "train", "start": None, "stop": 5})[1] == {"tasks": [task]}
    assert library.request("POST", "/library/tasks", {"split": "test"})[0] == 400
    assert library.request("GET", "/elsewhere/splits")[0] == 404


def test_a_format_error_may_be_let_pass(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = write_environment(tmp_path_factory.mktemp("lenient") / "env")
    with serve(directory, AWM_FORMAT_ERROR_ENDS="0", AWM_TOKEN="t") as served, open_socket(served) as socket:
        ask(socket, {"type": "reset", "data": {}})
        answer = ask(socket, step("no_such_tool", {}))["data"]
        assert (answer["observation"]["error"]["error_type"], answer["done"]) == ("tool_not_found", False)
