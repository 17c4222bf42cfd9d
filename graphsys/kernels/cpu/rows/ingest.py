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
    order: npt.NDArray[np.integer],
) -> None:
    """Group edges by the range that their row number falls into, stably.

    Args:
        row: Row numbers ``[n]``.
        bounds: First row of every range and the end of the last, int64 ``[R + 1]``.
        starts: Receives where each range begins in ``order`` and n, int64 ``[R + 1]``.
        order: Receives the positions, uint32 (int64 from 2**32 on) ``[n]``.
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
def group_keys(
    row: npt.NDArray[Any],
    neighbor: npt.NDArray[Any],
    relation: npt.NDArray[Any],
    bits: int,
    relation_bits: int,
    bounds: npt.NDArray[np.int64],
    lookup: npt.NDArray[np.uint16],
    shift: int,
    starts: npt.NDArray[np.int64],
    keys: npt.NDArray[np.uint64],
    order: npt.NDArray[np.uint32],
) -> None:
    """Pack edges into sort keys and group them by range of rows, stably.

    A key is ``((row - first row of the range) << bits | neighbor) << relation_bits |
    relation``.

    Args:
        row: Row numbers ``[n]``.
        neighbor: Numbers of the other ends ``[n]``, below ``2**bits``.
        relation: Relation codes ``[n]``, or empty.
        bits: Bits of a neighbor.
        relation_bits: Bits of a relation, 0 without relations.
        bounds: First row of every range and the end of the last, int64 ``[R + 1]``.
        lookup: Range of the first row of every block of ``2**shift`` rows, uint16.
        shift: Size of those blocks.
        starts: Receives where each range begins in ``keys`` and n, int64 ``[R + 1]``.
        keys: Receives the keys, uint64 ``[n]``.
        order: Receives the positions of the edges, uint32 ``[n]``; empty to skip.
    """
    groups = np.empty(len(row), dtype=np.uint16)
    starts[:] = 0
    for k in range(len(row)):
        number = np.int64(row[k])
        r = int(lookup[number >> shift])
        while number >= bounds[r + 1]:
            r += 1
        groups[k] = r
        starts[r + 1] += 1
    for r in range(1, len(starts)):
        starts[r] += starts[r - 1]
    cursor = starts[:-1].copy()
    has_relation, has_order = len(relation) > 0, len(order) > 0
    for k in range(len(row)):
        r = int(groups[k])
        key = np.uint64(np.int64(row[k]) - bounds[r]) << np.uint64(bits)
        key |= np.uint64(neighbor[k])
        if has_relation:
            key = (key << np.uint64(relation_bits)) | np.uint64(relation[k])
        place = cursor[r]
        keys[place] = key
        if has_order:
            order[place] = k
        cursor[r] = place + 1


@jit
def unpack_keys(
    keys: npt.NDArray[np.uint64],
    bits: int,
    relation_bits: int,
    first_row: int,
    loop_offset: int,
    row: npt.NDArray[Any],
    neighbor: npt.NDArray[Any],
    relation: npt.NDArray[Any],
    counts: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Unpack sorted keys and count rows, repeats and self-loops.

    Args:
        keys: Keys of one range, sorted, uint64 ``[n]``.
        bits: Bits of a neighbor.
        relation_bits: Bits of a relation.
        first_row: First row of the range, relative to its partition.
        loop_offset: Number of row 0 of the partition; negative where rows and neighbors
            are of different types.
        row: Receives the rows relative to the partition ``[n]``.
        neighbor: Receives the neighbors ``[n]``.
        relation: Receives the relation codes ``[n]``; empty without relations.
        counts: Edges of every row of the partition; added to.

    Returns:
        Keys equal to the one before, and edges from a node to itself.
    """
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    relation_mask = (np.uint64(1) << np.uint64(relation_bits)) - np.uint64(1)
    repeats = loops = 0
    for k in range(len(keys)):
        key = keys[k]
        if k > 0 and key == keys[k - 1]:
            repeats += 1
        if relation_bits:
            relation[k] = key & relation_mask
            key >>= np.uint64(relation_bits)
        local = np.int64(key >> np.uint64(bits)) + first_row
        other = np.int64(key & mask)
        if other == local + loop_offset:
            loops += 1
        row[k] = local
        neighbor[k] = other
        counts[local] += 1
    return repeats, loops


@jit
def mark_kept(
    keys: npt.NDArray[np.uint64],
    row: npt.NDArray[Any],
    neighbor: npt.NDArray[Any],
    loop_offset: int,
    drops_repeats: bool,
    drops_loops: bool,
    counts: npt.NDArray[np.int64],
    is_kept: npt.NDArray[np.bool_],
) -> int:
    """Mark the edges that stay, and take the others out of the rows' counts.

    Args:
        keys: Keys of one range, sorted, uint64 ``[n]``.
        row: Rows relative to the partition ``[n]``.
        neighbor: Neighbors ``[n]``.
        loop_offset: Number of row 0 of the partition.
        drops_repeats: Whether keys equal to the one before go.
        drops_loops: Whether edges from a node to itself go.
        counts: Edges of every row of the partition; subtracted from.
        is_kept: Receives whether an edge stays ``[n]``.

    Returns:
        How many stay.
    """
    kept = 0
    for k in range(len(keys)):
        is_repeat = drops_repeats and k > 0 and keys[k] == keys[k - 1]
        is_loop = drops_loops and np.int64(row[k]) + loop_offset == np.int64(neighbor[k])
        is_kept[k] = not (is_repeat or is_loop)
        kept += is_kept[k]
        counts[row[k]] -= not is_kept[k]
    return kept


@jit
def close_gaps(values: npt.NDArray[Any], is_kept: npt.NDArray[np.bool_]) -> None:
    """Move the values that stay ``[n]`` to the front, in place."""
    at = 0
    for k in range(len(values)):
        values[at] = values[k]
        at += is_kept[k]
