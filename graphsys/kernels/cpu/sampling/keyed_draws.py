"""Draws of edges and candidates keyed by user ids, so that no layout changes them.

Whoever has the k smallest of such numbers is a sample without replacement, found in one
pass in any order (bottom-k; with weights: Efraimidis, Spirakis, "Weighted random sampling
with a reservoir", IPL 2006).
"""

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.jit import jit

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]


@jit
def edge_keys(
    src_keys: Words,
    dst_keys: Words,
    relation_keys: Words,
    src: Ints,
    relation: Ints,
    dst: Ints,
    out: Words,
) -> None:
    """Give every edge a number that depends on the names in it alone.

    Args:
        src_keys: Hashes of the sources' ids ``[N]``.
        dst_keys: Hashes of the destinations' ids ``[M]``.
        relation_keys: Hashes of the relations' names ``[R]``.
        src: Where each source stands in ``src_keys`` ``[E]``.
        relation: Where each relation stands in ``relation_keys`` ``[E]``.
        dst: Where each destination stands in ``dst_keys`` ``[E]``.
        out: Receives the numbers ``[E]``.
    """
    for e in range(len(src)):
        word = mix64(relation_keys[relation[e]])
        word = mix64(word ^ src_keys[src[e]])
        out[e] = mix64(word ^ mix64(dst_keys[dst[e]]))


@jit
def node_draws(
    keys: Words, weights: Ints, seed: np.uint64, out: npt.NDArray[np.float64]
) -> None:
    """Draw for every node an exponential number with its weight as rate.

    Args:
        keys: Hashes of the nodes' ids ``[N]``.
        weights: Their weights ``[N]``, or empty for 1 each; without weight: infinity.
        seed: Of this draw.
        out: Receives the numbers ``[N]``; the smallest are the sample.
    """
    for k in range(len(keys)):
        weight = weights[k] if len(weights) else 1
        word = mix64(np.uint64(seed) ^ mix64(keys[k]))
        fraction = (np.float64(word >> np.uint64(11)) + 0.5) / 9007199254740992.0
        out[k] = -np.log(fraction) / weight if weight > 0 else np.inf
