"""What a trainer imports: environments to play in, alone or out of a fleet. `awm_factory.client.sync` is the same without async.

Importing it loads aiohttp and pydantic; Docker's SDK is loaded by `AwmEnv.from_image` alone.
"""

from awm_factory.client.env import AwmEnv
from awm_factory.client.fleet import Fleet
from awm_factory.client.results import CallResult, Tool, Verdict
from awm_factory.errors import (
    AwmError,
    EnvironmentFault,
    EpisodeLost,
    Fault,
    InfrastructureFault,
    MalformedCall,
    PolicyFault,
    UsageError,
)

__all__ = [
    "AwmEnv",
    "AwmError",
    "CallResult",
    "EnvironmentFault",
    "EpisodeLost",
    "Fault",
    "Fleet",
    "InfrastructureFault",
    "MalformedCall",
    "PolicyFault",
    "Tool",
    "UsageError",
    "Verdict",
]
