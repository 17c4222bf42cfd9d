"""Candidates that are known answers: looked up in the rows of the store's index.

The rows are sorted by neighbor. The candidates are sorted once per chunk; then a short
row looks its neighbors up among them, and they look themselves up in a long one. So
nothing is hashed and no edge is copied.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.searching import lower_bound
from graphsys.kernels.jit import jit

Ints = npt.NDArray[np.int64]
_SHORT = 4  # rows of up to so many times the candidates are read through


class Known(NamedTuple):
    """The edges of one partition's nodes, as the store's index has them.

    Attributes:
        indptr: Where the row of each node begins, ``[N + 1]``; empty: nothing is known.
        indices: Numbers of the neighbors in their type, ascending in a row.
        relation: Relation of each, or empty for one relation.
        first: Number of the first node of the partition that candidates are of.
        num_nodes: Nodes of that partition.
    """

    indptr: npt.NDArray[np.uint32]
    indices: npt.NDArray[np.uint32]
    relation: npt.NDArray[np.uint16]
    first: int
    num_nodes: int


class Masks(NamedTuple):
    """Candidates that do not count for a query.

    Attributes:
        starts: Where the positions of each query begin, int64 ``[n + 1]``, or empty: no
            candidate is masked.
        positions: Positions of candidates, int32.
    """

    starts: Ints
    positions: npt.NDArray[np.int32]


@jit
def allocate_masks(num_queries: int, num_candidates: int, is_used: bool) -> Masks:
    """Make room for masks, or for none."""
    if not is_used:
        return Masks(np.empty(0, np.int64), np.empty(0, np.int32))
    positions = np.empty(num_queries * num_candidates, np.int32)
    return Masks(np.empty(num_queries + 1, np.int64), positions)


@jit
def _note(
    keys: Ints, node: np.int64, positions: npt.NDArray[np.int32], at: np.int64
) -> np.int64:
    """Append the positions of the candidates that are a node; return the new end."""
    k = keys.size
    place = lower_bound(keys, np.int64(0), np.int64(k), node * k)
    while place < k and keys[place] // k == node and at < positions.size:
        positions[at] = keys[place] % k
        at += 1
        place += 1
    return at


@jit
def find_known(
    known: Known,
    rows: Ints,
    relations: Ints,
    num_queries: int,
    nodes: Ints,
    num_candidates: int,
    masks: Masks,
) -> None:
    """List for every query the candidates that are known answers.

    Args:
        known: What is known.
        rows: Local number of every query's node, ``[n]`` or more.
        relations: Relation of every query, ``[n]`` or more.
        num_queries: n.
        nodes: Local numbers of the candidates, ``[k]`` or more.
        num_candidates: k.
        masks: Receives the positions, for at least ``n * k`` of them.
    """
    k, end = num_candidates, known.first + known.num_nodes
    keys = np.empty(k, np.int64)
    for j in range(k):
        keys[j] = nodes[j] * k + j
    keys.sort()
    masks.starts[0] = 0
    for i in range(num_queries):
        row = rows[i]
        low = lower_bound(
            known.indices, known.indptr[row], known.indptr[row + 1], known.first
        )
        high = lower_bound(known.indices, low, known.indptr[row + 1], end)
        at = masks.starts[i]
        if high - low <= _SHORT * k:
            at = _mask_row(known, low, high, relations[i], keys, masks.positions, at)
        else:
            at = _mask_each(known, low, high, relations[i], keys, masks.positions, at)
        masks.starts[i + 1] = at


@jit
def _mask_row(
    known: Known,
    begin: np.int64,
    end: np.int64,
    relation: np.int64,
    keys: Ints,
    positions: npt.NDArray[np.int32],
    at: np.int64,
) -> np.int64:
    """Look every neighbor of a short row up among the candidates."""
    last = np.int64(-1)
    for e in range(begin, end):
        node = np.int64(known.indices[e]) - known.first
        if known.relation.size > 0 and known.relation[e] != relation:
            continue
        if node != last:
            at = _note(keys, node, positions, at)
            last = node
    return at


@jit
def _mask_each(
    known: Known,
    begin: np.int64,
    end: np.int64,
    relation: np.int64,
    keys: Ints,
    positions: npt.NDArray[np.int32],
    at: np.int64,
) -> np.int64:
    """Look every candidate up in a long row."""
    last = np.int64(-1)
    for place in range(keys.size):
        node = keys[place] // keys.size
        if node == last:
            continue
        last = node
        begin = e = lower_bound(known.indices, begin, end, node + known.first)
        while e < end and known.indices[e] == node + known.first:
            if known.relation.size == 0 or known.relation[e] == relation:
                at = _note(keys, node, positions, at)
                break
            e += np.int64(1)
    return at
