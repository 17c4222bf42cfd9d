"""A batch laid out for a device: what it reads, and which positions touch which row.

The draws are those of the CPU trainer, chunk by chunk. Beside them go two orders that
spare the device its sorting: the positions of every distinct row, and the runs (positions
side by side of one relation) of every relation. Both keep the order in which the CPU
trainer adds, so that sums differ by rounding only.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding.chunk import (
    Chunk,
    Edges,
    draw_negatives,
    load_positives,
)
from graphsys.kernels.cpu.embedding.step import Settings
from graphsys.kernels.cpu.embedding.vector_math import Floats, fused_jit
from graphsys.kernels.cpu.hashing import mix64

Int32s = npt.NDArray[np.int32]

NUM_CHUNKS: Final = 0
NUM_POSITIONS: Final = 1
NUM_USED: Final = 2
NUM_RUNS: Final = 3
NUM_TOUCHED: Final = 4
LONGEST_CHUNK: Final = 5
LARGEST_POOL: Final = 6
NUM_COUNTS: Final = 7


class BatchArrays(NamedTuple):
    """A batch of C chunks, P positions, U distinct rows, R runs and T relations.

    Positions are those of the chunks' pools, one chunk behind the other. Every array may
    be longer than needed.

    Attributes:
        chunk_begin, chunk_size, chunk_pool: First position, number of positives and of
            candidates of every chunk, int32 ``[C]``.
        nodes: Row at every position, of sources, then of destinations, int32 ``[2 P]``.
        used: Distinct rows, int32 ``[U]``; of destinations from ``num_src`` on.
        used_begin: Where the positions of each begin, int32 ``[U + 1]``.
        members: Positions by distinct row, those of destinations plus P, int32 ``[2 P]``.
        run_begin, run_length, run_relation: Runs, int32 ``[R]``; relation -1 for none.
        touched: Relations with operators in the batch, int32 ``[T]``.
        touched_begin: Where the runs of each begin, int32 ``[T + 1]``.
        touched_runs: Runs by relation, int32 ``[R]``.
        weights: Weight of every positive, else 0, float32 ``[P]``.
        bias: Added to scores, of sources, then of destinations, float32 ``[2 P]``.
    """

    chunk_begin: Int32s
    chunk_size: Int32s
    chunk_pool: Int32s
    nodes: Int32s
    used: Int32s
    used_begin: Int32s
    members: Int32s
    run_begin: Int32s
    run_length: Int32s
    run_relation: Int32s
    touched: Int32s
    touched_begin: Int32s
    touched_runs: Int32s
    weights: Floats
    bias: Floats


@fused_jit
def _add_runs(
    batch: BatchArrays, num_runs: int, begin: int, end: int, relation: int, run: int
) -> int:
    """Cut positions ``begin`` to ``end`` into runs; return how many there are then."""
    for first in range(begin, end, run):
        batch.run_begin[num_runs] = first
        batch.run_length[num_runs] = min(run, end - first)
        batch.run_relation[num_runs] = relation
        num_runs += 1
    return num_runs


@fused_jit
def _cut_runs(
    batch: BatchArrays,
    chunk: Chunk,
    num_runs: int,
    begin: int,
    n: int,
    k: int,
    is_reciprocal: bool,
    is_operated: bool,
    run: int,
) -> int:
    """Cut a chunk's positions into runs: by relation, as far as operators reach."""
    if not is_operated:
        return _add_runs(batch, num_runs, begin, begin + k, -1, run)
    if not is_reciprocal:
        return _add_runs(batch, num_runs, begin, begin + k, chunk.relations[0], run)
    first = 0
    while first < n:
        last = first + 1
        while last < n and chunk.relations[last] == chunk.relations[first]:
            last += 1
        relation = chunk.relations[first]
        num_runs = _add_runs(batch, num_runs, begin + first, begin + last, relation, run)
        first = last
    return _add_runs(batch, num_runs, begin + n, begin + k, -1, run)


@fused_jit
def _group(
    keys: Int32s,
    count: int,
    slot: Int32s,
    distinct: Int32s,
    begins: Int32s,
    members: Int32s,
    order: Int32s,
) -> int:
    """Group entries by key, keys in order of first sight; return how many keys.

    Entry ``order[i]`` has the key ``keys[i]``; negative keys are left out. ``slot`` is
    scratch by key, -1 before and after.
    """
    found = 0
    begins[0] = 0
    for i in range(count):
        v = keys[i]
        if v >= 0:
            if slot[v] < 0:
                slot[v] = found
                distinct[found] = v
                found += 1
                begins[found] = 0
            # One place further, so that the running sum below gives where each group
            # begins.
            begins[slot[v] + 1] += 1
    for s in range(found):
        begins[s + 1] += begins[s]
        slot[distinct[s]] = begins[s]
    for i in range(count):
        v = keys[i]
        if v >= 0:
            members[slot[v]] = order[i]
            slot[v] += 1
    # Only keys seen are cleared: the scratch is as long as the table.
    for s in range(found):
        slot[distinct[s]] = -1
    return found


@fused_jit
def lay_out_batch(
    edges: Edges,
    b: int,
    settings: Settings,
    num_src: int,
    is_shared: bool,
    is_reciprocal: bool,
    is_operated: bool,
    run: int,
    chunk: Chunk,
    slot: Int32s,
    relation_slot: Int32s,
    keys: Int32s,
    order: Int32s,
    batch: BatchArrays,
    counts: npt.NDArray[np.int64],
) -> None:
    """Lay out one batch.

    Args:
        edges: The bucket and its cut into chunks and batches.
        b: The batch.
        settings: Negatives and their key.
        num_src: Rows of the source partition.
        is_shared: Whether both are the same partition.
        is_reciprocal: Whether relations have two operators.
        is_operated: Whether any operator changes rows; with ``is_reciprocal`` always.
        run: Most positions of a run.
        chunk: Scratch for the longest chunk.
        slot: Scratch by row, all -1.
        relation_slot: Scratch by relation, all -1.
        keys: Scratch ``[2 P]``.
        order: Scratch ``[2 P]``.
        batch: Receives the batch.
        counts: Receives the numbers of chunks, positions and so on, by the codes above.
    """
    first_dst, candidates = 0 if is_shared else num_src, settings.candidates
    num_runs, begin, longest, largest = 0, 0, 0, 0
    first_chunk, last_chunk = edges.batches[b], edges.batches[b + 1]
    # Destinations stand behind all sources, so their number is needed before the first.
    total = 0
    for c in range(first_chunk, last_chunk):
        total += edges.chunks[c, 1] - edges.chunks[c, 0] + candidates.pools.begins[-1]
    at = 0
    for c in range(first_chunk, last_chunk):
        n = load_positives(edges, c, candidates, chunk)
        k = draw_negatives(candidates, mix64(settings.key + np.uint64(c)), n, chunk)
        where = c - first_chunk
        batch.chunk_begin[where] = begin
        batch.chunk_size[where], batch.chunk_pool[where] = n, k
        for i in range(k):
            batch.weights[begin + i] = chunk.weights[i] if i < n else np.float32(0.0)
            batch.nodes[begin + i] = chunk.src[i]
            batch.nodes[total + begin + i] = chunk.dst[i]
            batch.bias[begin + i] = chunk.src_bias[i]
            batch.bias[total + begin + i] = chunk.dst_bias[i]
            # Entries in the order in which the CPU trainer adds: sources of a chunk, then
            # its destinations, wherever their positions are.
            keys[at + i], order[at + i] = chunk.src[i], begin + i
            keys[at + k + i] = first_dst + chunk.dst[i]
            order[at + k + i] = total + begin + i
        num_runs = _cut_runs(
            batch, chunk, num_runs, begin, n, k, is_reciprocal, is_operated, run
        )
        begin, at = begin + k, at + 2 * k
        longest, largest = max(longest, n), max(largest, k)
    counts[NUM_CHUNKS], counts[NUM_POSITIONS] = last_chunk - first_chunk, total
    counts[NUM_USED] = _group(
        keys, 2 * total, slot, batch.used, batch.used_begin, batch.members, order
    )
    for r in range(num_runs):
        order[r] = r
    counts[NUM_RUNS] = num_runs
    counts[NUM_TOUCHED] = _group(
        batch.run_relation,
        num_runs,
        relation_slot,
        batch.touched,
        batch.touched_begin,
        batch.touched_runs,
        order,
    )
    counts[LONGEST_CHUNK], counts[LARGEST_POOL] = longest, largest
