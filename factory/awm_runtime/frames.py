"""Messages between the supervisor and its processes: a JSON header and a blob, length-prefixed, on a UNIX socket.

Nothing is unpickled: the other end runs code that nobody vouches for.
"""

import json
import socket
import struct
from dataclasses import dataclass
from typing import Any, Final

HEAD: Final = struct.Struct("!II")
MAX_FRAME: Final = 1 << 30


@dataclass(frozen=True)
class Frame:
    header: dict[str, Any]
    blob: bytes = b""

    def encode(self) -> bytes:
        header = json.dumps(self.header).encode()
        return b"".join((HEAD.pack(len(header), len(self.blob)), header, self.blob))


def send(to: socket.socket, frame: Frame, descriptor: int | None = None) -> None:
    """Blocking. A descriptor travels with the first byte."""
    data = memoryview(frame.encode())
    if descriptor is not None:
        data = data[socket.send_fds(to, [data[: HEAD.size]], [descriptor]) :]
    to.sendall(data)


def receive(source: socket.socket) -> tuple[Frame, int | None] | None:
    """Blocking; None when the other end is gone. The descriptor that came along, if any, is the caller's to close."""
    try:
        head, descriptors, _, _ = socket.recv_fds(source, HEAD.size, 1)
        if len(head) < HEAD.size:
            head += _exactly(source, HEAD.size - len(head)) if head else b""
        if not head:
            return None
        header_size, blob_size = HEAD.unpack(head)
        header = json.loads(_exactly(source, header_size))
        blob = _exactly(source, blob_size)
    except ConnectionError:
        return None
    return Frame(header, blob), descriptors[0] if descriptors else None


def _exactly(source: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = source.recv(min(size, 1 << 20))
        if not part:
            raise ConnectionResetError("the other end went away within a message")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class Incoming:
    """Frames from a blocking socket that carries no descriptors: a small one costs one read."""

    def __init__(self, source: socket.socket) -> None:
        self._source, self._buffer = source, Buffer()
        self._found: list[Frame] = []

    def next(self) -> Frame | None:
        """None when the other end is gone."""
        while not self._found:
            try:
                data = self._source.recv(1 << 18)
            except ConnectionError:
                return None
            if not data:
                return None
            self._found = self._buffer.feed(data)
        return self._found.pop(0)


class Buffer:
    """Frames out of a stream of bytes that arrives in pieces of any size."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Raises ValueError for what can't be a frame."""
        self._data += data
        found = []
        while len(self._data) >= HEAD.size:
            header_size, blob_size = HEAD.unpack_from(self._data)
            end = HEAD.size + header_size + blob_size
            if end > MAX_FRAME:
                raise ValueError("a message of that size is no message of ours")
            if len(self._data) < end:
                break
            view = bytes(self._data[HEAD.size : end])
            del self._data[:end]
            found.append(Frame(json.loads(view[:header_size]), view[header_size:]))
        return found
