"""One superstep of PageRank: every node pulls what its in-neighbors give.

Jacobi, so that the result does not depend on numbering or threads: scores of the last
superstep only. A node's contribution (score / out-degree) is computed once, when the
score is, so the inner loop is a gather and an add. Sums of changes and of dangling mass
are kept by chunk and added in the order of the chunks, whoever worked on them.

Several accumulators break the chain of additions. Those of long rows are float64 whatever
the scores are, because hubs have more entries than float32 digits; short rows, and pairs of
entries, are added up in the type of the scores, as a conversion takes as long as an
addition, and made scores in 32 bits slower than those in 64 where rows are short.

Nodes are counted without a sign: an index that might be negative is looked at in every
array that it is used in, which tells where rows are short.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.loops import claimed_range
from graphsys.kernels.jit import inline_jit, jit

_SHORT = 32
"""Entries of a row that may be added up in float32: it has digits for many more."""
_ROWS = 64
"""Rows whose changes are added up in the type of the scores."""


@inline_jit
def _gather_weighted(
    indices: Any, weight: Any, contributions: Any, begin: Any, end: Any, shift: Any
) -> Any:
    total = 0.0
    for k in range(begin, end):
        total += weight[k + shift] * contributions[indices[k]]
    return total


@inline_jit
def _gather_short(indices: Any, contributions: Any, begin: Any, end: Any) -> Any:
    """Add up in the type of the contributions: each conversion takes as long as an add."""
    a = contributions.dtype.type(0)
    b = a
    k = begin
    while k + 4 <= end:
        a += contributions[indices[k]] + contributions[indices[k + 1]]
        b += contributions[indices[k + 2]] + contributions[indices[k + 3]]
        k += 4
    while k < end:
        a += contributions[indices[k]]
        k += 1
    return a + b


@inline_jit
def _gather_long(indices: Any, contributions: Any, begin: Any, end: Any) -> Any:
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    k = begin
    while k + 8 <= end:
        a += contributions[indices[k]] + contributions[indices[k + 1]]
        b += contributions[indices[k + 2]] + contributions[indices[k + 3]]
        c += contributions[indices[k + 4]] + contributions[indices[k + 5]]
        d += contributions[indices[k + 6]] + contributions[indices[k + 7]]
        k += 8
    while k < end:
        a += contributions[indices[k]]
        k += 1
    return (a + b) + (c + d)


@jit
def start_evenly(
    thread: int,
    degree: npt.NDArray[np.int64],
    bounds: npt.NDArray[np.int64],
    counter: npt.NDArray[np.int64],
    even: float,
    scale: npt.NDArray[np.floating],
    scores: npt.NDArray[np.floating],
    contributions: npt.NDArray[np.floating],
    dangling: npt.NDArray[np.int64],
) -> None:
    """Give all nodes the same score, and tell what each gives along an edge.

    Args:
        degree: Out-degrees ``[N]``, or empty where ``scale`` is known.
        even: The score.
        scale: One over the degrees, 0 for none ``[N]``; written where those are given.
        scores: Receives the scores ``[N]``.
        contributions: Receives what each node gives ``[N]``.
        dangling: Receives the nodes without out-edges by chunk ``[C]``.
    """
    kind = scores.dtype.type
    score = kind(even)
    for chunk in claimed_range(0, len(bounds) - 1, 1, counter):
        lonely = 0
        for node in range(np.uint64(bounds[chunk]), np.uint64(bounds[chunk + 1])):
            if len(degree):
                scale[node] = kind(1.0 / degree[node]) if degree[node] else kind(0)
            scores[node] = score
            contributions[node] = score * scale[node]
            lonely += scale[node] == 0
        dangling[chunk] = lonely


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
        begins: Where each in-row begins ``[N]``.
        ends: Where it ends ``[N]``.
        indices: In-neighbors.
        weight_begins: Where each in-row begins in ``weight`` ``[N]``.
        weight: Weights, or empty.
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
    kind = contributions.dtype.type
    share, even = kind(damping), kind(base)
    for chunk in claimed_range(0, num_chunks, 1, counter):
        change: Any = 0.0
        dangling: Any = 0.0
        for first in range(np.uint64(bounds[chunk]), np.uint64(bounds[chunk + 1]), _ROWS):
            changed = kind(0)
            last = min(first + np.uint64(_ROWS), np.uint64(bounds[chunk + 1]))
            for node in range(first, last):
                begin, end = np.int64(begins[node]), np.int64(ends[node])
                shift = np.int64(weight_begins[node]) - begin
                if len(weight):
                    received = kind(
                        _gather_weighted(indices, weight, contributions, begin, end, shift)
                    )
                elif end - begin <= _SHORT:
                    received = _gather_short(indices, contributions, begin, end)
                else:
                    received = kind(_gather_long(indices, contributions, begin, end))
                jumped = kind(base * restart[node]) if len(restart) else even
                score = jumped + share * received
                changed += abs(score - scores[node])
                scores[node] = score
                next_contributions[node] = score * scale[node]
                if scale[node] == 0:
                    dangling += score
            change += changed
        # By chunk, not by thread: the sum over chunks is the same whoever took them.
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
