"""Loops over ids and edges that ingest runs once for every chunk."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.jit import jit


@jit
def count_integers(
    ids: npt.NDArray[np.integer],
    weight: int,
    is_present: npt.NDArray[np.uint8],
    degrees: npt.NDArray[np.uint32],
) -> None:
    """Mark small ids as present and add ``weight`` to the degree of each."""
    for k in range(len(ids)):
        is_present[ids[k]] = 1
        degrees[ids[k]] += np.uint32(weight)


@jit
def mark_sampled(
    ids: npt.NDArray[np.integer], bits: int, hits: npt.NDArray[np.uint64]
) -> int:
    """Collect the hashes that end in ``bits`` zero bits; returns how many."""
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    found = 0
    for k in range(len(ids)):
        word = mix64(np.uint64(ids[k]))
        if word & mask == np.uint64(0):
            hits[found] = word
            found += 1
    return found


@jit
def group_edges(
    row: npt.NDArray[Any],
    bounds: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    order: npt.NDArray[np.uint32],
) -> None:
    """Group edges by the range that their row number falls into, stably.

    Args:
        row: Row numbers ``[n]``.
        bounds: First row of every range and the end of the last, int64 ``[R + 1]``.
        starts: Receives where each range begins in ``order`` and n, int64 ``[R + 1]``.
        order: Receives the positions, uint32 ``[n]``.
    """
    num_ranges = len(bounds) - 1
    starts[:] = 0
    groups = np.empty(len(row), dtype=np.uint16)
    for k in range(len(row)):
        number = np.int64(row[k])
        low, high = 0, num_ranges
        while high - low > 1:
            middle = (low + high) >> 1
            if number >= bounds[middle]:
                low = middle
            else:
                high = middle
        groups[k] = low
        starts[low + 1] += 1
    for r in range(1, num_ranges + 1):
        starts[r] += starts[r - 1]
    cursor = starts[:-1].copy()
    for k in range(len(row)):
        order[cursor[groups[k]]] = k
        cursor[groups[k]] += 1


@jit
def pack_edges(
    row: npt.NDArray[Any],
    row_base: int,
    neighbour: npt.NDArray[Any],
    bits: int,
    keys: npt.NDArray[np.uint64],
) -> None:
    """Write ``(row - row_base) << bits | neighbour`` for every edge."""
    for k in range(len(row)):
        local = np.uint64(np.int64(row[k]) - row_base)
        keys[k] = (local << np.uint64(bits)) | np.uint64(neighbour[k])


@jit
def unpack_edges(
    keys: npt.NDArray[np.uint64],
    bits: int,
    row: npt.NDArray[Any],
    neighbour: npt.NDArray[Any],
) -> None:
    """Undo :func:`pack_edges`; rows come out relative to the base."""
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    for k in range(len(keys)):
        row[k] = keys[k] >> np.uint64(bits)
        neighbour[k] = keys[k] & mask


@jit
def count_rows(row: npt.NDArray[Any], counts: npt.NDArray[np.int64]) -> None:
    """Add one to ``counts[row]`` for every edge."""
    for k in range(len(row)):
        counts[row[k]] += 1


@jit
def mark_first(keys: npt.NDArray[np.uint64], is_first: npt.NDArray[np.bool_]) -> int:
    """Mark the first of every run of equal sorted keys; returns how many are not."""
    repeats = 0
    for k in range(len(keys)):
        is_first[k] = k == 0 or keys[k] != keys[k - 1]
        if not is_first[k]:
            repeats += 1
    return repeats


@jit
def mark_first_relation(
    keys: npt.NDArray[np.uint64],
    relation: npt.NDArray[Any],
    is_first: npt.NDArray[np.bool_],
) -> int:
    """Like :func:`mark_first` for edges sorted by (key, relation)."""
    repeats = 0
    for k in range(len(keys)):
        same = k > 0 and keys[k] == keys[k - 1] and relation[k] == relation[k - 1]
        is_first[k] = not same
        if same:
            repeats += 1
    return repeats
