"""Tool names that clients accept, stable from build to build."""

import hashlib
import re
from typing import Final

LEGAL: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
"""What OpenAI's and Anthropic's APIs accept as the name of a function."""

_SHORT: Final = 48
"""Length of names that we make, so that a client's `server__` prefix still fits below 64."""


def legal_name(operation_id: str) -> str:
    """The operation id itself where it is a legal name, else its readable part and 8 hex digits of its SHA-256."""
    return operation_id if LEGAL.match(operation_id) else distinct_name(operation_id, operation_id)


def distinct_name(operation_id: str, identity: str) -> str:
    """A legal name that differs for every `identity`."""
    digest = hashlib.sha256(identity.encode()).hexdigest()[:8]
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", operation_id).strip("_")[: _SHORT - 9].rstrip("_")
    return f"{readable or 'tool'}_{digest}"
