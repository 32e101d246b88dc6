"""An HTTP server that answers like a Docker engine: streams that a real one can't be brought to send on demand."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import docker

API = "1.41"


@dataclass
class StandInEngine:
    """What it has and will say; tests change it, then look at `requests` and `images`."""

    images: dict[str, str] = field(default_factory=dict)
    """Reference to ID."""
    untagged: set[str] = field(default_factory=set)
    held: dict[str, str] = field(default_factory=dict)
    """Reference to the digest that the registry says it holds."""
    build_stream: list[dict[str, Any]] = field(default_factory=list)
    push_stream: list[dict[str, Any]] = field(default_factory=list)
    requests: list[tuple[str, str, dict[str, list[str]]]] = field(default_factory=list)
    client: docker.DockerClient = field(init=False)

    def asked(self, method: str, pattern: str) -> list[str]:
        return [path for verb, path, _ in self.requests if verb == method and re.search(pattern, path)]


@contextmanager
def standin_engine(**state: Any) -> Iterator[StandInEngine]:
    engine = StandInEngine(**state)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(engine))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    engine.client = docker.DockerClient(base_url=f"tcp://127.0.0.1:{server.server_port}", version=API)
    try:
        yield engine
    finally:
        engine.client.close()
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(engine: StandInEngine) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _route(self) -> None:
            parts = urlsplit(self.path)
            path, query = unquote(parts.path).removeprefix(f"/v{API}"), parse_qs(parts.query)
            self._drain()
            engine.requests.append((self.command, path, query))
            if self.command == "POST" and path == "/build":
                return self._stream(engine.build_stream)
            if found := re.fullmatch(r"/images/(.+)/push", path):
                return self._stream(engine.push_stream)
            if found := re.fullmatch(r"/images/(.+)/tag", path):
                engine.images[f"{query['repo'][0]}:{query['tag'][0]}"] = engine.images.get(found[1], found[1])
                return self._answer(201, {})
            if found := re.fullmatch(r"/images/(.+)/json", path):
                name = found[1]
                image = engine.images.get(name) or (name if name in {*engine.images.values(), *engine.untagged} else None)
                if image is None:
                    return self._answer(404, {"message": f"No such image: {name}"})
                return self._answer(200, {"Id": image, "RepoTags": [tag for tag, held in engine.images.items() if held == image]})
            if found := re.fullmatch(r"/distribution/(.+)/json", path):
                if found[1] not in engine.held:
                    return self._answer(404, {"message": "manifest unknown"})
                return self._answer(200, {"Descriptor": {"digest": engine.held[found[1]]}, "Platforms": []})
            if self.command == "DELETE" and (found := re.fullmatch(r"/images/(.+)", path)):
                engine.images.pop(found[1], None)
                return self._answer(200, [])
            return self._answer(404, {"message": f"the stand-in does not know {self.command} {path}"})

        do_GET = do_POST = do_DELETE = _route  # noqa: N815 - the names that http.server looks for

        def _drain(self) -> None:
            if "chunked" in self.headers.get("Transfer-Encoding", ""):
                while size := int(self.rfile.readline().strip() or b"0", 16):
                    self.rfile.read(size + 2)
                self.rfile.readline()
            else:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))

        def _answer(self, status: int, body: object) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, entries: list[dict[str, Any]]) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for entry in entries:
                data = json.dumps(entry).encode() + b"\r\n"
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, *_: object) -> None:
            pass

    return Handler
