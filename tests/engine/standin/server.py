"""A tiny environment server that keeps to the wire contract, except for the one fault it is told to have.

Baked into test images on the base image, to see the smoke test find what the real runtime does not do.
"""

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import sys
import uuid
from contextvars import ContextVar
from typing import Any

import mcp.types as types
import uvicorn
from fastapi import FastAPI, Request, Response
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

FAULT = os.environ.get("FAULT", "")
SEED = "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT NOT NULL); INSERT INTO notes (body) VALUES ('first');"
CURRENT: ContextVar[str] = ContextVar("episode", default="default")


def seeded() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.executescript(SEED)
    if FAULT == "readonly":
        connection.execute("PRAGMA query_only = 1")
    return connection


episodes: dict[str, sqlite3.Connection] = {"default": seeded()}
server: Server[Any, Any] = Server("stand-in")


@server.list_tools()  # type: ignore[no-untyped-call, untyped-decorator]
async def list_tools() -> list[types.Tool]:
    body = {"type": "object", "properties": {"body": {"type": "string"}}, "required": ["body"]}
    names = {"add_note": body, "list_notes": {"type": "object", "properties": {}}}
    if FAULT == "extra_tool":
        names["drop_notes"] = {"type": "object", "properties": {}}
    if FAULT == "odd_name":
        names["größe messen"] = {"type": "object", "properties": {}}
    return [types.Tool(name=name, inputSchema=schema) for name, schema in names.items()]


@server.call_tool()  # type: ignore[untyped-decorator]
async def call_tool(name: str, arguments: dict[str, Any]) -> types.CallToolResult:
    database = episodes[CURRENT.get()]
    try:
        if name == "add_note":
            database.execute("INSERT INTO notes (body) VALUES (?)", [arguments["body"]])
            database.commit()
        rows = database.execute("SELECT id, body FROM notes ORDER BY id").fetchall()
    except sqlite3.Error as error:
        text = json.dumps({"error": {"kind": "internal", "message": str(error)}})
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], isError=True)
    return types.CallToolResult(content=[types.TextContent(type="text", text=json.dumps(rows))])


manager = StreamableHTTPSessionManager(server, stateless=True, json_response=True)


async def mcp_app(scope: Scope, receive: Receive, send: Send) -> None:
    host = dict(scope["headers"]).get(b"host", b"").decode()
    if FAULT == "host_check" and not host.startswith(("localhost", "127.0.0.1")):
        await Response("Invalid Host header", 421)(scope, receive, send)
        return
    path = scope["path"].strip("/").split("/")
    CURRENT.set(path[1] if path[0] == "episodes" else "default")
    await manager.handle_request(scope, receive, send)


control = FastAPI()


@control.get("/health")
def health() -> dict[str, Any]:
    if FAULT == "exits":
        os._exit(3)
    return {
        "status": "healthy",
        "env_id": "note_pad",
        "episodes": len(episodes),
        "capacity": 8,
        "tasks": 1,
        "tools": 2,
        "confinement": {},
    }


def episode(identity: str) -> dict[str, Any]:
    return {
        "episode_id": identity,
        "task_id": 0,
        "instruction": "Add a note.",
        "seed": 0,
        "world_time": "2026-01-01T00:00:00Z",
        "mcp_path": f"/episodes/{identity}/mcp",
        "steps": 0,
    }


@control.post("/episodes")
def create() -> dict[str, Any]:
    identity = uuid.uuid4().hex
    episodes[identity] = seeded()
    return episode(identity)


@control.post("/episodes/{identity}/reset")
def reset(identity: str) -> dict[str, Any]:
    if FAULT != "no_reset":
        episodes[identity] = seeded()
    return episode(identity)


@control.post("/episodes/{identity}/verify")
async def verify(identity: str, request: Request) -> dict[str, Any]:
    asked = await request.json()
    if FAULT == "verifier_breaks":
        return {"mode": asked["mode"], "error": "KeyError: 'notes'"}
    done = FAULT == "rewards_nothing" or episodes[identity].execute("SELECT count(*) FROM notes").fetchone()[0] > 1
    return {"mode": asked["mode"], "classification": "complete" if done else "others", "reward": float(done)}


@control.get("/episodes/{identity}/db")
def database(identity: str) -> Response:
    return Response(episodes[identity].serialize(), media_type="application/vnd.sqlite3")


@control.delete("/episodes/{identity}")
def delete(identity: str) -> Response:
    del episodes[identity]
    return Response(status_code=204)


async def main() -> None:
    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        await (mcp_app if scope["path"].endswith("/mcp") else control)(scope, receive, send)

    address = "127.0.0.1" if FAULT == "loopback" else "0.0.0.0"
    fixed = FAULT == "fixed_port"
    ports = [8000 if fixed else int(os.environ.get("PORT", 8000)), 8001 if fixed else int(os.environ.get("AGENT_PORT", 8001))]
    servers = [
        uvicorn.Server(uvicorn.Config(app, host=address, port=port, lifespan="off", log_level="warning"))
        for app, port in zip((dispatch, mcp_app), ports, strict=True)
    ]
    for one in servers:
        one.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        one.capture_signals = contextlib.nullcontext  # type: ignore[assignment, method-assign]

    def end() -> None:
        if FAULT != "slow_stop":
            os._exit(9 if FAULT == "bad_exit" else 0)

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
    sys.stderr.write("stand-in environment starts\n")
    sys.stderr.flush()
    async with manager.run():
        await asyncio.gather(*(one.serve() for one in servers))


asyncio.run(main())
