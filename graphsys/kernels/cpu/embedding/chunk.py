"""Chunks of a bucket: their positives, and the pool of candidates of either side.

The positives of a chunk come first in its pools; then, from ``n`` on, the negatives that
all of its queries share. Draws depend on the chunk's key only, never on the worker.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding.calls import KernelAddresses, call_find_known
from graphsys.kernels.cpu.embedding.candidate_weights import CandidateWeights
from graphsys.kernels.cpu.embedding.known import allocate_masks
from graphsys.kernels.cpu.embedding.negatives import Candidates, draw_pools
from graphsys.kernels.cpu.embedding.vector_math import Floats, fused_jit, uncounted_jit

Ints = npt.NDArray[np.int64]

ASKS_SRC: Final = 1
ASKS_DST: Final = 2
ASKS_BOTH: Final = 3
BOTH_WAYS: Final = np.empty(0, dtype=np.uint8)


class Edges(NamedTuple):
    """Edges of a bucket and how they are cut.

    Attributes:
        src, dst: Local numbers, uint32 ``[E]``.
        relation: uint32 ``[E]``, or empty for one relation.
        weight: float32 ``[E]``, or empty for all ones.
        relation_weight: float32 ``[R]``.
        all_negatives: Whether all nodes are negatives, by relation, bool ``[R]``.
        order: Order of training, uint32 ``[E]``.
        chunks: Where each chunk begins and ends in ``order``, int64 ``[C, 2]``.
        batches: Where batches begin in ``chunks``, int64 ``[M + 1]``.
        asked: Which end each chunk asks for, where all nodes are negatives: ``ASKS_SRC``,
            ``ASKS_DST`` or both, uint8 ``[C]``; or empty: both.
    """

    src: npt.NDArray[np.uint32]
    dst: npt.NDArray[np.uint32]
    relation: npt.NDArray[np.uint32]
    weight: Floats
    relation_weight: Floats
    all_negatives: npt.NDArray[np.bool_]
    order: npt.NDArray[np.uint32]
    chunks: Ints
    batches: Ints
    asked: npt.NDArray[np.uint8] = BOTH_WAYS


class Chunk(NamedTuple):
    """Scratch for one chunk: ``n`` positives, then shared negatives, ``k`` in all.

    Attributes:
        src, dst: Local numbers of the pools, int64 ``[k]``.
        relations: Relation of every positive, equal ones side by side, int64 ``[k]``.
        weights: Weight of every positive, float32 ``[n]``.
        src_bias, dst_bias: Added to the score of a candidate where it is a negative,
            float32 ``[k]``.
        src_counting, dst_counting: What else does not count, or not equally.
        src_x, dst_x: Rows of the pools, float32 ``[k, D]``.
        src_g, dst_g: Gradients at them.
        moved, moved_g: Rows after their operator, and the gradients there.
        query_g, back_g: Gradients at queries either way, float32 ``[n, D]``.
        scores, distances, packed: For the scores of queries against candidates, flat.
    """

    src: Ints
    dst: Ints
    relations: Ints
    weights: Floats
    src_bias: Floats
    dst_bias: Floats
    src_counting: CandidateWeights
    dst_counting: CandidateWeights
    src_x: Floats
    dst_x: Floats
    src_g: Floats
    dst_g: Floats
    moved: Floats
    moved_g: Floats
    query_g: Floats
    back_g: Floats
    scores: Floats
    distances: Floats
    packed: Floats


@fused_jit
def allocate_chunk(
    longest: int, pool: int, candidates: Candidates, size: int, has_distances: bool
) -> Chunk:
    """Make room for chunks of ``longest`` positives with ``pool`` candidates a side."""
    begins, kept = candidates.pools.begins, candidates.pools.num_kept
    has_hard, temperatures = candidates.has_hard, candidates.temperatures
    has_masks = candidates.dst_known.indptr.size > 0
    src_masks = allocate_masks(longest, pool, has_masks)
    dst_masks = allocate_masks(longest, pool, has_masks)
    return Chunk(
        np.empty(pool, np.int64),
        np.empty(pool, np.int64),
        np.empty(pool, np.int64),
        np.empty(longest, np.float32),
        np.zeros(pool, np.float32),
        np.zeros(pool, np.float32),
        CandidateWeights(src_masks, begins, kept, has_hard, temperatures),
        CandidateWeights(dst_masks, begins, kept, has_hard, temperatures),
        np.empty((pool, size), np.float32),
        np.empty((pool, size), np.float32),
        np.empty((pool, size), np.float32),
        np.empty((pool, size), np.float32),
        np.empty((pool, size), np.float32),
        np.empty((pool, size), np.float32),
        np.empty((longest, size), np.float32),
        np.empty((longest, size), np.float32),
        np.empty(2 * longest * pool, np.float32),
        np.empty(longest * pool if has_distances else 1, np.float32),
        np.empty(max(pool * size, longest * longest), np.float32),
    )


@fused_jit
def beside(chunk: Chunk) -> Chunk:
    """Make room for the nodes of one more chunk, with the same scratch for its rows."""
    return Chunk(
        np.empty_like(chunk.src),
        np.empty_like(chunk.dst),
        np.empty_like(chunk.relations),
        np.empty_like(chunk.weights),
        np.zeros_like(chunk.src_bias),
        np.zeros_like(chunk.dst_bias),
        chunk.src_counting,
        chunk.dst_counting,
        chunk.src_x,
        chunk.dst_x,
        chunk.src_g,
        chunk.dst_g,
        chunk.moved,
        chunk.moved_g,
        chunk.query_g,
        chunk.back_g,
        chunk.scores,
        chunk.distances,
        chunk.packed,
    )


@fused_jit
def load_positives(edges: Edges, c: int, candidates: Candidates, chunk: Chunk) -> int:
    """Read the positives of chunk ``c``, by relation; return their number."""
    begin, end = edges.chunks[c, 0], edges.chunks[c, 1]
    size = int(end - begin)
    members = edges.order[begin:end]
    # Relation and place in one number: sorting it groups relations and keeps the order in
    # each.
    keys = np.arange(size)
    if edges.relation.size > 0 and edges.relation_weight.size > 1:
        for i in range(size):
            keys[i] += np.int64(edges.relation[members[i]]) * size
        keys.sort()
    for i in range(size):
        chunk.relations[i] = keys[i] // size
        e = members[keys[i] % size]
        chunk.src[i], chunk.dst[i] = edges.src[e], edges.dst[e]
        chunk.weights[i] = edges.relation_weight[chunk.relations[i]]
        if edges.weight.size > 0:
            chunk.weights[i] *= edges.weight[e]
        chunk.src_bias[i] = chunk.dst_bias[i] = 0.0
        # In-batch negatives are drawn as edges are: this makes their scores those of a
        # sampled softmax, less the log of how often each was expected.
        others = np.float32(np.log(max(size - 1, 1)))
        if candidates.src.edge_bias.size > 0:
            chunk.src_bias[i] = candidates.src.edge_bias[e] - others
        if candidates.dst.edge_bias.size > 0:
            chunk.dst_bias[i] = candidates.dst.edge_bias[e] - others
    return size


@uncounted_jit
def draw_negatives(candidates: Candidates, key: np.uint64, n: int, chunk: Chunk) -> int:
    """Append the negatives of a chunk to its pools, with their biases.

    Args:
        candidates: What they are drawn from.
        key: Key of the chunk's draws.
        n: Number of positives, which come first.
        chunk: Receives numbers and biases.

    Returns:
        Size of the pools.
    """
    pools, relation = candidates.pools, chunk.relations[0]
    draw_pools(pools, candidates.src, key, 0, relation, n, chunk.src, chunk.src_bias)
    draw_pools(pools, candidates.dst, key, 1, relation, n, chunk.dst, chunk.dst_bias)
    return n + int(pools.begins[-1])


@uncounted_jit
def mask_known(
    calls: KernelAddresses,
    candidates: Candidates,
    n: int,
    num_src: int,
    num_dst: int,
    chunk: Chunk,
) -> None:
    """List the candidates of either side that are known answers of its queries."""
    if calls.find_known != 0 and candidates.dst_known.indptr.size > 0:
        call_find_known(
            calls.find_known,
            candidates.dst_known,
            chunk.src,
            chunk.relations,
            n,
            chunk.dst,
            num_dst,
            chunk.dst_counting.masks,
        )
        call_find_known(
            calls.find_known,
            candidates.src_known,
            chunk.dst,
            chunk.relations,
            n,
            chunk.src,
            num_src,
            chunk.src_counting.masks,
        )


@uncounted_jit
def load_all_nodes(n: int, num_src: int, num_dst: int, chunk: Chunk) -> tuple[int, int]:
    """Append every node of the resident partitions to the pools of a chunk.

    Args:
        n: Number of positives, which come first.
        num_src: Nodes of the source partition.
        num_dst: Nodes of the destination partition.
        chunk: Receives numbers and biases, which are 0.

    Returns:
        Sizes of the pools of sources and destinations.
    """
    for u in range(num_src):
        chunk.src[n + u], chunk.src_bias[n + u] = u, 0.0
    for u in range(num_dst):
        chunk.dst[n + u], chunk.dst_bias[n + u] = u, 0.0
    return n + num_src, n + num_dst
