import os
import socket
import threading

import pytest

from awm_runtime import frames
from awm_runtime.frames import Buffer, Frame

FRAMES = [Frame({"a": 1}), Frame({"b": "é"}, b"\0" * 70_000), Frame({}, b"x")]


@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 20])
def test_frames_come_out_of_a_stream_cut_anywhere(size: int) -> None:
    stream = b"".join(frame.encode() for frame in FRAMES)
    buffer = Buffer()
    found = [frame for start in range(0, len(stream), size) for frame in buffer.feed(stream[start : start + size])]
    assert found == FRAMES


def test_a_size_that_no_message_has_is_refused() -> None:
    with pytest.raises(ValueError, match="no message"):
        Buffer().feed(frames.HEAD.pack(1 << 31, 0))


def test_a_descriptor_travels_with_its_frame() -> None:
    ours, theirs = socket.socketpair()
    reader, writer = os.pipe()
    frames.send(ours, FRAMES[0], writer)
    frames.send(ours, FRAMES[2])
    first, second = frames.receive(theirs), frames.receive(theirs)
    assert first is not None
    assert second == (FRAMES[2], None)
    frame, descriptor = first
    assert frame == FRAMES[0]
    assert descriptor is not None
    os.write(descriptor, b"through")
    assert os.read(reader, 10) == b"through"
    for number in (reader, writer, descriptor):
        os.close(number)
    ours.close()
    assert frames.receive(theirs) is None
    theirs.close()


def test_a_blocking_reader_gives_frames_one_by_one_until_the_other_end_is_gone() -> None:
    ours, theirs = socket.socketpair()
    incoming = frames.Incoming(theirs)
    writer = threading.Thread(target=lambda: (ours.sendall(b"".join(f.encode() for f in FRAMES)), ours.close()))
    writer.start()
    assert [incoming.next() for _ in range(4)] == [*FRAMES, None]
    writer.join()
