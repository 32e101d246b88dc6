"""The checks protocol (see `contract`): `python -m awm_runtime.checks` in the sandbox, one JSON object a line each way.

Each check runs in a forked child, so that one that crashes, hangs or eats memory is a CheckFailed and the next goes on in a
process that has all its imports done. Inside it, environment code and verifiers run confined.
"""

import asyncio
import base64
import gc
import json
import os
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, Final

from pydantic import TypeAdapter, ValidationError

from awm_runtime import (
    batches,
    check_app,
    children,
    clock,
    confine,
    contract,
    dump,
    environment,
    explore,
    inspection,
    seed,
    state_trial,
    syntax,
    trials,
    verify,
)
from awm_runtime.children import ChildFailed
from awm_runtime.contract import (
    AppReply,
    AppRequest,
    CallsReply,
    CallsRequest,
    CheckEnvelope,
    CheckFailed,
    CheckReply,
    ExploreRequest,
    InspectRequest,
    LoadReply,
    LoadRequest,
    ParseRequest,
    Playthrough,
    ReplyEnvelope,
    ToolResult,
    TrialsRequest,
    VerifyReply,
    VerifyRequest,
)
from awm_runtime.environment import Environment
from awm_runtime.homes import Home, Homes
from awm_runtime.patience import patient
from awm_runtime.references import filled_in
from awm_runtime.settings import Settings
from awm_runtime.state_trial import Seen

_REPLY: Final[TypeAdapter[CheckReply]] = TypeAdapter(CheckReply)
_ENOUGH: Final = 3600.0
_TRIAL: Final = 10.0
_REUSING: Final = (AppRequest, TrialsRequest, ExploreRequest)
_JOBS: Final = {
    "interleave": check_app.interleaver,
    "app": check_app.checker,
    "play": trials.player,
    "explore": explore.explorer,
    "probe": explore.prober,
    "repeat": explore.repeater,
}


def answer(envelope: CheckEnvelope, memory: int, homes: Homes) -> CheckReply:
    """Carry out one check. What its child does wrong is in the reply."""
    request = envelope.request
    home = homes.of(request.source) if isinstance(request, _REUSING) and request.reuse else None

    def carry_out() -> bytes:
        return _carry_out(request, memory, home).model_dump_json().encode()

    try:
        return _REPLY.validate_json(children.run(carry_out, envelope.time_limit))
    except ChildFailed as failure:
        if home is not None:
            homes.drop(home)
        return CheckFailed(reason=failure.reason, message=str(failure))
    except ValidationError as error:
        return CheckFailed(reason="crashed", message=f"its reply is broken: {error.errors()[0]['msg']}")


def _carry_out(request: Any, memory: int, home: Home | None) -> CheckReply:
    """Runs in the child of one check."""
    match request:
        case LoadRequest():
            return _load(request, memory)
        case AppRequest():
            return _app(request, memory, home)
        case VerifyRequest():
            return _verify(request)
        case CallsRequest():
            return _calls(request, memory)
        case TrialsRequest():
            return trials.play_all(request, memory, home)
        case InspectRequest():
            return inspection.inspect(request)
        case ExploreRequest():
            return explore.explore(request, memory, home)
        case ParseRequest():
            _confine(memory)
            return syntax.parse(request.code)
    raise AssertionError(request)


def _confine(memory: int) -> None:
    os.environ.clear()
    environment.prepare_process()
    confine.confine(confine.python_paths(), confine.Limits(memory=memory), may_fork=False)


def _load(request: LoadRequest, memory: int) -> LoadReply:
    os.environ.clear()
    clock.install()
    confine.confine(confine.python_paths(), confine.Limits(memory=memory), may_fork=False)
    return seed.load(request)


def _app(request: AppRequest, memory: int, home: Home | None) -> AppReply:
    source = request.source
    if home is not None:
        tried = batches.each(1, home.forks("interleave", b""), _TRIAL).pieces[0]
        seen = Seen() if isinstance(tried, ChildFailed) else Seen(**json.loads(tried))
        order = json.dumps({"source": source.model_dump(mode="json"), "seen": vars(seen)}).encode()
        found = batches.each(1, home.forks("app", order), _ENOUGH).pieces[0]
        if isinstance(found, ChildFailed):
            raise found
        return AppReply.model_validate_json(found)

    def load() -> Environment:
        return Environment(source.app_code, base64.b64decode(source.db), source.world_time)

    def interleaved() -> bytes:
        _confine(memory)
        return json.dumps(vars(asyncio.run(state_trial.interleaved(load())))).encode()

    try:
        seen = Seen(**json.loads(children.run(interleaved, patient(_TRIAL))))
    except ChildFailed:
        seen = Seen()  # what does not load, hangs or crashes is found by what follows
    _confine(memory)
    return check_app.check(source, load, seen)


def _verify(request: VerifyRequest) -> VerifyReply:
    initial, final = base64.b64decode(request.initial_db), base64.b64decode(request.final_db)
    now = clock.parse_world_time(request.world_time)
    return VerifyReply(
        verdicts=[verify.verify(source, initial, final, request.final_answer, now) for source in request.verifiers]
    )


def _calls(request: CallsRequest, memory: int) -> CallsReply:
    """Stays outside the confinement itself: the environment plays in one child, each verifier judges in another."""

    def play() -> bytes:
        _confine(memory)
        source = request.source
        return asyncio.run(_play(Environment(source.app_code, base64.b64decode(source.db), source.world_time), request))

    runs: list[Playthrough] = []
    now = clock.parse_world_time(request.source.world_time) + len(request.calls)
    for _ in range(request.repeat):
        played = json.loads(children.run(play, _ENOUGH))
        initial, final = base64.b64decode(played["initial"]), base64.b64decode(played["db"])
        results = [ToolResult.model_validate(result) for result in played["results"]]
        faults = sum(result.kind in ("internal", "timeout", "crashed") for result in results)
        verdicts = [
            verify.verify(source, initial, final, request.final_answer, now).model_copy(update={"internal_errors": faults})
            for source in request.verifiers
        ]
        runs.append(Playthrough(results=results, verdicts=verdicts, db=played["db"], dump_sha256=played["dump_sha256"]))
    return CallsReply(runs=runs)


async def _play(env: Environment, request: CallsRequest) -> bytes:
    """Runs in the environment's child."""
    slot, state = env.new_slot(), None
    results: list[ToolResult] = []
    for step, call in enumerate(request.calls, 1):
        try:
            arguments = filled_in(call.arguments, results)
        except LookupError as error:
            content = {"error": {"kind": "invalid_arguments", "message": str(error)}}
            results.append(ToolResult(is_error=True, kind="invalid_arguments", status=None, content=content))
            continue
        played = await env.play(slot, state, call.tool, arguments, request.seed, step)
        state = played.content or state
        results.append(played.outcome.result())
    final = state or env.seed
    reply = {
        "results": [result.model_dump(mode="json") for result in results],
        "initial": base64.b64encode(env.seed).decode(),
        "db": base64.b64encode(final).decode(),
        "dump_sha256": dump.digest(dump.open_bytes(final)),
    }
    return json.dumps(reply).encode()


def serve(lines: BinaryIO, write: Callable[[bytes], None], memory: int) -> None:
    homes = Homes(_JOBS, memory)
    for line in lines:
        if not line.strip():
            continue
        try:
            envelope = CheckEnvelope.model_validate_json(line)
        except ValidationError as error:
            reply = ReplyEnvelope(id=_id(line), reply=CheckFailed(reason="bad_request", message=str(error)[:2000]))
        else:
            reply = ReplyEnvelope(id=envelope.id, reply=answer(envelope, memory, homes))
        write(reply.model_dump_json().encode() + b"\n")


def _id(line: bytes) -> int:
    try:
        return int(json.loads(line)["id"])
    except (ValueError, TypeError, LookupError):
        return -1


def main() -> None:
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets of strings must not differ from run to run; Python takes this setting at its start only.
        os.execve(sys.executable, [sys.executable, "-m", "awm_runtime.checks"], {**os.environ, "PYTHONHASHSEED": "0"})
    settings = Settings.read()
    output = os.dup(1)
    os.dup2(2, 1)  # whatever prints, generated code above all, must not write into the protocol
    # Once, for all checks to come: what each child would otherwise do after its fork.
    contract.build()
    clock.install()
    confine.python_paths()
    gc.collect()
    gc.freeze()

    def write(data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(output, view) :]

    serve(sys.stdin.buffer, write, settings.check_memory)


if __name__ == "__main__":
    main()
