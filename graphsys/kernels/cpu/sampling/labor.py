"""LABOR-0: neighbors that the nodes of a hop have in common are chosen together.

Every candidate t has one random number r_t in the hop, whoever asks. A row of d entries
takes those with r_t <= k / d, all if d <= k: each with probability min(1, k / d), as many
on average as with neighbor sampling, but rows that share neighbors pick the same ones, so
that a hop has fewer nodes. Since a row's entries are equally likely, the mean over those
taken is the paper's estimator.

Balin and Catalyurek, "Layer-Neighbor Sampling -- Defusing Neighborhood Explosion in GNNs",
NeurIPS 2023 (LABOR-0: Poisson sampling, all pi equal).
"""

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.cpu.rows.row_table import INDICES, INDPTR, element, find_partition
from graphsys.kernels.jit import lean_jit

Ints = npt.NDArray[np.int64]


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
        part = find_partition(offsets, node)
        local = node - offsets[part]
        begin = element(table, wide, part, INDPTR, local)
        degree = element(table, wide, part, INDPTR, local + 1) - begin
        is_drawn = fanout >= 0 and degree > fanout
        chance = np.float64(fanout) / np.float64(degree) if is_drawn else 1.0
        for p in range(begin, begin + degree):
            neighbor = element(table, wide, part, INDICES, p)
            if is_drawn:
                word = mix64(key ^ np.uint64(neighbor))
                if np.float64(word >> np.uint64(11)) * 2.0**-53 >= chance:
                    continue
            if end == room:
                return j
            entries[end] = first_entry[part] + p
            neighbors[end] = neighbor
            end += 1
        indptr[row + j - low + 1] = end
    return high
