"""LABOR: neighbors that the nodes of a hop have in common are chosen together.

Every candidate t has one random number r_t in the hop, whoever asks. A row of d entries
takes those with r_t <= k / d, all if d <= k: each with probability min(1, k / d), as many
on average as with neighbor sampling, but rows that share neighbors pick the same ones, so
that a hop has fewer nodes. Since a row's entries are equally likely, the mean over those
taken is the paper's estimator. That is LABOR-0.

LABOR-i gives each candidate an importance pi_t: row s takes t with the chance
min(1, c_s pi_t), and c_s is such that the variance of its mean is that of LABOR-0,
``sum_t 1 / min(1, c_s pi_t) = d^2 / k``. i times, pi_t is multiplied by the largest c_s of
the rows that name t, which makes ``sum_t min(1, pi_t max_s c_s)``, the nodes of the hop,
smaller each time: the fixed point of the paper's equation 18. A row's mean is then weighed
by 1 / chance (Hajek's estimator: the weights of a row sum to 1).

Where entries have weights A_ts of their own, pi_ts is A_ts in LABOR-0, and LABOR-1 begins
with the largest c_s A_ts of the rows that name t. The variance of the weighted mean is that
of a plain one, ``sum_t A_ts^2 / min(1, c_s pi_t) = A_s^2 (1 / k - 1 / d) + sum_t A_ts^2``
with A_s the sum of a row's weights and d its entries that have one. A row's mean is weighed
by A_ts / chance.

Balin and Catalyurek, "Layer-Neighbor Sampling -- Defusing Neighborhood Explosion in GNNs",
NeurIPS 2023 (Poisson sampling).
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.rows.row_table import INDICES, element, find_row, weight_of
from graphsys.kernels.jit import lean_inline_jit, lean_jit

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ALL_ROUNDS: Final = -1
_SETTLED: Final = 1 - 1e-4  # a round that keeps this share of the nodes is the last


@lean_jit
def pick_shared_entries(
    offsets: Ints,
    table: npt.NDArray[np.uint64],
    wide: npt.NDArray[np.uint8],
    first_entry: Ints,
    nodes: Ints,
    low: int,
    high: int,
    key: np.uint64,
    fanout: int,
    indptr: Ints,
    row: int,
    entries: Ints,
    neighbors: Ints,
) -> int:
    """Choose the entries of rows by their neighbors' numbers.

    Args:
        offsets: First number of every partition, and the number of nodes ``[P + 1]``.
        table: Addresses ``[P, 4]``.
        wide: Dtypes ``[P, 4]``.
        first_entry: Entries of all partitions before each ``[P]``.
        nodes: Nodes, of which ``low`` to ``high`` are the rows.
        low: The first.
        high: Behind the last.
        key: Of this hop's draws.
        fanout: Entries of a row on average, if it has more; negative for all.
        indptr: ``indptr[row]`` is given; receives up to ``high - low`` more.
        row: Where those stand.
        entries: Receives positions in the sequence of index files.
        neighbors: Receives numbers of nodes.

    Returns:
        ``high``, or the first row whose entries found no room in ``neighbors``.
    """
    end = indptr[row]
    room = min(len(entries), len(neighbors))
    for j in range(low, high):
        node = nodes[j]
        part, begin, stop = find_row(offsets, table, wide, node)
        degree = stop - begin
        is_drawn = fanout >= 0 and degree > fanout
        chance = np.float64(fanout) / np.float64(degree) if is_drawn else 1.0
        for p in range(begin, begin + degree):
            neighbor = element(table, wide, part, INDICES, p)
            if is_drawn:
                word = mix64(key ^ np.uint64(neighbor))
                if np.float64(word >> np.uint64(11)) * 2.0**-53 >= chance:
                    continue
            # The row is done again by the caller, with more room: `indptr` was not written
            # for it.
            if end == room:
                return j
            entries[end] = first_entry[part] + p
            neighbors[end] = neighbor
            end += 1
        indptr[row + j - low + 1] = end
    return high


@lean_jit
def read_edge_weights(
    offsets: Ints,
    table: npt.NDArray[np.uint64],
    wide: npt.NDArray[np.uint8],
    nodes: Ints,
    low: int,
    high: int,
    weights: Floats,
) -> int:
    """Read the weights of all entries of rows; those of 0 or less become 0.

    Args:
        offsets: First number of every partition, and the number of nodes ``[P + 1]``.
        table: Addresses ``[P, 4]``.
        wide: Dtypes ``[P, 4]``.
        nodes: Nodes, of which ``low`` to ``high`` are the rows.
        low: The first.
        high: Behind the last.
        weights: Receives them, row by row.

    Returns:
        Entries.
    """
    count = 0
    for j in range(low, high):
        part, begin, stop = find_row(offsets, table, wide, nodes[j])
        for p in range(begin, stop):
            weights[count] = max(weight_of(table, wide, part, p), 0.0)
            count += 1
    return count


@lean_inline_jit
def _weight_at(edge_weights: Any, k: Any) -> Any:
    """Return the weight of a hop's entry: all are 1 where there are none."""
    return edge_weights[k] if len(edge_weights) else 1.0


@lean_jit
def _factor_of(
    neighbors: Ints,
    first: int,
    begin: int,
    end: int,
    slots: npt.NDArray[np.int32],
    importance: Floats,
    edge_weights: Floats,
    is_by_edge: bool,
    fanout: int,
) -> float:
    """Return c of a row: as few are certain as its variance allows.

    Let the chances of some be 1, and R the sum of A^2 / pi over the others; then c is R
    over what the variance leaves beside the sum of A^2 of those. From the least c on, they
    become more until that is right.
    """
    degree, total, squares, least = 0, 0.0, 0.0, np.inf
    for p in range(begin, end):
        weight = _weight_at(edge_weights, p - first)
        if weight > 0.0:
            pi = weight if is_by_edge else importance[slots[neighbors[p]] - 1]
            degree, least = degree + 1, min(least, pi)
            total, squares = total + weight, squares + weight * weight
    if degree == 0 or fanout == 0:
        return 0.0
    # All are taken: c is such that the least important one is certain.
    if degree <= fanout:
        return 1.0 / least
    target = total * total * (1.0 / fanout - 1.0 / degree) + squares
    # From below each round can only find more that are certain, so it ends within d rounds.
    factor, certain = 0.0, -1
    while True:
        rest, taken, count = 0.0, 0.0, 0
        for p in range(begin, end):
            weight = _weight_at(edge_weights, p - first)
            if not weight > 0.0:
                continue
            pi = weight if is_by_edge else importance[slots[neighbors[p]] - 1]
            if factor * pi >= 1.0:
                taken, count = taken + weight * weight, count + 1
            else:
                rest += weight * weight / pi
        if count <= certain:
            return factor
        factor, certain = rest / (target - taken), count


@lean_jit
def weigh_shared_entries(
    indptr: Ints,
    row: int,
    num_rows: int,
    neighbors: Ints,
    slots: npt.NDArray[np.int32],
    edge_weights: Floats,
    count: int,
    fanout: int,
    rounds: int,
    importance: Floats,
    highest: Floats,
    factors: Floats,
) -> int:
    """Find the importance of each candidate of a hop, and the factor of each row.

    Args:
        indptr: Where rows begin, from ``indptr[row]`` on.
        row: The first.
        num_rows: Rows.
        neighbors: Numbers of nodes, row by row.
        slots: Place of each candidate plus one, by its number.
        edge_weights: Of the rows' entries, 0 and more ``[E]``; none: all are 1.
        count: Candidates.
        fanout: Entries whose variance a row has; at least 0.
        rounds: How often importances change; ``ALL_ROUNDS``: until the number of nodes
            hardly does.
        importance: Receives pi ``[count]``; with weights and no rounds it is the weight.
        highest: Scratch ``[count]``.
        factors: Receives c ``[num_rows]``.

    Returns:
        Rounds.
    """
    first, is_by_edge = indptr[row], len(edge_weights) > 0
    for t in range(count):
        importance[t] = 1.0
    before, done, is_settled = np.inf, 0, False
    while True:
        for k in range(num_rows):
            begin, end = indptr[row + k], indptr[row + k + 1]
            factors[k] = _factor_of(
                neighbors,
                first,
                begin,
                end,
                slots,
                importance,
                edge_weights,
                is_by_edge,
                fanout,
            )
        if done == rounds or fanout == 0 or is_settled:
            return done
        for t in range(count):
            highest[t] = 0.0
        for k in range(num_rows):
            for p in range(indptr[row + k], indptr[row + k + 1]):
                t = slots[neighbors[p]] - 1
                weight = _weight_at(edge_weights, p - first)
                if weight > 0.0:
                    share = weight if is_by_edge else 1.0
                    highest[t] = max(highest[t], factors[k] * share)
        expected = 0.0
        for t in range(count):
            importance[t] *= highest[t]
            expected += min(1.0, importance[t])
        is_by_edge = False  # from here on what all rows see is important
        # Each round costs a pass over all entries; the last ones win next to nothing.
        is_settled, before = expected >= _SETTLED * before, expected
        done += 1


@lean_jit
def keep_shared_entries(
    key: np.uint64,
    indptr: Ints,
    row: int,
    num_rows: int,
    slots: npt.NDArray[np.int32],
    importance: Floats,
    factors: Floats,
    edge_weights: Floats,
    is_by_edge: bool,
    entries: Ints,
    neighbors: Ints,
    weights: npt.NDArray[np.float32],
) -> int:
    """Draw candidates, and keep the entries of rows that take them, in their order.

    Args:
        key: Of this hop's draws.
        indptr: Where rows begin, from ``indptr[row]`` on; brought up to date.
        row: The first.
        num_rows: Rows.
        slots: Place of each candidate plus one, by its number.
        importance: Of each candidate.
        factors: Of each row.
        edge_weights: Of the rows' entries, 0 and more ``[E]``; none: all are 1.
        is_by_edge: Whether an entry's importance is its weight.
        entries: Positions in the sequence of index files.
        neighbors: Numbers of nodes.
        weights: Receives weights of the entries that stay, whose sum is 1 in each row.

    Returns:
        The end of the last row.
    """
    begin = zero = indptr[row]
    end = begin
    for k in range(num_rows):
        # Kept entries move to the front of the same arrays: the end never passes what is
        # read.
        first, last = end, indptr[row + k + 1]
        total = 0.0
        for place in range(begin, last):
            neighbor = neighbors[place]
            weight = _weight_at(edge_weights, place - zero)
            pi = weight if is_by_edge else importance[slots[neighbor] - 1]
            chance = min(1.0, factors[k] * pi)
            if not weight > 0.0:
                continue
            word = mix64(key ^ np.uint64(neighbor))
            if np.float64(word >> np.uint64(11)) * 2.0**-53 >= chance:
                continue
            entries[end] = entries[place]
            neighbors[end] = neighbor
            weights[end] = weight / chance
            total += weight / chance
            end += 1
        for place in range(first, end):
            weights[place] /= total
        indptr[row + k + 1] = end
        begin = last
    return int(end)


@lean_jit
def forget_candidates(slots: npt.NDArray[np.int32], candidates: Ints, count: int) -> None:
    """Set the places of candidates back to 0."""
    for k in range(count):
        slots[candidates[k]] = 0
