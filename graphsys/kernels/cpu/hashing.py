"""Hashes of ids, the same on every machine.

Integers go through the finaliser of splitmix64 (Steele, Lea, Flood, "Fast splittable
pseudorandom number generators", OOPSLA 2014), a bijection of 64-bit words; strings are
folded eight bytes at a time through the same mixer.
"""

import numpy as np
import numpy.typing as npt

from graphsys.kernels.jit import inline_jit, jit


@inline_jit
def mix64(word: np.uint64) -> np.uint64:
    """Scramble a 64-bit word; a bijection."""
    word = np.uint64(word) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@inline_jit
def random_fraction(seed: int, node: int, draw: int) -> float:
    """Return a number in [0, 1) that depends on the arguments alone."""
    word = mix64(np.uint64(np.int64(seed)))
    word = mix64(word ^ np.uint64(np.int64(node)))
    word = mix64(word ^ np.uint64(np.int64(draw)))
    return np.float64(word >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@jit
def hash_integers(ids: npt.NDArray[np.integer], out: npt.NDArray[np.uint64]) -> None:
    """Hash every id.

    Args:
        ids: Integers ``[N]``, any integer dtype.
        out: Receives the hashes, uint64 ``[N]``.
    """
    for k in range(len(ids)):
        out[k] = mix64(np.uint64(ids[k]))


@inline_jit
def hash_bytes(data: npt.NDArray[np.uint8], begin: int, end: int) -> np.uint64:
    """Hash the bytes ``data[begin:end]``; the length takes part."""
    state = mix64(np.uint64(end - begin))
    k = begin
    while k + 8 <= end:
        word = np.uint64(0)
        for b in range(8):
            word |= np.uint64(data[k + b]) << np.uint64(8 * b)
        state = mix64(state ^ word)
        k += 8
    if k < end:
        word = np.uint64(0)
        for b in range(end - k):
            word |= np.uint64(data[k + b]) << np.uint64(8 * b)
        state = mix64(state ^ word)
    return state


@jit
def hash_strings(
    offsets: npt.NDArray[np.integer],
    data: npt.NDArray[np.uint8],
    out: npt.NDArray[np.uint64],
) -> None:
    """Hash every string of an Arrow string array.

    Args:
        offsets: Starts of the strings in ``data`` and the end of the last, ``[N + 1]``.
        data: UTF-8 bytes.
        out: Receives the hashes, uint64 ``[N]``.
    """
    for k in range(len(out)):
        out[k] = hash_bytes(data, offsets[k], offsets[k + 1])
