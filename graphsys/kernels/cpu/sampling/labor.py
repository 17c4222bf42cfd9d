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

Balin and Catalyurek, "Layer-Neighbor Sampling -- Defusing Neighborhood Explosion in GNNs",
NeurIPS 2023 (Poisson sampling).
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.rows.row_table import INDICES, element, find_row
from graphsys.kernels.jit import lean_jit

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
def _factor_of(
    neighbors: Ints,
    begin: int,
    end: int,
    slots: npt.NDArray[np.int32],
    importance: Floats,
    fanout: int,
) -> float:
    """Return c of a row: as few are certain as its variance allows.

    Let m chances be 1 and A the sum of 1 / pi over the others; then c is A over what
    d^2 / k leaves beside m. From the least c on, m grows until it is right.
    """
    degree = end - begin
    if degree == 0 or fanout == 0:
        return 0.0
    # All are taken: c is such that the least important one is certain.
    if degree <= fanout:
        least = np.inf
        for p in range(begin, end):
            least = min(least, importance[slots[neighbors[p]] - 1])
        return 1.0 / least
    target = np.float64(degree) * np.float64(degree) / np.float64(fanout)
    # From below each round can only find more that are certain, so it ends within d rounds.
    factor, certain = 0.0, -1
    while True:
        rest, count = 0.0, 0
        for p in range(begin, end):
            pi = importance[slots[neighbors[p]] - 1]
            if factor * pi >= 1.0:
                count += 1
            else:
                rest += 1.0 / pi
        if count <= certain:
            return factor
        factor, certain = rest / (target - count), count


@lean_jit
def weigh_shared_entries(
    indptr: Ints,
    row: int,
    num_rows: int,
    neighbors: Ints,
    slots: npt.NDArray[np.int32],
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
        count: Candidates.
        fanout: Entries whose variance a row has; at least 0.
        rounds: How often importances change; ``ALL_ROUNDS``: until the number of nodes
            hardly does.
        importance: Receives pi ``[count]``.
        highest: Scratch ``[count]``.
        factors: Receives c ``[num_rows]``.

    Returns:
        Rounds.
    """
    for t in range(count):
        importance[t] = 1.0
    for k in range(num_rows):
        begin, end = indptr[row + k], indptr[row + k + 1]
        factors[k] = _factor_of(neighbors, begin, end, slots, importance, fanout)
    before, done = np.inf, 0
    while done != rounds and fanout > 0:
        for t in range(count):
            highest[t] = 0.0
        for k in range(num_rows):
            for p in range(indptr[row + k], indptr[row + k + 1]):
                t = slots[neighbors[p]] - 1
                highest[t] = max(highest[t], factors[k])
        expected = 0.0
        for t in range(count):
            importance[t] *= highest[t]
            expected += min(1.0, importance[t])
        for k in range(num_rows):
            begin, end = indptr[row + k], indptr[row + k + 1]
            factors[k] = _factor_of(neighbors, begin, end, slots, importance, fanout)
        done += 1
        # Each round costs a pass over all entries; the last ones win next to nothing.
        if expected >= _SETTLED * before:
            return done
        before = expected
    return done


@lean_jit
def keep_shared_entries(
    key: np.uint64,
    indptr: Ints,
    row: int,
    num_rows: int,
    slots: npt.NDArray[np.int32],
    importance: Floats,
    factors: Floats,
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
        entries: Positions in the sequence of index files.
        neighbors: Numbers of nodes.
        weights: Receives weights of the entries that stay, whose sum is 1 in each row.

    Returns:
        The end of the last row.
    """
    begin = indptr[row]
    end = begin
    for k in range(num_rows):
        # Kept entries move to the front of the same arrays: the end never passes what is
        # read.
        first, last = end, indptr[row + k + 1]
        total = 0.0
        for place in range(begin, last):
            neighbor = neighbors[place]
            chance = min(1.0, factors[k] * importance[slots[neighbor] - 1])
            word = mix64(key ^ np.uint64(neighbor))
            if np.float64(word >> np.uint64(11)) * 2.0**-53 >= chance:
                continue
            entries[end] = entries[place]
            neighbors[end] = neighbor
            weights[end] = 1.0 / chance
            total += 1.0 / chance
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
