"""An episode's database as what it differs in from the seed: a few pages instead of a whole copy."""

import struct
from typing import Final

_BLOCK: Final = 4096
_REGION: Final = 16 * _BLOCK
_SIZE: Final = struct.Struct("!Q")
_INDEX: Final = struct.Struct("!I")


def delta(seed: bytes, content: bytes, header: bytes = b"") -> bytes:
    """What `apply` makes the content of again; `header` stands in the place of its first bytes."""
    parts = [_SIZE.pack(len(content))]
    known = memoryview(seed)
    if header:
        first = header + content[len(header) : _BLOCK]
        if first != seed[: len(first)]:
            parts += (_INDEX.pack(0), first)
    for region in range(0, len(content), _REGION):
        # Compared in place, and a region at a time where nothing did change, which is nearly everywhere.
        if region + _REGION <= len(seed) and content.startswith(known[region : region + _REGION], region):
            continue
        for start in range(region or (_BLOCK if header else 0), min(region + _REGION, len(content)), _BLOCK):
            end = min(start + _BLOCK, len(content))
            if end > len(seed) or not content.startswith(known[start:end], start):
                parts += (_INDEX.pack(start // _BLOCK), content[start:end])
    return b"".join(parts)


def apply(seed: bytes, changes: bytes | None) -> bytes:
    """The content that `delta` was made of; None stands for the seed itself."""
    if changes is None:
        return seed
    (size,) = _SIZE.unpack_from(changes)
    content = bytearray(seed[:size].ljust(size, b"\0"))
    position = _SIZE.size
    while position < len(changes):
        (index,) = _INDEX.unpack_from(changes, position)
        position += _INDEX.size
        start = index * _BLOCK
        length = min(_BLOCK, size - start)
        content[start : start + length] = changes[position : position + length]
        position += length
    return bytes(content)
