"""What `GET /status` answers: containers, scenarios, leases and queue."""

from pydantic import BaseModel, ConfigDict


class ContainerStatus(BaseModel):
    model_config = ConfigDict(frozen=True)

    host: str
    address: str
    episodes: int
    capacity: int
    accepting: bool
    """False where it has not answered of late; it keeps its episodes and gets no new ones."""


class ScenarioStatus(BaseModel):
    model_config = ConfigDict(frozen=True)

    env_id: str
    leases: int
    waiting: int
    containers: list[ContainerStatus]


class Status(BaseModel):
    model_config = ConfigDict(frozen=True)

    leases: int
    waiting: int
    episodes: int
    capacity: int
    scenarios: list[ScenarioStatus]
