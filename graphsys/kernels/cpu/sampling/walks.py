"""Random walks: uniform, by weight, and node2vec's second order.

Every draw is a hash of (seed, start, walk, step, attempt), so walks depend neither on
threads nor on who draws first. Rows must be in the order of the users' ids: the caller
renumbers the graph by rank.

node2vec: Grover and Leskovec, KDD 2016. Steps are drawn by rejection (Yang et al.,
"KnightKing", SOSP 2019): propose by weight, accept with chance alpha / max(alpha). No
tables per edge are built, unlike in the paper.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.loops import claimed_range
from graphsys.kernels.cpu.searching import lower_bound
from graphsys.kernels.jit import inline_jit, jit

_BLOCK = 64
_ATTEMPTS = 64


@inline_jit
def _uniform(key: Any, counter: Any) -> Any:
    """Return a float64 in [0, 1) with 53 random bits."""
    word = mix64(key ^ mix64(np.uint64(counter)))
    return np.float64(word >> np.uint64(11)) * 2.0**-53


@inline_jit
def _propose(cumulative: Any, begin: Any, end: Any, draw: Any) -> Any:
    """Choose an entry of a row, uniformly or by weight."""
    if len(cumulative) == 0:
        return min(begin + np.int64(draw * (end - begin)), end - 1)
    target = draw * cumulative[end - 1]
    low, high = begin, end - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > target:
            high = middle
        else:
            low = middle + 1
    return low


@inline_jit
def _has_neighbor(indptr: Any, indices: Any, node: Any, other: Any) -> Any:
    end = np.int64(indptr[node + 1])
    place = lower_bound(indices, indptr[node], end, other)
    return place < end and indices[place] == other


@jit
def _biased_total(
    indptr: Any,
    indices: Any,
    cumulative: Any,
    node: Any,
    last: Any,
    back: Any,
    out: Any,
    target: Any,
) -> Any:
    """Sum node2vec's weights of a row; return the neighbor where ``target`` is passed."""
    begin, end = np.int64(indptr[node]), np.int64(indptr[node + 1])
    total = 0.0
    found = -1.0
    for k in range(begin, end):
        weight = 1.0
        if len(cumulative):
            weight = cumulative[k] - (cumulative[k - 1] if k > begin else 0.0)
        if weight > 0.0:
            if indices[k] == last:
                weight *= back
            elif not _has_neighbor(indptr, indices, last, indices[k]):
                weight *= out
            total += weight
            found = np.float64(indices[k])
            if total > target:
                return found
    return found if target < np.inf else total


@inline_jit
def _next_node(
    indptr: Any,
    indices: Any,
    cumulative: Any,
    node: Any,
    last: Any,
    step: Any,
    key: Any,
    back: Any,
    out: Any,
) -> Any:
    """Draw the node after ``node``; -1 at a dead end; ``last`` is -1 at the start."""
    begin, end = np.int64(indptr[node]), np.int64(indptr[node + 1])
    if begin == end or (len(cumulative) and cumulative[end - 1] <= 0.0):
        return np.int64(-1)
    is_plain = last < 0 or (back == 1.0 and out == 1.0)
    # The largest bias that a candidate can have: dividing by it makes biases chances.
    ceiling = max(1.0, max(back, out))
    key = mix64(key ^ np.uint64(step))
    for attempt in range(_ATTEMPTS):
        entry = _propose(cumulative, begin, end, _uniform(key, 2 * attempt))
        chosen = np.int64(indices[entry])
        if is_plain:
            return chosen
        if chosen == last:
            bias = back
        elif _has_neighbor(indptr, indices, last, chosen):
            bias = 1.0
        else:
            bias = out
        if _uniform(key, 2 * attempt + 1) * ceiling < bias:
            return chosen
    # rare, with extreme p or q: the exact distribution, by looking at the whole row
    draw = _uniform(key, 2 * _ATTEMPTS)
    target = draw * _biased_total(
        indptr, indices, cumulative, node, last, back, out, np.inf
    )
    found = _biased_total(indptr, indices, cumulative, node, last, back, out, target)
    return np.int64(found)


@jit
def walk(
    thread: int,
    indptr: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    cumulative: npt.NDArray[np.float64],
    starts: npt.NDArray[Any],
    num_walks: int,
    back: float,
    out: float,
    seed: np.uint64,
    counter: npt.NDArray[np.int64],
    nodes: npt.NDArray[Any],
    lengths: npt.NDArray[np.int64],
) -> None:
    """Walk from every start, ``num_walks`` times each.

    Args:
        indptr: Row offsets of the out-rows, numbered by rank ``[N + 1]``.
        indices: Out-neighbors ``[E]``, rows sorted.
        cumulative: Running sums of the weights within each row ``[E]``; empty without.
        starts: First nodes ``[S]``.
        num_walks: Walks from each start.
        back: Weight of going back, node2vec's 1 / p.
        out: Weight of nodes that the last one has no edge to, node2vec's 1 / q.
        seed: The user's seed.
        nodes: Receives the walks, the start first ``[S * num_walks, length + 1]``.
        lengths: Receives how many nodes each walk has ``[S * num_walks]``.
    """
    total = len(starts) * num_walks
    for row in claimed_range(0, total, _BLOCK, counter):
        node = np.int64(starts[row // num_walks])
        key = mix64(mix64(mix64(seed) ^ np.uint64(node)) ^ np.uint64(row % num_walks))
        last = np.int64(-1)
        nodes[row, 0] = node
        length = 1
        while length < nodes.shape[1]:
            following = _next_node(
                indptr, indices, cumulative, node, last, length, key, back, out
            )
            if following < 0:
                break
            nodes[row, length] = following
            length += 1
            last, node = node, following
        lengths[row] = length


@jit
def accumulate_rows(
    indptr: npt.NDArray[Any], weight: npt.NDArray[Any], out: npt.NDArray[np.float64]
) -> int:
    """Write running sums of the weights of each row.

    Returns:
        Position of the first weight that is negative or no finite number, or -1.
    """
    for row in range(len(indptr) - 1):
        total = 0.0
        for k in range(np.int64(indptr[row]), np.int64(indptr[row + 1])):
            if not (weight[k] >= 0.0 and weight[k] < np.inf):
                return k
            total += weight[k]
            out[k] = total
    return -1
