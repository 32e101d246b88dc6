"""The process that verifiers and diffs are forked from. It has the seed, but no environment code and no secrets.

Each request comes with a socket of its own for the reply, and runs in a child; the verifier itself in a confined child of that.
One such pair is always ready before it is asked for: forking and confining take longer than most verifiers.
"""

import gc
import os
import signal
import socket
from typing import Final

from awm_runtime import children, clock, confine, dump, frames, fresh, pages, verify, wire
from awm_runtime.frames import Frame
from awm_runtime.verify import Cell
from awm_runtime.wire import StateDiff, Verdict, VerifierSource

_DIFF_LIMIT: Final = 20.0


def main() -> None:
    if (begun := fresh.begin()) is None:
        return
    link, order = begun
    seed = order.blob
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Once, for all verifiers to come: what each would otherwise do after its fork.
    clock.install()
    confine.python_paths()
    wire.build(VerifierSource, Verdict, StateDiff)
    gc.collect()
    gc.freeze()
    spare = _spare(seed, link)
    while (message := frames.receive(link)) is not None:
        frame, descriptor = message
        assert descriptor is not None
        try:
            frames.send(spare, frame, descriptor)
        except OSError:  # it was killed, for want of memory most likely
            spare.close()
            spare = _spare(seed, link)
            frames.send(spare, frame, descriptor)
        os.close(descriptor)
        spare.close()
        _bury_the_dead()
        spare = _spare(seed, link)


def _bury_the_dead() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _spare(seed: bytes, link: socket.socket) -> socket.socket:
    """A child that answers the one request it will be sent; it ends without one when this process does."""
    ours, theirs = socket.socketpair()
    if os.fork():
        theirs.close()
        return ours
    try:
        ours.close()
        link.close()
        with verify.cell(theirs.fileno()) as cell:
            if (message := frames.receive(theirs)) is not None:
                confine.die_with_parent()
                _answer(message, seed, cell)
        os._exit(0)
    finally:
        os._exit(1)


def _answer(message: tuple[Frame, int | None], seed: bytes, cell: Cell) -> None:
    frame, descriptor = message
    assert descriptor is not None
    final, ask = pages.apply(seed, frame.blob or None), frame.header
    if ask["op"] == "diff":
        found = children.run(lambda: _difference(seed, final), _DIFF_LIMIT)
    else:
        source = VerifierSource(task_id=ask["task_id"], mode=ask["mode"], code=ask["code"])
        now = clock.parse_world_time(ask["world_time"]) + ask["step"]
        found = cell.judge(source, seed, final, ask["final_answer"], now).model_dump_json().encode()
    frames.send(socket.socket(fileno=descriptor), Frame({"ok": True}, found))


def _difference(seed: bytes, final: bytes) -> bytes:
    """Environment code wrote this database, so it is read by a confined process."""
    confine.confine(confine.python_paths(), confine.Limits(memory=1 << 30), may_fork=False)
    return dump.difference(dump.open_bytes(seed), dump.open_bytes(final)).model_dump_json().encode()


if __name__ == "__main__":
    main()
