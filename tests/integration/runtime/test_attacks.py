"""What a policy may try on its own port. Each row is a request; none may reach grading, reset, state or another episode.

The environment's own tools are the other way in: arguments that look like paths stay arguments.
"""

import base64
import hashlib
import json
import socket
from typing import Any

import pytest

from runtime_support import Served

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
RESET = b'{"task_id":0}'

PATHS = [
    "/", "/health", "/tasks", "/metadata", "/schema", "/state", "/reset", "/step", "/ws", "/web", "/docs", "/openapi.json",
    "/redoc",
    "/episodes", "/episodes/", "/episodes/{id}", "/episodes/{id}/", "/episodes/{id}/reset", "/episodes/{id}/verify",
    "/episodes/{id}/fork",
    "/episodes/{id}/diff", "/episodes/{id}/db", "/episodes/{id}/snapshot", "/episodes/{id}/restore", "/episodes/default/verify",
    "/episodes/default/mcp", "/episodes/mine/mcp", "/episodes/0/mcp", "/list_environments", "/library/splits", "/library/tasks",
    "/mcp/../reset", "/mcp/../episodes", "/mcp/..%2fepisodes", "/mcp/%2e%2e/episodes", "/mcp//", "//mcp", "/mcp/.", "/MCP",
    "/mcp%00",
    "/mcp;/reset", "/mcp%2f..%2freset", "/mcp/reset", "/mcp/episodes/{id}/reset", "/episodes/{id}/mcp/../reset",
    "/episodes/{id}/mcp/..%2freset", "/episodes/{id}/mcp/reset", "/episodes/{id}%2freset", "/episodes/{id}/mcp%2f..%2fverify",
    "/episodes/..%2f{id}/verify", "/episodes/{ID}/mcp", "/episodes/ {id}/mcp", "/episodes/{id}%0a/mcp",
    "/episodes/{id}\u0000/mcp",
    "/./episodes/{id}/verify", "/%65pisodes/{id}/verify", "/episodes/{id}/%6dcp", "http://127.0.0.1:{port}/episodes", "*",
]  # fmt: skip
"""Paths that the agent's port does not have. `{id}` is the id of a running episode, `{port}` the control port."""


def raw(served: Served, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", served.agent_port), timeout=10) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return answer


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


@pytest.fixture(scope="module")
def episode(library: Served) -> dict[str, Any]:
    running = library.new(task_id=0)
    library.call(running, "lend", {"member_id": 1, "title": "Kite book"})
    return running


@pytest.fixture(autouse=True)
def unharmed(library: Served, episode: dict[str, Any]) -> Any:
    """After every attack the episode is as it was, and so is the list of episodes."""
    count = library.request("GET", "/health")[1]["episodes"]
    yield
    assert library.request("GET", "/health")[1]["episodes"] == count
    assert library.of(episode, "verify", {})["reward"] == 1.0


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("path", PATHS)
def test_the_agents_port_has_no_other_path(library: Served, episode: dict[str, Any], path: str, method: str) -> None:
    key = episode["mcp_path"].split("/")[2]
    target = path.replace("{id}", key).replace("{ID}", key.upper()).replace("{port}", str(library.port))
    head = f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(RESET)}\r\nConnection: close\r\n\r\n"
    answer = raw(library, head.encode() + RESET)
    assert status(answer) in (0, 400, 404, 405), answer
    assert key.encode() not in answer.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "GET"])
def test_other_methods_do_nothing(library: Served, method: str) -> None:
    answer = raw(library, f"{method} /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
    assert status(answer) in (0, 400, 404, 405)


HEADERS = [
    "X-HTTP-Method-Override: DELETE", "X-Original-URL: /episodes/default/verify", "X-Rewrite-URL: /reset",
    "X-Forwarded-Path: /reset",
    "X-Forwarded-Prefix: /episodes", "X-Forwarded-Port: {port}", "X-Forwarded-Host: localhost:{port}",
    "Forwarded: host=localhost:{port}",
    "Host: localhost:{port}", "Authorization: Bearer guessed", "Upgrade: h2c", "Cookie: session_id=default",
    "X-Episode-Id: default",
]  # fmt: skip


@pytest.mark.parametrize("header", HEADERS)
def test_no_header_leads_elsewhere(library: Served, header: str) -> None:
    body = json.dumps(LIST).encode()
    lines = [
        "POST /mcp HTTP/1.1",
        header.replace("{port}", str(library.port)),
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    if not header.startswith("Host"):
        lines.insert(1, "Host: x")
    answer = raw(library, "\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    assert status(answer) in (200, 400)
    assert b"verify" not in answer


@pytest.mark.parametrize("path", ["/mcp", "/ws", "/episodes/default/verify"])
def test_a_websocket_is_refused(library: Served, path: str) -> None:
    key = base64.b64encode(hashlib.sha256(b"x").digest()[:16]).decode()
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    head += f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
    assert status(raw(library, head.encode())) in (400, 403, 404, 405)


def test_a_second_request_smuggled_in_a_body_stays_a_body(library: Served) -> None:
    inner = b"POST /episodes HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
    head = b"POST /mcp HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    both = raw(library, head + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner)
    assert b"episode_id" not in both


@pytest.mark.parametrize(
    "method", ["openenv/session/create", "openenv/reset", "reset", "verify", "submit", "state", "episodes/list", "admin"]
)
def test_no_rpc_method_of_the_agents_port_is_a_control_route(library: Served, method: str) -> None:
    assert library.rpc("/mcp", method, {"task_id": 0})["error"]["code"] == -32601


@pytest.mark.parametrize(
    "tool", ["submit", "verify", "reset", "state", "../reset", "/episodes", "lend/../../reset", "__class__", ""]
)
def test_no_tool_is_a_control_route(library: Served, tool: str) -> None:
    assert library.rpc("/mcp", "tools/call", {"name": tool, "arguments": {"answer": "x"}})["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("remove_member", {"member_id": "../../reset"}),
        ("remove_member", {"member_id": "2/../../episodes"}),
        ("remove_member", {"member_id": "2?x=1"}),
        ("remove_member", {"member_id": {"$ne": 1}}),
        ("remove_member", {"member_id": 2, "episode_id": "default"}),
        ("list_loans", {"title": "x", "_meta": {"session_id": "default"}}),
        ("lend", {"member_id": 1, "title": "x", "__proto__": {}}),
        ("peek", {"path": "/env/verifiers/0.code.py"}),
        ("peek", {"path": "/env/seed.db"}),
        ("peek", {"path": "/proc/1/environ"}),
        ("peek", {"path": "/proc/self/mem"}),
        ("peek", {"path": "/work"}),
        ("reach", {"what": "socket"}),
        ("reach", {"what": "kill"}),
        ("reach", {"what": "program"}),
        ("reach", {"what": "write"}),
    ],
)
def test_arguments_stay_arguments(library: Served, tool: str, arguments: dict[str, Any]) -> None:
    is_error, answer = library.call(library_default(library), tool, arguments)
    assert is_error
    assert answer["error"]["kind"] in ("invalid_arguments", "internal", "not_found")


def library_default(library: Served) -> dict[str, Any]:
    assert library.request("POST", "/episodes/default/reset", {})[0] == 200
    return {"mcp_path": "/mcp"}


def test_sql_in_an_argument_is_text(library: Served) -> None:
    default = library_default(library)
    title = "x'); DROP TABLE loans; --"
    assert library.call(default, "lend", {"member_id": 1, "title": title})[1]["title"] == title
    assert len(library.call(default, "list_loans")[1]) == 2


def test_with_a_token_the_control_port_opens_to_nobody_else(tmp_path_factory: pytest.TempPathFactory) -> None:
    from runtime_support import serve, write_environment

    with serve(write_environment(tmp_path_factory.mktemp("token") / "env"), AWM_TOKEN="s3cret") as served:
        nobody: dict[str, str]
        for nobody in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "s3cret"}, {"Authorization": "Basic s3cret"}):
            served.headers = nobody
            assert served.request("GET", "/health")[0] == 200
            for method, path in [
                ("GET", "/tasks"),
                ("POST", "/episodes"),
                ("POST", "/mcp"),
                ("GET", "//health"),
                ("GET", "/health/../tasks"),
            ]:
                assert served.request(method, path, b"{}" if method == "POST" else None)[0] in (401, 404), (nobody, path)
        served.headers = {"Authorization": "Bearer s3cret"}
        assert served.request("GET", "/tasks")[0] == 200
        assert served.request("POST", "/mcp", LIST, port=served.agent_port, headers={"Authorization": ""})[0] == 200
