"""Names made safe once, at the edge: scenario name to `env_id`, and nothing else ever derives one."""

import hashlib
import re
import unicodedata

from awm_factory.errors import UsageError

MAX_LENGTH = 63
"""A DNS label's limit (RFC 1035), so that an env_id with hyphens is also a host name."""

_PLAIN = re.compile(r"[A-Za-z0-9]+(?:[ _][A-Za-z0-9]+)*\Z")
_VALID = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*\Z")


def env_id(scenario: str) -> str:
    """The one safe name of a scenario: lower case, `[a-z0-9_]`, at most 63 characters.

    Plain names take AWM's own form (`E commerce 33` is `e_commerce_33`), so spellings that differ only in case, spaces and
    underscores are one scenario, and an env_id's own env_id is itself. Every other name gets the first 8 hex digits of the
    SHA-256 of its NFC form, so that two different names never share one.

    Raises UsageError for a name without any visible character, for "." and "..", and for one that holds half a character.
    """
    name = unicodedata.normalize("NFC", scenario)
    if name in {".", ".."} or all(unicodedata.category(character)[0] in "ZC" for character in name):
        raise UsageError(f"scenario name {scenario!r} holds nothing to name an environment by; give it a real name")
    if _PLAIN.match(name) and len(name) <= MAX_LENGTH:
        return name.lower().replace(" ", "_")
    try:
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    except UnicodeEncodeError as error:
        raise UsageError(f"scenario name {scenario!r} is not valid Unicode; correct it where it comes from") from error
    ascii_only = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "_", ascii_only).strip("_")[: MAX_LENGTH - 9].strip("_")
    return f"{slug or 'env'}_{digest}"


def is_env_id(text: str) -> bool:
    return len(text) <= MAX_LENGTH and _VALID.match(text) is not None


def host_name(env: str) -> str:
    """The env_id as a host name and Compose service."""
    return env.replace("_", "-")


def container_name(env: str) -> str:
    """The env_id as a container name, which Docker wants at least two characters long."""
    return f"awm-{host_name(env)}"
