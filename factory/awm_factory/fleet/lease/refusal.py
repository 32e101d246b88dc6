"""What the lease service can't do, as its callers are told."""

from typing import Final, Literal

from awm_factory.client.wire import EndReason, ErrorDetail, ErrorReply

RETRY_AFTER: Final = 2
"""Seconds after which a caller who was refused for want of room may ask again."""

Whose = Literal["infrastructure", "usage"]


class Refusal(Exception):
    def __init__(self, status: int, code: str, message: str, fault: Whose = "usage", retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.fault, self.retry_after = status, code, message, fault, retry_after

    def body(self) -> bytes:
        return ErrorReply(error=ErrorDetail(fault=self.fault, code=self.code, message=self.message)).model_dump_json().encode()

    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"retry-after": str(self.retry_after)}


_ENDED: Final[dict[EndReason, tuple[Whose, str]]] = {
    "released": ("usage", "the lease was released; take another with POST /leases"),
    "expired": ("usage", "the lease expired, as no heartbeat came in its time; send them, or ask for a longer ttl"),
    "container_died": (
        "infrastructure",
        "the episode's container died or was restarted; take another lease",
    ),
    "service_error": ("infrastructure", "the fleet lost the episode; take another lease"),
}


def ended(reason: EndReason) -> Refusal:
    fault, message = _ENDED[reason]
    return Refusal(410, reason, message, fault)
