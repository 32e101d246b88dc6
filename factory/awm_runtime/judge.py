"""The process that verifiers and diffs are forked from. It has the seed, but no environment code and no secrets.

Each request comes with a socket of its own for the reply, and runs in a child; the verifier itself in a confined child of that.
"""

import gc
import os
import signal
import socket
from typing import Final, NoReturn

from awm_runtime import children, clock, confine, contract, dump, frames, fresh, pages, verify
from awm_runtime.contract import StateDiff, Verdict, VerifierSource
from awm_runtime.frames import Frame

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
    contract.build(VerifierSource, Verdict, StateDiff)
    gc.collect()
    gc.freeze()
    while (message := frames.receive(link)) is not None:
        frame, descriptor = message
        assert descriptor is not None
        _bury_the_dead()
        if os.fork() == 0:
            link.close()
            _answer(frame, seed, socket.socket(fileno=descriptor))
        os.close(descriptor)


def _bury_the_dead() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _answer(frame: Frame, seed: bytes, reply: socket.socket) -> NoReturn:
    try:
        confine.die_with_parent()
        final = pages.apply(seed, frame.blob or None)
        frames.send(reply, Frame({"ok": True}, _judge(frame, seed, final)))
        os._exit(0)
    finally:
        os._exit(1)


def _judge(frame: Frame, seed: bytes, final: bytes) -> bytes:
    ask = frame.header
    if ask["op"] == "diff":
        return children.run(lambda: _difference(seed, final), _DIFF_LIMIT)
    source = VerifierSource(task_id=ask["task_id"], mode=ask["mode"], code=ask["code"])
    now = clock.parse_world_time(ask["world_time"]) + ask["step"]
    return verify.verify(source, seed, final, ask["final_answer"], now).model_dump_json().encode()


def _difference(seed: bytes, final: bytes) -> bytes:
    """Environment code wrote this database, so it is read by a confined process."""
    confine.confine(confine.python_paths(), confine.Limits(memory=1 << 30), may_fork=False)
    return dump.difference(dump.open_bytes(seed), dump.open_bytes(final)).model_dump_json().encode()


if __name__ == "__main__":
    main()
