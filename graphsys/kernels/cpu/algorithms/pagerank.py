"""One superstep of PageRank: every node pulls what its in-neighbors give.

Jacobi, so that the result does not depend on numbering or threads: scores of the last
superstep only. A node's contribution (score / out-degree) is computed once, when the
score is, so the inner loop is a gather and an add. Sums of changes and of dangling mass
are kept by chunk and added in the order of the chunks, whoever worked on them.

Four accumulators break the chain of additions (2 to 8 percent: shared baselines); they
are float64 whatever the scores are, because hubs have more entries than float32 digits.
Nodes are counted without a sign: an index that might be negative is looked at in every
array that it is used in, which tells where rows are short.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.atomics import atomic_add
from graphsys.kernels.jit import inline_jit, jit


@inline_jit
def _gather(
    indices: Any, weight: Any, contributions: Any, begin: Any, end: Any, shift: Any
) -> Any:
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    k = begin
    if len(weight):
        while k < end:
            a += weight[k + shift] * contributions[indices[k]]
            k += 1
        return a
    while k + 4 <= end:
        a += contributions[indices[k]]
        b += contributions[indices[k + 1]]
        c += contributions[indices[k + 2]]
        d += contributions[indices[k + 3]]
        k += 4
    while k < end:
        a += contributions[indices[k]]
        k += 1
    return (a + b) + (c + d)


@jit
def pagerank_superstep(
    thread: int,
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    weight_begins: npt.NDArray[Any],
    weight: npt.NDArray[Any],
    bounds: npt.NDArray[np.int64],
    counter: npt.NDArray[np.int64],
    contributions: npt.NDArray[np.floating],
    next_contributions: npt.NDArray[np.floating],
    scores: npt.NDArray[np.floating],
    scale: npt.NDArray[np.floating],
    restart: npt.NDArray[np.float64],
    base: float,
    damping: float,
    partial: npt.NDArray[np.float64],
) -> None:
    """Compute new scores and contributions of the chunks that this thread takes.

    Args:
        thread: Index of the thread; not used.
        begins: Where each in-row begins ``[N]``.
        ends: Where it ends ``[N]``.
        indices: In-neighbors.
        weight_begins: Where each in-row begins in ``weight`` ``[N]``.
        weight: Weights, or empty.
        bounds: Bounds of the chunks ``[C + 1]``.
        counter: Next chunk, int64 ``[1]``; zero at the start.
        contributions: What each node gives along an edge (of weight 1) ``[N]``.
        next_contributions: Receives the same of the new scores.
        scores: Scores ``[N]``; replaced.
        scale: One over the out-degree (sum of out-weights), 0 for dangling nodes ``[N]``.
        restart: Chance of each node to be jumped to, float64 ``[N]``; empty if uniform.
        base: Mass that is jumped: per node if uniform, else in all.
        damping: Share of the mass that follows edges.
        partial: Receives the sum of changes and the dangling mass by chunk, ``[C, 2]``.
    """
    num_chunks = len(bounds) - 1
    while True:
        chunk = atomic_add(counter, 0, 1)
        if chunk >= num_chunks:
            break
        change = 0.0
        dangling = 0.0
        for node in range(np.uint64(bounds[chunk]), np.uint64(bounds[chunk + 1])):
            begin, end = np.int64(begins[node]), np.int64(ends[node])
            shift = np.int64(weight_begins[node]) - begin
            received = _gather(indices, weight, contributions, begin, end, shift)
            jumped = base * restart[node] if len(restart) else base
            score = jumped + damping * received
            change += abs(score - scores[node])
            scores[node] = score
            next_contributions[node] = score * scale[node]
            if scale[node] == 0.0:
                dangling += score
        partial[chunk, 0] = change
        partial[chunk, 1] = dangling


@jit
def sum_rows(
    begins: npt.NDArray[Any],
    ends: npt.NDArray[Any],
    weight_begins: npt.NDArray[Any],
    weight: npt.NDArray[Any],
    out: npt.NDArray[np.float64],
) -> int:
    """Add up the weights of every row.

    Args:
        begins: Where each row begins ``[N]``.
        ends: Where it ends ``[N]``.
        weight_begins: Where it begins in ``weight`` ``[N]``.
        weight: Weights.
        out: Receives the sums, float64 ``[N]``.

    Returns:
        Position in ``weight`` of the first that is negative or no finite number, or -1.
    """
    for row in range(len(begins)):
        total = 0.0
        first = np.int64(weight_begins[row])
        for k in range(first, first + np.int64(ends[row]) - np.int64(begins[row])):
            if not (weight[k] >= 0.0 and weight[k] < np.inf):
                return k
            total += weight[k]
        out[row] = total
    return -1
