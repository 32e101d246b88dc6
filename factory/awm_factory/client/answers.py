"""Answers of a container or a lease service, read: what was asked for, or an error that says whose fault it is."""

from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from awm_factory.client.connections import Reply
from awm_factory.client.wire import ErrorDetail, ErrorReply
from awm_factory.errors import AwmError, EnvironmentFault, EpisodeLost, InfrastructureFault, PolicyFault, UsageError

M = TypeVar("M", bound=BaseModel)

_NOT_THERE: Final = ("there is no task", "has no verifier")
"""How the runtime speaks of what a container never had; any other 404 speaks of an episode."""

_NOT_HELD: Final = ("unknown_lease", "unknown_episode")
"""How a lease service speaks of what it does not hold, or not any more."""


def read(reply: Reply, kind: type[M]) -> M:
    """Raises AwmError."""
    good(reply)
    try:
        return kind.model_validate_json(reply.body)
    except ValidationError as error:
        raise InfrastructureFault(f"{reply.request} answered no {kind.__name__}: {error}; is this a server of ours?") from error


def good(reply: Reply) -> Reply:
    """The answer, where its status is good. Raises AwmError."""
    if reply.status < 300:
        return reply
    status, detail = reply.status, _detail(reply)
    if detail is not None:
        raise _as_said(detail, status)
    message = _message(reply)
    said = f"{reply.request} answered {status}: {message}"
    if status in (401, 403):
        raise UsageError(f"{said}; pass the token of the container or the fleet")
    if status in (404, 410) and not any(words in message for words in _NOT_THERE):
        raise EpisodeLost(f"{said}; mask this episode, reset begins another", "episode_lost")
    if status == 429:
        raise InfrastructureFault(f"{said}; ask for fewer episodes at once", "full")
    if status >= 500:
        raise InfrastructureFault(f"{said}; mask this episode", "server_error")
    raise UsageError(said)


def _as_said(detail: ErrorDetail, status: int) -> AwmError:
    if detail.fault == "policy":
        return PolicyFault(detail.message, detail.code)
    if detail.fault == "environment":
        return EnvironmentFault(detail.message, detail.code)
    # A lease that ended while it was held, whoever was late, leaves an episode that must be masked.
    if (status == 410 and detail.code != "released") or detail.code in _NOT_HELD:
        return EpisodeLost(f"{detail.message}; mask this episode, reset begins another", detail.code)
    return UsageError(detail.message) if detail.fault == "usage" else InfrastructureFault(detail.message, detail.code)


def _detail(reply: Reply) -> ErrorDetail | None:
    try:
        return ErrorReply.model_validate_json(reply.body).error
    except ValidationError:
        return None


def _message(reply: Reply) -> str:
    """What the runtime says: `{"error": "…"}` on its control plane, a JSON-RPC error on MCP."""
    try:
        error = reply.json()["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, LookupError, TypeError):
        return reply.text[:300] or "nothing"
