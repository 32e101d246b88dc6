"""What a trainer and a fleet's lease service say to each other, as JSON over HTTP.

Every route but `GET /health` asks for `Authorization: Bearer <fleet token>`. The agent's URLs ask for nothing: the episode's id
in them is the capability.

    POST   /leases                  LeaseRequest   201 Lease; 404 no such environment; 429 with Retry-After past the queue's bound
    GET    /leases/{id}                            Lease; 410 with the reason where it has ended
    POST   /leases/{id}/heartbeat   Heartbeat      Lease; 410 as above
    DELETE /leases/{id}                            204, also where it has ended already
    *      <control_url>/…                         the episode's control routes, answered as its container does, but for fork

Errors carry an ErrorReply.
"""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

LEASE_TTL: Final = 600.0
"""Seconds a lease lives after its last heartbeat."""

WAIT: Final = 60.0
"""Seconds a request may queue for a free episode."""

EndReason = Literal["released", "expired", "container_died", "service_error"]
"""Why a lease ended; the `code` of a 410."""


class Asked(BaseModel):
    """What a trainer sends; a misspelt field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Answered(BaseModel):
    """What a service answers; a client passes over fields of a newer one."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class LeaseRequest(Asked):
    env_id: str
    task_id: int | None = None
    seed: int | None = None
    ttl: Annotated[float, Field(gt=0)] = LEASE_TTL
    wait: Annotated[float, Field(ge=0)] = WAIT


class Heartbeat(Asked):
    ttl: Annotated[float, Field(gt=0)] | None = None
    """Seconds from now; the lease's own where it is not given."""


class Seat(Answered):
    """An episode as a trainer reaches it. `POST <control_url>/fork` answers one for the twin, which ends with its lease.

    `DELETE <control_url>` of a twin ends it before.
    """

    env_id: str
    task_id: int | None
    instruction: str | None
    episode_id: str
    agent_url: str
    """An MCP endpoint that an agent may be handed: it takes no token and leads nowhere else."""
    control_url: str
    """Prefix of `/verify`, `/reset`, `/fork`, `/diff`, `/db` and `/mcp`; asks for the fleet token."""


class Lease(Seat):
    lease_id: str
    expires_at: float
    """Unix seconds."""
    ttl: float


class ErrorDetail(Answered):
    fault: Literal["policy", "environment", "infrastructure", "usage"]
    code: str
    message: str
    """What happened, and what to do next."""


class ErrorReply(Answered):
    error: ErrorDetail
