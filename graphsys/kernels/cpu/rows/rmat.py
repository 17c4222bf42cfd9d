"""R-MAT (Kronecker) edges, each computed from its number alone.

Returns: source and destination of the edges ``first .. first + E - 1``.

Method: Chakrabarti, Zhan, Faloutsos, "R-MAT: a recursive model for graph mining", SDM
2004: an edge falls into one quadrant of the adjacency matrix per level, with
probabilities a, b, c, d. The draw of (edge, level) is 32 bits of splitmix64 keyed by
(seed, edge, level), compared with the probabilities in 32-bit fixed point, so edges are
the same on every machine, for any number of threads and any chunk size; no state is
carried, and two levels share one hash.

Departs from the paper: no smoothing noise per level (neither GAP nor Graph500 use it).
Labels are scrambled by a keyed bijection on ``scale`` bits (odd multiplications and
xor-shifts), which needs no table, where GAP and Graph500 shuffle an array.
"""

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.jit import inline_jit, jit

_ROUNDS = 3


@inline_jit
def scramble(label: np.uint64, scale: int, key: np.uint64) -> np.uint64:
    """Permute the labels ``0 .. 2**scale - 1``; a bijection for every key."""
    mask = (np.uint64(1) << np.uint64(scale)) - np.uint64(1)
    half = np.uint64((scale + 1) // 2)
    for turn in range(_ROUNDS):
        word = mix64(key + np.uint64(turn))
        label = (label * (word | np.uint64(1)) + (word >> np.uint64(7))) & mask
        label ^= label >> half
    return label


@jit
def scramble_range(
    first: int, scale: int, key: np.uint64, out: npt.NDArray[np.int64]
) -> None:
    """Permute the labels ``first .. first + N - 1`` into ``out``, int64 ``[N]``."""
    for k in range(len(out)):
        out[k] = np.int64(scramble(np.uint64(first + k), scale, key))


@jit
def rmat_edges(
    first: int,
    scale: int,
    limits: npt.NDArray[np.uint64],
    keys: npt.NDArray[np.uint64],
    is_scrambled: bool,
    src: npt.NDArray[np.int64],
    dst: npt.NDArray[np.int64],
) -> None:
    """Draw the edges ``first .. first + E - 1``.

    Args:
        first: Number of the first edge.
        scale: Levels; there are ``2**scale`` nodes.
        limits: a, a + b and a + b + c times 2**32, uint64 ``[3]``.
        keys: Key of the draws and key of the labels, uint64 ``[2]``.
        is_scrambled: Permute the labels.
        src: Receives the sources, int64 ``[E]``.
        dst: Receives the destinations, int64 ``[E]``.
    """
    a, ab, abc = limits[0], limits[1], limits[2]
    draw_key, label_key = keys[0], keys[1]
    low = np.uint64(0xFFFFFFFF)
    one = np.uint64(1)
    hashes = np.uint64((scale + 1) // 2)
    for k in range(len(src)):
        u = np.uint64(0)
        v = np.uint64(0)
        counter = draw_key + np.uint64(first + k) * np.uint64(32)
        for h in range(hashes):
            word = mix64(counter + np.uint64(h))
            r = word & low
            u = (u << one) | np.uint64(r >= ab)
            v = (v << one) | (np.uint64(r >= a) ^ np.uint64(r >= ab) ^ np.uint64(r >= abc))
            r = word >> np.uint64(32)
            u = (u << one) | np.uint64(r >= ab)
            v = (v << one) | (np.uint64(r >= a) ^ np.uint64(r >= ab) ^ np.uint64(r >= abc))
        if scale & 1:  # the last hash had one level too many
            u >>= one
            v >>= one
        if is_scrambled:
            u = scramble(u, scale, label_key)
            v = scramble(v, scale, label_key)
        src[k] = np.int64(u)
        dst[k] = np.int64(v)


@jit
def uniform_integers(
    first: int, key: np.uint64, low: int, high: int, out: npt.NDArray[np.int64]
) -> None:
    """Draw one integer in ``low .. high`` for each edge from ``first`` on, ``[E]``."""
    span = np.uint64(high - low + 1)
    for k in range(len(out)):
        word = mix64(key + np.uint64(first + k)) >> np.uint64(32)
        out[k] = low + np.int64((word * span) >> np.uint64(32))


@jit
def uniform_fractions(first: int, key: np.uint64, out: npt.NDArray[np.float32]) -> None:
    """Draw one number in [0, 1), 24 bits, for each edge from ``first`` on, ``[E]``."""
    for k in range(len(out)):
        word = mix64(key + np.uint64(first + k)) >> np.uint64(40)
        out[k] = np.float32(word) * np.float32(1.0 / 16777216.0)
