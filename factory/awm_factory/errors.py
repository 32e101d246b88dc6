"""Every fatal error of the host side, with its exit code and the next step in its message.

    AwmError
    ├── UsageError            the command line or a value on it makes no sense
    ├── ConfigError           an environment variable or a config file is wrong
    ├── FormatError           a file of an AWM run directory can't be read
    ├── BundleError           an environment's directory is not a bundle
    ├── CatalogError          the workspace or its registry/ folder is unusable
    ├── EngineError           no Docker engine answers, or it refuses what we ask
    │   └── HubUnavailable        the registry of the OS image does not answer now, or limits us
    ├── SandboxError          the place where generated code runs broke (not the code itself)
    ├── BuildError            an image could not be built
    ├── SmokeError            a built image does not behave as its manifest says
    ├── PushError             a registry refused an image, or lost it on the way
    ├── StoreError            the database of runs can't be opened, or is of another version
    ├── ModelError            a language model gave nothing that can be used; `retry` says what may help
    │   ├── AnswerError           it answered, and the answer was paid for
    │   │   ├── Truncated             it stops in the middle
    │   │   ├── EmptyReply            it holds no text and no tool call
    │   │   ├── Filtered              a content filter withheld it
    │   │   ├── Refused               the model declined
    │   │   └── Malformed             it is not the JSON or the Python that was asked for
    │   ├── RateLimited           too many requests for the endpoint, again and again
    │   ├── OutOfQuota            the account has nothing left to spend
    │   ├── ProviderError         the endpoint answered with an error; `status` is its HTTP status
    │   ├── ConnectionLost        the endpoint could not be reached, or hung up in the middle of an answer
    │   ├── TimedOut              no byte came for as long as we wait
    │   └── RecordingMissing      a replay has no answer to this request
    ├── Fault                 an episode failed; `fault` says whose it is, `masked` that it must not be trained on
    │   ├── PolicyFault           the policy's
    │   │   └── MalformedCall         a call to an unknown tool, or arguments that are no JSON object: AWM's format error
    │   ├── EnvironmentFault      the environment's own: a tool or a verifier that failed
    │   └── InfrastructureFault   the container's, the network's or the fleet's
    │       └── EpisodeLost           its container died or was restarted, or its lease has ended; reset begins another
    ├── BudgetSpent           the next call might cost more than `--budget` leaves
    └── BatchFailed           some environments of a batch failed; the others are done

A broken *artifact* is never one of these: it is a `Problem` (see `problems.py`).
"""

from typing import ClassVar, Literal

Retry = Literal["same", "changed", "never"]
Whose = Literal["policy", "environment", "infrastructure"]


class AwmError(Exception):
    """Root of all errors that end a command. `exit_code` is the process's."""

    exit_code = 1


class UsageError(AwmError):
    exit_code = 2


class ConfigError(AwmError):
    exit_code = 2


class FormatError(AwmError):
    exit_code = 3


class BundleError(AwmError):
    exit_code = 3


class CatalogError(AwmError):
    exit_code = 3


class EngineError(AwmError):
    exit_code = 4


class HubUnavailable(EngineError):
    """No fault of the reference's, so another way to an OS image may be taken; `short` is the cause without the remedy."""

    def __init__(self, short: str, remedy: str) -> None:
        super().__init__(f"{short}. {remedy}")
        self.short = short


class SandboxError(AwmError):
    exit_code = 4


class BuildError(AwmError):
    exit_code = 5


class SmokeError(AwmError):
    exit_code = 5


class PushError(AwmError):
    exit_code = 6


class StoreError(AwmError):
    exit_code = 7


class ModelError(AwmError):
    """`retry`: may the very same request work later (`same`), must it change (`changed`), or is it hopeless (`never`)?"""

    exit_code = 8
    retry: ClassVar[Retry] = "same"
    attempts: int = 1
    """Requests sent before giving up."""
    unmetered: int = 0
    """Of those, requests that broke off before the endpoint said how many tokens it counted."""


class AnswerError(ModelError):
    retry: ClassVar[Retry] = "changed"


class Truncated(AnswerError):
    pass


class EmptyReply(AnswerError):
    retry: ClassVar[Retry] = "same"


class Filtered(AnswerError):
    pass


class Refused(AnswerError):
    pass


class Malformed(AnswerError):
    pass


class RateLimited(ModelError):
    retry_after: float | None = None
    """Seconds the endpoint asks us to wait."""


class OutOfQuota(ModelError):
    retry: ClassVar[Retry] = "never"


class ProviderError(ModelError):
    """A status of 408, 409 or 5xx may pass; any other says that the request itself is wrong."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after: float | None = None

    @property
    def transient(self) -> bool:
        return self.status in {408, 409, 425} or self.status >= 500


class ConnectionLost(ModelError):
    pass


class TimedOut(ModelError):
    """Never repeated by the client: the answer may be under way, and billed, although we stopped waiting."""

    retry: ClassVar[Retry] = "changed"


class RecordingMissing(ModelError):
    retry: ClassVar[Retry] = "never"


class Fault(AwmError):
    """`code` tells causes of one party apart, for counting."""

    exit_code = 10
    fault: ClassVar[Whose]
    masked: ClassVar[bool] = True

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class PolicyFault(Fault):
    fault = "policy"
    masked = False


class MalformedCall(PolicyFault):
    pass


class EnvironmentFault(Fault):
    fault = "environment"


class InfrastructureFault(Fault):
    fault = "infrastructure"


class EpisodeLost(InfrastructureFault):
    pass


class BudgetSpent(AwmError):
    exit_code = 9


class BatchFailed(AwmError):
    exit_code = 1
