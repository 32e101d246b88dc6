import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest
from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamablehttp_client

from awm_runtime import probe
from runtime_support import Served, serve, write_environment


def test_the_official_client_lists_and_calls(library: Served) -> None:
    url = f"http://127.0.0.1:{library.agent_port}/mcp"
    found = asyncio.run(probe.probe(url, [("list_loans", {}), ("lend", {"member_id": 99, "title": "x"})]))
    assert len(found["tools"]) == 9
    assert found["calls"][0]["isError"] is False
    assert json.loads(found["calls"][1]["content"][0]["text"])["error"]["kind"] == "constraint"


def test_the_probe_prints_json_even_of_a_server_that_is_not_there() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "awm_runtime.probe", "http://127.0.0.1:9/mcp"], capture_output=True, timeout=60, check=False
    )
    assert run.returncode == 1
    assert "ConnectError" in json.loads(run.stdout)["error"]


@pytest.mark.parametrize("host", ["localhost:8000", "env-017:8000", "host.docker.internal:49153", "172.19.0.5:8000", "a.b:30017"])
def test_any_host_name_is_accepted(library: Served, host: str) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
    for port in (library.port, library.agent_port):
        for path in ("/mcp", "/mcp/"):
            status, answer = library.request("POST", path, hello, port=port, headers={"Host": host})
            assert (status, answer["result"]["protocolVersion"]) == (200, "2025-06-18")


def test_a_page_of_another_site_is_refused(library: Served) -> None:
    for port in (library.port, library.agent_port):
        for origin in ("http://evil.example", "null"):
            assert library.request("POST", "/mcp", {}, port=port, headers={"Origin": origin})[0] == 403


@pytest.mark.parametrize(
    ("message", "status", "code"),
    [
        (b"{", 400, -32700),
        ({}, 200, -32600),
        ({"jsonrpc": "2.0", "id": 1}, 200, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "resources/list"}, 200, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}, 200, None),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "nope"}}, 200, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "lend", "arguments": [1]}}, 200, -32602),
    ],
)
def test_what_is_no_good_request_gets_the_protocols_error(library: Served, message: Any, status: int, code: int | None) -> None:
    answered, body = library.request("POST", "/mcp", message)
    assert answered == status
    assert code is None or body["error"]["code"] == code


def test_notifications_get_no_answer_and_batches_one_each(library: Served) -> None:
    ping = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
    assert library.request("POST", "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}) == (202, b"")
    status, answers = library.request("POST", "/mcp", [ping, {"jsonrpc": "2.0", "method": "x"}, ping])
    assert (status, [answer["id"] for answer in answers]) == (200, [7, 7])


def test_a_session_survives_only_its_own_server(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = write_environment(tmp_path_factory.mktemp("restart") / "env")

    async def scenario() -> None:
        with serve(directory) as first:
            url = f"http://127.0.0.1:{first.agent_port}/mcp"
            async with streamablehttp_client(url) as (read, write, _), ClientSession(read, write) as session:
                await session.initialize()
                await session.call_tool("list_loans", {})
                first.process.terminate()
                await asyncio.to_thread(first.process.wait, 10)
                with serve(directory, ports=(first.port, first.agent_port)), pytest.raises(McpError, match="terminated"):
                    await session.call_tool("list_loans", {})

    asyncio.run(scenario())


def test_stdio_speaks_a_message_a_line(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = write_environment(tmp_path_factory.mktemp("stdio") / "env")
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "lend", "arguments": {"member_id": 1, "title": "é"}},
        },
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "list_loans"}},
    ]
    text = "".join(json.dumps(message) + "\n" for message in messages).encode()
    import os

    command = [sys.executable, "-m", "awm_runtime.main", "stdio"]
    run = subprocess.run(
        command, input=text, capture_output=True, timeout=60, check=True, env={**os.environ, "AWM_ENV_DIR": str(directory)}
    )
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [1, 2, 3]
    assert "é" in answers[2]["result"]["content"][0]["text"]


def test_the_stateless_protocol_is_spoken_without_a_handshake(library: Served) -> None:
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    found = library.rpc("/mcp", "server/discover", meta)["result"]
    assert found["supportedVersions"][:2] == ["2026-07-28", "2025-11-25"]
    assert found["resultType"] == "complete"
    listed = library.rpc("/mcp", "tools/list", meta)["result"]
    assert listed.keys() == {"resultType", "ttlMs", "cacheScope", "tools"}
    assert library.rpc("/mcp", "tools/list")["result"].keys() == {"tools"}
    called = library.rpc("/mcp", "tools/call", {**meta, "name": "list_loans", "arguments": {}})["result"]
    assert (called["resultType"], called["isError"]) == ("complete", False)
