"""Checksums at memory speed: XXH3 of 128 bits (Collet, https://xxhash.com).

They find damage, not forgery: whoever can write a file can write its checksum too.
"""

import hashlib
from pathlib import Path
from typing import Any, Final

import xxhash

from graphsys.core.plain_files import open_plain

PREFIX: Final = "xxh3:"
_PIECE: Final = 1 << 20


def digest(*pieces: Any) -> str:
    """Return the checksum of bytes, given whole or in pieces.

    Args:
        pieces: Contiguous buffers: bytes, memory views, arrays.

    Returns:
        ``xxh3:`` and 32 hexadecimal digits.

    Examples:
        >>> digest(b"graph") == digest(b"gr", b"aph")
        True
    """
    state = xxhash.xxh3_128()
    for piece in pieces:
        state.update(piece)
    return PREFIX + state.hexdigest()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hex, which others publish and earlier stores have."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_digest(path: Path, *, num_bytes: int | None = None) -> str:
    """Return the checksum of a file, or of its first bytes.

    Raises:
        OSError: It cannot be read, or is no plain file.
    """
    state, left = xxhash.xxh3_128(), num_bytes
    buffer = memoryview(bytearray(_PIECE))
    with open_plain(path) as file:
        while left is None or left > 0:
            got = file.readinto(buffer[: _PIECE if left is None else min(left, _PIECE)])
            if not got:
                break
            state.update(buffer[:got])
            left = None if left is None else left - got
    return PREFIX + state.hexdigest()
