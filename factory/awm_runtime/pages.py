"""An episode's database as what it differs in from the seed: a few pages instead of a whole copy."""

import struct
from typing import Final

_BLOCK: Final = 4096
_SIZE: Final = struct.Struct("!Q")
_INDEX: Final = struct.Struct("!I")


def delta(seed: bytes, content: bytes) -> bytes:
    parts = [_SIZE.pack(len(content))]
    for index in range(0, len(content), _BLOCK):
        block = content[index : index + _BLOCK]
        if block != seed[index : index + _BLOCK]:
            parts += (_INDEX.pack(index // _BLOCK), block)
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
