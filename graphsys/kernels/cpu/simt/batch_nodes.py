"""Which nodes a training step reads: its positives and the negatives that it draws.

Draws are hashes of a chunk's key, so they can be made again without the training.
"""

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding.chunk import Edges, allocate_chunk
from graphsys.kernels.cpu.embedding.negatives import Candidates
from graphsys.kernels.cpu.embedding.prefetch import load_chunk
from graphsys.kernels.cpu.embedding.vector_math import fused_jit

Ints = npt.NDArray[np.int64]


@fused_jit
def list_nodes(
    edges: Edges,
    first: int,
    last: int,
    candidates: Candidates,
    key: np.uint64,
    num_src: int,
    num_dst: int,
) -> tuple[Ints, Ints, Ints]:
    """List the candidates of batches ``first`` to ``last``, chunk by chunk.

    Args:
        edges: The bucket.
        first: First batch.
        last: Where they end.
        candidates: What negatives are drawn from.
        key: Key of the draws of the bucket.
        num_src: Nodes of the source partition.
        num_dst: Nodes of the destination partition.

    Returns:
        Local numbers of both sides, int64, and where each batch begins in them,
        int64 ``[batches + 1, 2]``.
    """
    pool = int(candidates.pools.begins[-1])
    if edges.all_negatives.any():
        pool = max(pool, num_src, num_dst)
    longest, count = 0, 0
    for c in range(edges.batches[first], edges.batches[last]):
        n = edges.chunks[c, 1] - edges.chunks[c, 0]
        longest = max(longest, n)
        count += n + pool
    chunk = allocate_chunk(longest, longest + pool, candidates, 1, False)
    src, dst = np.empty(count, np.int64), np.empty(count, np.int64)
    begins = np.zeros((last - first + 1, 2), np.int64)
    of_src, of_dst = 0, 0
    for b in range(first, last):
        for c in range(edges.batches[b], edges.batches[b + 1]):
            _, ks, kd, _, _ = load_chunk(edges, c, candidates, key, num_src, num_dst, chunk)
            src[of_src : of_src + ks], dst[of_dst : of_dst + kd] = (
                chunk.src[:ks],
                chunk.dst[:kd],
            )
            of_src, of_dst = of_src + ks, of_dst + kd
        begins[b - first + 1, 0], begins[b - first + 1, 1] = of_src, of_dst
    return src[:of_src], dst[:of_dst], begins
